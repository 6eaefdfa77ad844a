/* out_tensor.c -- writes the elements of a tensor to a file, piece by piece. */
#include "base/memory.h"
#include "io/out.h"
#include <tern/autograd.h>
#include <tern/ops.h>

enum { PIECE = 8 << 20 };

typedef struct writer {
    io_out *out;
    /* function that writes, or NULL for io_out_write */
    tern_status (*put)(void *user, const void *data, size_t bytes);
    void *user;
    void *memory; /* PIECE bytes, allocated on first use */
} writer;

static tern_status put(writer *w, const void *data, size_t bytes)
{
    return w->put ? w->put(w->user, data, bytes) : io_out_write(w->out, data, bytes);
}

/* Writes a contiguous tensor on the host. */
static tern_status put_host(writer *w, tern_tensor *x, size_t bytes)
{
    const char *from = tern_data(x);
    for (size_t n; bytes; from += n, bytes -= n) {
        n = bytes < PIECE ? bytes : PIECE;
        TERN_TRY(put(w, from, n));
    }
    return TERN_OK;
}

/* Writes a tensor of at most PIECE bytes on any device. */
static tern_status put_copy(writer *w, tern_tensor *x, size_t bytes)
{
    if (!w->memory)
        w->memory = tern_grow(NULL, PIECE);
    if (!w->memory)
        return TERN_ERR_MEMORY;
    TERN_TRY(tern_copy_to_host(x, w->memory, bytes));
    return put(w, w->memory, bytes);
}

static tern_status put_tensor(writer *w, tern_tensor *x);

/* Writes as many rows of the first dim at a time as fit into a piece; a row that does not fit is
 * divided in turn. */
static tern_status put_rows(writer *w, tern_tensor *x, size_t bytes)
{
    int64_t rows = tern_size(x, 0), at = 0;
    int64_t once = PIECE / (int64_t)(bytes / (size_t)rows);
    tern_status status = TERN_OK;
    for (int64_t n; at < rows && status == TERN_OK; at += n)
        TERN_SCOPE {
            n = !once ? 1 : once < rows - at ? once : rows - at;
            tern_tensor *part = once ? tern_narrow(x, 0, at, n) : tern_select(x, 0, at);
            status = part ? put_tensor(w, part) : tern_last_status();
        }
    return status;
}

static tern_status put_tensor(writer *w, tern_tensor *x)
{
    size_t bytes = (size_t)tern_numel(x) * tern_dtype_size(tern_dtype_of(x));
    if (!bytes)
        return TERN_OK;
    bool dense = tern_is_contiguous(x);
    if (dense && tern_device(x) == tern_device_canonical("cpu"))
        return put_host(w, x, bytes);
    if (bytes <= PIECE)
        return put_copy(w, x, bytes);
    tern_tensor *rows = dense ? tern_view(x, TERN_SHAPE(tern_numel(x))) : x;
    return rows ? put_rows(w, rows, bytes) : tern_last_status();
}

tern_status io_out_tensor(io_out *out, tern_tensor *x,
                          tern_status (*put_piece)(void *user, const void *data, size_t bytes),
                          void *user)
{
    writer w = {.out = out, .put = put_piece, .user = user};
    tern_status status = TERN_OK;
    TERN_SCOPE
        TERN_NO_GRAD
            status = put_tensor(&w, x);
    tern_free(w.memory);
    return status;
}
