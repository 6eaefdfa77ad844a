/* faults.c -- mistakes that only a kernel can see: three words of each device, and the errors they
 * become. */
#include "device/capture.h"
#include "device/registry.h"

tern_status tern_fault_arg(tern_place *place, tern_arg *arg)
{
    TERN_TRY(tern_registry_open(place));
    if (!place->fault.block) {
        const uint64_t none[3] = {0};
        pthread_mutex_lock(&place->lock);
        tern_status status =
            place->fault.block ? TERN_OK : tern_block_set_words(place, &place->fault.block, none);
        pthread_mutex_unlock(&place->lock);
        TERN_TRY(status);
    }
    *arg = tern_arg_buffer(TERN_ROLE_OUT, TERN_I64, &place->fault.block->buffer, 0);
    if (tern_capture_of(place))
        tern_record_faults(tern_thread.graph);
    else
        atomic_store_explicit(&place->fault.used, true, memory_order_relaxed);
    return TERN_OK;
}

tern_status tern_fault_report(tern_place *place)
{
    if (!atomic_load_explicit(&place->fault.used, memory_order_relaxed) ||
        !atomic_exchange(&place->fault.used, false))
        return TERN_OK;
    int64_t words[3] = {0};
    const uint64_t none[3] = {0};
    TERN_TRY(place->backend->read(place, &place->fault.block->buffer, 0, words, sizeof words));
    if (words[0] == 0)
        return TERN_OK;
    TERN_TRY(tern_block_set_words(place, &place->fault.block, none));
    if ((words[0] & 255) == TERN_FAULT_DIMENSION)
        return tern_fail(TERN_ERR_ARGUMENT,
                         "index %lld is out of bounds for dimension %lld with size %lld",
                         (long long)words[1], (long long)(words[0] >> 8), (long long)words[2]);
    switch (words[0]) {
#define X(NAME, CODE, FORMAT)                                                                      \
    case CODE:                                                                                     \
        return tern_fail(TERN_ERR_ARGUMENT, FORMAT, (long long)words[1], (long long)words[2]);
#include "device/faults.def"
#undef X
    }
    return tern_fail(TERN_ERR_DEVICE, "%s: a kernel reported the unknown fault %lld", place->text,
                     (long long)words[0]);
}

tern_status tern_fault_check(tern_place *place)
{
    return place->synchronous && !tern_capture_of(place) ? tern_fault_report(place) : TERN_OK;
}
