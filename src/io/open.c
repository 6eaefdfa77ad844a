/* open.c -- opens files for reading: the kind of a file is found by its first bytes, the model in a
 * folder by its name. */
#define _GNU_SOURCE
#include "base/address.h"
#include "base/os.h"
#include "base/magic.h"
#include "io/file.h"
#include "io/gguf.h"
#include "io/numpy.h"
#include "io/out.h"
#include "io/torch.h"
#include <errno.h>
#include <string.h>

/* Opens the file as its own first part. */
static tern_status open_part(tern_file *file)
{
    file->parts = tern_alloc(sizeof *file->parts);
    char *path = tern_copy_text(file->path);
    if (!file->parts || !path) {
        tern_free(path);
        return TERN_ERR_MEMORY;
    }
    file->parts[file->n_parts++] = (io_part){.path = path, .fd = -1};
    io_part *part = &file->parts[0];
    struct tern_os_stat facts;
    do { /* O_NONBLOCK: opening a pipe does not wait for its writer */
        part->fd = tern_os_open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    } while (part->fd < 0 && errno == EINTR);
    if (part->fd < 0 || tern_os_fstat(part->fd, &facts) != 0)
        return io_fail_system(file->function, path, "");
    if (!S_ISREG(facts.st_mode))
        return io_bad(file, 0, "no regular file");
    part->size = (uint64_t)facts.st_size;
    return TERN_OK;
}

/* ---- kinds ------------------------------------------------------------------------------- */

/* The first bytes of a file. */
typedef struct head {
    unsigned char bytes[TERN_MAGIC_BYTES + 1]; /* zeros after the file's end */
    size_t n;
    uint64_t size; /* size of the file */
    const char *path;
} head;

/* Returns whether the file is an index. The extension is checked too, since other JSON files start
 * the same way. */
static bool is_index(const head *h)
{
    return h->n && strchr("{ \t\r\n", h->bytes[0]) && h->bytes[0] &&
           tern_ends_with(h->path, ".json");
}

/* Returns whether the file starts as a safetensors file does: with a header length that fits into
 * the file, and a header that begins with '{'. */
static bool is_safetensors(const head *h)
{
    uint64_t n = 0;
    for (int i = 7; i >= 0; i--)
        n = n << 8 | h->bytes[i];
    return h->n > 8 && n <= h->size - 8 && h->bytes[8] == '{';
}

#define BEGINS_WITH(NAME, OFFSET, BYTES)                                                           \
    static bool NAME(const head *h)                                                                \
    {                                                                                              \
        return memcmp(h->bytes + (OFFSET), BYTES, sizeof(BYTES) - 1) == 0;                         \
    }
BEGINS_WITH(is_zip, 0, "PK\3\4")
BEGINS_WITH(is_empty_zip, 0, "PK\5\6")
BEGINS_WITH(is_npy, 0, "\x93NUMPY")
BEGINS_WITH(is_tar, 257, "ustar")

/* Returns whether the file starts with PyTorch's magic number, pickled by any protocol: as text in
 * 0 and 1, in a frame from 4 on. */
static bool is_torch_stream(const head *h)
{
    static const char text[] = "L119547037146038801333356L\n.";
    static const char number[] = "\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19";
    const unsigned char *at = h->bytes + (h->bytes[2] == 0x95 ? 11 : 2);
    return memcmp(h->bytes, text, sizeof text - 1) == 0 ||
           (h->bytes[0] == 0x80 && memcmp(at, number, sizeof number - 1) == 0);
}

static bool is_gguf(const head *h)
{
    return io_gguf_is_head((const char *)h->bytes);
}

/* The kinds that can be read: the first row whose test holds opens the file. Other files are
 * refused by the name that base/magic.def has for them. */
static const struct {
    bool (*is)(const head *h);
    tern_status (*open)(tern_file *file);
} kinds[] = {
    {is_index, io_index_open},   {is_safetensors, io_safetensors_open},
    {is_zip, io_archive_open},   {is_empty_zip, io_archive_open},
    {is_npy, io_npy_open},       {is_torch_stream, io_torch_stream_open},
    {is_tar, io_torch_tar_open}, {is_gguf, io_gguf_open},
};

static tern_status refuse(tern_file *file, const head *h)
{
    const tern_magic *kind = tern_magic_of(h->bytes, h->n);
    if (h->bytes[0] == 0x80 && kind)
        return io_bad(file, 0,
                      "it is a pickle that is not PyTorch's, and nothing of it is run: save its "
                      "arrays with numpy.savez, or tensors with torch.save");
    if (kind)
        return io_bad(file, 0, "it is %s, no file of tensors%s%s", kind->name,
                      *kind->way ? "; " : "", kind->way);
    return io_safetensors_open(file); /* io_safetensors_open reports what the header lacks */
}

static tern_status open_any(tern_file *file)
{
    head h = {.size = file->parts[0].size, .path = file->path};
    h.n = h.size < TERN_MAGIC_BYTES ? (size_t)h.size : TERN_MAGIC_BYTES;
    TERN_TRY(io_read_at(file, 0, 0, h.bytes, h.n, "the first bytes"));
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (kinds[i].is(&h))
            return kinds[i].open(file);
    return refuse(file, &h);
}

tern_file *io_open_as(const char *function, const char *path, tern_status (*open)(tern_file *))
{
    tern_file *file = tern_alloc(sizeof *file);
    if (!file)
        return NULL;
    file->function = function;
    file->reader = &io_uncompressed_reader;
    file->path = tern_os_plain_path(tern_copy_text(path));
    file->notes = tern_state_dict_new();
    tern_status status = file->path && file->notes ? open_part(file) : TERN_ERR_MEMORY;
    if (status == TERN_OK)
        status = open(file);
    if (status == TERN_OK)
        return file;
    tern_file_free(file);
    return NULL;
}

/* ---- folders ----------------------------------------------------------------------------- */

/* The files for which a folder is searched, in this order. */
static const char *const in_folders[] = {
    "model.safetensors",         "model.safetensors.index.json",
    "pytorch_model.bin",         "pytorch_model.bin.index.json",
    "adapter_model.safetensors", "adapter_model.bin",
};
enum { IN_FOLDERS = sizeof in_folders / sizeof *in_folders };

/* Returns the path of the first of these files that exists, which the caller frees, or NULL after
 * an error. */
static char *inside(const char *function, const char *folder)
{
    tern_text path = {0}, names = {0};
    for (int i = 0; i < IN_FOLDERS; i++) {
        tern_text_free(&path);
        tern_text_add(&path, "%s/%s", folder, in_folders[i]);
        if (path.failed || tern_os_access(path.data, F_OK) == 0)
            break;
        tern_text_add(&names, "%s%s", i ? ", " : "", in_folders[i]);
        if (i == IN_FOLDERS - 1 && !names.failed) {
            tern_fail(TERN_ERR_IO, "%s: \"%s\": the folder has none of %s", function, folder,
                      names.data);
            path.failed = true;
        }
    }
    tern_text_free(&names);
    if (!path.failed)
        return path.data;
    tern_text_free(&path);
    return NULL;
}

tern_file *io_open_path(const char *function, const char *path)
{
    return io_open_as(function, path, open_any);
}

tern_file *io_open(const char *function, const char *path)
{
    struct tern_os_stat facts;
    if (!path) {
        tern_fail_argument_null(function, "path");
        return NULL;
    }
    const bool is_there = tern_os_stat(path, &facts) == 0;
    if (!is_there && tern_refuse_address(function, path) != TERN_OK)
        return NULL;
    if (!is_there || !S_ISDIR(facts.st_mode))
        return io_open_path(function, path);
    char *model = inside(function, path);
    tern_file *file = model ? io_open_path(function, model) : NULL;
    tern_free(model);
    return file;
}
