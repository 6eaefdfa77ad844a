/* loader_end.c -- allocates and frees loaders. The last thread that uses a loader frees it. */
#include "data/loader.h"
#include "base/lock.h"

static tern_handles handles = TERN_HANDLES("loader", tern_loader);

tern_loader *tern_loader_new(void)
{
    return tern_object_new(&handles);
}

void tern_loader_end(tern_loader *l)
{
    tern_job_free(l->hand, l->dataset->count);
    tern_jobs_drop(l);
    tern_rest_drop(l);
    if (l->looping && tern_dataset_iterates(l->dataset))
        atomic_store(&tern_dataset_root(l->dataset)->iterated, false);
    tern_dataset_free(l->dataset);
    tern_sampler_free(l->sampler);
    tern_transform_free(l->o.device_transform);
    tern_free(l->device);
    tern_free(l->workers);
    if (l->prepared) {
        tern_mutex_destroy(&l->lock);
        tern_cond_destroy(&l->work);
        tern_cond_destroy(&l->done);
        tern_cond_destroy(&l->move);
    }
    tern_object_end(&handles, &l->handle);
}
