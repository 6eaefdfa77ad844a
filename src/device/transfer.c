/* transfer.c -- copies of bytes from and to the host, within a device and between two devices. */
#include "base/profile.h"
#include "device/recording.h"
#include "device/registry.h"

tern_status tern_capture_constant(tern_place *place, const void *data, size_t bytes,
                                  tern_block **block)
{
    tern_graph *graph = tern_capture_suspend();
    tern_block **grown =
        tern_grow(graph->constants, sizeof *grown * (size_t)(graph->n_constants + 1));
    tern_status status = grown ? TERN_OK : TERN_ERR_MEMORY;
    if (grown) {
        graph->constants = grown;
        *block = tern_block_alloc(place, bytes, "TERN_CAPTURE");
        status = *block ? tern_block_write(*block, 0, data, bytes) : tern_last_status();
        if (*block)
            graph->constants[graph->n_constants++] = *block;
    }
    tern_capture_resume(graph);
    return status;
}

static tern_status copy_within(const tern_block *from, size_t from_at, const tern_block *to,
                               size_t to_at, size_t bytes)
{
    tern_command command = {.kind = TERN_COMMAND_COPY,
                            .what.copy = {&from->buffer, &to->buffer, from_at, to_at, bytes}};
    return tern_command_dispatch(to->place, &command, NULL);
}

tern_status tern_block_write(tern_block *to, size_t at, const void *from, size_t bytes)
{
    tern_place *place = to->place;
    TERN_TRY(tern_registry_open(place));
    if (tern_capture_of(place)) { /* every replay writes the same bytes */
        tern_block *constant;
        TERN_TRY(tern_capture_constant(place, from, bytes, &constant));
        return copy_within(constant, 0, to, at, bytes);
    }
    atomic_fetch_add_explicit(&place->to_device, bytes, memory_order_relaxed);
    int64_t range = tern_range_begin(TERN_RANGE_COPY, "to_device", (int64_t)bytes);
    tern_status status = place->backend->write(place, &to->buffer, at, from, bytes);
    tern_range_end(range);
    return status;
}

tern_status tern_block_read(tern_block *from, size_t at, void *to, size_t bytes)
{
    tern_place *place = from->place;
    TERN_TRY(tern_registry_open(place));
    if (tern_capture_of(place))
        return tern_capture_refuse(place, "reading values on the host");
    atomic_fetch_add_explicit(&place->to_host, bytes, memory_order_relaxed);
    atomic_fetch_add_explicit(&place->waits, 1, memory_order_relaxed);
    int64_t range = tern_range_begin(TERN_RANGE_COPY, "to_host", (int64_t)bytes);
    tern_status status = place->backend->read(place, &from->buffer, at, to, bytes);
    tern_range_end(range);
    return status == TERN_OK ? tern_fault_report(place) : status;
}

tern_status tern_block_zero(tern_block *to, size_t at, size_t bytes)
{
    tern_command command = {.kind = TERN_COMMAND_ZERO,
                            .what.copy = {.to = &to->buffer, .to_at = at, .bytes = bytes}};
    return tern_command_dispatch(to->place, &command, NULL);
}

/* Copies between two devices through host memory, in pieces of at most 16 MiB. */
static tern_status copy_staged(tern_block *from, size_t from_at, tern_block *to, size_t to_at,
                               size_t bytes)
{
    size_t piece = bytes < ((size_t)16 << 20) ? bytes : (size_t)16 << 20;
    void *stage = tern_alloc(piece);
    tern_status status = stage ? TERN_OK : TERN_ERR_MEMORY;
    for (size_t done = 0; status == TERN_OK && done < bytes; done += piece) {
        size_t n = bytes - done < piece ? bytes - done : piece;
        status = tern_block_read(from, from_at + done, stage, n);
        if (status == TERN_OK)
            status = tern_block_write(to, to_at + done, stage, n);
    }
    tern_free(stage);
    return status;
}

tern_status tern_block_copy(tern_block *from, size_t from_at, tern_block *to, size_t to_at,
                            size_t bytes)
{
    tern_place *a = from->place, *b = to->place;
    TERN_TRY(tern_registry_open(a));
    TERN_TRY(tern_registry_open(b));
    tern_graph *graph = tern_capture_of(a);
    if (a != b && (graph || tern_capture_of(b)))
        return tern_capture_refuse(graph ? a : b, "a copy from one device to another");
    if (a == b)
        return copy_within(from, from_at, to, to_at, bytes);
    if (a->backend == b->backend) {
        tern_status status =
            a->backend->peer(a, &from->buffer, from_at, b, &to->buffer, to_at, bytes);
        if (status != TERN_ERR_UNSUPPORTED)
            return status;
    }
    if (a->synchronous && from->buffer.host)
        return tern_block_write(to, to_at, (const char *)from->buffer.host + from_at, bytes);
    if (b->synchronous && to->buffer.host)
        return tern_block_read(from, from_at, (char *)to->buffer.host + to_at, bytes);
    return copy_staged(from, from_at, to, to_at, bytes);
}
