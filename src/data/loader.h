/* loader.h -- internals of a loader.
 *
 * Each batch is a job, numbered from 0 in each loop. The loop's thread appends jobs to a list,
 * workers take them in that order, the mover copies finished batches to the device in that order,
 * and the loop takes jobs from the front. */
#ifndef TERN_SRC_DATA_LOADER_H
#define TERN_SRC_DATA_LOADER_H
#include "data/data.h"
#include "base/os.h"

enum { MESSAGE_BYTES = 1024, LEAST_AHEAD = 2, MOST_AHEAD = 32, AHEAD_BYTES = 2 << 20 };

typedef enum job_state {
    JOB_WANTED,
    JOB_TAKEN, /* a worker makes the batch */
    JOB_MADE,
    JOB_MOVING,
    JOB_DONE /* the loop may take it */
} job_state;

typedef struct tern_job {
    struct tern_job *next;
    job_state state;
    bool abandoned; /* the loop of the job has ended; the thread that works on the job frees it */
    int64_t number;
    uint64_t seed; /* the loader's seed at that time */
    int64_t epoch;
    int64_t n, *indices; /* items to load */
    int64_t *places;     /* their positions in the loop's order */
    tern_tensor **raw;   /* items of an iterable data set, n * count tensors */
    /* Items for the collate function, size * count tensors, kept if batches may be refilled, or
     * NULL. */
    tern_tensor **items;
    bool last;             /* no job follows */
    int64_t size, skipped; /* items loaded; items skipped */
    tern_tensor *tensors[TERN_MAX_ITEM];
    tern_status status; /* the error of this job */
    char message[MESSAGE_BYTES];
} tern_job;

typedef struct tern_data_worker {
    tern_loader *loader;
    int number;
    tern_os_thread thread;
    atomic_llong item; /* item that the worker makes, or -1 */
    bool runs;
    bool hangs; /* a loop's wait for this worker timed out: loops don't wait for it again */
    /* status and message: the error of worker_init, which all of this worker's jobs get. */
    tern_status status;
    char message[MESSAGE_BYTES - 160];
} tern_data_worker;

/* Items that were loaded and not yet returned (refill.c). */
typedef struct tern_rest {
    int64_t n, *indices, *places;
    tern_tensor **items; /* n * count tensors */
} tern_rest;

struct tern_loader {
    tern_handle handle;
    tern_dataset *dataset;
    tern_sampler *sampler;
    tern_loader_options o;
    char *device; /* canonical name of the device, or NULL if batches stay where they are made */
    bool moves;   /* batches are copied to another device */
    int count;    /* tensors of a batch */
    uint64_t fingerprint;

    /* The state that tern_loader_get_state returns. */
    uint64_t seed;
    int64_t epoch, samples; /* samples is the number of samples of all ranks */
    bool over;              /* the last loop was left early: the next one begins another epoch */
    int64_t skipped;

    /* The current loop. */
    bool looping;
    int64_t start; /* samples before this loop */
    int64_t n;     /* length of the order, over all ranks */
    /* total: positions of this rank, or -1 if unknown; planned: those in jobs */
    int64_t total, planned;
    int64_t jobs, given; /* batches planned, batches returned */
    int fresh;           /* jobs for which no worker was woken yet */
    int64_t taken;       /* positions of the jobs that the loop took */
    int64_t positions;   /* positions returned */
    tern_job *hand;      /* the batch that the loop's body uses */
    tern_rest rest;      /* items for later batches */
    int64_t began;       /* time by tern_os_now() */
    double waited;

    tern_mutex lock; /* guards the following fields and the jobs of the list */
    tern_cond work, done, move;
    bool prepared; /* lock and conditions were initialized */
    tern_job *first, *last;
    int queued, moved; /* jobs in the list; those of them on the device */
    int ahead;         /* most jobs in the list for each worker */
    bool reading;      /* a worker reads from the iterable data set */
    bool ended;        /* the iterable data set has no more items */
    bool stop;
    bool orphan; /* freed while a worker hangs, which frees l when it returns */
    int forks;
    int working;               /* threads that run */
    tern_data_worker *workers; /* num_workers workers, then the mover */
    int n_workers;
    struct tern_loader *listed, **listed_at;
};

#define TERN_LOADER_GIVEN(l, function) TERN_GIVEN(l, "loader", function)

/* ---- job.c: functions for any thread --------------------------------------------------------- */
tern_job *tern_job_new(int64_t n);
void tern_job_free(tern_job *job, int count);
/* Reads the items of a job from an iterable data set. No other thread reads meanwhile. */
void tern_job_read(tern_loader *l, tern_job *job);
/* Makes the job's batch, and records an error in the job. *item is set to the index of the item
 * that is being made. */
void tern_job_make(tern_loader *l, tern_job *job, atomic_llong *item, int worker);
/* Copies the batch to the device, and applies the device transform. */
void tern_job_move(tern_loader *l, tern_job *job);
/* Frees the jobs that no thread works on, and marks the others abandoned. The caller holds the
 * lock. */
void tern_jobs_drop(tern_loader *l);

/* Returns whether batches are refilled when items are skipped (refill.c); jobs keep their items
 * then. */
bool tern_loader_refills(const tern_loader *l);
/* Makes the job's batch of job->size items by the collate function, on the loader's device. */
tern_status tern_job_collate(tern_loader *l, tern_job *job, tern_tensor *const *items);

/* ---- refill.c ---------------------------------------------------------------------------- */
/* Replaces *job, which is the next job or NULL at the end, by the batch to return. A *job of NULL
 * afterwards means that no batch is complete yet, or that none is left. */
tern_status tern_loader_refill(tern_loader *l, tern_job **job);
void tern_rest_drop(tern_loader *l);

/* ---- workers.c --------------------------------------------------------------------------- */
/* Starts the threads unless they run. */
tern_status tern_workers_start(tern_loader *l);
/* Stops and joins the threads. Returns true if one hangs: it frees l when it returns. */
bool tern_workers_stop(tern_loader *l);

/* ---- loader_end.c ------------------------------------------------------------------------- */
tern_loader *tern_loader_new(void);
/* Frees the loader, which no thread uses. */
void tern_loader_end(tern_loader *l);

#endif
