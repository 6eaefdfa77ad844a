/* autocast.c -- TERN_AUTOCAST: which inputs of an operation are cast to what, and casts kept. */
#include "amp/casts.h"
#include "base/memory.h"
#include <string.h>
#include <tern/amp.h>
#include <tern/autograd.h>

/* ---- casts that are kept while the outermost block is open ------------------------------- */

typedef struct tern_kept_cast {
    tern_tensor *leaf, *cast;
    int64_t version; /* of leaf, when it was cast */
} kept_cast;

static kept_cast *find(kept_cast *slots, size_t capacity, const tern_tensor *leaf)
{
    size_t i = ((uintptr_t)leaf >> 4) * 0x9e3779b1u;
    for (;; i++) {
        kept_cast *slot = &slots[i & (capacity - 1)];
        if (!slot->leaf || slot->leaf == leaf)
            return slot;
    }
}

static tern_status reserve(tern_kept_casts *cache)
{
    if (2 * cache->count < cache->capacity)
        return TERN_OK;
    size_t capacity = cache->capacity ? 2 * cache->capacity : 64;
    kept_cast *slots = tern_alloc(sizeof *slots * capacity);
    if (!slots)
        return TERN_ERR_MEMORY;
    for (size_t i = 0; i < cache->capacity; i++)
        if (cache->slot[i].leaf)
            *find(slots, capacity, cache->slot[i].leaf) = cache->slot[i];
    tern_free(cache->slot);
    cache->slot = slots;
    cache->capacity = capacity;
    return TERN_OK;
}

void tern_clear_autocast_cache(void)
{
    tern_kept_casts *cache = &tern_thread.casts;
    for (size_t i = 0; i < cache->capacity; i++) {
        tern_release(cache->slot[i].cast);
        tern_release(cache->slot[i].leaf);
    }
    tern_free(cache->slot);
    cache->slot = NULL;
    cache->count = cache->capacity = 0;
}

/* Where nothing is recorded the cast would lack its history for those who come after; a checkpoint
 * that computes again is in no block that could let go of it. */
static bool is_worth_keeping(const tern_kept_casts *cache, const tern_tensor *x, tern_dtype to)
{
    return cache->depth > 0 && !cache->disabled && to != TERN_F32 && tern_dtype_of(x) == TERN_F32 &&
           tern_requires_grad(x) && tern_is_leaf(x) && tern_is_grad_enabled();
}

tern_tensor *tern_casts_find(const tern_tensor *leaf, tern_dtype to)
{
    tern_kept_casts *cache = &tern_thread.casts;
    const kept_cast *kept = cache->capacity ? find(cache->slot, cache->capacity, leaf) : NULL;
    bool there = kept && kept->leaf && kept->version == tern_version(leaf) &&
                 tern_dtype_of(kept->cast) == to && tern_device(kept->cast) == tern_device(leaf);
    return there ? kept->cast : NULL;
}

tern_status tern_casts_keep(tern_tensor *leaf, tern_tensor *made)
{
    tern_kept_casts *cache = &tern_thread.casts;
    TERN_TRY(reserve(cache));
    kept_cast *kept = find(cache->slot, cache->capacity, leaf);
    if (!kept->leaf) {
        kept->leaf = tern_keep(leaf);
        cache->count++;
    }
    tern_release(kept->cast);
    kept->cast = tern_keep(made);
    kept->version = tern_version(leaf);
    return TERN_OK;
}

unsigned tern_casts_made(void)
{
    return tern_thread.casts_made;
}

static tern_tensor *cast(tern_tensor *x, tern_dtype to)
{
    if (!is_worth_keeping(&tern_thread.casts, x, to))
        return tern_to_dtype(x, to);
    tern_tensor *made = tern_casts_find(x, to);
    if (made)
        return made;
    made = tern_to_dtype(x, to);
    if (!made || tern_casts_keep(x, made) != TERN_OK)
        return NULL;
    tern_thread.casts_made++;
    return made;
}

/* ---- the hook ---------------------------------------------------------------------------- */

static bool same_kind(const char *a, const char *b)
{
    size_t length = strcspn(a, ":");
    return strncmp(a, b, length) == 0 && (b[length] == ':' || b[length] == '\0');
}

/* What operations on device are cast to; TERN_DTYPE_DEFAULT for nothing. */
static tern_dtype dtype_on(const char *device)
{
    for (int i = 0; i < TERN_AUTOCAST_KINDS && tern_thread.autocast.kind[i].device; i++)
        if (same_kind(tern_thread.autocast.kind[i].device, device))
            return tern_thread.autocast.kind[i].dtype;
    return TERN_DTYPE_DEFAULT;
}

tern_dtype tern_casts_dtype(const tern_tensor *x)
{
    return dtype_on(tern_device(x));
}

/* x's type while it is one that is cast; TERN_DTYPE_DEFAULT for others. */
static tern_dtype castable(const tern_tensor *x, tern_dtype *half)
{
    tern_dtype dtype = x ? tern_dtype_of(x) : TERN_DTYPE_DEFAULT;
    if (dtype != TERN_F32 && dtype != TERN_F16 && dtype != TERN_BF16)
        return TERN_DTYPE_DEFAULT;
    *half = dtype_on(tern_device(x));
    return *half == TERN_DTYPE_DEFAULT ? TERN_DTYPE_DEFAULT : dtype;
}

static tern_dtype target(tern_cast how, tern_tensor *const *in, int n)
{
    tern_dtype half = TERN_DTYPE_DEFAULT, widest = TERN_DTYPE_DEFAULT;
    for (int i = 0; i < n; i++)
        if (castable(in[i], &half) == TERN_F32)
            widest = TERN_F32;
        else if (half != TERN_DTYPE_DEFAULT && widest != TERN_F32)
            widest = half;
    bool lower = how == TERN_CAST_LOWER || half == TERN_DTYPE_DEFAULT;
    return lower ? half : how == TERN_CAST_FLOAT32 ? TERN_F32 : widest;
}

static tern_status cast_inputs(const tern_op *op, tern_tensor **in, int n)
{
    if (op->cast == TERN_CAST_NONE)
        return TERN_OK;
    tern_dtype to = target(op->cast, in, n), half;
    if (to == TERN_DTYPE_DEFAULT)
        return TERN_OK;
    if (op->cast == TERN_CAST_REFUSED)
        return tern_fail(TERN_ERR_STATE,
                         "tern_%s: binary_cross_entropy and BCELoss are unsafe to autocast. Many "
                         "models use a sigmoid layer right before the binary cross entropy layer. "
                         "In this case, combine the two layers using "
                         "tern_binary_cross_entropy_with_logits or tern_nn_bce_with_logits_loss, "
                         "which are safe to autocast",
                         op->name);
    for (int i = 0; i < n; i++)
        if (castable(in[i], &half) != TERN_DTYPE_DEFAULT && !(in[i] = cast(in[i], to)))
            return tern_last_status();
    return TERN_OK;
}

/* ---- blocks ------------------------------------------------------------------------------ */

/* The mode of the device's kind, made if need be; -1 after an error. */
static int kind_of(const char *device)
{
    device = device ? tern_device_canonical(device) : tern_default_device();
    if (!device)
        return -1;
    for (int i = 0; i < TERN_AUTOCAST_KINDS; i++) {
        if (!tern_thread.autocast.kind[i].device)
            tern_thread.autocast.kind[i].device = device;
        if (same_kind(tern_thread.autocast.kind[i].device, device))
            return i;
    }
    tern_fail(TERN_ERR_DEVICE, "tern_autocast: too many kinds of devices (%s)", device);
    return -1;
}

static void settle(void)
{
    tern_thread.mode.cast = NULL;
    for (int i = 0; i < TERN_AUTOCAST_KINDS; i++)
        if (tern_thread.autocast.kind[i].dtype != TERN_DTYPE_DEFAULT)
            tern_thread.mode.cast = cast_inputs;
}

tern_autocast_block tern_autocast_block_enter(const char *device, tern_dtype dtype, bool enabled)
{
    tern_autocast_block block = {.active = 1, .kind = kind_of(device)};
    tern_thread.casts.depth++;
    if (block.kind < 0)
        return block;
    bool cpu = strncmp(tern_thread.autocast.kind[block.kind].device, "cpu", 3) == 0;
    if (dtype == TERN_DTYPE_DEFAULT)
        dtype = cpu ? TERN_BF16 : TERN_F16;
    if (enabled && dtype != TERN_F16 && dtype != TERN_BF16) {
        tern_fail(
            TERN_ERR_DTYPE,
            "tern_autocast: In autocast, but the target dtype is not supported (%s). Supported "
            "dtypes are float16 and bfloat16",
            tern_dtype_name(dtype));
        block.kind = -1;
        return block;
    }
    block.saved = tern_thread.autocast.kind[block.kind].dtype;
    tern_thread.autocast.kind[block.kind].dtype = enabled ? dtype : TERN_DTYPE_DEFAULT;
    settle();
    return block;
}

void tern_autocast_block_leave(tern_autocast_block *block)
{
    if (block->kind >= 0) {
        tern_thread.autocast.kind[block->kind].dtype = block->saved;
        settle();
    }
    if (--tern_thread.casts.depth == 0)
        tern_clear_autocast_cache();
}

tern_dtype tern_get_autocast_dtype(const char *device)
{
    device = device ? tern_device_canonical(device) : tern_default_device();
    return device ? dtype_on(device) : TERN_DTYPE_DEFAULT;
}

bool tern_is_autocast_enabled(const char *device)
{
    return tern_get_autocast_dtype(device) != TERN_DTYPE_DEFAULT;
}

bool tern_is_autocast_cache_enabled(void)
{
    return !tern_thread.casts.disabled;
}

void tern_set_autocast_cache_enabled(bool enabled)
{
    tern_thread.casts.disabled = !enabled;
}
