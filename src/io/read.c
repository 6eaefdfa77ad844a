/* read.c -- reads the elements of a tensor from a file to a device.
 *
 * On the cpu they are read directly into the tensor, in pieces. For a device there are two pieces
 * of pinned memory: one is filled while the other is copied. */
#define _GNU_SOURCE
#include "io/file.h"
#include "base/os.h"
#include "io/out.h"
#include <stdio.h>
#include <string.h>
#include <tern/autograd.h>

enum { PIECE = 8 << 20, HUGE_PAGE = 2 << 20 };

/* ---- uncompressed files ---------------------------------------------------------------------- */

static tern_status start_uncompressed(io_stream *s, uint64_t skip)
{
    s->at = s->entry->at + skip;
    return TERN_OK;
}

/* Reads whole blocks and decodes them to float32. */
static tern_status next_blocks(io_stream *s, float *to, size_t bytes, const char *what)
{
    enum { BUFFER = 32 << 10 };
    unsigned char raw[BUFFER];
    const io_block *b = s->entry->block;
    size_t once = BUFFER / (size_t)b->bytes, left = bytes / sizeof *to / (size_t)b->elements;
    uint64_t at = s->entry->at +
                  (s->at - s->entry->at) / sizeof *to / (uint64_t)b->elements * (uint64_t)b->bytes;
    s->at += bytes;
    for (size_t n; left; left -= n) {
        n = left < once ? left : once;
        TERN_TRY(io_read_at(s->file, s->entry->part, at, raw, n * (size_t)b->bytes, what));
        at += n * (uint64_t)b->bytes;
        for (size_t i = 0; i < n; i++, to += b->elements)
            b->decode(raw + i * (size_t)b->bytes, to);
    }
    return TERN_OK;
}

static tern_status next_uncompressed(io_stream *s, void *to, size_t bytes)
{
    char what[400];
    snprintf(what, sizeof what, "tensor `%s`", IO_SHOW(s->entry->name));
    if (s->entry->block)
        return next_blocks(s, to, bytes, what);
    TERN_TRY(io_read_at(s->file, s->entry->part, s->at, to, bytes, what));
    s->at += bytes;
    return TERN_OK;
}

static tern_status finish_uncompressed(io_stream *s, bool whole)
{
    (void)s, (void)whole;
    return TERN_OK;
}

const io_reader io_uncompressed_reader = {start_uncompressed, next_uncompressed,
                                          finish_uncompressed, NULL};

/* ---- bytes ----------------------------------------------------------------------------------- */

static void swap(unsigned char *bytes, size_t n, size_t size)
{
    for (size_t i = 0; i < n; i += size)
        for (size_t k = 0; k < size / 2; k++) {
            unsigned char c = bytes[i + k];
            bytes[i + k] = bytes[i + size - 1 - k];
            bytes[i + size - 1 - k] = c;
        }
}

/* Reads whole elements of n bytes in tern's form: in the host's byte order, bools as 0 and 1. */
static tern_status next_elements(io_stream *s, void *to, size_t n)
{
    const io_type *type = s->entry->type;
    unsigned char *bytes = to;
    TERN_TRY(s->file->reader->next(s, to, n));
    if (s->entry->is_swapped)
        swap(bytes, n, (size_t)type->bits / 8);
    for (size_t i = 0; type->dtype == TERN_BOOL && i < n; i++)
        bytes[i] = bytes[i] != 0;
    return TERN_OK;
}

/* Page faults of new memory cost more than the copy into it; huge pages have fewer. */
static void prefer_huge_pages(void *data, size_t bytes)
{
    uintptr_t begin = ((uintptr_t)data + HUGE_PAGE - 1) & ~(uintptr_t)(HUGE_PAGE - 1);
    uintptr_t end = ((uintptr_t)data + bytes) & ~(uintptr_t)(HUGE_PAGE - 1);
    if (end > begin)
        tern_os_wish_large_pages((void *)begin, end - begin);
}

static tern_status fill_host(io_stream *s, void *data, size_t bytes)
{
    prefer_huge_pages(data, bytes);
    char *to = data;
    for (size_t n; bytes; to += n, bytes -= n) {
        n = bytes < PIECE ? bytes : PIECE;
        TERN_TRY(next_elements(s, to, n));
    }
    return TERN_OK;
}

/* ---- reading to a device --------------------------------------------------------------------- */

/* Reads by two pinned pieces. A piece is overwritten only after the device has copied it. */
static tern_status fill_staged(io_stream *s, tern_tensor *x)
{
    tern_dtype dtype = tern_dtype_of(x);
    int64_t n = tern_numel(x), once = PIECE / (int64_t)tern_dtype_size(dtype);
    tern_tensor *flat = tern_view(x, TERN_SHAPE(n)), *stage[2];
    for (int i = 0; i < 2; i++) {
        stage[i] = tern_pin_memory(tern_empty(TERN_SHAPE(once), dtype, "cpu"));
        if (!stage[i])
            return tern_last_status();
    }
    tern_status status = flat ? TERN_OK : tern_last_status();
    int turn = 0;
    for (int64_t at = 0, k; at < n && status == TERN_OK; at += k, turn++)
        TERN_SCOPE {
            k = once < n - at ? once : n - at;
            if (turn >= 2)
                status = tern_synchronize(tern_device(x));
            if (status == TERN_OK)
                status = next_elements(s, tern_data(stage[turn % 2]),
                                       (size_t)k * tern_dtype_size(dtype));
            if (status == TERN_OK &&
                !tern_copy_non_blocking_(tern_narrow(flat, 0, at, k),
                                         tern_narrow(stage[turn % 2], 0, 0, k)))
                status = tern_last_status();
        }
    tern_status done = turn ? tern_synchronize(tern_device(x)) : TERN_OK;
    return status == TERN_OK ? done : status;
}

/* Returns a new tensor with the next elements of the stream, or NULL after an error. */
static tern_tensor *next_tensor(io_stream *s, const tern_shape *shape, const char *device)
{
    tern_dtype dtype = s->entry->type->dtype;
    bool host = strcmp(device, "cpu") == 0;
    tern_tensor *x = tern_empty(*shape, dtype, device);
    size_t bytes = x ? (size_t)tern_numel(x) * tern_dtype_size(dtype) : 0;
    tern_status status = x ? TERN_OK : tern_last_status();
    if (bytes && host)
        status = fill_host(s, tern_data(x), bytes);
    else if (bytes > PIECE)
        status = fill_staged(s, x);
    else if (bytes) {
        tern_tensor *stage = tern_empty(*shape, dtype, "cpu");
        status = stage ? next_elements(s, tern_data(stage), bytes) : tern_last_status();
        if (status == TERN_OK && !tern_copy_(x, stage))
            status = tern_last_status();
    }
    return status == TERN_OK ? x : NULL;
}

/* ---- tensors --------------------------------------------------------------------------------- */

/* Returns the tensor of a stream: contiguous, or by the entry's strides. */
static tern_tensor *take(io_stream *s, const tern_shape *shape, const char *device)
{
    const io_entry *e = s->entry;
    if (!e->is_strided)
        return next_tensor(s, shape, device);
    tern_shape stride = {.ndim = e->ndim};
    memcpy(stride.dims, e->dims + e->ndim, sizeof *e->dims * (size_t)e->ndim);
    int64_t n = (int64_t)(s->left / (uint64_t)(e->type->bits / 8));
    tern_tensor *all = next_tensor(s, &(tern_shape){1, {n}}, device);
    return tern_contiguous(tern_as_strided(all, *shape, stride, 0));
}

static tern_tensor *read_all(io_stream *s, const tern_shape *shape, uint64_t skip,
                             const char *device)
{
    const io_reader *reader = s->file->reader;
    tern_tensor *x = NULL;
    tern_status status = reader->start(s, skip);
    if (status == TERN_OK) {
        x = take(s, shape, device);
        status = reader->finish(s, x && skip + s->left == s->entry->bytes);
    }
    return status == TERN_OK ? x : NULL;
}

tern_tensor *io_read(tern_file *file, const io_entry *e, int64_t start, int64_t end,
                     const char *device, const char *function)
{
    if (file->n_shards)
        return io_read(file->shards[e->part], io_entry_itself(file, e), start, end, device,
                       function);
    if (io_check_readable(file, e, function, "") != TERN_OK)
        return NULL;
    device = device ? tern_device_canonical(device) : tern_default_device();
    if (!device)
        return NULL;
    tern_shape shape = tern_shape_from(e->ndim, e->dims);
    io_stream s = {.file = file, .entry = e, .left = e->bytes};
    uint64_t skip = 0;
    /* Rows can be read alone only if they are contiguous bytes: not with strides, nor in a vector
     * of blocks. */
    bool part = start >= 0 && !e->is_strided && !(e->block && e->ndim == 1);
    if (part) {
        uint64_t row = shape.dims[0] ? e->bytes / (uint64_t)shape.dims[0] : 0;
        shape.dims[0] = end - start;
        skip = row * (uint64_t)start;
        s.left = row * (uint64_t)(end - start);
    }
    tern_tensor *x = NULL;
    TERN_SCOPE
        TERN_NO_GRAD {
            x = start < 0 && io_map_fits(file, e, device) ? io_map_tensor(file, e, shape)
                                                          : read_all(&s, &shape, skip, device);
            if (x && start >= 0 && !part)
                x = tern_clone(tern_narrow(x, 0, start, end - start));
            if (x && e->is_negated)
                x = tern_neg(x);
            if (x)
                x = tern_escape(x);
        }
    return x;
}
