/* stages.c -- tensors of a pipeline's stages, which one rank has while the others have stand-ins:
 * which rank has a tensor, for norms, skipped steps, state dicts and snapshots. */
#include "base/memory.h"
#include "base/lock.h"
#include "dist/dist.h"
#include <string.h>
#include <tern/ops.h>

enum { TAG = 19997 };

/* The distinct ranks of a pipeline. The structs are never freed. */
typedef struct crew {
    int n, own; /* own is the index of this process in rank, or -1 if it has no stage */
    int last;   /* index of the rank with the last stage */
    struct crew *next;
    int rank[];
} crew;

/* The tensors of one rank's stages. inner: the ranks among which they are cut further, or NULL. */
typedef struct stage {
    /* Must be the first member: all processes, as other ranks may have copies of the pipeline. */
    tern_dist_ranks of;
    const crew *crew;
    int owner;
    tern_ranks *inner;
    struct stage *next;
} stage;

static tern_mutex lock = TERN_MUTEX_INIT;

/* ---- reductions ------------------------------------------------------------------------------ */

static void combine(double *all, const double *more, int n, bool greatest)
{
    for (int i = 0; i < n; i++)
        if (!greatest)
            all[i] += more[i];
        else if (more[i] > all[i] || more[i] != more[i])
            all[i] = more[i];
}

/* Reduces on the first rank and sends it the others, so that all ranks have the same bits. */
static tern_status reduce_over(const crew *c, double *values, int n, bool greatest)
{
    const tern_dist_options o = {.tag = TAG, .label = "numbers of all stages"};
    tern_status status = TERN_OK;
    TERN_SCOPE {
        tern_tensor *x = tern_from_data(values, TERN_SHAPE(n), TERN_F64, "cpu"),
                    *more = tern_zeros(TERN_SHAPE(n), TERN_F64, "cpu");
        status = x && more ? TERN_OK : TERN_ERR_MEMORY;
        if (status == TERN_OK && c->own) {
            status = tern_dist_send(x, c->rank[0], &o);
            if (status == TERN_OK)
                status = tern_dist_recv(x, c->rank[0], &o);
        }
        for (int i = 1; i < c->n && status == TERN_OK && !c->own; i++) {
            status = tern_dist_recv(more, c->rank[i], &o);
            if (status == TERN_OK)
                combine(tern_data(x), tern_data(more), n, greatest);
        }
        for (int i = 1; i < c->n && status == TERN_OK && !c->own; i++)
            status = tern_dist_send(x, c->rank[i], &o);
        if (status == TERN_OK)
            memcpy(values, tern_data(x), sizeof *values * (size_t)n);
    }
    return status;
}

static tern_status reduce(tern_ranks *ranks, double *values, int n, bool greatest)
{
    const stage *s = (const stage *)(void *)ranks;
    if (s->inner)
        TERN_TRY(s->inner->reduce(s->inner, values, n, greatest));
    return s->crew->own < 0 ? TERN_OK : reduce_over(s->crew, values, n, greatest);
}

static int cuts(const tern_ranks *ranks, const tern_tensor *x, tern_cut cut[TERN_MOST_CUTS],
                tern_shape *whole)
{
    const stage *s = (const stage *)(const void *)ranks;
    *whole = tern_shape_of(x);
    const int n = s->inner ? s->inner->cuts(s->inner, x, cut, whole) : 0;
    cut[n] = (tern_cut){.dim = -1,
                        .part = s->crew->own < 0 ? 0 : s->crew->own,
                        .parts = s->crew->n,
                        .group = s->crew,
                        .elsewhere = s->crew->own != s->owner,
                        .last = s->crew->own == s->crew->last};
    return n + 1;
}

static tern_status first(tern_ranks *ranks, int number, int count, bool *leads, bool *own,
                         bool *all)
{
    const stage *s = (const stage *)(void *)ranks;
    return tern_dist_first(ranks, s->crew->own < 0 ? -1 : number, count, leads, own, all);
}

/* ---- lists of pipelines and stages ----------------------------------------------------------- */

/* Returns the crew with these ranks, made if need be, or NULL after TERN_ERR_MEMORY. The caller
 * holds the lock. */
static const crew *crew_of(const int *rank, int n, int last)
{
    static crew *all;
    const int self = tern_dist_get_rank(NULL);
    const size_t bytes = sizeof *rank * (size_t)n;
    crew *c = all;
    while (c && (c->n != n || c->last != last || memcmp(c->rank, rank, bytes) != 0))
        c = c->next;
    if (!c && (c = tern_alloc(sizeof *c + bytes))) {
        c->n = n;
        c->last = last;
        memcpy(c->rank, rank, bytes);
        c->next = all;
        all = c;
    }
    if (c)
        c->own = -1;
    for (int i = 0; c && i < n; i++)
        if (rank[i] == self)
            c->own = i;
    return c;
}

/* Returns the stage of that crew, owner and inner, made if need be, or NULL after TERN_ERR_MEMORY.
 * The caller holds the lock. */
static stage *stage_of(const crew *c, int owner, tern_ranks *inner)
{
    static stage *all;
    stage *s = all;
    while (s && (s->crew != c || s->owner != owner || s->inner != inner))
        s = s->next;
    if (!s && (s = tern_alloc(sizeof *s))) {
        *s = (stage){.of = {.ranks = {.reduce = reduce,
                                      .sums = &s->of.ranks,
                                      .all = true,
                                      .cuts = cuts,
                                      .check_consistency = tern_dist_check_consistency,
                                      .first = first},
                            .n = 1},
                     .crew = c,
                     .owner = owner,
                     .inner = inner,
                     .next = all};
        for (const stage *other = all; other; other = other->next)
            if (other->crew == c &&
                (inner ? other->inner && other->inner->sums == inner->sums : !other->inner))
                s->of.ranks.sums = other->of.ranks.sums;
        all = s;
    }
    if (s)
        s->of.ranks.rank = tern_dist_get_rank(NULL);
    return s;
}

static const stage *its_stage(const tern_tensor *x)
{
    const tern_ranks *ranks = tern_ranks_of(x);
    return ranks && ranks->reduce == reduce ? (const stage *)(const void *)ranks : NULL;
}

/* ---- assigning tensors to stages ------------------------------------------------------------- */

typedef struct setting {
    const crew *crew;
    int owner;
    bool checks;
} setting;

/* The first pass assigns all tensors; the second finds tensors that a stage of another rank has
 * overwritten, so that two stages share them. */
static tern_status visit(const char *path, tern_tensor *x, void *user)
{
    const setting *t = user;
    const stage *s = its_stage(x);
    if (t->checks)
        return s && s->owner == t->owner
                   ? TERN_OK
                   : tern_fail(TERN_ERR_ARGUMENT,
                               "tern_dist_pipeline: '%s' of a stage of rank %d is in one of rank "
                               "%d too, and would become two",
                               path, t->crew->rank[t->owner], s ? t->crew->rank[s->owner] : -1);
    tern_mutex_lock(&lock);
    stage *made = stage_of(t->crew, t->owner, s ? s->inner : tern_ranks_of(x));
    tern_mutex_unlock(&lock);
    return made ? tern_set_ranks(x, &made->of.ranks) : TERN_ERR_MEMORY;
}

static tern_status forget(const char *path, tern_tensor *x, void *user)
{
    const stage *s = its_stage(x);
    (void)path;
    (void)user;
    return s ? tern_set_ranks(x, s->inner) : TERN_OK;
}

tern_status tern_dist_set_stages(tern_module *sequential, const int *begin, const int *rank, int n)
{
    int ranks[n], owner[n], count = 0;
    for (int s = 0; s < n; s++) {
        owner[s] = 0;
        while (owner[s] < count && ranks[owner[s]] != rank[s])
            owner[s]++;
        if (owner[s] == count)
            ranks[count++] = rank[s];
    }
    TERN_TRY(tern_nn_each_state(sequential, forget, NULL));
    if (count == 1)
        return TERN_OK;
    tern_mutex_lock(&lock);
    setting t = {.crew = crew_of(ranks, count, owner[n - 1])};
    tern_mutex_unlock(&lock);
    tern_status status = t.crew ? TERN_OK : TERN_ERR_MEMORY;
    for (int pass = 0; pass < 2; pass++)
        for (int s = 0; s < n; s++)
            for (int i = begin[s]; i < begin[s + 1] && status == TERN_OK; i++) {
                t.owner = owner[s];
                t.checks = pass;
                status = tern_nn_each_state(tern_nn_child_at(sequential, i), visit, &t);
            }
    if (status != TERN_OK)
        tern_nn_each_state(sequential, forget, NULL);
    return status;
}

tern_status tern_dist_share_stage(const tern_tensor *x, tern_tensor *whole)
{
    const tern_dist_options o = {.tag = TAG, .label = "a stage's state"};
    const stage *s = its_stage(x);
    if (!s || s->crew->own < 0)
        return TERN_OK;
    if (s->crew->own != s->owner)
        return tern_dist_recv(whole, s->crew->rank[s->owner], &o);
    for (int i = 0; i < s->crew->n; i++)
        if (i != s->owner)
            TERN_TRY(tern_dist_send(whole, s->crew->rank[i], &o));
    return TERN_OK;
}
