/* tensor.c -- reads the tensors of ONNX files, which are in the message or in another file. */
#include "io/onnx/graph.h"
#include "base/os.h"
#include "base/checked.h"
#include "base/memory.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The dtype of each data_type, and the field that has the elements if there is no raw_data. */
typedef enum field { INT32, INT64, FLOAT, DOUBLE, UINT64 } field;
static const struct {
    const char *name;
    tern_dtype dtype; /* 0 if tern has no such dtype */
    field field;
} types[] = {[1] = {"float", TERN_F32, FLOAT},
             [2] = {"uint8", TERN_U8, INT32},
             [3] = {"int8", TERN_I8, INT32},
             [4] = {"uint16", TERN_U16, INT32},
             [5] = {"int16", TERN_I16, INT32},
             [6] = {"int32", TERN_I32, INT32},
             [7] = {"int64", TERN_I64, INT64},
             [8] = {"string", 0, INT32},
             [9] = {"bool", TERN_BOOL, INT32},
             [10] = {"float16", TERN_F16, INT32},
             [11] = {"double", TERN_F64, DOUBLE},
             [12] = {"uint32", TERN_U32, UINT64},
             [13] = {"uint64", TERN_U64, UINT64},
             [14] = {"complex64", 0, FLOAT},
             [15] = {"complex128", 0, DOUBLE},
             [16] = {"bfloat16", TERN_BF16, INT32},
             [17] = {"float8e4m3fn", TERN_F8_E4M3FN, INT32},
             [18] = {"float8e4m3fnuz", 0, INT32},
             [19] = {"float8e5m2", TERN_F8_E5M2, INT32}};
enum { TYPES = sizeof types / sizeof *types };

tern_dtype onnx_dtype(int64_t data_type, const char *what)
{
    if (data_type > 0 && data_type < TYPES && types[data_type].dtype)
        return types[data_type].dtype;
    tern_fail(TERN_ERR_DTYPE,
              "tern_onnx_load: %.80s is of type %s, which tern does not compute with", what,
              data_type > 0 && data_type < TYPES ? types[data_type].name : "unknown");
    return 0;
}

int onnx_type_of(tern_dtype dtype)
{
    for (int i = 1; i < TYPES; i++)
        if (types[i].dtype == dtype)
            return i;
    return 0;
}

/* ---- elements -------------------------------------------------------------------------------- */

/* Copies the elements of the typed field to `out` as elements of `size` bytes. */
static tern_status typed_bytes(const Onnx__TensorProto *p, field from, size_t size, int64_t n,
                               uint8_t *out)
{
    const struct {
        const void *elements;
        size_t count, size;
    } fields[] = {[INT32] = {p->int32_data, p->n_int32_data, 4},
                  [INT64] = {p->int64_data, p->n_int64_data, 8},
                  [FLOAT] = {p->float_data, p->n_float_data, 4},
                  [DOUBLE] = {p->double_data, p->n_double_data, 8},
                  [UINT64] = {p->uint64_data, p->n_uint64_data, 8}};
    size_t there = fields[from].count;
    if (there != (size_t)n)
        return tern_fail(TERN_ERR_IO,
                         "tern_onnx_load: tensor '%.80s' has %zu elements, its shape wants %lld",
                         p->name ? p->name : "", there, (long long)n);
    for (size_t i = 0; i < there; i++) /* elements are stored in wider integers, whose low bytes
                                          count */
        memcpy(out + i * size, (const char *)fields[from].elements + i * fields[from].size, size);
    return TERN_OK;
}

static const char *entry(const Onnx__TensorProto *p, const char *key)
{
    for (size_t i = 0; i < p->n_external_data; i++)
        if (p->external_data[i]->key && !strcmp(p->external_data[i]->key, key))
            return p->external_data[i]->value;
    return NULL;
}

static bool number_of(const char *text, int64_t otherwise, int64_t *value)
{
    char *end;
    if (!text) {
        *value = otherwise;
        return true;
    }
    errno = 0;
    *value = strtoll(text, &end, 10);
    return *text && !*end && !errno && *value >= 0;
}

/* Reads bytes of a file in the folder of the model; paths to other folders are refused. *out is the
 * caller's to free. It is allocated after the file is known to be large enough. */
static tern_status external_bytes(const Onnx__TensorProto *p, const char *path, size_t bytes,
                                  uint8_t **out)
{
    const char *name = entry(p, "location"), *slash = tern_os_last_slash(path);
    int64_t offset, length;
    if (!name || !*name || strpbrk(name, TERN_OS_NO_NAME) || *name == '.')
        return tern_fail(TERN_ERR_IO,
                         "tern_onnx_load: tensor '%.80s' of %s is in the file '%.80s', which is no "
                         "plain name beside the model",
                         p->name, path, name ? name : "");
    if (!number_of(entry(p, "offset"), 0, &offset) ||
        !number_of(entry(p, "length"), (int64_t)bytes, &length) || length != (int64_t)bytes)
        return tern_fail(
            TERN_ERR_IO,
            "tern_onnx_load: tensor '%.80s' of %s wants %zu bytes of %s, which its entry "
            "does not give",
            p->name, path, bytes, name);
    char *folder = tern_copy_text(slash ? path : ".");
    if (!folder)
        return TERN_ERR_MEMORY;
    if (slash)
        folder[slash == path ? 1 : slash - path] = 0;
    int at = tern_os_open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int fd = at < 0 ? -1 : tern_os_openat(at, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
    struct tern_os_stat is;
    tern_status status = TERN_OK;
    if (fd < 0 || tern_os_fstat(fd, &is) || !S_ISREG(is.st_mode) || is.st_nlink != 1)
        status =
            tern_fail(TERN_ERR_IO, "tern_onnx_load: %s: %s of %s can't be read: %s", p->name, name,
                      path, fd < 0 ? strerror(errno) : "it is no regular file of its own");
    else if (offset > is.st_size || length > is.st_size - offset)
        status = tern_fail(TERN_ERR_IO,
                           "tern_onnx_load: tensor '%.80s' ends behind the end of %s (%lld bytes)",
                           p->name, name, (long long)is.st_size);
    if (status == TERN_OK && !(*out = tern_alloc(bytes + 1)))
        status = TERN_ERR_MEMORY;
    for (size_t done = 0; status == TERN_OK && done < bytes;) {
        ssize_t n = tern_os_pread(fd, *out + done, bytes - done, (off_t)(offset + (int64_t)done));
        if (n > 0)
            done += (size_t)n;
        else if (n == 0 || errno != EINTR)
            status =
                tern_fail(TERN_ERR_IO, "tern_onnx_load: %s became shorter while it was read", name);
    }
    if (fd >= 0)
        tern_os_close(fd);
    if (at >= 0)
        tern_os_close(at);
    tern_free(folder);
    return status;
}

static tern_status shape_of(const Onnx__TensorProto *p, tern_shape *shape, int64_t *numel)
{
    if (p->n_dims > TERN_MAX_DIMS)
        return tern_fail(TERN_ERR_SHAPE,
                         "tern_onnx_load: tensor '%.80s' has %zu dims, %d are possible",
                         p->name ? p->name : "", p->n_dims, TERN_MAX_DIMS);
    *shape = tern_shape_from((int)p->n_dims, p->dims);
    *numel = 1;
    for (size_t d = 0; d < p->n_dims; d++)
        if (p->dims[d] < 0 || __builtin_mul_overflow(*numel, p->dims[d], numel) ||
            *numel > INT64_MAX / 16)
            return tern_fail(TERN_ERR_SHAPE,
                             "tern_onnx_load: tensor '%.80s' has sizes that overflow",
                             p->name ? p->name : "");
    return TERN_OK;
}

tern_tensor *onnx_tensor(const Onnx__TensorProto *p, const char *path)
{
    tern_shape shape;
    int64_t n = 0;
    const char *name = p->name ? p->name : "";
    tern_dtype dtype = onnx_dtype(p->data_type, name);
    if (!dtype || shape_of(p, &shape, &n) != TERN_OK)
        return NULL;
    size_t size = tern_dtype_size(dtype), bytes = (size_t)n * size;
    bool external = p->data_location == ONNX__TENSOR_PROTO__DATA_LOCATION__EXTERNAL;
    if (external && !path)
        return tern_fail_null(TERN_ERR_UNSUPPORTED,
                              "tern_onnx_load: '%.80s' is not an initializer and has external data",
                              name);
    if (p->has_raw_data && !external) {
        if (p->raw_data.len != bytes)
            return tern_fail_null(
                TERN_ERR_IO, "tern_onnx_load: tensor '%.80s' has %zu bytes, its shape wants %zu",
                name, p->raw_data.len, bytes);
        return tern_from_data((const void *)p->raw_data.data, shape, dtype, "cpu");
    }
    /* a small file can't cause a large allocation */
    uint8_t *data = NULL;
    if (!external && bytes <= 64 + 16 * (p->n_float_data + p->n_int32_data + p->n_int64_data +
                                         p->n_double_data + p->n_uint64_data))
        data = tern_alloc(bytes + 1);
    if (!external && !data)
        return tern_fail_null(TERN_ERR_IO,
                              "tern_onnx_load: tensor '%.80s' has fewer elements than its "
                              "shape",
                              name);
    tern_tensor *x = NULL;
    tern_status status = external ? external_bytes(p, path, bytes, &data)
                                  : typed_bytes(p, types[p->data_type].field, size, n, data);
    if (status == TERN_OK)
        x = tern_from_data((const void *)data, shape, dtype, "cpu");
    tern_free(data);
    return x;
}
