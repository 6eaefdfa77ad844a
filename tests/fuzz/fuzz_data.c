/* fuzz_data.c -- the readers of data sets given any bytes: an error or items, and nothing else.
 *
 * The first byte of an input chooses the reader, the rest is the file; TERN_FUZZ_READER=idx|csv|... tries one alone.
 * bytes.c makes it a program. */
#define _GNU_SOURCE /* memfd_create */
#include "bytes.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <tern/tern.h>
#include <unistd.h>

static void wrong(const char *what)
{
    fprintf(stderr, "fuzz_data: %s\n", what);
    abort();
}

/* ---- readers ----------------------------------------------------------------------------- */

static tern_dataset *idx(const char *path)
{
    return tern_datasets_idx(path, NULL);
}
static tern_dataset *csv(const char *path)
{
    return tern_datasets_csv(path, &(tern_csv_options){.empty_is_nan = true, .label = "label"});
}
static tern_dataset *csv_bare(const char *path)
{
    return tern_datasets_csv(path, &(tern_csv_options){.no_header = true, .separator = ';'});
}
static tern_dataset *csv_options(const char *path)
{
    static const char *const words[] = {"-", "NA"};
    return tern_datasets_csv(path, &(tern_csv_options){.separator = ';',
                                                       .na_values = words,
                                                       .n_na_values = 2,
                                                       .comment = '#',
                                                       .thousands = '.',
                                                       .decimal = ',',
                                                       .skiprows = 1});
}
static tern_dataset *lines(const char *path)
{
    return tern_datasets_text_lines(path);
}
static tern_dataset *tokens(const char *path)
{
    return tern_datasets_tokens(path, TERN_DTYPE_DEFAULT, 3);
}
static tern_dataset *tar(const char *path)
{
    static const char *const fields[] = {"png;jpg;txt", "cls"};
    return tern_datasets_tar(&path, 1, fields, 2, &(tern_image_options){.max_pixels = 1 << 16});
}
static tern_dataset *image(const char *path)
{
    tern_image_read(path, &(tern_image_options){.max_pixels = 1 << 16, .min_edge = 4});
    tern_clear_error();
    tern_image_read(path, &(tern_image_options){.max_pixels = 1 << 16, .keep_16_bits = true});
    return NULL;
}

static const struct {
    const char *name;
    tern_dataset *(*read)(const char *path);
} readers[] = {{"idx", idx},     {"csv", csv},       {"csv", csv_bare}, {"lines", lines},
               {"image", image}, {"tokens", tokens}, {"tar", tar},      {"csv", csv_options}};
enum { READERS = sizeof readers / sizeof *readers };

/* Whether the input is for the one reader that is wanted, or for any. */
static bool is_wanted(uint8_t first)
{
    const char *wanted = getenv("TERN_FUZZ_READER");
    return !wanted || !strcmp(wanted, readers[first % READERS].name);
}

static void look_at(tern_dataset *d)
{
    int64_t n = tern_dataset_length(d);
    for (int64_t i = 0; i < n && i < 8; i++)
        TERN_SCOPE {
            tern_tensor *item[TERN_MAX_ITEM];
            tern_status status = tern_dataset_item(d, i < 4 ? i : n - 1, item);
            if ((status != TERN_OK) != (tern_last_status() != TERN_OK))
                wrong("an item's status is not the error's");
            for (int k = 0; status == TERN_OK && k < tern_dataset_count(d); k++)
                if (tern_numel(item[k]) < 0)
                    wrong("an item is no tensor");
            tern_clear_error();
        }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    char path[64];
    int64_t live = tern_live_tensors();
    if (size == 0 || !is_wanted(bytes[0]))
        return 0;
    int fd = memfd_create("data", MFD_CLOEXEC);
    if (fd < 0 || write(fd, bytes + 1, size - 1) != (ssize_t)size - 1)
        return fd < 0 ? 0 : close(fd);
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    TERN_SCOPE {
        tern_dataset *d = readers[bytes[0] % READERS].read(path);
        tern_clear_error();
        if (d)
            look_at(d);
        tern_dataset_free(d);
    }
    if (tern_last_status() != TERN_OK)
        wrong(tern_last_error());
    if (tern_live_tensors() != live)
        wrong("tensors are left");
    return close(fd);
}
