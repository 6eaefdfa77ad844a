/* loader.c -- creates and frees loaders, and saves and restores their states. */
#include "data/loader.h"
#include "base/lock.h"
#include "base/option.h"
#include "base/parallel.h"
#include <inttypes.h>
#include <string.h>

/* ---- freeing --------------------------------------------------------------------------------- */

static void free_given(const tern_loader_options *o)
{
    tern_sampler_free(o->sampler);
    if (o->batch_sampler != o->sampler)
        tern_sampler_free(o->batch_sampler);
    tern_transform_free(o->device_transform);
}

void tern_loader_free(tern_loader *l)
{
    TERN_LOADER_GIVEN(l, "tern_loader_free");
    if (l && !tern_workers_stop(l))
        tern_loader_end(l);
}

/* ---- construction ---------------------------------------------------------------------------- */

static tern_status check_sampler_options(const tern_loader_options *o)
{
    const char *function = "tern_data_loader";
    if (o->sampler && o->shuffle)
        return tern_fail(TERN_ERR_ARGUMENT, "%s: sampler option is mutually exclusive with shuffle",
                         function);
    if (o->batch_sampler && (o->batch_size != 1 || o->shuffle || o->sampler || o->drop_last))
        return tern_fail(TERN_ERR_ARGUMENT,
                         "%s: batch_sampler option is mutually exclusive with batch_size, shuffle, "
                         "sampler, and drop_last",
                         function);
    return TERN_OK;
}

static tern_status check_options(const tern_dataset *d, const tern_loader_options *o)
{
    const char *function = "tern_data_loader";
    if (o->batch_size < 1)
        return tern_fail(TERN_ERR_ARGUMENT,
                         "%s: batch_size should be a positive integer value, but got "
                         "batch_size=%" PRId64,
                         function, o->batch_size);
    if (o->num_workers < 0 || o->num_workers > 1024)
        return tern_fail(TERN_ERR_ARGUMENT,
                         "%s: num_workers option should be non-negative, and 1024 at most; not %d",
                         function, o->num_workers);
    if (o->prefetch_factor < 0 || o->prefetch_factor > 1 << 20)
        return tern_fail(TERN_ERR_ARGUMENT,
                         "%s: prefetch_factor option should be a positive integer, not %d",
                         function, o->prefetch_factor);
    if (!(o->timeout >= 0) || o->timeout > 1e9 || (o->timeout > 0 && !o->num_workers))
        return tern_fail(TERN_ERR_ARGUMENT,
                         "%s: timeout option should be non-negative, and takes workers; not %g",
                         function, o->timeout);
    if (o->collate_count < 0 || o->collate_count > TERN_MAX_ITEM)
        return tern_fail(TERN_ERR_ARGUMENT, "%s: collate_count %d is not in 0..%d", function,
                         o->collate_count, TERN_MAX_ITEM);
    int count = o->collate && o->collate_count ? o->collate_count : d->count;
    if (o->device_transform &&
        (o->device_transform_which < 0 || o->device_transform_which >= count))
        return tern_fail(TERN_ERR_ARGUMENT, "%s: batches have %d tensors, none with number %d",
                         function, count, o->device_transform_which);
    if (tern_dataset_iterates(d) && (o->shuffle || o->sampler || o->batch_sampler))
        return tern_fail(TERN_ERR_ARGUMENT,
                         "%s: DataLoader with IterableDataset: expected unspecified sampler, "
                         "batch_sampler and shuffle option",
                         function);
    return check_sampler_options(o);
}

/* Returns the sampler of the options, or a new one. The properties of a batch sampler become those
 * of the loader. */
static tern_sampler *sampler_of(tern_loader_options *o)
{
    tern_sampler *s = o->sampler ? o->sampler : o->batch_sampler;
    o->sampler = o->batch_sampler = NULL;
    if (!s)
        return o->shuffle ? tern_data_random_sampler(NULL) : tern_data_sequential_sampler();
    while (s->inner) {
        tern_sampler *inner = s->inner;
        if (s->batch_size) {
            o->batch_size = s->batch_size;
            o->drop_last = s->drop_last;
        }
        s->inner = NULL;
        tern_sampler_free(s);
        s = inner;
    }
    return s;
}

static tern_status draw_seed(tern_loader *l)
{
    l->seed = l->o.seed;
    if (l->seed)
        return TERN_OK;
    uint32_t words[4];
    TERN_TRY(tern_data_draw(words));
    l->seed = (uint64_t)words[0] << 32 | words[1];
    return TERN_OK;
}

static void prepare(tern_loader *l)
{
    tern_mutex_init_short(&l->lock);
    tern_cond_init(&l->work);
    tern_cond_init(&l->done);
    tern_cond_init(&l->move);
    l->prepared = true;
}

static tern_status set_device(tern_loader *l)
{
    if (!l->o.device)
        return TERN_OK;
    const char *device = tern_device_canonical(l->o.device);
    l->device = device ? tern_copy_text(device) : NULL;
    l->moves = l->device && (strcmp(device, "cpu") != 0);
    l->o.device = l->device;
    return l->device ? TERN_OK : device ? TERN_ERR_MEMORY : TERN_ERR_DEVICE;
}

static uint64_t fingerprint(const tern_loader *l)
{
    const tern_sampler *s = l->sampler;
    uint64_t h = tern_data_hash((uint64_t)l->dataset->length, s->kind->name, strlen(s->kind->name));
    uint64_t own = s->kind->fingerprint ? s->kind->fingerprint(s) : 0;
    return tern_data_hash(h, &own, sizeof own);
}

tern_loader *tern_data_loader(tern_dataset *dataset, const tern_loader_options *options)
{
    const char *function = "tern_data_loader";
    tern_loader_options o = tern_read_loader(options);
    TERN_SAMPLER_GIVEN(o.sampler, function);
    TERN_SAMPLER_GIVEN(o.batch_sampler, function);
    TERN_TRANSFORM_GIVEN(o.device_transform, function);
    tern_dataset *d = tern_dataset_keep(dataset, function);
    tern_loader *l = d && check_options(d, &o) == TERN_OK ? tern_loader_new() : NULL;
    if (!l) {
        free_given(&o);
        tern_dataset_free(d);
        return NULL;
    }
    l->handle.about = d->name;
    l->dataset = d;
    l->forks = tern_forks();
    l->count = o.collate && o.collate_count ? o.collate_count : d->count;
    l->sampler = sampler_of(&o);
    l->o = o;
    l->ahead = o.prefetch_factor ? o.prefetch_factor : LEAST_AHEAD;
    prepare(l);
    if (l->sampler && set_device(l) == TERN_OK && draw_seed(l) == TERN_OK) {
        l->fingerprint = fingerprint(l);
        return l;
    }
    tern_loader_end(l);
    return NULL;
}

/* ---- state ----------------------------------------------------------------------------------- */

int64_t tern_loader_skipped(const tern_loader *l)
{
    TERN_LOADER_GIVEN(l, "tern_loader_skipped");
    if (!l)
        tern_fail_argument_null("tern_loader_skipped", "loader");
    return l ? l->skipped : -1;
}

tern_status tern_loader_get_state(const tern_loader *l, tern_loader_state *state)
{
    const char *function = "tern_loader_get_state";
    TERN_LOADER_GIVEN(l, function);
    if (!l || !state)
        return tern_fail_argument_null(function, l ? "state" : "loader");
    *state = (tern_loader_state){
        .seed = l->seed, .epoch = l->epoch, .samples = l->samples, .fingerprint = l->fingerprint};
    return TERN_OK;
}

tern_status tern_loader_set_state(tern_loader *l, const tern_loader_state *state)
{
    const char *function = "tern_loader_set_state";
    TERN_LOADER_GIVEN(l, function);
    if (!l || !state)
        return tern_fail_argument_null(function, l ? "state" : "loader");
    if (l->looping)
        return tern_fail(TERN_ERR_STATE, "%s: a loop goes through the loader", function);
    if (state->fingerprint != l->fingerprint)
        return tern_fail(TERN_ERR_STATE,
                         "%s: the state is of a loader of another data set or sampler than this "
                         "one of %s, of %" PRId64 " items",
                         function, l->dataset->name, l->dataset->length);
    if (state->epoch < 0 || state->samples < 0 || state->samples > INT64_MAX / 4)
        return tern_fail(TERN_ERR_ARGUMENT, "%s: epoch %" PRId64 ", samples %" PRId64, function,
                         state->epoch, state->samples);
    l->seed = state->seed;
    l->epoch = state->epoch;
    l->samples = state->samples;
    l->over = false;
    return TERN_OK;
}
