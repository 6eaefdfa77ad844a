/* fuzz_data.c -- the readers of data sets given any bytes: an error or items, and nothing else.
 *
 * The first byte of an input chooses the reader, the rest is the file. As a program of its own: fuzz_data FILES, or
 * fuzz_data --seed N --seconds N CORPUS, which changes bytes of the corpus's files. */
#define _GNU_SOURCE /* memfd_create */
#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <tern/tern.h>
#include <time.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

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
    return NULL;
}

static tern_dataset *(*const readers[])(const char *path) = {idx,   csv,    csv_bare, lines,
                                                             image, tokens, tar};

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
    int fd = memfd_create("data", MFD_CLOEXEC);
    if (size == 0 || fd < 0 || write(fd, bytes + 1, size - 1) != (ssize_t)size - 1)
        return fd < 0 ? 0 : close(fd);
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    TERN_SCOPE {
        tern_dataset *d = readers[bytes[0] % (sizeof readers / sizeof *readers)](path);
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

/* ---- a program of its own ------------------------------------------------------------------ */

#ifndef TERN_LIBFUZZER
enum { MOST = 1 << 16, FILES = 256 };

typedef struct input {
    uint8_t *bytes;
    size_t n;
} input;

static bool load(input *in, const char *path)
{
    FILE *f = fopen(path, "rb");
    in->bytes = f ? malloc(MOST) : NULL;
    in->n = in->bytes ? fread(in->bytes, 1, MOST, f) : 0;
    if (f)
        fclose(f);
    return in->n > 0;
}

static int load_folder(input *list, const char *folder)
{
    int n = 0;
    char path[1024];
    DIR *dir = opendir(folder);
    for (struct dirent *e; dir && n < FILES && (e = readdir(dir));) {
        snprintf(path, sizeof path, "%s/%s", folder, e->d_name);
        if (e->d_name[0] != '.' && load(&list[n], path))
            n++;
    }
    if (dir)
        closedir(dir);
    return n;
}

static uint64_t next(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15u; /* splitmix64 */
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

/* Bytes changed, cut off, repeated or put in from another input. */
static void try_one(const input *list, int n, uint64_t *state)
{
    static uint8_t bytes[2 * MOST];
    const input *from = &list[next(state) % (uint64_t)n], *other = &list[next(state) % (uint64_t)n];
    size_t size = from->n;
    memcpy(bytes, from->bytes, size);
    for (uint64_t k = next(state) % 4 + 1; k > 0; k--) {
        size_t at = next(state) % size, length = next(state) % 16;
        switch (next(state) % 5) {
        case 0:
            bytes[at] = (uint8_t)next(state);
            break;
        case 1:
            bytes[at] ^= (uint8_t)(1u << next(state) % 8);
            break;
        case 2:
            size = at + 1;
            break;
        case 3:
            if (size + length < sizeof bytes) {
                memmove(bytes + at + length, bytes + at, size - at);
                size += length;
            }
            break;
        default:
            for (size_t i = 0; i < length && at + i < size && i < other->n; i++)
                bytes[at + i] = other->bytes[next(state) % other->n];
        }
    }
    uint8_t *exact = malloc(size); /* so that sanitizers see its end */
    if (exact)
        LLVMFuzzerTestOneInput(memcpy(exact, bytes, size), size);
    free(exact);
}

int main(int argc, char **argv)
{
    static input list[FILES];
    uint64_t seed = 1;
    double seconds = 0;
    int n = 0;
    int64_t tried = 0;
    for (int i = 1; i < argc; i++)
        if (!strcmp(argv[i], "--seed") && i + 1 < argc)
            seed = strtoull(argv[++i], NULL, 10);
        else if (!strcmp(argv[i], "--seconds") && i + 1 < argc)
            seconds = atof(argv[++i]);
        else if (!strcmp(argv[i], "--catch") && i + 1 < argc)
            i++; /* what fails aborts */
        else
            n += load_folder(list + n, argv[i]);
    for (int i = 0; i < n; i++)
        LLVMFuzzerTestOneInput(list[i].bytes, list[i].n);
    uint64_t state = seed;
    for (time_t end = time(NULL) + (time_t)seconds; n > 0 && time(NULL) < end; tried++)
        try_one(list, n, &state);
    printf("%" PRId64 " files from %d of the corpus, programs of seed %" PRIu64 "\n", tried, n,
           seed);
    for (int i = 0; i < n; i++)
        free(list[i].bytes);
    return n == 0;
}
#endif
