/* user_run.c -- runs the work-groups of a user's kernel, each on one thread: its work-items one
 * after the other, or if there are barriers each on a stack of its own, in turns. */
#include "base/os_fiber.h"
#include "base/parallel.h"
#include "device/cpu/user.h"
#include <stdatomic.h>
#include <string.h>

enum { MOST_ITEMS = 1024, WORK_OF_ITEM = 64 };

typedef struct launch {
    const tern_cpu_user *kernel;
    const uint64_t *words;
    size_t groups[3], local[3], global[3], shared;
    unsigned dims;
    atomic_bool failed; /* memory was out */
} launch;

/* ---- work-items with barriers ---------------------------------------------------------------- */

typedef struct meeting {
    const launch *l;
    tern_user_group group;
    tern_fibers *items;
    bool ended[MOST_ITEMS];
    size_t n, now;
} meeting;

static void meet(void *user)
{
    meeting *m = user;
    tern_fibers_pause(m->items, m->now);
}

static void begin_item(void *user)
{
    meeting *m = user;
    m->l->kernel->item(&m->group, m->now);
    m->ended[m->now] = true;
    tern_fibers_pause(m->items, m->now);
}

static bool run_meeting(meeting *m)
{
    for (size_t i = 0; i < m->n; i++) {
        if (!tern_fibers_begin(m->items, i, begin_item, m))
            return false;
        m->ended[i] = false;
    }
    for (size_t left = m->n; left > 0;)
        for (m->now = 0; m->now < m->n; m->now++)
            if (!m->ended[m->now]) {
                tern_fibers_resume(m->items, m->now);
                left -= m->ended[m->now];
            }
    return true;
}

/* ---- groups ------------------------------------------------------------------------------ */

static tern_user_group group_at(const launch *l, size_t i, char *shared)
{
    tern_user_group g = {.dims = l->dims, .shared = shared};
    g.words = (const unsigned long long *)l->words;
    memcpy(g.groups, l->groups, sizeof g.groups);
    memcpy(g.local, l->local, sizeof g.local);
    g.group[0] = i % l->groups[0];
    g.group[1] = i / l->groups[0] % l->groups[1];
    g.group[2] = i / l->groups[0] / l->groups[1];
    memcpy(g.global, l->global, sizeof g.global);
    for (int d = 0; d < 3; d++) {
        g.first[d] = g.group[d] * l->local[d];
        if (g.local[d] > g.global[d] - g.first[d]) /* only if the kernel does not see groups */
            g.local[d] = g.global[d] - g.first[d];
    }
    return g;
}

static bool run_groups(launch *l, size_t from, size_t to, char *shared)
{
    meeting *m = NULL;
    if (l->kernel->source.meets) {
        m = tern_alloc(sizeof *m);
        if (!m)
            return false;
        m->l = l;
        m->n = l->local[0] * l->local[1] * l->local[2];
        if (!(m->items = tern_fibers_new(m->n))) {
            tern_free(m);
            return false;
        }
    }
    bool good = true;
    for (size_t i = from; i < to && good; i++) {
        tern_user_group g = group_at(l, i, shared);
        if (!m) {
            l->kernel->items(&g);
            continue;
        }
        m->group = g;
        m->group.meet = meet;
        m->group.meeting = m;
        good = run_meeting(m);
    }
    if (m)
        tern_fibers_free(m->items);
    tern_free(m);
    return good;
}

static void run_part(void *user, int part, int parts)
{
    launch *l = user;
    size_t n = l->groups[0] * l->groups[1] * l->groups[2];
    size_t from = n * (size_t)part / (size_t)parts, to = n * (size_t)(part + 1) / (size_t)parts;
    char *shared = tern_alloc_aligned(l->shared + 1);
    if (!shared || !run_groups(l, from, to, shared))
        atomic_store(&l->failed, true);
    tern_free(shared);
}

/* Enlarges the groups of a kernel that does not see them, up to the size of a part of the work:
 * lines of items, which the compiler vectorized. Each part has some groups, as items may differ in
 * work. */
static void widen_groups(launch *l, size_t parts)
{
    enum { OF_A_PART = 4, LEAST = 64, MOST = 1 << 20 };
    size_t items = l->global[0] * l->global[1] * l->global[2];
    size_t wanted = items / (parts * OF_A_PART) / LEAST * LEAST;
    wanted = wanted < LEAST ? LEAST : wanted > MOST ? MOST : wanted;
    for (int d = 0; d < 3; d++) {
        l->local[d] = wanted < l->global[d] ? wanted : l->global[d];
        l->groups[d] = (l->global[d] + l->local[d] - 1) / l->local[d];
        wanted /= l->local[d];
        wanted = wanted ? wanted : 1;
    }
}

tern_status tern_cpu_user_launch(tern_place *place, void *kernel, const tern_kernel_grid *grid,
                                 const tern_arg *args, int n)
{
    tern_cpu_user *k = kernel;
    uint64_t words[TERN_USER_ARGUMENTS + 1];
    int64_t group[3], items = 1;
    size_t shared;
    (void)place;
    tern_user_words(args, n, words, &shared);
    TERN_TRY(tern_user_group_of(&k->source, "cpu", k->name, grid, MOST_ITEMS, group));
    if (k->elsewhere)
        return tern_cpu_elsewhere_launch(k, grid, args, n);
    launch l = {.kernel = k, .words = words, .shared = shared};
    l.dims = (unsigned)tern_user_dims(grid);
    for (int i = 0; i < 3; i++) {
        l.local[i] = (size_t)group[i];
        l.groups[i] = (size_t)((grid->items[i] + group[i] - 1) / group[i]);
        l.global[i] = l.local[i] * l.groups[i];
        items *= (int64_t)l.global[i];
    }
    int parts = tern_parallel_parts(items * WORK_OF_ITEM);
    if (!k->source.groups && items > 0)
        widen_groups(&l, (size_t)parts);
    size_t groups = l.groups[0] * l.groups[1] * l.groups[2];
    tern_parallel((size_t)parts < groups ? parts : (int)groups, run_part, &l);
    return atomic_load(&l.failed)
               ? tern_fail(TERN_ERR_MEMORY,
                           "tern_kernel_launch: no memory for the work-groups of "
                           "kernel %s on cpu",
                           k->name)
               : TERN_OK;
}
