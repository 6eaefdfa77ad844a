/* record.c -- the names of collectives, and the flight record: a ring of the last ones. */
#include "base/text.h"
#include "base/os.h"
#include "dist/dist.h"
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* The struct is all zeros, as are TERN_MUTEX_INIT and TERN_COND_INIT, so it takes no space in the
 * file. */
tern_dist_job tern_dist_the_job;

double tern_dist_now(void)
{
    return 1e-9 * (double)tern_os_now();
}

void tern_dist_add(char *text, size_t bytes, const char *format, ...)
{
    size_t length = strlen(text);
    va_list args;
    va_start(args, format);
    vsnprintf(text + length, bytes - length, format, args);
    va_end(args);
}

const char *tern_dist_kind_name(tern_dist_kind kind)
{
    static const char *const names[] = {"all_reduce",
                                        "reduce",
                                        "broadcast",
                                        "all_gather_into_tensor",
                                        "reduce_scatter_tensor",
                                        "gather",
                                        "scatter",
                                        "all_to_all_single",
                                        "send",
                                        "recv",
                                        "barrier",
                                        "new_group",
                                        "destroy_process_group"};
    return names[kind];
}

void tern_dist_describe(tern_dist_work *w, const char *label)
{
    static const char *const ops[] = {"",       " (average)", " (product)", " (min)",
                                      " (max)", " (band)",    " (bor)",     " (bxor)"};
    char *text = w->deed.text;
    const size_t bytes = sizeof w->deed.text;
    const bool pair = w->kind == DIST_SEND || w->kind == DIST_RECV;
    text[0] = '\0';
    if (!pair)
        tern_dist_add(text, bytes, "%s%s", tern_dist_kind_name(w->kind), ops[w->op]);
    if (w->dtype != TERN_DTYPE_DEFAULT)
        tern_dist_add(text, bytes, "%s%" PRId64 " %s", pair ? "" : " of ", w->count,
                      tern_dtype_name(w->dtype));
    if (pair && w->tag)
        tern_dist_add(text, bytes, " with tag %d", w->tag);
    if (w->kind == DIST_BROADCAST || w->kind == DIST_SCATTER)
        tern_dist_add(text, bytes, " from rank %d", w->group->members[w->root]);
    if (w->kind == DIST_REDUCE || w->kind == DIST_GATHER)
        tern_dist_add(text, bytes, " to rank %d", w->group->members[w->root]);
    if (w->direct)
        tern_dist_add(text, bytes, " in the order of ranks");
    if (label)
        tern_dist_add(text, bytes, " '%.*s'", DIST_LABEL - 1, label);
    w->deed.signature = tern_hash(TERN_HASH_SEED, text, strlen(text));
}

void tern_dist_note(const tern_dist_work *w)
{
    tern_dist_job *job = &tern_dist_the_job;
    tern_dist_line *line = &job->record[job->recorded++ % DIST_RECORD];
    *line = (tern_dist_line){
        .group = w->group->number, .number = w->number, .begun = w->asked, .of = w};
    if (w->kind == DIST_SEND || w->kind == DIST_RECV)
        tern_dist_add(line->text, sizeof line->text, "%s %s rank %d of ",
                      tern_dist_kind_name(w->kind), w->kind == DIST_SEND ? "to" : "from",
                      w->group->members[w->root]);
    tern_dist_add(line->text, sizeof line->text, "%s", w->deed.text);
}

void tern_dist_note_end(const tern_dist_work *w)
{
    tern_dist_job *job = &tern_dist_the_job;
    for (int i = 0; i < DIST_RECORD; i++)
        if (job->record[i].of == w) {
            job->record[i].ended = tern_dist_now();
            job->record[i].of = NULL;
        }
}

size_t tern_dist_lines(char *text, size_t bytes, int n)
{
    const tern_dist_job *job = &tern_dist_the_job;
    const double now = tern_dist_now();
    text[0] = '\0';
    for (uint64_t i = job->recorded; i > 0 && n > 0 && i + DIST_RECORD > job->recorded; i--, n--) {
        const tern_dist_line *line = &job->record[(i - 1) % DIST_RECORD];
        tern_dist_add(text, bytes, "%s", i == job->recorded ? "" : ", ");
        if (line->number)
            tern_dist_add(text, bytes, "#%" PRIu64 " ", line->number);
        if (line->group)
            tern_dist_add(text, bytes, "(group %d) ", line->group);
        tern_dist_add(text, bytes, "%s, begun %.1f s ago%s", line->text, now - line->begun,
                      line->ended > 0 ? "" : ", not done");
    }
    return strlen(text);
}

const char *tern_dist_name(int rank, char *text, size_t bytes)
{
    const tern_dist_card *cards = tern_dist_the_job.cards;
    if (cards)
        snprintf(text, bytes, "rank %d (%s, pid %" PRId64 ")", rank, cards[rank].host,
                 cards[rank].pid);
    else
        snprintf(text, bytes, "rank %d", rank);
    return text;
}

char *tern_dist_flight_record(void)
{
    tern_dist_job *job = &tern_dist_the_job;
    tern_text text = {0};
    tern_mutex_lock(&job->lock);
    const double now = tern_dist_now();
    uint64_t i = job->recorded > DIST_RECORD ? job->recorded - DIST_RECORD : 0;
    tern_text_add(&text, "%s", "");
    for (; i < job->recorded; i++) {
        const tern_dist_line *line = &job->record[i % DIST_RECORD];
        tern_text_add(&text, "#%" PRIu64 " group %d %s, begun %.3f s ago, ", line->number,
                      line->group, line->text, now - line->begun);
        if (line->ended > 0)
            tern_text_add(&text, "took %.3f s\n", line->ended - line->begun);
        else
            tern_text_add(&text, "not done\n");
    }
    tern_mutex_unlock(&job->lock);
    if (!text.failed)
        return text.data;
    tern_text_free(&text);
    return tern_fail_null(TERN_ERR_MEMORY, "tern_dist_flight_record: no memory");
}
