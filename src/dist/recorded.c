/* recorded.c -- collectives inside of a capture: in each replay the host begins them and waits for
 * them. */
#include "base/memory.h"
#include "dist/dist.h"
#include <stdio.h>

typedef struct tern_dist_recorded {
    tern_dist_request r; /* holds references to its tensors */
    tern_status (*begin)(const tern_dist_request *r);
    char label[DIST_LABEL];
    tern_dist_work *work; /* work that a replay began and has not waited for, or NULL */
    const void *graph;
    int holders;  /* number of references by the graph and by the program's handle */
    bool dropped; /* the graph was destroyed */
} tern_dist_recorded;

static void let_go(tern_dist_recorded *p)
{
    if (--p->holders > 0)
        return;
    tern_release(p->r.one);
    tern_release(p->r.all);
    tern_free(p);
}

/* ---- called by replays ----------------------------------------------------------------------- */

static tern_status wait_for(tern_dist_recorded *p)
{
    tern_dist_work *work = p->work;
    p->work = NULL;
    return work ? tern_dist_wait(work) : TERN_OK;
}

static tern_status run(void *user)
{
    tern_dist_recorded *p = user;
    TERN_TRY(wait_for(p)); /* a replay that failed, or had no wait, may have left its work */
    return p->begin(&p->r);
}

static tern_status run_wait(void *user)
{
    return wait_for(user);
}

/* ---- called in the capture ------------------------------------------------------------------- */

static void drop(void *user)
{
    tern_dist_recorded *p = user;
    p->dropped = true;
    if (p->work)
        wait_for(p);
    let_go(p);
}

static void keep(void *user)
{
    (void)user; /* the graph's node that begins the work drops p */
}

static void written(const tern_dist_request *r)
{
    if (r->out && r->w.writes)
        tern_storage_written(r->out);
}

/* Returns a handle for the program, on which no collective runs, or NULL without memory. */
static tern_dist_work *work_of(tern_dist_recorded *p)
{
    tern_dist_work *w = tern_alloc(sizeof *w);
    if (!w)
        return NULL;
    w->state = WORK_DONE;
    w->recorded = p;
    atomic_store(&w->done, true);
    p->holders++;
    p->r.o.work = &p->work;
    return w;
}

tern_status tern_dist_record(const tern_dist_request *r,
                             tern_status (*begin)(const tern_dist_request *r))
{
    tern_dist_recorded *p = tern_alloc(sizeof *p);
    tern_dist_work *work = NULL;
    if (!p)
        return TERN_ERR_MEMORY;
    *p = (tern_dist_recorded){
        .r = *r, .begin = begin, .graph = tern_storage_recording(r->one), .holders = 1};
    if (r->o.work && !(work = work_of(p))) {
        tern_free(p);
        return TERN_ERR_MEMORY;
    }
    p->r.one = tern_keep(r->one);
    p->r.all = r->all ? tern_keep(r->all) : NULL;
    if (r->o.label) {
        snprintf(p->label, sizeof p->label, "%s", r->o.label);
        p->r.o.label = p->label;
    }
    tern_status status = tern_storage_record_call(run, drop, p);
    if (status != TERN_OK) {
        if (work)
            let_go(p);
        tern_free(work);
        return status;
    }
    if (work)
        *r->o.work = work;
    else
        written(r);
    return TERN_OK;
}

tern_status tern_dist_record_wait(tern_dist_recorded *p)
{
    const bool here = !p->dropped && p->graph == tern_storage_recording(p->r.one);
    tern_status status = here ? tern_storage_record_call(run_wait, keep, p)
                              : tern_fail(TERN_ERR_STATE,
                                          "tern_dist_%s: begun inside of a capture, to be waited "
                                          "for there",
                                          p->r.name);
    if (status == TERN_OK)
        written(&p->r);
    let_go(p);
    return status;
}
