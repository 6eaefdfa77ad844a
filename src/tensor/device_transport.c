/* device_transport.c -- collectives between the devices of several processes, by the library of the
 * devices' vendor (storage.h). */
#include "device/transfers.h"
#include "tensor/storage.h"
#include "tensor/tensor.h"
#include <stdio.h>
#include <string.h>

_Static_assert(sizeof((tern_transport_card *)0)->id == TERN_COMMUNICATOR_ID &&
                   sizeof((tern_transport_card *)0)->bus == TERN_COMMUNICATOR_BUS,
               "a card has what a backend gives");

struct tern_transport {
    const tern_communicators *by;
    void *opened;
};

static const tern_communicators *communicators_of(const tern_tensor *x)
{
    return tern_place_communicators(x->storage->place);
}

static void describe(const tern_transport_call *call, tern_collective *t, tern_arg ends[2])
{
    const tern_tensor *x = call->out ? call->out : call->in;
    ends[1] = call->out ? tern_arg_tensor(call->out) : (tern_arg){0};
    ends[0] = call->in ? tern_arg_tensor(call->in) : ends[1];
    *t = (tern_collective){.kind = (tern_collective_kind)call->kind,
                           .op = call->op,
                           .dtype = x->dtype,
                           .count = call->count,
                           .root = call->root,
                           .from = &ends[0],
                           .to = &ends[1]};
}

/* Returns whether in and out differ in storage, or `in` is this rank's part of all_gather's out. */
static bool are_apart(const tern_transport_call *call, int rank)
{
    const tern_tensor *in = call->in, *out = call->out;
    return !in || !out || in->storage != out->storage ||
           (call->kind == TERN_COLLECTIVE_ALL_GATHER &&
            in->offset == out->offset + call->count * rank);
}

const void *tern_transport_place(const tern_transport_call *call, int rank)
{
    const tern_tensor *in = call->in, *out = call->out, *x = out ? out : in;
    tern_collective t;
    tern_arg ends[2];
    if (!communicators_of(x) ||
        (in && (!in->storage->block || in->storage->place != x->storage->place)) ||
        (out && !out->storage->block) || !are_apart(call, rank))
        return NULL;
    describe(call, &t, ends);
    return communicators_of(x)->is_supported(&t) ? x->storage->place : NULL;
}

tern_status tern_transport_event(const tern_tensor *x, void **event)
{
    return tern_event_behind_launches(x->storage->place, event);
}

void tern_transport_event_free(const tern_tensor *x, void *event)
{
    tern_event_free(x->storage->place, event);
}

tern_status tern_transport_say(const tern_tensor *x, bool makes_id, tern_transport_card *card)
{
    tern_place *place = x->storage->place;
    const tern_communicators *by = communicators_of(x);
    snprintf(card->uuid, sizeof card->uuid, "%s", tern_place_info(place)->uuid);
    card->version = by->version();
    TERN_TRY(by->bus(place, card->bus));
    return makes_id ? by->id(place, card->id) : TERN_OK;
}

bool tern_transport_fits(const tern_transport_card *a, const tern_transport_card *b,
                         bool on_one_host)
{
    return a->version == b->version && strcmp(a->uuid, b->uuid) != 0 &&
           !(on_one_host && strcmp(a->bus, b->bus) == 0);
}

tern_status tern_transport_open(const tern_tensor *x, const tern_transport_card *first, int rank,
                                int n, tern_transport **transport)
{
    tern_transport *l = tern_alloc(sizeof *l);
    if (!l)
        return TERN_ERR_MEMORY;
    l->by = communicators_of(x);
    tern_status status = l->by->open(x->storage->place, first->id, rank, n, &l->opened);
    if (status == TERN_OK)
        *transport = l;
    else
        tern_free(l);
    return status;
}

tern_status tern_transport_begin(tern_transport *transport, const tern_transport_call *call,
                                 void *event)
{
    tern_collective t;
    tern_arg ends[2];
    describe(call, &t, ends);
    return transport->by->begin(transport->opened, &t, event);
}

tern_status tern_transport_over(tern_transport *transport, bool *over)
{
    return transport->by->over(transport->opened, over);
}

void tern_transport_drop(tern_transport *transport)
{
    if (!transport)
        return;
    transport->by->drop(transport->opened);
    tern_free(transport);
}
