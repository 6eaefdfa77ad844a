/* steps.c -- the state machine of a collective: the ranks compare signatures, in headers that also
 * carry small data, then the data are sent. */
#include "dist/dist.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { FIRST_TAG = 2 };

static bool is_pair(const tern_dist_work *w)
{
    return w->kind == DIST_SEND || w->kind == DIST_RECV;
}

/* Returns MPI's unsigned integer type of the dtype's size: data that are only moved need no
 * other. */
static int moved_as(tern_dtype dtype)
{
    const size_t size = tern_dtype_size(dtype);
    return size == 8 ? TERN_U64 : size == 4 ? TERN_U32 : size == 2 ? TERN_U16 : TERN_U8;
}

/* ---- data ---------------------------------------------------------------------------------- */

static bool is_linear(const tern_dist_work *w)
{
    return w->kind <= DIST_BROADCAST || is_pair(w);
}

/* Returns how many of n elements are this rank's part, and sets *from to the first
 * (TERN_MPI_EXCHANGE). */
static int64_t own_part(const tern_dist_work *w, int64_t n, int64_t *from)
{
    const int64_t each = (n + w->group->size - 1) / w->group->size;
    *from = each * w->group->rank < n ? each * w->group->rank : n;
    return n - *from < each ? n - *from : each;
}

/* Sets *call to the MPI call of w's phase. Returns false if the current piece has no such phase. */
static bool next_call(const tern_dist_work *w, tern_mpi_call *call)
{
    static const tern_mpi_kind kinds[] = {
        [DIST_ALL_REDUCE] = TERN_MPI_ALL_REDUCE,
        [DIST_REDUCE] = TERN_MPI_REDUCE,
        [DIST_BROADCAST] = TERN_MPI_BROADCAST,
        [DIST_ALL_GATHER] = TERN_MPI_ALL_GATHER,
        [DIST_REDUCE_SCATTER] = TERN_MPI_REDUCE_SCATTER,
        [DIST_GATHER] = TERN_MPI_GATHER,
        [DIST_SCATTER] = TERN_MPI_SCATTER,
        [DIST_ALL_TO_ALL] = TERN_MPI_ALL_TO_ALL,
        [DIST_SEND] = TERN_MPI_SEND,
        [DIST_RECV] = TERN_MPI_RECEIVE,
    };
    const size_t at = (size_t)w->at * tern_dtype_size(w->dtype);
    const bool adds =
        w->kind == DIST_ALL_REDUCE || w->kind == DIST_REDUCE || w->kind == DIST_REDUCE_SCATTER;
    char *to = w->to ? (char *)w->to + at : NULL;
    *call = (tern_mpi_call){.kind = kinds[w->kind],
                            .in = w->kind == DIST_SEND ? to : w->from,
                            .out = to,
                            .count = w->piece,
                            .dtype = adds && !w->direct ? (int)w->dtype : moved_as(w->dtype),
                            .op = (int)(w->op == TERN_DIST_AVG ? TERN_DIST_SUM : w->op),
                            .root = w->root,
                            .tag = FIRST_TAG + w->tag,
                            .comm = w->group->data,
                            .integers = w->integers};
    if (w->dtype == TERN_BOOL) {
        call->dtype = TERN_U8;
        call->op = (int)tern_dist_bits_of(w->op);
    }
    if (!w->direct || w->phase > 1)
        return w->phase == 0;
    if (w->phase == 0) {
        call->kind = w->kind == DIST_REDUCE_SCATTER ? TERN_MPI_ALL_TO_ALL : TERN_MPI_EXCHANGE;
        call->in = w->kind == DIST_REDUCE_SCATTER ? w->from : to;
        call->out = w->scratch;
        return true;
    }
    call->kind = w->kind == DIST_ALL_REDUCE ? TERN_MPI_SPREAD : TERN_MPI_COLLECT;
    call->in = w->scratch;
    return w->kind != DIST_REDUCE_SCATTER;
}

/* Computes the sums between the two phases, or the division of an average after the last one. */
static void compute(const tern_dist_work *w)
{
    const size_t size = tern_dtype_size(w->dtype);
    const int ranks = w->group->size;
    int64_t from = 0, n = w->piece;
    char *to = (char *)w->to + (size_t)w->at * size;
    if (w->direct && w->phase == 0) {
        if (w->kind != DIST_REDUCE_SCATTER)
            n = own_part(w, w->piece, &from);
        if (w->tree)
            tern_dist_combine_tree(w->scratch, ranks, n, w->dtype);
        tern_dist_combine(w->kind == DIST_REDUCE ? w->scratch : to + (size_t)from * size,
                          w->scratch, w->tree ? 1 : ranks, n, w->dtype, w->op, ranks);
    } else if (!w->direct && w->op == TERN_DIST_AVG && w->writes) {
        tern_dist_combine(to, to, 1, n, w->dtype, w->op, ranks);
    }
}

/* Begins the next MPI call of w, of the next piece if need be. Returns false if all are done. */
static bool flow(tern_dist_job *job, tern_dist_work *w)
{
    tern_mpi_call call;
    while (w->at < w->count) {
        if (w->piece == 0) {
            const int64_t most = w->direct ? DIST_DIRECT_PIECE : DIST_PIECE,
                          left = w->count - w->at;
            w->piece = is_linear(w) && left > most ? most : left;
            w->phase = 0;
        }
        if (next_call(w, &call)) {
            tern_dist_begin(job, w, call);
            return true;
        }
        w->at += w->piece;
        w->piece = 0;
    }
    return false;
}

static void finish(tern_dist_job *job, tern_dist_work *w)
{
    w->state = WORK_DONE;
    tern_dist_note_end(w);
    tern_dist_ask_no_more(job, w);
    atomic_store(&w->done, true);
}

/* Makes both communicators of a group. No other call on the job's communicators is under way. */
static void make_group(tern_dist_job *job, tern_dist_work *w)
{
    tern_dist_group *g = w->to;
    const int color = g->rank < 0 ? -1 : 0, key = g->rank < 0 ? 0 : g->rank;
    char text[200];
    int error = job->mpi->split(w->group->control, color, key, &g->data);
    if (!error)
        error = job->mpi->split(w->group->control, color, key, &g->control);
    if (!error)
        return;
    job->mpi->explain(error, text, sizeof text);
    tern_dist_end(job, TERN_ERR_PEER, text);
}

/* Waits for a device's copy. An error of the copy ends the job and is no error of this thread. */
static bool arrived(tern_dist_job *job, tern_stage *stage)
{
    tern_error_hold hold;
    char why[512] = "", text[DIST_MESSAGE];
    tern_status status = tern_error_hold_begin(&hold);
    if (status == TERN_OK) {
        tern_stage_wait(stage);
        status = tern_error_hold_end(&hold, why, sizeof why);
    }
    if (status == TERN_OK)
        return true;
    snprintf(text, sizeof text, "a copy of rank %d failed: %s", job->all.rank, why);
    tern_dist_end(job, TERN_ERR_PEER, text);
    return false;
}

static bool all_arrived(tern_dist_job *job, tern_dist_work *w)
{
    return (!w->in_stage || arrived(job, w->in_stage)) &&
           (!w->out_stage || !w->reads || arrived(job, w->out_stage));
}

/* Finds host memory for tensors for which a transport was planned. An error ends the job. */
static bool staged(tern_dist_job *job, tern_dist_work *w)
{
    tern_error_hold hold;
    char why[256] = "";
    tern_status status = tern_error_hold_begin(&hold);
    if (status == TERN_OK) {
        tern_dist_stage(w);
        status = tern_error_hold_end(&hold, why, sizeof why);
    }
    if (status != TERN_OK)
        tern_dist_end(job, TERN_ERR_PEER, why);
    return status == TERN_OK;
}

static void data(tern_dist_job *job, tern_dist_work *w)
{
    if (!w->behind && w->state != WORK_FLOWS)
        tern_dist_choose_way(w);
    w->state = w->behind ? WORK_SIGNED : WORK_FLOWS;
    if (w->behind || w->by_transport || (w->place && !staged(job, w)) || !all_arrived(job, w))
        return;
    if (w->kind == DIST_NEW_GROUP)
        make_group(job, w);
    if (job->status == TERN_OK && !flow(job, w))
        finish(job, w);
}

/* ---- signatures ------------------------------------------------------------------------------ */

static void write_header(tern_dist_work *w)
{
    tern_dist_header *own = &w->headers[w->group->size];
    const size_t bytes = (size_t)w->count * tern_dtype_size(w->dtype);
    const void *from = w->kind != DIST_ALL_GATHER ? w->to
                       : w->from                  ? w->from
                                                  : (char *)w->to + (size_t)w->group->rank * bytes;
    own->signature = w->deed.signature;
    own->ways = w->ways;
    if (tern_dist_is_eager(w) && (w->reads || w->kind == DIST_ALL_GATHER))
        memcpy(own->eager, from, bytes);
}

/* Writes the data that the headers carried to the output, combined if the work is a reduction. */
static void read_headers(tern_dist_work *w)
{
    const int ranks = w->group->size;
    const size_t bytes = (size_t)w->count * tern_dtype_size(w->dtype);
    _Alignas(16) char rows[DIST_HEADERS * DIST_EAGER];
    for (int r = 0; r < ranks; r++)
        memcpy(rows + (size_t)r * bytes, w->headers[r].eager, bytes);
    if (w->kind == DIST_ALL_GATHER) {
        memcpy(w->to, rows, bytes * (size_t)ranks);
    } else if (w->kind == DIST_BROADCAST) {
        if (w->writes)
            memcpy(w->to, rows + (size_t)w->root * bytes, bytes);
    } else if (w->writes) {
        if (w->tree)
            tern_dist_combine_tree(rows, ranks, w->count, w->dtype);
        tern_dist_combine(w->to, rows, w->tree ? 1 : ranks, w->count, w->dtype, w->op, ranks);
    }
}

static void sign(tern_dist_job *job, tern_dist_work *w)
{
    tern_mpi_call call = {.kind = TERN_MPI_ALL_REDUCE,
                          .out = w->sign,
                          .count = 4,
                          .dtype = TERN_U64,
                          .op = TERN_DIST_MAX,
                          .comm = w->group->control};
    w->state = WORK_SIGNS;
    w->sign[0] = w->deed.signature;
    w->sign[1] = ~w->deed.signature;
    w->sign[2] = w->ways & 1;
    w->sign[3] = w->ways & 2;
    if (w->headers) {
        write_header(w);
        call.kind = TERN_MPI_ALL_GATHER;
        call.in = &w->headers[w->group->size];
        call.out = w->headers;
        call.count = sizeof *w->headers;
        call.dtype = TERN_U8;
    }
    if (!is_pair(w)) {
        tern_dist_begin(job, w, call);
        return;
    }
    call.kind = w->kind == DIST_SEND ? TERN_MPI_SEND : TERN_MPI_RECEIVE;
    call.in = &w->deed;
    call.out = w->deeds;
    call.count = sizeof w->deed;
    call.dtype = TERN_U8;
    call.root = w->root;
    call.tag = FIRST_TAG + w->tag;
    if (tern_dist_begin(job, w, call) && w->kind == DIST_SEND)
        data(job,
             w); /* The deed and the data are sent at once: the receiver compares the deed first. */
}

static void exchange_deeds(tern_dist_job *job, tern_dist_work *w)
{
    w->state = WORK_DIFFERS;
    tern_dist_begin(job, w,
                    (tern_mpi_call){.kind = TERN_MPI_ALL_GATHER,
                                    .in = &w->deed,
                                    .out = w->deeds,
                                    .count = sizeof w->deed,
                                    .dtype = TERN_U8,
                                    .comm = w->group->control});
}

static int others_like(const tern_dist_work *w, int i)
{
    int n = 0;
    for (int k = 0; k < w->group->size; k++)
        n += w->deeds[k].signature == w->deeds[i].signature;
    return n;
}

/* Ends the job with a message that lists the ranks that differ from the majority, or, without a
 * majority, from this rank. */
static void report_difference(tern_dist_job *job, tern_dist_work *w)
{
    const tern_dist_group *g = w->group;
    int norm = g->rank, reported = 0;
    char text[DIST_MESSAGE] = "", name[96], lines[DIST_TEXT * 4];
    for (int i = 0; i < g->size; i++)
        if (others_like(w, i) * 2 > g->size)
            norm = i;
    tern_dist_add(text, sizeof text, "ranks differ at #%" PRIu64 " of %s: ", w->number,
                  g->number ? "the group" : "all ranks");
    for (int i = 0; i < g->size; i++)
        if (w->deeds[i].signature != w->deeds[norm].signature && ++reported <= 4)
            tern_dist_add(text, sizeof text, "%s does %s; ",
                          tern_dist_name(g->members[i], name, sizeof name), w->deeds[i].text);
    tern_dist_add(text, sizeof text, "%s does %s",
                  tern_dist_name(g->members[norm], name, sizeof name), w->deeds[norm].text);
    if (others_like(w, norm) > 1)
        tern_dist_add(text, sizeof text, ", as %d do", others_like(w, norm));
    tern_dist_lines(lines, sizeof lines, 4);
    tern_dist_add(text, sizeof text, ". The last of rank %d, which reports this: %s", job->all.rank,
                  lines);
    tern_dist_end(job, TERN_ERR_PEER, text);
}

static bool is_signed(const tern_dist_work *w)
{
    for (int r = 0; w->headers && r < w->group->size; r++)
        if (w->headers[r].signature != w->deed.signature)
            return false;
    return w->headers || (w->sign[0] == w->deed.signature && w->sign[1] == ~w->deed.signature);
}

static void signed_by_all(tern_dist_job *job, tern_dist_work *w)
{
    if (w->kind == DIST_RECV && w->deeds[0].signature != w->deed.signature) {
        char text[DIST_MESSAGE], name[96];
        snprintf(text, sizeof text, "%s sends %s, and rank %d receives %s",
                 tern_dist_name(w->group->members[w->root], name, sizeof name), w->deeds[0].text,
                 job->all.rank, w->deed.text);
        tern_dist_end(job, TERN_ERR_PEER, text);
    } else if (!is_pair(w) && !is_signed(w)) {
        exchange_deeds(job, w);
    } else if (tern_dist_is_eager(w)) {
        read_headers(w);
        finish(job, w);
    } else {
        data(job, w);
    }
}

static void start(tern_dist_job *job, tern_dist_work *w)
{
    w->begun = tern_dist_now();
    if (!tern_dist_is_eager(w) || all_arrived(job, w))
        sign(job, w);
}

bool tern_dist_step(tern_dist_job *job, tern_dist_work *w)
{
    const tern_dist_state before = w->state;
    if (w->state == WORK_WAITS) {
        start(job, w);
        return true;
    }
    if (w->behind)
        w->begun = tern_dist_now();
    const bool goes = w->state == WORK_FLOWS && w->by_transport;
    if (w->state != WORK_STUCK && tern_dist_all_done(job, w) &&
        (!goes || tern_dist_transport_step(job, w))) {
        if (w->state == WORK_SIGNED)
            w->begun = tern_dist_now();
        if (w->state == WORK_SIGNS) {
            signed_by_all(job, w);
        } else if (w->state == WORK_SIGNED) {
            data(job, w);
        } else if (w->state == WORK_DIFFERS) {
            report_difference(job, w);
        } else if (goes) {
            if (!w->by_transport) /* refused */
                data(job, w);
            else if (w->phase == TRANSPORT_OVER)
                finish(job, w);
        } else if (w->state == WORK_FLOWS) {
            if (w->piece)
                compute(w);
            w->phase++;
            if (!flow(job, w))
                finish(job, w);
        }
        return true;
    }
    if (tern_dist_now() - w->begun > w->timeout)
        tern_dist_ask(job, w, "");
    return w->state != before;
}
