/* device_transport.c -- collectives from device to device by the vendor's library (storage.h),
 * while MPI carries the negotiation.
 *
 * Each header has two bits: STAGED if no transport can read the rank's tensors, MOVED if their
 * device is another than the last time. All ranks see all headers and so decide alike: if one rank
 * has STAGED, the data go by way of the host. For the first work of a group that can use a
 * transport, the ranks exchange cards of their devices, and the first rank makes the transport's
 * id. A group has no transport if two of its ranks share a device or have different versions of the
 * library. */
#include "base/dtype.h"
#include "base/os.h"
#include "dist/dist.h"
#include <string.h>
#include <tern/autograd.h>
#include <tern/ops.h>

enum { STAGED = 1, MOVED = 2 };

static bool adds(const tern_dist_work *w)
{
    return w->kind <= DIST_REDUCE || w->kind == DIST_REDUCE_SCATTER;
}

/* Returns the transport's call for w's tensors, or for their float32 copies. */
static tern_transport_call call_of(const tern_dist_work *w)
{
    return (tern_transport_call){.kind = (int)w->kind,
                                 .op = w->dtype == TERN_BOOL ? tern_dist_bits_of(w->op) : w->op,
                                 .count = w->count,
                                 .root = w->root,
                                 .in = w->wide[0] ? w->wide[0] : w->in,
                                 .out = w->wide[1] ? w->wide[1] : w->out};
}

static const tern_tensor *one_of(const tern_dist_work *w)
{
    return w->out ? w->out : w->in;
}

/* ---- offers ---------------------------------------------------------------------------------- */

/* Makes float32 copies of half tensors: sums are rounded to half once. */
static void widen(tern_dist_work *w)
{
    TERN_SCOPE {
        TERN_NO_GRAD {
            if (w->in)
                w->wide[0] = tern_keep(tern_to_dtype(w->in, TERN_F32));
            w->wide[1] =
                tern_keep(w->in ? tern_empty(tern_shape_of(w->out), TERN_F32, tern_device(w->out))
                                : tern_to_dtype(w->out, TERN_F32));
        }
    }
}

static bool make_ready(tern_dist_work *w)
{
    tern_error_hold hold;
    char why[8];
    if (tern_error_hold_begin(&hold) != TERN_OK)
        return false;
    if (adds(w) && tern_dtype_is_half(w->dtype))
        widen(w);
    tern_transport_event(one_of(w), &w->event);
    return tern_error_hold_end(&hold, why, sizeof why) == TERN_OK;
}

bool tern_dist_offer(tern_dist_work *w)
{
    const tern_transport_call call = call_of(w);
    if (!one_of(w) || w->kind >= DIST_SEND || w->ordered || w->count == 0 || tern_dist_is_eager(w))
        return false;
    w->place = tern_transport_place(&call, w->group->rank);
    if (w->place && w->place != atomic_load(&w->group->refused) && make_ready(w))
        return true;
    tern_dist_withdraw(w);
    return false;
}

void tern_dist_withdraw(tern_dist_work *w)
{
    if (w->event)
        tern_transport_event_free(one_of(w), w->event);
    for (int i = 0; i < 2; i++) {
        tern_release(w->wide[i]);
        w->wide[i] = NULL;
    }
    tern_free(w->cards);
    w->cards = NULL;
    w->event = NULL;
    w->place = NULL;
}

tern_status tern_dist_narrow(tern_dist_work *w)
{
    const uint64_t failures = tern_failures();
    TERN_SCOPE {
        TERN_NO_GRAD {
            if (w->wide[1])
                tern_copy_(w->out, w->wide[1]);
        }
    }
    return tern_failed_since(failures);
}

/* ---- decisions that all ranks take alike ----------------------------------------------------- */

void tern_dist_note_way(tern_dist_work *w)
{
    tern_dist_group *g = w->group;
    w->ways = !w->place ? STAGED : g->place && g->place != w->place ? MOVED : 0;
    if (w->place)
        g->place = w->place;
}

void tern_dist_choose_way(tern_dist_work *w)
{
    uint64_t ways = w->ways | w->sign[2] | w->sign[3];
    for (int r = 0; w->headers && r < w->group->size; r++)
        ways |= w->headers[r].ways;
    if (ways & MOVED)
        atomic_store(&w->group->has_transport, false);
    w->by_transport = !(ways & STAGED);
}

static tern_status meet(tern_dist_job *job, tern_dist_work *w)
{
    const tern_dist_group *g = w->group;
    w->cards = tern_alloc(sizeof *w->cards * ((size_t)g->size + 1));
    if (!w->cards)
        return TERN_ERR_MEMORY;
    tern_transport_card *own = &w->cards[g->size];
    TERN_TRY(tern_transport_say(one_of(w), g->rank == 0, own));
    w->phase = TRANSPORT_MEETS;
    tern_dist_begin(job, w,
                    (tern_mpi_call){.kind = TERN_MPI_ALL_GATHER,
                                    .in = own,
                                    .out = w->cards,
                                    .count = sizeof *own,
                                    .dtype = TERN_U8,
                                    .comm = g->data});
    return TERN_OK;
}

static bool fit(const tern_dist_job *job, const tern_dist_work *w)
{
    const int *members = w->group->members;
    for (int a = 0; a < w->group->size; a++)
        for (int b = 0; b < a; b++) {
            const bool on_one =
                strcmp(job->cards[members[a]].host, job->cards[members[b]].host) == 0;
            if (!tern_transport_fits(&w->cards[a], &w->cards[b], on_one))
                return false;
        }
    return true;
}

/* ---- steps ----------------------------------------------------------------------------------- */

static tern_status begin(tern_dist_work *w)
{
    const tern_transport_call call = call_of(w);
    w->phase = TRANSPORT_FLOWS;
    return tern_transport_begin(w->group->transport, &call, w->event);
}

static tern_status step(tern_dist_job *job, tern_dist_work *w, bool *happened)
{
    tern_dist_group *g = w->group;
    *happened = true;
    switch (w->phase) {
    case TRANSPORT_ASKS:
        return atomic_load(&g->has_transport) ? begin(w) : meet(job, w);
    case TRANSPORT_MEETS: /* all ranks have ended the works before */
        tern_transport_drop(g->transport);
        g->transport = NULL;
        if (fit(job, w)) {
            w->phase = TRANSPORT_OPENS;
            return tern_transport_open(one_of(w), w->cards, g->rank, g->size, &g->transport);
        }
        atomic_store(&g->refused, w->place);
        w->by_transport = false;
        w->phase = 0;
        return TERN_OK;
    default:
        TERN_TRY(tern_transport_over(g->transport, happened));
        if (*happened && w->phase == TRANSPORT_FLOWS) {
            w->phase = TRANSPORT_OVER;
        } else if (*happened) {
            atomic_store(&g->has_transport, true);
            return begin(w);
        }
        return TERN_OK;
    }
}

bool tern_dist_transport_step(tern_dist_job *job, tern_dist_work *w)
{
    tern_error_hold hold;
    char why[256] = "";
    bool happened = false;
    tern_status status = tern_error_hold_begin(&hold);
    if (status == TERN_OK) {
        step(job, w, &happened);
        status = tern_error_hold_end(&hold, why, sizeof why);
    }
    if (status != TERN_OK) {
        w->state = WORK_STUCK;
        tern_dist_ask(job, w, why);
    }
    return happened;
}

/* ---- destruction of transports --------------------------------------------------------------- */

static void *drop(void *transport)
{
    tern_transport_drop(transport);
    atomic_fetch_sub(&tern_dist_the_job.drops, 1);
    return NULL;
}

static void drop_transport(tern_dist_job *job, tern_dist_group *g)
{
    tern_os_thread thread;
    tern_transport *transport = g->transport;
    atomic_store(&g->has_transport, false);
    g->transport = NULL;
    if (!transport)
        return;
    atomic_fetch_add(&job->drops, 1);
    if (job->status == TERN_OK)
        drop(transport);
    else if (tern_os_thread_start(&thread, drop, transport))
        tern_os_thread_detach(thread);
}

void tern_dist_drop_transports(tern_dist_job *job)
{
    drop_transport(job, &job->all);
    for (tern_dist_group *g = job->groups; g; g = g->next)
        drop_transport(job, g);
}
