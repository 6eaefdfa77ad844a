/* idx.c -- IDX files (MNIST), and CIFAR's binary files. */
#include "base/magic.h"
#include "base/os.h"
#include "data/file.h"
#include <stdio.h>
#include <string.h>

/* ---- IDX files ------------------------------------------------------------------------------- */

typedef struct idx_type {
    unsigned char code;
    tern_dtype dtype;
    int bytes;
} idx_type;

static const idx_type *type_of(unsigned char code)
{
    static const idx_type types[] = {{0x08, TERN_U8, 1},  {0x09, TERN_I8, 1},  {0x0b, TERN_I16, 2},
                                     {0x0c, TERN_I32, 4}, {0x0d, TERN_F32, 4}, {0x0e, TERN_F64, 8}};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (types[i].code == code)
            return &types[i];
    return NULL;
}

static const char read_function[] = "tern_read_idx";

static tern_status read_exactly(tern_data_stream *s, void *to, int64_t n, const char *what)
{
    int64_t got;
    TERN_TRY(tern_data_stream_read(s, to, n, &got, read_function));
    if (got == n)
        return TERN_OK;
    return tern_fail(TERN_ERR_IO, "%s: %s ends within its %s: %lld of %lld bytes", read_function,
                     s->file->path, what, (long long)got, (long long)n);
}

/* Reads the header. Returns the type, or NULL after an error. */
static const idx_type *read_header(tern_data_stream *s, tern_shape *shape, int64_t *bytes)
{
    unsigned char head[4], size[4];
    if (read_exactly(s, head, 4, "header") != TERN_OK)
        return NULL;
    const idx_type *type = type_of(head[2]);
    if (head[0] || head[1] || !type || head[3] < 1 || head[3] > 8)
        return tern_fail_null(
            TERN_ERR_IO,
            "%s: %s begins with %02x %02x %02x %02x: not an IDX file of a type and 1 to 8 sizes%s",
            read_function, s->file->path, head[0], head[1], head[2], head[3],
            tern_magic_say(head, sizeof head).text);
    *shape = (tern_shape){.ndim = head[3]};
    *bytes = type->bytes;
    for (int i = 0; i < shape->ndim; i++) {
        if (read_exactly(s, size, 4, "header") != TERN_OK)
            return NULL;
        shape->dims[i] = (int64_t)size[0] << 24 | size[1] << 16 | size[2] << 8 | size[3];
        *bytes = tern_size_mul(*bytes, shape->dims[i]);
    }
    return type;
}

static void swap(unsigned char *x, int64_t n, int bytes)
{
    for (int64_t i = 0; i < n; i += bytes)
        for (int k = 0; k < bytes / 2; k++) {
            unsigned char kept = x[i + k];
            x[i + k] = x[i + bytes - 1 - k];
            x[i + bytes - 1 - k] = kept;
        }
}

static tern_tensor *read_stream(tern_data_stream *s)
{
    tern_shape shape;
    int64_t bytes = 0, got, head = 4;
    unsigned char more;
    const idx_type *type = read_header(s, &shape, &bytes);
    if (!type)
        return NULL;
    head += 4 * shape.ndim;
    /* gzip compresses by a factor of 1,032 at most */
    int64_t most = s->gz ? tern_size_mul(s->file->size, 1032) : s->file->size - head;
    if (bytes > most || (!s->gz && bytes != most))
        return tern_fail_null(TERN_ERR_IO,
                              "%s: %s says that %lld bytes follow its header, and has %s%lld",
                              read_function, s->file->path, (long long)bytes,
                              s->gz ? "at most " : "", (long long)most);
    tern_tensor *x = tern_empty(shape, type->dtype, "cpu");
    if (!x || (bytes && read_exactly(s, tern_data(x), bytes, "data") != TERN_OK) ||
        tern_data_stream_read(s, &more, 1, &got, read_function) != TERN_OK)
        return NULL;
    if (got)
        return tern_fail_null(TERN_ERR_IO, "%s: %s goes on behind its data", read_function,
                              s->file->path);
    if (bytes)
        swap(tern_data(x), bytes, type->bytes);
    return x;
}

tern_tensor *tern_read_idx(const char *path)
{
    tern_data_file file;
    tern_data_stream stream;
    tern_tensor *x = NULL;
    if (tern_data_file_open(&file, path, read_function) != TERN_OK)
        return NULL;
    if (tern_data_stream_open(&stream, &file, read_function) == TERN_OK) {
        x = read_stream(&stream);
        tern_data_stream_close(&stream);
    }
    tern_data_file_close(&file);
    return x;
}

/* ---- data sets --------------------------------------------------------------------------- */

/* Returns a data set of images (n, ...) and labels; `channel`: each image gets a first dim of 1. */
static tern_dataset *named(const char *name, tern_tensor *images, tern_tensor *labels, bool channel)
{
    if (!images)
        return NULL;
    if (channel)
        images = tern_unsqueeze(images, 1);
    if (labels && tern_dim(labels) != 1)
        return tern_fail_null(TERN_ERR_IO, "%s: labels of %d dims", name, tern_dim(labels));
    if (labels && tern_size(labels, 0) != tern_size(images, 0))
        return tern_fail_null(TERN_ERR_IO, "%s: %lld images and %lld labels", name,
                              (long long)tern_size(images, 0), (long long)tern_size(labels, 0));
    tern_tensor *const both[] = {images, labels ? tern_to_dtype(labels, TERN_I64) : NULL};
    tern_dataset *d = tern_data_tensor_dataset_of(both, labels ? 2 : 1);
    char *copy = d ? tern_copy_text(name) : NULL;
    if (!copy) {
        tern_dataset_free(d);
        return NULL;
    }
    tern_free(d->name);
    d->type.name = d->name = copy;
    if (labels && tern_numel(labels))
        d->n_classes = tern_item_int(tern_max(labels)) + 1;
    return d;
}

tern_dataset *tern_datasets_idx(const char *images, const char *labels)
{
    TERN_NAMED_IN_ERRORS;
    TERN_SCOPE_HERE;
    tern_tensor *x = tern_read_idx(images), *y = NULL;
    if (!x || (labels && !(y = tern_read_idx(labels))))
        return NULL;
    return named("IDX", x, y, true);
}

/* Writes the path of the file in root or root/folder, with or without .gz. Returns false if no such
 * file exists. */
static bool find(const char *root, const char *folder, const char *file, char *path, size_t bytes)
{
    for (int i = 0; i < 4; i++) {
        int n = snprintf(path, bytes, "%s/%s%s%s%s", root, i < 2 ? "" : folder, i < 2 ? "" : "/",
                         file, i % 2 ? ".gz" : "");
        FILE *f = n > 0 && (size_t)n < bytes ? tern_os_fopen(path, "re") : NULL;
        if (f) {
            fclose(f);
            return true;
        }
    }
    return false;
}

static tern_dataset *two_files(const char *name, const char *function, const char *root,
                               const char *folder, const char *prefix)
{
    static const char *const kinds[] = {"images-idx3-ubyte", "labels-idx1-ubyte"};
    TERN_SCOPE_HERE;
    char file[128], path[4096];
    tern_tensor *x[2] = {NULL, NULL};
    if (!root)
        return tern_fail_argument_null(function, "root"), NULL;
    for (int i = 0; i < 2; i++) {
        snprintf(file, sizeof file, "%s%s", prefix, kinds[i]);
        if (!find(root, folder, file, path, sizeof path))
            return tern_fail_null(TERN_ERR_IO,
                                  "%s: Dataset not found: no %s, nor with .gz, in %s or "
                                  "its %s",
                                  function, file, root, folder);
        if (!(x[i] = tern_read_idx(path)))
            return NULL;
    }
    return named(name, x[0], x[1], true);
}

tern_dataset *tern_datasets_mnist(const char *root, bool train)
{
    return two_files("MNIST", "tern_datasets_mnist", root, "MNIST/raw", train ? "train-" : "t10k-");
}

tern_dataset *tern_datasets_fashion_mnist(const char *root, bool train)
{
    return two_files("FashionMNIST", "tern_datasets_fashion_mnist", root, "FashionMNIST/raw",
                     train ? "train-" : "t10k-");
}

tern_dataset *tern_datasets_emnist(const char *root, const char *split, bool train)
{
    static const char *const splits[] = {"byclass", "bymerge", "balanced",
                                         "letters", "digits",  "mnist"};
    const char *function = "tern_datasets_emnist";
    char prefix[64];
    for (size_t i = 0; split && i < sizeof splits / sizeof *splits; i++)
        if (strcmp(split, splits[i]) == 0) {
            snprintf(prefix, sizeof prefix, "emnist-%s-%s-", split, train ? "train" : "test");
            return two_files("EMNIST", function, root, "EMNIST/raw", prefix);
        }
    return tern_fail_null(TERN_ERR_ARGUMENT,
                          "%s: split %.40s is none of byclass, bymerge, balanced, "
                          "letters, digits, mnist",
                          function, split ? split : "NULL");
}

/* ---- CIFAR ------------------------------------------------------------------------------- */

enum { CIFAR_IMAGE = 3 * 32 * 32 };

/* Reads rows of n_labels bytes, the last of which is the label, and an image. */
static tern_status add_rows(const char *path, int n_labels, tern_tensor **images,
                            tern_tensor **labels, const char *function)
{
    tern_data_file file;
    const int64_t row = CIFAR_IMAGE + n_labels;
    tern_status status = tern_data_file_open(&file, path, function);
    if (status == TERN_OK && (file.size % row || !file.size))
        status = tern_fail(TERN_ERR_IO, "%s: %s has %lld bytes, which are no rows of %lld",
                           function, path, (long long)file.size, (long long)row);
    tern_tensor *all =
        status == TERN_OK ? tern_empty(TERN_SHAPE(file.size / row, row), TERN_U8, "cpu") : NULL;
    if (status == TERN_OK)
        status = all ? tern_data_file_read(&file, 0, tern_data(all), file.size, function)
                     : TERN_ERR_MEMORY;
    if (status == TERN_OK) {
        *labels = tern_select(all, 1, n_labels - 1);
        *images = tern_reshape(tern_narrow(all, 1, n_labels, CIFAR_IMAGE),
                               TERN_SHAPE(file.size / row, 3, 32, 32));
        status = *images && *labels ? TERN_OK : TERN_ERR_MEMORY;
    }
    tern_data_file_close(&file);
    return status;
}

static tern_dataset *cifar(const char *name, const char *function, const char *root,
                           const char *folder, const char *const *files, int n, int n_labels)
{
    TERN_SCOPE_HERE;
    char path[4096];
    tern_tensor *images[8], *labels[8];
    if (!root)
        return tern_fail_argument_null(function, "root"), NULL;
    for (int i = 0; i < n; i++) {
        if (!find(root, folder, files[i], path, sizeof path))
            return tern_fail_null(TERN_ERR_IO,
                                  "%s: Dataset not found or corrupted: no %s in %s or its %s",
                                  function, files[i], root, folder);
        if (add_rows(path, n_labels, &images[i], &labels[i], function) != TERN_OK)
            return NULL;
    }
    return named(name, tern_cat(images, n, 0), tern_cat(labels, n, 0), false);
}

tern_dataset *tern_datasets_cifar10(const char *root, bool train)
{
    static const char *const files[] = {"data_batch_1.bin", "data_batch_2.bin", "data_batch_3.bin",
                                        "data_batch_4.bin", "data_batch_5.bin", "test_batch.bin"};
    return cifar("CIFAR10", "tern_datasets_cifar10", root, "cifar-10-batches-bin",
                 train ? files : files + 5, train ? 5 : 1, 1);
}

tern_dataset *tern_datasets_cifar100(const char *root, bool train)
{
    static const char *const files[] = {"train.bin", "test.bin"};
    return cifar("CIFAR100", "tern_datasets_cifar100", root, "cifar-100-binary",
                 train ? files : files + 1, 1, 2);
}
