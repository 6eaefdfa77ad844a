/* vendor.c -- convolutions, attention and collectives by a vendor's library, which is tried before
 * the portable kernels. */
#include "device/capture.h"
#include "device/registry.h"
#include "device/command.h"
#include <tern/backends.h>

const tern_communicators *tern_place_communicators(const tern_place *place)
{
    const tern_vendor *vendor = place->backend->vendor;
    return vendor && vendor->communicators && vendor->communicators->version()
               ? vendor->communicators
               : NULL;
}

bool tern_place_leaves_bias(const tern_place *place)
{
    const tern_vendor *vendor = place->backend->vendor;
    return vendor && vendor->leaves_bias;
}

bool tern_place_wants_multiples(const tern_place *place, const tern_gemm *g)
{
    const tern_vendor *vendor = place->backend->vendor;
    return vendor && vendor->wants_multiples && vendor->wants_multiples(place, g);
}

/* Sets *taken to whether the vendor's library computes the convolution, and *scratch. A backend
 * without convolution_plan shows this only when it runs the convolution, so during a capture that
 * is run now, on whatever data its tensors have. */
static tern_status is_taken(tern_place *place, tern_convolution *c, size_t *scratch, bool *taken)
{
    const tern_vendor *vendor = place->backend->vendor;
    *taken = true;
    if (vendor->convolution_plan)
        return vendor->convolution_plan(place, c, scratch, taken);
    return tern_capture_of(place) ? vendor->convolution(place, c, taken) : TERN_OK;
}

/* Allocates scratch memory, which during a capture comes from the graph's pool, and dispatches the
 * command. */
static tern_status give(tern_place *place, const tern_command *command, size_t bytes,
                        const tern_buffer **scratch, const char *function, bool *taken)
{
    tern_block *block = bytes ? tern_block_alloc(place, bytes, function) : NULL;
    if (bytes && !block)
        return tern_last_status();
    *scratch = block ? &block->buffer : NULL;
    tern_status status = tern_command_dispatch(place, command, taken);
    tern_block_free(block);
    return status;
}

tern_status tern_launch_convolution(tern_place *place, const tern_convolution *c, bool *taken)
{
    const tern_vendor *vendor = place->backend->vendor;
    tern_convolution call = *c;
    size_t bytes = 0;
    *taken = false;
    if (!vendor || !vendor->convolution || (c->accumulates && !vendor->accumulates_convolutions))
        return TERN_OK;
    TERN_TRY(tern_registry_open(place));
    call.tf32 = c->dtype == TERN_F32 && tern_backends_cudnn_allows_tf32();
    TERN_TRY(is_taken(place, &call, &bytes, taken));
    if (!*taken)
        return TERN_OK;
    return give(place, &(tern_command){.kind = TERN_COMMAND_CONVOLUTION, .what.convolution = &call},
                bytes, &call.scratch, "tern_convolution", taken);
}

bool tern_place_attends_wide(tern_place *place, tern_dtype dtype)
{
    const tern_vendor *vendor = place->backend->vendor;
    return vendor && vendor->attends_wide && tern_registry_open(place) == TERN_OK &&
           vendor->attends_wide(place, dtype);
}

tern_status tern_launch_attention(tern_place *place, const tern_attention *a, bool *taken)
{
    const tern_vendor *vendor = place->backend->vendor;
    tern_attention call = *a;
    size_t bytes = 0;
    *taken = false;
    if (!vendor || !vendor->attention)
        return TERN_OK;
    TERN_TRY(tern_registry_open(place));
    TERN_TRY(vendor->attention_plan(place, &call, &bytes, taken));
    if (!*taken)
        return TERN_OK;
    return give(place, &(tern_command){.kind = TERN_COMMAND_ATTENTION, .what.attention = &call},
                bytes, &call.scratch, "tern_scaled_dot_product_attention", taken);
}

tern_status tern_launch_collectives(tern_place *const *places, int n, const tern_collective *list,
                                    int k, bool *taken)
{
    const tern_backend *backend = places[0]->backend;
    *taken = false;
    if (n > TERN_MOST_COLLECTIVE_DEVICES || !backend->vendor || !backend->vendor->collectives)
        return TERN_OK;
    for (int i = 0; i < n; i++) {
        if (places[i]->backend != backend || tern_capture_of(places[i]))
            return TERN_OK;
        for (int j = 0; j < i; j++)
            if (places[j] == places[i])
                return TERN_OK;
        TERN_TRY(tern_registry_open(places[i]));
    }
    tern_command command = {.kind = TERN_COMMAND_COLLECTIVE,
                            .what.collectives = {places, list, n, k}};
    return tern_command_dispatch(places[0], &command, taken);
}
