/* foreach.c -- kernels over many tensors at once: the table of addresses, and launches.
 *
 * The idea is PyTorch's multi_tensor_apply: all tensors are cut into chunks of a fixed number of
 * elements; a work group computes one chunk, and finds the address of its tensor in a table on the
 * device. "Row" in this folder means a row of that table: the addresses of a parameter, its
 * gradient, its moments and so on, one in each column.
 *
 * The chunks depend on the sizes only and are uploaded once. Gradients are allocated anew in each
 * step, at addresses that the caching allocator repeats after a few steps. The last TABLES tables
 * therefore stay on the device, and another table is uploaded, which may wait for the device, only
 * if none of them matches. */
#include "ops/foreach/foreach.h"
#include "base/memory.h"
#include "device/capture.h"
#include "tensor/tensor.h"
#include <string.h>
#include <tern/ops/copy.h>

enum { TABLES = 32 };

/* A recently used table of addresses: its rows on the host, for comparison, and the copy of the
 * rows on the device. */
typedef struct table {
    tern_foreach_row *rows;
    tern_block *block;
} table;

struct tern_foreach {
    tern_place *place;
    int n;
    int64_t *first;         /* of n + 1: the first chunk of each tensor, then the total */
    tern_foreach_row *rows; /* of the current launch */
    table tables[TABLES];
    int tables_made, next; /* next: the table to overwrite */
    tern_block *device_chunks;
};

/* Returns ceil(numel / chunk): the last chunk of a tensor may be short. */
static int64_t chunks_of(const tern_tensor *x)
{
    return (x->numel + TERN_FOREACH_CHUNK - 1) / TERN_FOREACH_CHUNK;
}

/* Uploads for each chunk its tensor, its first element and its number of elements. */
static tern_status upload_chunks(tern_foreach *t, tern_tensor *const *tensors)
{
    int64_t n = t->first[t->n], c = 0;
    if (n == 0)
        return TERN_OK;
    tern_foreach_chunk *chunks = tern_alloc(sizeof *chunks * (size_t)n);
    if (!chunks)
        return TERN_ERR_MEMORY;
    for (int i = 0; i < t->n; i++)
        for (int64_t at = 0; at < tensors[i]->numel; at += TERN_FOREACH_CHUNK) {
            int64_t left = tensors[i]->numel - at;
            chunks[c++] =
                (tern_foreach_chunk){i, at, left < TERN_FOREACH_CHUNK ? left : TERN_FOREACH_CHUNK};
        }
    size_t bytes = sizeof *chunks * (size_t)n;
    t->device_chunks = tern_block_alloc(t->place, bytes, "tern_optim_step");
    tern_status status = t->device_chunks ? tern_block_write(t->device_chunks, 0, chunks, bytes)
                                          : tern_last_status();
    tern_free(chunks);
    return status;
}

/* Allocates the rows, and fills `first`, the running sum of the numbers of chunks. */
static tern_status lay_out(tern_foreach *t, tern_tensor *const *tensors)
{
    t->first = tern_alloc(sizeof *t->first * ((size_t)t->n + 1));
    t->rows = tern_alloc(sizeof *t->rows * (size_t)t->n);
    if (!t->first || !t->rows)
        return TERN_ERR_MEMORY;
    for (int i = 0; i < t->n; i++)
        t->first[i + 1] = t->first[i] + chunks_of(tensors[i]);
    return upload_chunks(t, tensors);
}

tern_foreach *tern_foreach_new(tern_tensor *const *tensors, int n)
{
    tern_foreach *t = tern_alloc(sizeof *t);
    if (!t)
        return NULL;
    t->n = n;
    t->place = tensors[0]->storage->place;
    if (lay_out(t, tensors) != TERN_OK) {
        tern_foreach_free(t);
        return NULL;
    }
    return t;
}

void tern_foreach_free(tern_foreach *t)
{
    if (!t)
        return;
    for (int i = 0; i < t->tables_made; i++) {
        tern_block_free(t->tables[i].block);
        tern_free(t->tables[i].rows);
    }
    tern_block_free(t->device_chunks);
    tern_free(t->rows);
    tern_free(t->first);
    tern_free(t);
}

int64_t tern_foreach_chunks(const tern_foreach *t)
{
    return t->first[t->n];
}

int64_t tern_foreach_first_chunk(const tern_foreach *t, int i)
{
    return t->first[i];
}

/* ---- launches ---------------------------------------------------------------------------- */

/* Returns whether tensor i takes part: it has elements and a gradient (column 1). */
static bool takes_part(const tern_foreach_call *call, int i)
{
    return call->column[0][i]->numel > 0 && call->column[1][i];
}

static tern_tensor *tensor_at(const tern_foreach_call *call, int column, int i)
{
    return call->column[column] ? call->column[column][i] : NULL;
}

/* Returns whether all tensors that take part have device addresses; *any: a tensor takes part. */
static bool has_addresses(const tern_foreach *t, const tern_foreach_call *call, bool *any)
{
    for (int i = 0; i < t->n; i++)
        for (int k = 0; takes_part(call, i) && k < TERN_FOREACH_COLUMNS; k++) {
            const tern_tensor *x = tensor_at(call, k, i);
            *any = true;
            if (x && !x->storage->block->buffer.address)
                return false;
        }
    return true;
}

/* Fills the rows of this launch: addresses, or 1 + the offset in elements where the kernel gets the
 * buffers as arguments; 0 where a tensor is left out. */
static tern_status fill_rows(tern_foreach *t, const tern_foreach_call *call, bool addressed)
{
    for (int i = 0; i < t->n; i++) {
        tern_foreach_row row = {0};
        for (int k = 0; takes_part(call, i) && k < TERN_FOREACH_COLUMNS; k++) {
            const tern_tensor *x = tensor_at(call, k, i);
            if (x && addressed) {
                row.address[k] = x->storage->block->buffer.address +
                                 (uint64_t)x->offset * tern_dtype_size(x->dtype);
                TERN_TRY(tern_capture_addressed(x->storage->block));
            } else if (x)
                row.address[k] = 1 + (uint64_t)x->offset;
        }
        t->rows[i] = row;
    }
    return TERN_OK;
}

/* Allocates one more table on the device. */
static tern_status make_table(tern_foreach *t, size_t bytes)
{
    table *made = &t->tables[t->tables_made];
    made->rows = tern_alloc(bytes);
    made->block = made->rows ? tern_block_alloc(t->place, bytes, "tern_optim_step") : NULL;
    if (!made->block) {
        tern_free(made->rows);
        return tern_last_status();
    }
    t->next = t->tables_made++;
    return TERN_OK;
}

/* Sets *block to a table on the device with the rows of this launch: a recent table if one is
 * equal, else the oldest table, overwritten. */
static tern_status find_table(tern_foreach *t, tern_block **block)
{
    size_t bytes = sizeof *t->rows * (size_t)t->n;
    if (tern_capture_of(t->place)) /* these tables are overwritten later */
        return tern_capture_constant(t->place, t->rows, bytes, block);
    for (int i = 0; i < t->tables_made; i++)
        if (memcmp(t->tables[i].rows, t->rows, bytes) == 0) {
            *block = t->tables[i].block;
            return TERN_OK;
        }
    if (t->tables_made < TABLES)
        TERN_TRY(make_table(t, bytes));
    table *slot = &t->tables[t->next];
    slot->rows[0].address[0] = 0; /* the table matches no rows if the upload fails */
    TERN_TRY(tern_block_write(slot->block, 0, t->rows, bytes));
    memcpy(slot->rows, t->rows, bytes);
    t->next = (t->next + 1) % TABLES;
    *block = slot->block;
    return TERN_OK;
}

/* Sets the first arguments of both forms of a kernel, for `count` chunks from `chunk` on, and
 * returns the number of arguments. */
static int common_arguments(tern_arg *args, const tern_foreach *t, const tern_foreach_call *call,
                            const tern_foreach_ready *ready, int64_t chunk, int64_t count)
{
    int n = 0;
    args[n++] = tern_arg_elements(TERN_ROLE_IN, TERN_TYPE_tern_foreach_row, &ready->rows->buffer, 0,
                                  sizeof(tern_foreach_row));
    args[n++] = tern_arg_elements(TERN_ROLE_IN, TERN_TYPE_tern_foreach_chunk,
                                  &t->device_chunks->buffer, chunk, sizeof(tern_foreach_chunk));
    if (call->each) {
        args[n] = tern_arg_out(call->each);
        args[n++].at += chunk;
    }
    for (int i = 0; i < TERN_FOREACH_SHARED && call->shared[i]; i++)
        args[n++] = tern_arg_in(call->shared[i]);
    if (call->found)
        args[n++] = tern_arg_out(call->found);
    args[n] = ready->faults;
    args[n++].role = TERN_ROLE_IN;
    args[n++] = tern_arg_i64(count);
    return n;
}

/* Launches the kernel once for all tensors, on a device whose memory has addresses. */
static tern_status launch_all(tern_foreach *t, const tern_foreach_call *call,
                              const tern_foreach_ready *ready, const tern_foreach_kernel *kernel)
{
    tern_arg args[16];
    int64_t chunks = tern_foreach_chunks(t);
    int n = common_arguments(args, t, call, ready, 0, chunks);
    return tern_launch(t->place, &kernel->many, call->column[0][0]->dtype,
                       tern_groups(chunks, TERN_FOREACH_CHUNK), args, n);
}

/* Launches the form without addresses for tensors `from` to `to`, whose buffers are arguments. An
 * argument must be a valid buffer, so a tensor that is left out gets any other buffer, which the
 * kernel ignores as the entry in the row is 0. */
static tern_status launch_as_arguments(tern_foreach *t, const tern_foreach_call *call,
                                       const tern_foreach_ready *ready,
                                       const tern_foreach_kernel *kernel, int from, int to)
{
    tern_arg args[16 + TERN_FOREACH_ARGUMENTS * TERN_FOREACH_COLUMNS];
    int64_t chunk = t->first[from], count = t->first[to] - chunk;
    int present = from;
    while (present < to && !takes_part(call, present))
        present++;
    if (present == to)
        return TERN_OK;
    int n = common_arguments(args, t, call, ready, chunk, count);
    for (int i = from; i < from + TERN_FOREACH_ARGUMENTS; i++)
        for (int k = 0; k < TERN_FOREACH_COLUMNS; k++) {
            const tern_tensor *x = i < to && takes_part(call, i) ? tensor_at(call, k, i) : NULL;
            args[n] = x ? tern_arg_out(x) : tern_arg_unused(call->column[0][present]);
            args[n++].without_offset = true;
        }
    return tern_launch(t->place, &kernel->by_arguments, call->column[0][present]->dtype,
                       tern_groups(count, TERN_FOREACH_CHUNK), args, n);
}

static tern_tensor *target_of(const tern_foreach_call *call, int i)
{
    return call->target ? call->target[i] : call->column[0][i];
}

static tern_status launch(tern_foreach *t, const tern_foreach_call *call,
                          const tern_foreach_ready *ready, const tern_foreach_kernel *kernel)
{
    if (ready->addressed)
        return launch_all(t, call, ready, kernel);
    for (int i = 0; i < t->n; i += TERN_FOREACH_ARGUMENTS) {
        int end = i + TERN_FOREACH_ARGUMENTS < t->n ? i + TERN_FOREACH_ARGUMENTS : t->n;
        TERN_TRY(launch_as_arguments(t, call, ready, kernel, i, end));
    }
    return TERN_OK;
}

static tern_status prepare_kernel(const tern_foreach *t, const tern_foreach_call *call,
                                  const tern_foreach_ready *ready,
                                  const tern_foreach_kernel *kernel)
{
    return tern_launch_prepare(t->place, ready->addressed ? &kernel->many : &kernel->by_arguments,
                               call->column[0][0]->dtype);
}

tern_status tern_foreach_can_write(const tern_tensor *x, const char *function)
{
    if (!tern_repeats(x))
        return TERN_OK;
    return tern_fail(TERN_ERR_ARGUMENT,
                     "%s: unsupported operation: more than one element of the written-to tensor "
                     "refers to a single memory location. Please clone() the tensor before "
                     "performing the operation.",
                     function);
}

tern_status tern_foreach_prepare(tern_foreach *t, const tern_foreach_call *call,
                                 tern_foreach_ready *ready)
{
    ready->any = false;
    ready->addressed = has_addresses(t, call, &ready->any);
    if (!ready->any)
        return TERN_OK;
    for (int i = 0; call->target && i < t->n; i++)
        if (takes_part(call, i))
            TERN_TRY(tern_foreach_can_write(call->target[i], call->function));
    TERN_TRY(prepare_kernel(t, call, ready, call->kernel));
    if (call->before)
        TERN_TRY(prepare_kernel(t, call, ready, call->before));
    TERN_TRY(fill_rows(t, call, ready->addressed));
    TERN_TRY(tern_fault_arg(t->place, &ready->faults));
    return find_table(t, &ready->rows);
}

tern_status tern_foreach_run(tern_foreach *t, const tern_foreach_call *call,
                             const tern_foreach_ready *ready)
{
    if (!ready->any)
        return TERN_OK;
    if (call->before)
        TERN_TRY(launch(t, call, ready, call->before));
    TERN_TRY(launch(t, call, ready, call->kernel));
    for (int i = 0; call->writes && i < t->n; i++) {
        if (!takes_part(call, i))
            continue;
        tern_tensor *target = target_of(call, i), *x = call->column[0][i];
        tern_bump_version(x);
        if (target != x && !tern_copy_(target, x))
            return tern_last_status();
    }
    return TERN_OK;
}

tern_status tern_foreach_launch(tern_foreach *t, const tern_foreach_call *call)
{
    tern_foreach_ready ready;
    TERN_TRY(tern_foreach_prepare(t, call, &ready));
    return tern_foreach_run(t, call, &ready);
}
