/* multi_tensor.c -- kernels over many tensors at once: the table of their addresses, and launches.
 *
 * The chunks are fixed with the sizes. Gradients are made anew in each step, in places that the
 * allocator repeats after a few steps: the last tables stay on the device, and one is uploaded,
 * which may wait for the device, only when none of them fits. */
#include "ops/multi_tensor.h"
#include "base/memory.h"
#include "tensor/tensor.h"
#include <string.h>

enum { TABLES = 8 };

/* Addresses of all tensors, here and on the device. */
typedef struct table {
    tern_multi_row *rows;
    tern_block *block;
} table;

struct tern_multi {
    tern_place *place;
    int n;
    int64_t *first;       /* of n + 1: the first chunk of each tensor, and how many there are */
    tern_multi_row *rows; /* of the launch at hand */
    table tables[TABLES];
    int tables_made, next; /* next: to be replaced */
    tern_block *device_chunks;
};

static int64_t chunks_of(const tern_tensor *x)
{
    return (x->numel + TERN_MULTI_CHUNK - 1) / TERN_MULTI_CHUNK;
}

static tern_status upload_chunks(tern_multi *t, tern_tensor *const *tensors)
{
    int64_t n = t->first[t->n], c = 0;
    if (n == 0)
        return TERN_OK;
    tern_multi_chunk *chunks = tern_alloc(sizeof *chunks * (size_t)n);
    if (!chunks)
        return TERN_ERR_MEMORY;
    for (int i = 0; i < t->n; i++)
        for (int64_t at = 0; at < tensors[i]->numel; at += TERN_MULTI_CHUNK) {
            int64_t left = tensors[i]->numel - at;
            chunks[c++] =
                (tern_multi_chunk){i, at, left < TERN_MULTI_CHUNK ? left : TERN_MULTI_CHUNK};
        }
    size_t bytes = sizeof *chunks * (size_t)n;
    t->device_chunks = tern_block_alloc(t->place, bytes, "tern_optim_step");
    tern_status status = t->device_chunks ? tern_block_write(t->device_chunks, 0, chunks, bytes)
                                          : tern_last_status();
    tern_free(chunks);
    return status;
}

static tern_status lay_out(tern_multi *t, tern_tensor *const *tensors)
{
    t->first = tern_alloc(sizeof *t->first * ((size_t)t->n + 1));
    t->rows = tern_alloc(sizeof *t->rows * (size_t)t->n);
    if (!t->first || !t->rows)
        return TERN_ERR_MEMORY;
    for (int i = 0; i < t->n; i++)
        t->first[i + 1] = t->first[i] + chunks_of(tensors[i]);
    return upload_chunks(t, tensors);
}

tern_multi *tern_multi_new(tern_tensor *const *tensors, int n)
{
    tern_multi *t = tern_alloc(sizeof *t);
    if (!t)
        return NULL;
    t->n = n;
    t->place = tensors[0]->storage->place;
    if (lay_out(t, tensors) != TERN_OK) {
        tern_multi_free(t);
        return NULL;
    }
    return t;
}

void tern_multi_free(tern_multi *t)
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

int64_t tern_multi_chunks(const tern_multi *t)
{
    return t->first[t->n];
}

int64_t tern_multi_first_chunk(const tern_multi *t, int i)
{
    return t->first[i];
}

/* ---- launches ---------------------------------------------------------------------------- */

static bool takes_part(const tern_multi_call *call, int i)
{
    return call->column[0][i]->numel > 0 && call->column[1][i];
}

/* 0 for a tensor that is not there. *missing: one is there, but its memory has no address. */
static uint64_t address(const tern_tensor *x, bool *missing)
{
    if (!x)
        return 0;
    uint64_t base = x->storage->block->buffer.address;
    *missing = *missing || !base;
    return base + (uint64_t)x->offset * tern_dtype_size(x->dtype);
}

/* Fill the rows of this launch; false where the device's memory has no addresses. */
static bool fill_rows(tern_multi *t, const tern_multi_call *call, bool *any)
{
    bool missing = false;
    for (int i = 0; i < t->n; i++) {
        tern_multi_row row = {0};
        for (int k = 0; takes_part(call, i) && k < TERN_MULTI_COLUMNS; k++)
            row.address[k] = address(call->column[k] ? call->column[k][i] : NULL, &missing);
        *any = *any || takes_part(call, i);
        t->rows[i] = row;
    }
    return !missing;
}

static tern_status make_table(tern_multi *t, size_t bytes)
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

/* A table on the device with the rows of this launch. */
static tern_status find_table(tern_multi *t, tern_block **block)
{
    size_t bytes = sizeof *t->rows * (size_t)t->n;
    for (int i = 0; i < t->tables_made; i++)
        if (memcmp(t->tables[i].rows, t->rows, bytes) == 0) {
            *block = t->tables[i].block;
            return TERN_OK;
        }
    if (t->tables_made < TABLES)
        TERN_TRY(make_table(t, bytes));
    table *slot = &t->tables[t->next];
    slot->rows[0].address[0] = 0; /* matches nothing, should the upload fail */
    TERN_TRY(tern_block_write(slot->block, 0, t->rows, bytes));
    memcpy(slot->rows, t->rows, bytes);
    t->next = (t->next + 1) % TABLES;
    *block = slot->block;
    return TERN_OK;
}

/* Arguments that both forms end with; returns how many there are now. */
static int add_common(tern_arg *args, int n, const tern_multi_call *call, int64_t chunk,
                      int64_t count, const tern_arg *faults)
{
    if (call->each) {
        args[n] = tern_arg_tensor(call->each);
        args[n++].at += chunk;
    }
    for (int i = 0; i < call->n_shared; i++)
        args[n++] = tern_arg_tensor(call->shared[i]);
    args[n++] = *faults;
    args[n++] = tern_arg_i64(count);
    args[n++] = tern_arg_i32(call->flags);
    return n;
}

static tern_status launch_table(tern_multi *t, const tern_multi_call *call, const tern_arg *faults)
{
    tern_arg args[16];
    int64_t chunks = tern_multi_chunks(t);
    tern_block *rows;
    TERN_TRY(find_table(t, &rows));
    args[0] = tern_arg_block(rows, 0, sizeof *t->rows);
    args[1] = tern_arg_block(t->device_chunks, 0, sizeof(tern_multi_chunk));
    int n = add_common(args, 2, call, 0, chunks, faults);
    return tern_launch(t->place, call->many, call->column[0][0]->dtype,
                       tern_groups(chunks, TERN_MULTI_CHUNK), args, n);
}

static tern_status launch_each(tern_multi *t, const tern_multi_call *call, const tern_arg *faults)
{
    for (int i = 0; i < t->n; i++) {
        tern_arg args[16];
        tern_tensor *x = call->column[0][i];
        if (!takes_part(call, i))
            continue;
        for (int k = 0; k < TERN_MULTI_COLUMNS; k++)
            args[k] = tern_arg_tensor(call->column[k] ? call->column[k][i] : x);
        int n = add_common(args, TERN_MULTI_COLUMNS, call, t->first[i], x->numel, faults);
        TERN_TRY(tern_launch(t->place, call->one, x->dtype,
                             tern_groups(chunks_of(x), TERN_MULTI_CHUNK), args, n));
    }
    return TERN_OK;
}

tern_status tern_multi_launch(tern_multi *t, const tern_multi_call *call)
{
    bool any = false, addressed = fill_rows(t, call, &any);
    tern_arg faults;
    if (!any)
        return TERN_OK;
    TERN_TRY(tern_fault_arg(t->place, &faults));
    TERN_TRY(addressed ? launch_table(t, call, &faults) : launch_each(t, call, &faults));
    for (int i = 0; call->writes && i < t->n; i++)
        if (takes_part(call, i))
            tern_bump_version(call->column[0][i]);
    return TERN_OK;
}
