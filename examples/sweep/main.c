/* main.c -- looks for good hyperparameters: trials over devices and ranks, the bad ones stopped early.
 *
 *   sweep [--folder DIR] [--trials N] [--rungs K] [--seed S] [DEVICE...]
 *   mpirun -n 4 sweep --folder DIR cpu
 *
 * Rank r takes every RANKS-th of the devices, from the r-th on, one if there are more ranks, and works on each with a
 * thread. The same line goes on with a search that was stopped, also with another number of ranks: DIR, which all
 * ranks see, has all of it. At the end rank 0 prints a table and writes DIR/sweep.svg. What to expect: settings whose loss is
 * a fraction of that of AdamW's defaults, for a third of the epochs that all trials to the end would take. */
#include "../progress.h"
#include "report.h"
#include "trial.h"
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

enum { MOST_WORKERS = 64 };

typedef struct search {
    const char *folder;
    int trials, rungs;
    uint64_t seed;
    trial_data data;
    atomic_int failed;
    tern_report *report; /* of this process's workers, one at a time */
    pthread_mutex_t lock;
    int jobs;
    double best; /* of their losses */
} search;

typedef struct worker {
    search *of;
    int number;
    const char *device;
    pthread_t thread;
} worker;

static double seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void report_loss(search *s, const worker *w, const store_job *job, double loss)
{
    const int before = job->rung ? store_epochs(job->rung - 1) : 0;
    pthread_mutex_lock(&s->lock);
    progress_say("worker %d, %s: trial %d to %d epochs, loss %.4f", w->number, w->device,
                 job->trial, store_epochs(job->rung), loss);
    s->best = s->jobs && s->best < loss ? s->best : loss;
    tern_report_value(s->report, "best", ++s->jobs, s->best);
    tern_report_step(s->report, s->jobs, store_epochs(job->rung) - before);
    pthread_mutex_unlock(&s->lock);
}

static bool work_on(const worker *w, const store *s, const store_job *job)
{
    char folder[1024];
    store_result r = {.worker = w->number};
    const trial_settings settings = trial_draw(w->of->seed, job->trial);
    const double began = seconds();
    snprintf(folder, sizeof folder, "%s/trial-%04d", s->folder, job->trial);
    TERN_SCOPE {
        trial_train(&w->of->data, &settings, job->trial, store_epochs(job->rung), folder, &r.loss,
                    &r.accuracy);
    }
    r.seconds = seconds() - began;
    if (tern_last_status() != TERN_OK || !store_write(s, job, &r)) {
        fprintf(stderr, "sweep: worker %d (%s), trial %d: %s\n", w->number, w->device, job->trial,
                tern_last_error());
        return false;
    }
    report_loss(w->of, w, job, r.loss);
    return true;
}

static void *run(void *user)
{
    worker *w = user;
    store *s = calloc(1, sizeof *s);
    store_job job;
    int got = -1;
    if (s && tern_set_default_device(w->device) == TERN_OK) {
        *s = (store){.folder = w->of->folder, .trials = w->of->trials, .rungs = w->of->rungs};
        while (!w->of->failed && (got = store_take(s, &job)) >= 0) {
            const struct timespec nap = {0, 20000000};
            if (got == 0)
                nanosleep(&nap, NULL);
            else if (!work_on(w, s, &job))
                w->of->failed = 1;
        }
    } else {
        fprintf(stderr, "sweep: %s\n", tern_last_error());
        w->of->failed = 1;
    }
    free(s);
    return NULL;
}

static int read_options(search *s, int argc, char **argv)
{
    int at = 1;
    for (; at + 1 < argc && strncmp(argv[at], "--", 2) == 0; at += 2) {
        const char *name = argv[at] + 2, *value = argv[at + 1];
        if (strcmp(name, "folder") == 0)
            s->folder = value;
        else if (strcmp(name, "trials") == 0)
            s->trials = atoi(value);
        else if (strcmp(name, "rungs") == 0)
            s->rungs = atoi(value);
        else if (strcmp(name, "seed") == 0)
            s->seed = strtoull(value, NULL, 10);
        else
            return -1;
    }
    const bool fits =
        s->trials > 0 && s->trials <= STORE_TRIALS && s->rungs > 0 && s->rungs <= STORE_RUNGS;
    return fits && (at == argc || strncmp(argv[at], "--", 2) != 0) ? at : -1;
}

static void work(search *s, const char *const *devices, int n)
{
    static worker workers[MOST_WORKERS];
    const int rank = tern_dist_get_rank(NULL), ranks = tern_dist_get_world_size(NULL);
    int count = 0;
    if (tern_set_default_device(devices[rank % n]) == TERN_OK)
        s->report = progress_begin("epochs", 0);
    if (!s->report) {
        s->failed = 1;
        return;
    }
    for (int i = rank; count < MOST_WORKERS && (i < n || count == 0); i += ranks) {
        workers[count] = (worker){.of = s, .number = i, .device = devices[i % n]};
        if (pthread_create(&workers[count].thread, NULL, run, &workers[count]) != 0)
            break;
        count++;
    }
    for (int i = 0; i < count; i++)
        pthread_join(workers[i].thread, NULL);
    tern_report_close(s->report);
}

/* What AdamW's defaults and a network of usual size come to with as many epochs. */
static double loss_of_defaults(const search *s)
{
    char folder[1024];
    double loss = 0, accuracy;
    const trial_settings usual = {
        .lr = 1e-3, .weight_decay = 1e-2, .width = 32, .layers = 2, .batch_size = 32};
    snprintf(folder, sizeof folder, "%s/defaults", s->folder);
    TERN_SCOPE
        trial_train(&s->data, &usual, 0, store_epochs(s->rungs - 1), folder, &loss, &accuracy);
    return loss;
}

static bool report(const search *s)
{
    store *all = calloc(1, sizeof *all);
    if (!all)
        return false;
    *all = (store){.folder = s->folder, .trials = s->trials, .rungs = s->rungs};
    store_read(all);
    report_table(all, s->seed, 10);
    printf("the best %.4g; AdamW's defaults, as many epochs: %.4g\n", report_best(all),
           loss_of_defaults(s));
    const bool drawn = report_picture(all);
    if (drawn)
        printf("wrote %s/sweep.svg\n", s->folder);
    free(all);
    return drawn;
}

static bool begin(const search *s)
{
    store *all = calloc(1, sizeof *all);
    bool begun = false;
    if (all) {
        *all = (store){.folder = s->folder, .trials = s->trials, .rungs = s->rungs};
        begun = store_begin(all);
    }
    free(all);
    return begun;
}

int main(int argc, char **argv)
{
    search s = {
        .folder = "sweep", .trials = 27, .rungs = 4, .seed = 1, .lock = PTHREAD_MUTEX_INITIALIZER};
    static const char *const own[] = {"cpu"};
    const int at = read_options(&s, argc, argv);
    if (at < 0) {
        fputs("usage: sweep [--folder DIR] [--trials N] [--rungs K] [--seed S] [DEVICE...]\n",
              stderr);
        return 2;
    }
    tern_dist_init_process_group(NULL, NULL);
    bool good = tern_last_status() == TERN_OK && trial_data_open(&s.data) == TERN_OK;
    if (good && tern_dist_get_rank(NULL) == 0)
        good = begin(&s);
    if (good &&
        tern_dist_barrier(NULL) == TERN_OK) { /* what was left is forgotten before anybody takes */
        work(&s, at < argc ? (const char *const *)argv + at : own, at < argc ? argc - at : 1);
        good = !s.failed && tern_dist_barrier(NULL) == TERN_OK;
        if (good && tern_dist_get_rank(NULL) == 0)
            good = report(&s);
    }
    trial_data_close(&s.data);
    if (good)
        good = tern_dist_destroy_process_group() == TERN_OK;
    if (tern_last_status() != TERN_OK)
        fprintf(stderr, "sweep: %s\n", tern_last_error());
    return good ? 0 : 1;
}
