/* faults.c -- mistakes that only a kernel can see: three words of each device, and the errors they
 * become. */
#include "device/capture.h"
#include "device/registry.h"

static tern_status make_words(tern_place *place)
{
    const uint64_t none[3] = {0};
    tern_status status = TERN_OK;
    pthread_mutex_lock(&place->lock);
    tern_block *block = atomic_load(&place->fault.block);
    if (!block) {
        status = tern_block_set_words(place, &block, none);
        atomic_store(&place->fault.block, block);
    }
    pthread_mutex_unlock(&place->lock);
    return status;
}

tern_status tern_fault_arg(tern_place *place, tern_arg *arg)
{
    TERN_TRY(tern_registry_open(place));
    if (!atomic_load_explicit(&place->fault.block, memory_order_acquire))
        TERN_TRY(make_words(place));
    tern_block *block = atomic_load_explicit(&place->fault.block, memory_order_acquire);
    *arg = tern_arg_buffer(TERN_ROLE_OUT, TERN_I64, &block->buffer, 0);
    if (tern_capture_of(place))
        tern_record_faults(tern_thread.graph);
    else
        atomic_store_explicit(&place->fault.used, true, memory_order_relaxed);
    return TERN_OK;
}

static tern_status fail(const tern_place *place, const int64_t words[3])
{
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

tern_status tern_fault_report(tern_place *place)
{
    if (!atomic_load_explicit(&place->fault.used, memory_order_relaxed) ||
        !atomic_exchange(&place->fault.used, false))
        return TERN_OK;
    int64_t words[3] = {0};
    const uint64_t none[3] = {0};
    tern_block *block = atomic_load(&place->fault.block);
    tern_status status = place->backend->read(place, &block->buffer, 0, words, sizeof words);
    if (status == TERN_OK && words[0] == 0)
        return TERN_OK;
    if (status == TERN_OK)
        status = tern_block_set_words(place, &block, none);
    if (status != TERN_OK) { /* what there is to say is said next time */
        atomic_store(&place->fault.used, true);
        return status;
    }
    if (place->synchronous)
        return fail(place, words);
    TERN_UNNAMED_IN_ERRORS; /* who waits need not be who made the mistake */
    return fail(place, words);
}

tern_status tern_fault_check(tern_place *place)
{
    return place->synchronous && !tern_capture_of(place) ? tern_fault_report(place) : TERN_OK;
}
