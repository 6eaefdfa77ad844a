/* negotiation.c -- messages between ranks about a late collective, on a communicator of their own,
 * and the end of the job. */
#include "dist/dist.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { NOTE_TEXT = 2000, NEGOTIATION_TAG = 1, MOST_ASKERS = 8, ALL_ASK = 128 };

typedef enum note_type { NOTE_ASK, NOTE_ANSWER, NOTE_END, NOTE_LAST } note_type;

typedef struct note {
    int32_t type, from, group, begun;
    uint64_t number, token;
    char text[NOTE_TEXT];
} note;

typedef struct letter { /* a message that is being sent */
    note note;
    tern_mpi_request request;
    struct letter *next;
} letter;

typedef struct answer {
    enum { ANSWER_NOT_ASKED, ANSWER_NONE, ANSWER_NOT_BEGUN, ANSWER_BEGUN } state;
    char text[DIST_TEXT * 3];
} answer;

struct tern_dist_negotiation {
    note heard;
    tern_mpi_request hears;
    letter *letters;
    tern_dist_work *asks; /* work that this rank asks about, or NULL */
    char reason[256];
    bool deaf;
    uint64_t token;
    double asked;
    answer *answers; /* answers of all ranks of the job */
};

static int hear(tern_dist_job *job)
{
    tern_mpi_call call = {.kind = TERN_MPI_RECEIVE,
                          .out = &job->negotiation->heard,
                          .count = sizeof(note),
                          .dtype = TERN_U8,
                          .root = -1,
                          .tag = NEGOTIATION_TAG,
                          .comm = job->negotiation_comm};
    return job->mpi->begin(&call, &job->negotiation->hears);
}

tern_status tern_dist_negotiation_begin(tern_dist_job *job)
{
    tern_dist_negotiation *t = tern_alloc(sizeof *t);
    if (t && !(t->answers = tern_alloc(sizeof *t->answers * (size_t)job->all.size))) {
        tern_free(t);
        t = NULL;
    }
    if (!t)
        return TERN_ERR_MEMORY;
    job->negotiation = t;
    return hear(job) == 0
               ? TERN_OK
               : tern_fail(TERN_ERR_PEER, "tern_dist_init_process_group: MPI_Irecv failed");
}

void tern_dist_negotiation_free(tern_dist_job *job)
{
    tern_dist_negotiation *t = job->negotiation;
    job->negotiation = NULL;
    if (!t || job->status != TERN_OK) /* MPI may still write into t */
        return;
    while (t->letters) {
        letter *l = t->letters;
        t->letters = l->next;
        tern_free(l);
    }
    tern_free(t->answers);
    tern_free(t);
}

static void write_to(tern_dist_job *job, int rank, const note *n)
{
    letter *l = tern_alloc(sizeof *l);
    if (!l)
        return;
    l->note = *n;
    l->note.from = job->all.rank;
    tern_mpi_call call = {.kind = TERN_MPI_SEND,
                          .in = &l->note,
                          .count = sizeof(note),
                          .dtype = TERN_U8,
                          .root = rank,
                          .tag = NEGOTIATION_TAG,
                          .comm = job->negotiation_comm};
    if (job->mpi->begin(&call, &l->request) != 0) {
        tern_free(l);
        return;
    }
    l->next = job->negotiation->letters;
    job->negotiation->letters = l;
}

static void send_letters(tern_dist_job *job)
{
    for (letter **link = &job->negotiation->letters; *link;) {
        letter *l = *link;
        bool done = false;
        if (job->mpi->test(&l->request, &done) != 0 || done) {
            *link = l->next;
            tern_free(l);
        } else {
            link = &l->next;
        }
    }
}

/* ---- the end ------------------------------------------------------------------------------ */

static void end_here(tern_dist_job *job, tern_status status, const char *message)
{
    job->status = status;
    snprintf(job->message, sizeof job->message, "%s", message);
    while (job->first) {
        tern_dist_work *w = job->first;
        job->first = w->next;
        w->status = status;
        if (w->state != WORK_WAITS)
            w->next = job->unfinished, job->unfinished = w; /* MPI may use its memory */
        atomic_store(&w->done, true);
    }
    if (job->negotiation)
        job->negotiation->asks = NULL;
}

void tern_dist_end(tern_dist_job *job, tern_status status, const char *message)
{
    if (job->status != TERN_OK)
        return;
    end_here(job, status, message);
    note n = {.type = NOTE_END};
    snprintf(n.text, sizeof n.text, "%s", message);
    for (int r = 0; r < job->all.size; r++)
        if (r != job->all.rank)
            write_to(job, r, &n);
}

/* ---- questions ----------------------------------------------------------------------------- */

void tern_dist_ask(tern_dist_job *job, tern_dist_work *w, const char *why)
{
    tern_dist_negotiation *t = job->negotiation;
    if (t->asks)
        return;
    const tern_dist_group *g = w->group;
    const bool pair = w->kind == DIST_SEND || w->kind == DIST_RECV;
    note n = {.type = NOTE_ASK, .group = g->number, .number = w->number, .token = ++t->token};
    t->asks = w;
    t->asked = tern_dist_now();
    snprintf(t->reason, sizeof t->reason, "%s", why);
    for (int r = 0; r < job->all.size; r++)
        t->answers[r].state = ANSWER_NOT_ASKED;
    for (int i = 0; i < g->size; i++) {
        if (i == g->rank || (pair && i != w->root))
            continue;
        if (g->size > ALL_ASK && g->rank >= MOST_ASKERS) /* the MOST_ASKERS that ask will report */
            continue;
        t->answers[g->members[i]].state = ANSWER_NONE;
        write_to(job, g->members[i], &n);
    }
}

void tern_dist_ask_no_more(tern_dist_job *job, const tern_dist_work *w)
{
    if (job->negotiation && job->negotiation->asks == w) /* the work ended late */
        job->negotiation->asks = NULL;
}

static void answer_to(tern_dist_job *job, const note *asked)
{
    note n = {.type = NOTE_ANSWER, .token = asked->token};
    const tern_dist_group *g = &job->all;
    for (const tern_dist_group *other = job->groups; other; other = other->next)
        if (other->number == asked->group)
            g = other;
    n.begun = asked->number != 0 && g->count >= asked->number;
    char lines[DIST_TEXT * 3];
    if (tern_dist_lines(lines, sizeof lines, 3))
        snprintf(n.text, sizeof n.text, "its last were %s", lines);
    else
        snprintf(n.text, sizeof n.text, "it has done nothing yet");
    write_to(job, asked->from, &n);
}

static void accuse(const tern_dist_job *job, char *text, size_t bytes)
{
    const tern_dist_negotiation *t = job->negotiation;
    int blamed = 0;
    char name[96];
    for (int pass = 0; pass < 2; pass++) /* first those that do not answer */
        for (int r = 0; r < job->all.size; r++) {
            const answer *a = &t->answers[r];
            if (a->state != (pass ? ANSWER_NOT_BEGUN : ANSWER_NONE) || ++blamed > 4)
                continue;
            tern_dist_add(text, bytes, "%s%s %s%s", blamed > 1 ? "; " : "",
                          tern_dist_name(r, name, sizeof name),
                          pass ? "has not begun it: "
                               : "does not answer (dead, stopped or cut off)",
                          pass ? a->text : "");
        }
    if (blamed > 4)
        tern_dist_add(text, bytes, "; and %d others", blamed - 4);
    if (blamed == 0)
        tern_dist_add(text, bytes, "all ranks that were asked have begun it, and it does not end");
}

static void conclude(tern_dist_job *job)
{
    tern_dist_negotiation *t = job->negotiation;
    const tern_dist_work *w = t->asks;
    char text[DIST_MESSAGE] = "", lines[DIST_TEXT * 4];
    if (w->number)
        tern_dist_add(text, sizeof text, "#%" PRIu64 " of %s", w->number,
                      w->group->number ? "the group, " : "all ranks, ");
    tern_dist_add(text, sizeof text, "%s", w->deed.text);
    if (w->kind == DIST_SEND || w->kind == DIST_RECV)
        tern_dist_add(text, sizeof text, " %s rank %d", w->kind == DIST_SEND ? "to" : "from",
                      w->group->members[w->root]);
    if (t->reason[0])
        tern_dist_add(text, sizeof text, ": %s: ", t->reason);
    else
        tern_dist_add(text, sizeof text, ", was waited for %.1f s: ", tern_dist_now() - w->begun);
    accuse(job, text, sizeof text);
    tern_dist_lines(lines, sizeof lines, 4);
    tern_dist_add(text, sizeof text, ". The last of rank %d, which reports this: %s", job->all.rank,
                  lines);
    tern_dist_end(job, TERN_ERR_PEER, text);
}

/* ---- */

static void read_note(tern_dist_job *job)
{
    tern_dist_negotiation *t = job->negotiation;
    const note *n = &t->heard;
    if (n->type == NOTE_ASK) {
        answer_to(job, n);
    } else if (n->type == NOTE_ANSWER && t->asks && n->token == t->token) {
        const bool pair = t->asks->kind == DIST_SEND || t->asks->kind == DIST_RECV;
        answer *a = &t->answers[n->from];
        a->state = n->begun && !pair ? ANSWER_BEGUN : ANSWER_NOT_BEGUN;
        snprintf(a->text, sizeof a->text, "%.*s", (int)sizeof a->text - 1, n->text);
    } else if (n->type == NOTE_END && job->status == TERN_OK) {
        char text[DIST_MESSAGE];
        snprintf(text, sizeof text, "rank %d ended the job: %s", n->from, n->text);
        end_here(job, TERN_ERR_PEER, text);
    }
}

bool tern_dist_negotiation_step(tern_dist_job *job)
{
    tern_dist_negotiation *t = job->negotiation;
    bool done = false;
    send_letters(job);
    if (!t->deaf && job->mpi->test(&t->hears, &done) == 0 && done) {
        t->deaf = t->heard.type == NOTE_LAST;
        read_note(job);
        if (!t->deaf)
            hear(job);
    }
    if (t->asks) {
        bool waits = false;
        for (int r = 0; r < job->all.size; r++)
            waits |= t->answers[r].state == ANSWER_NONE;
        const double waited = tern_dist_now() - t->asked;
        const bool asker = t->asks->group->size <= ALL_ASK || t->asks->group->rank < MOST_ASKERS;
        if (waited > (asker ? 1.0 : 2.5) || (asker && !waits))
            conclude(job);
    }
    return done;
}

void tern_dist_negotiation_end(tern_dist_job *job)
{
    const note last = {.type = NOTE_LAST};
    const double until = tern_dist_now() + 1;
    write_to(job, job->all.rank, &last); /* completes the pending receive */
    while ((!job->negotiation->deaf || job->negotiation->letters) && tern_dist_now() < until)
        tern_dist_negotiation_step(job);
}

bool tern_dist_negotiation_is_silent(const tern_dist_job *job)
{
    return !job->negotiation || !job->negotiation->letters;
}
