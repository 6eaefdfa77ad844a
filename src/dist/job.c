/* job.c -- joining a job and leaving it, its members, and its groups. */
#include "base/option.h"
#include "base/os.h"
#include "base/parallel.h"
#include "base/text.h"
#include "dist/dist.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char notes[1024];
static const char function[] = "tern_dist_init_process_group";

/* ---- members --------------------------------------------------------------------------------- */

static const tern_dist_group *of(const tern_dist_group *group)
{
    return group ? group : &tern_dist_the_job.all;
}

bool tern_dist_is_initialized(void)
{
    return tern_dist_the_job.all.size > 0;
}

int tern_dist_get_rank(const tern_dist_group *group)
{
    return of(group)->rank;
}

int tern_dist_get_world_size(const tern_dist_group *group)
{
    return of(group)->size ? of(group)->size : 1;
}

int tern_dist_get_local_rank(void)
{
    return tern_dist_the_job.local_rank;
}

const char *tern_dist_get_backend(const tern_dist_group *group)
{
    return !tern_dist_the_job.mpi                   ? "local"
           : atomic_load(&of(group)->has_transport) ? "nccl"
                                                    : "mpi";
}

const char *tern_dist_notes(void)
{
    return notes;
}

bool tern_dist_is_available(void)
{
    tern_dist_launcher l = tern_dist_find_launcher();
    char where[sizeof notes];
    return tern_dist_the_job.mpi || tern_dist_open_plugin(l.families, where, sizeof where);
}

/* ---- joining --------------------------------------------------------------------------------- */

static tern_dist_card own_card(void)
{
    tern_dist_card card = {.pid = (int64_t)tern_os_getpid(), .version = TERN_MPI_VERSION};
    tern_os_gethostname(card.host, sizeof card.host - 1);
    tern_os_own_cores(&card.cores);
    return card;
}

static bool same_host(const tern_dist_card *a, const tern_dist_card *b)
{
    return strcmp(a->host, b->host) == 0;
}

/* Divides cores among the ranks of this host that may use the same ones. */
static void share_cores(const tern_dist_job *job)
{
    const tern_dist_card *own = &job->cards[job->all.rank];
    const char *chosen = tern_os_getenv("OMP_NUM_THREADS");
    uint64_t which;
    int sharers = 0;
    const int cores = tern_os_own_cores(&which);
    if ((chosen && *chosen) || cores == 0)
        return;
    for (int r = 0; r < job->all.size; r++)
        sharers += same_host(own, &job->cards[r]) && own->cores == job->cards[r].cores;
    const int n = cores / sharers;
    tern_set_num_threads(n > 0 ? n : 1);
}

static tern_status meet(tern_dist_job *job, const tern_dist_launcher *l)
{
    const int size = job->all.size;
    tern_dist_card card = own_card();
    job->all.members = tern_alloc(sizeof *job->all.members * (size_t)size);
    tern_dist_card *cards = tern_alloc(sizeof *cards * (size_t)size);
    char label[DIST_LABEL];
    if (!job->all.members || !cards)
        return TERN_ERR_MEMORY;
    for (int r = 0; r < size; r++)
        job->all.members[r] = r;
    tern_mutex_lock(&job->lock);
    tern_status status = tern_dist_negotiation_begin(job);
    tern_mutex_unlock(&job->lock);
    snprintf(label, sizeof label, "init, version %d", TERN_MPI_VERSION);
    if (status == TERN_OK)
        status = tern_dist_run(&(tern_dist_work){.kind = DIST_ALL_GATHER,
                                                 .group = &job->all,
                                                 .dtype = TERN_U8,
                                                 .count = sizeof card,
                                                 .timeout = job->all.timeout,
                                                 .from = &card,
                                                 .to = cards},
                               label);
    if (status != TERN_OK) {
        tern_free(cards);
        return status;
    }
    tern_mutex_lock(&job->lock);
    job->cards = cards;
    tern_mutex_unlock(&job->lock);
    job->local_rank = l->local_rank;
    if (l->local_rank < 0) {
        job->local_rank = 0;
        for (int r = 0; r < job->all.rank; r++)
            job->local_rank += same_host(&card, &cards[r]);
    }
    share_cores(job);
    return TERN_OK;
}

/* Records an error if MPI has fewer processes than the launcher started: another MPI library than
 * the launcher's takes each process for a job of one. */
static tern_status compare(const tern_dist_job *job, const tern_dist_launcher *l,
                           const char *library)
{
    const char *local = tern_os_getenv("MPI_LOCALNRANKS");
    const int least = l->size ? l->size : local ? atoi(local) : l->rank + 1, size = job->all.size;
    if (!l->there || (l->size ? size == l->size : size >= least))
        return TERN_OK;
    return tern_fail(
        TERN_ERR_STATE,
        "%s: the launcher started %s%d processes (%s), but for %s this job has %d: the "
        "launcher is not that library's; TERN_MPI_PLUGIN names the plugin for another",
        function, l->size ? "" : "at least ", least, l->variable, library, size);
}

static tern_status join(tern_dist_job *job, const tern_dist_launcher *l, const char *where)
{
    static const char *const levels[] = {"", "its calls are made while the program waits",
                                         "overlapped", "overlapped"};
    char library[128] = "";
    TERN_TRY(tern_dist_start(job, job->all.timeout));
    job->mpi->describe(library, sizeof library);
    snprintf(notes, sizeof notes, "%s by %.768s, %s", library, where, levels[job->level]);
    tern_status status = compare(job, l, library);
    if (status != TERN_OK) { /* MPI sees jobs of one process, so no other rank waits */
        job->left = true;
        return status;
    }
    return meet(job, l);
}

static void forget(tern_dist_job *job)
{
    tern_dist_stop(job);
    tern_mutex_lock(&job->lock);
    tern_dist_drop_transports(job);
    const bool whole = job->status == TERN_OK;
    for (tern_dist_work *w; (w = job->first);) { /* no thread waits for these works any more */
        job->first = w->next;
        w->status = TERN_ERR_STATE;
        atomic_store(&w->done, true);
    }
    if (job->mpi && whole)
        tern_dist_negotiation_free(job);
    if (whole) { /* after a failure other ranks may still get messages about groups */
        for (tern_dist_group *g; (g = job->groups);) {
            job->groups = g->next;
            tern_free(g->members);
            tern_free(g);
        }
        tern_free(job->all.members);
        tern_free(job->cards);
    }
    job->left |= job->mpi != NULL;
    job->groups = NULL;
    job->cards = NULL;
    job->mpi = NULL;
    job->all = (tern_dist_group){0};
    job->local_rank = 0;
    job->n_groups = 0;
    job->stops = job->began = job->foreign = false;
    tern_mutex_unlock(&job->lock);
}

static tern_status choose_device(const tern_dist_job *job, const char *device)
{
    char text[64];
    if (!device)
        return TERN_OK;
    const int count = strchr(device, ':') ? 0 : tern_device_count(device);
    snprintf(text, sizeof text, count > 0 && strcmp(device, "cpu") != 0 ? "%s:%d" : "%s", device,
             count > 0 ? tern_dist_get_local_rank() % count : 0);
    (void)job;
    TERN_TRY(tern_set_default_device(text));
    return strcmp(text, "cpu") == 0 || strcmp(text, "auto") == 0 ? TERN_OK : tern_set_device(text);
}

static tern_status check_init(const tern_dist_job *job, const char *backend, double timeout)
{
    if (tern_is_forked_child())
        return tern_fail(TERN_ERR_STATE, "%s: not in a forked child", function);
    if (job->all.size)
        return tern_fail(TERN_ERR_STATE,
                         "%s: trying to initialize the default process group twice!", function);
    if (job->left || job->status != TERN_OK)
        return tern_fail(TERN_ERR_STATE, "%s: this process has left its job, and MPI has one only",
                         function);
    if (backend && strcmp(backend, "mpi") != 0)
        return tern_fail(TERN_ERR_ARGUMENT, "%s: Unknown backend: '%s' (there is \"mpi\")",
                         function, backend);
    if (!(timeout > 0))
        return tern_fail(TERN_ERR_ARGUMENT, "%s: timeout %g, in seconds, should be above 0",
                         function, timeout);
    return TERN_OK;
}

tern_status tern_dist_init_process_group(const char *backend, const tern_dist_init_options *options)
{
    tern_dist_job *job = &tern_dist_the_job;
    const tern_dist_init_options o = tern_read_dist_init(options);
    const tern_dist_launcher l = tern_dist_find_launcher();
    char where[3400] = ""; /* three paths, or the loader's error messages about these */
    TERN_TRY(check_init(job, backend, o.timeout));
    job->all.timeout = o.timeout;
    job->forks = tern_forks();
    if (backend || l.there)
        job->mpi = tern_dist_open_plugin(l.families, where, sizeof where);
    if (!job->mpi && (backend || (l.there && l.size != 1)))
        return tern_fail(TERN_ERR_UNSUPPORTED, "%s: %s%s%.0d: no plugin for its MPI: %s", function,
                         l.there ? l.variable : "mpi", l.size ? " is " : "", l.size, where);
    tern_status status = TERN_OK;
    if (job->mpi) {
        status = join(job, &l, where);
    } else {
        snprintf(notes, sizeof notes, "no launcher started this process: a job of one");
        job->all.size = 1;
    }
    if (status == TERN_OK)
        status = choose_device(job, o.device);
    if (status != TERN_OK)
        forget(job);
    return status;
}

tern_status tern_dist_destroy_process_group(void)
{
    tern_dist_job *job = &tern_dist_the_job;
    tern_status status = TERN_OK;
    if (!job->all.size || job->forks != tern_forks())
        return tern_fail(TERN_ERR_STATE, "tern_dist_destroy_process_group: there is no group");
    if (job->mpi && !tern_dist_has_ended(job)) {
        status = tern_dist_run(
            &(tern_dist_work){.kind = DIST_LEAVE, .group = &job->all, .timeout = job->all.timeout},
            NULL);
        job->left = status == TERN_OK;
    }
    forget(job);
    return status;
}

/* ---- groups ---------------------------------------------------------------------------------- */

static tern_status check_members(const int *ranks, int n, int size)
{
    const char *name = "tern_dist_new_group";
    if (!ranks || n < 1 || n > size)
        return tern_fail(TERN_ERR_ARGUMENT, "%s: %d ranks of %d", name, n, size);
    for (int i = 0; i < n; i++) {
        if (ranks[i] < 0 || ranks[i] >= size)
            return tern_fail(TERN_ERR_ARGUMENT, "%s: rank %d of %d", name, ranks[i], size);
        for (int k = 0; k < i; k++)
            if (ranks[k] == ranks[i])
                return tern_fail(TERN_ERR_ARGUMENT, "%s: rank %d twice", name, ranks[i]);
    }
    return TERN_OK;
}

static void free_group(tern_dist_group *g)
{
    if (g)
        tern_free(g->members);
    tern_free(g);
}

tern_dist_group *tern_dist_new_group(const int *ranks, int n, double timeout)
{
    tern_dist_job *job = &tern_dist_the_job;
    const int size = tern_dist_get_world_size(NULL);
    char label[DIST_LABEL];
    if (check_members(ranks, n, size) != TERN_OK)
        return NULL;
    tern_dist_group *g = tern_alloc(sizeof *g);
    if (!g || !(g->members = tern_alloc(sizeof *ranks * (size_t)n)))
        return free_group(g), NULL;
    memcpy(g->members, ranks, sizeof *ranks * (size_t)n);
    g->size = n;
    g->rank = -1;
    g->number = job->n_groups + 1;
    g->timeout = timeout > 0 ? timeout : job->all.timeout;
    for (int i = 0; i < n; i++)
        if (ranks[i] == job->all.rank)
            g->rank = i;
    snprintf(label, sizeof label, "%d ranks, %016" PRIx64, n,
             tern_hash(TERN_HASH_SEED, ranks, sizeof *ranks * (size_t)n));
    if (job->mpi && tern_dist_run(&(tern_dist_work){.kind = DIST_NEW_GROUP,
                                                    .group = &job->all,
                                                    .timeout = job->all.timeout,
                                                    .to = g},
                                  label) != TERN_OK)
        return free_group(g), NULL;
    tern_mutex_lock(&job->lock);
    job->n_groups++;
    g->next = job->groups;
    job->groups = g;
    tern_mutex_unlock(&job->lock);
    return g;
}
