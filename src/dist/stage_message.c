/* stage_message.c -- tensors between stages of a pipeline: on one device, from device to device, or
 * from rank to rank. */
#include "base/error.h"
#include "dist/pipeline.h"
#include <string.h>

enum { FIRST_TAG = 20000, FACTS = TERN_MAX_DIMS + 2 };

static bool is_own(const tern_pipeline *p, int stage)
{
    return p->device[stage] != NULL;
}

static tern_stage_message *message_of(tern_pipeline *p, int from, int to, int micro)
{
    return from < to ? &p->run[to].up[micro] : &p->run[to].down[micro];
}

/* ---- messages: dtype and shape, then the elements -------------------------------------------- */

static tern_status post(tern_pipeline *p, tern_tensor *x, int rank, int tag)
{
    tern_dist_work *work = tern_dist_isend(x, rank, &(tern_dist_options){.tag = tag});
    if (work)
        p->sent[p->n_sent++] = work;
    return work ? TERN_OK : TERN_ERR_PEER;
}

static tern_status give_away(tern_pipeline *p, int from, int to, tern_tensor *x)
{
    const int tag = FIRST_TAG + 2 * from + (from < to);
    tern_status status = TERN_ERR_MEMORY;
    TERN_SCOPE {
        int64_t facts[FACTS] = {tern_dtype_of(x), tern_dim(x)};
        for (int i = 0; i < tern_dim(x); i++)
            facts[2 + i] = tern_size(x, i);
        tern_tensor *head = tern_from_data(facts, TERN_SHAPE(FACTS), TERN_I64, "cpu");
        tern_tensor *body = tern_contiguous(tern_detach(x));
        status = head && body ? post(p, head, p->rank[to], tag) : TERN_ERR_MEMORY;
        if (status == TERN_OK)
            status = post(p, body, p->rank[to], tag);
    }
    return status;
}

static tern_status receive(tern_pipeline *p, int from, int to, tern_stage_message *message,
                           tern_tensor *x)
{
    const tern_dist_options o = {.tag = FIRST_TAG + 2 * from + (from < to)};
    message->work = x ? tern_dist_irecv(x, p->rank[from], &o) : NULL;
    return message->work ? TERN_OK : TERN_ERR_PEER;
}

/* Receives the first message, dtype and shape, and after its end the second, the elements. */
static tern_status go_on(tern_pipeline *p, int from, int to, tern_stage_message *message)
{
    tern_status status = TERN_OK;
    if (message->work) {
        status = tern_dist_wait(message->work);
        message->work = NULL;
        message->there = message->x || status != TERN_OK;
        if (message->there)
            return status;
    }
    TERN_SCOPE {
        tern_tensor *x = NULL;
        if (!message->head) {
            x = tern_zeros(TERN_SHAPE(FACTS), TERN_I64, "cpu");
            message->head = x ? tern_keep(x) : NULL;
        } else {
            const int64_t *facts = tern_data(message->head);
            x = tern_empty(tern_shape_from((int)facts[1], facts + 2), (tern_dtype)facts[0],
                           p->device[to]);
            message->x = x ? tern_keep(x) : NULL;
        }
        status = receive(p, from, to, message, x);
    }
    message->there = status != TERN_OK;
    return status;
}

tern_status tern_stage_messages_wait(tern_pipeline *p)
{
    tern_status status = TERN_OK;
    for (int i = 0; i < p->n_sent; i++) {
        tern_status one = tern_dist_wait(p->sent[i]);
        status = status == TERN_OK ? one : status;
    }
    p->n_sent = 0;
    return status;
}

/* ---- stages of one rank ---------------------------------------------------------------------- */

tern_status tern_stage_message_give(tern_pipeline *p, int from, int to, int micro, tern_tensor *x,
                                    int round)
{
    if (!is_own(p, to))
        return give_away(p, from, to, x);
    tern_stage_message *message = message_of(p, from, to, micro);
    const bool moves =
        strcmp(tern_device(x), "cpu") != 0 && strcmp(tern_device(x), p->device[to]) != 0;
    tern_status status = TERN_OK;
    TERN_SCOPE {
        tern_tensor *alone = tern_detach(x);
        if (moves) /* the copy waits for the kernels that compute x, not for later ones */
            message->copy = tern_transfer_begin(tern_contiguous(alone), "cpu");
        message->x = alone ? tern_keep(alone) : NULL;
        if (!alone || (moves && !message->copy))
            status = TERN_ERR_MEMORY;
    }
    message->round = round;
    message->there = true;
    return status;
}

bool tern_stage_message_is_there(tern_pipeline *p, int from, int to, int micro, int round)
{
    tern_stage_message *message = message_of(p, from, to, micro);
    if (is_own(p, from))
        return message->there && message->round < round;
    while (!message->there && (!message->work || tern_dist_is_completed(message->work)))
        if (go_on(p, from, to, message) != TERN_OK) {
            tern_release(message->x);
            message->x = NULL;
        }
    return message->there;
}

tern_tensor *tern_stage_message_take(tern_pipeline *p, int from, int to, int micro)
{
    tern_stage_message *message = message_of(p, from, to, micro);
    tern_tensor *x = message->copy ? tern_transfer_take(message->copy) : message->x;
    tern_tensor *there = x ? tern_to(x, p->device[to]) : NULL;
    if (there == message->x && there) /* owned by the scope, as a copy would be */
        there = tern_detach(there);
    message->copy = NULL;
    tern_stage_message_drop(message);
    return there;
}

void tern_stage_message_drop(tern_stage_message *message)
{
    tern_transfer_free(message->copy);
    tern_release(message->x);
    tern_release(message->head);
    *message = (tern_stage_message){0}; /* a receive that is still under way has its own
                                           reference */
}
