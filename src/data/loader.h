/* loader.h -- the inside of a loader: what its files share.
 *
 * Batches are jobs, numbered from 0 in each loop. The loop's thread appends them, workers take them
 * in that order, the mover copies those that are done to the device in that order, the loop takes
 * them from the front. */
#ifndef TERN_SRC_DATA_LOADER_H
#define TERN_SRC_DATA_LOADER_H
#include "data/data.h"
#include "base/os.h"

enum { MESSAGE_BYTES = 1024, LEAST_AHEAD = 2, MOST_AHEAD = 32, AHEAD_BYTES = 2 << 20 };

typedef enum job_state {
    JOB_WANTED,
    JOB_TAKEN, /* a worker makes it */
    JOB_MADE,
    JOB_MOVING,
    JOB_DONE /* where the loop may take it */
} job_state;

typedef struct tern_job {
    struct tern_job *next;
    job_state state;
    bool abandoned; /* its loop is over: who has it in hand frees it */
    int64_t number;
    uint64_t seed; /* the loader's then */
    int64_t epoch;
    int64_t n, *indices; /* what it is to hold */
    int64_t *places;     /* of these: positions in the order of the loop */
    tern_tensor **raw;   /* of an iterable data set: n * count */
    tern_tensor *
        *items; /* that the collate function got, where a batch may be filled up: size * count */
    bool last;  /* there is nothing behind it */
    int64_t size, skipped; /* what it holds; items left out */
    tern_tensor *tensors[TERN_MAX_ITEM];
    tern_status status; /* why it could not be made */
    char message[MESSAGE_BYTES];
} tern_job;

typedef struct tern_data_worker {
    tern_loader *loader;
    int number;
    tern_os_thread thread;
    atomic_llong item; /* that it makes; -1: none */
    bool runs;
    bool hangs;         /* a loop waited for it in vain: it is not waited for again */
    tern_status status; /* of worker_init, and its message: those of all that it would make */
    char message[MESSAGE_BYTES - 160];
} tern_data_worker;

/* Items that were made and not yet given (refill.c). */
typedef struct tern_rest {
    int64_t n, *indices, *places;
    tern_tensor **items; /* n * count */
} tern_rest;

struct tern_loader {
    tern_handle handle;
    tern_dataset *dataset;
    tern_sampler *sampler;
    tern_loader_options o;
    char *device; /* canonical; NULL: batches stay where they are made */
    bool moves;   /* there is another device to copy to */
    int count;    /* tensors of a batch */
    uint64_t fingerprint;

    /* Where it stands. */
    uint64_t seed;
    int64_t epoch, samples; /* of all ranks */
    bool over;              /* a loop was left there: the next one begins another epoch */
    int64_t skipped;

    /* The loop. */
    bool looping;
    int64_t start;          /* samples before it */
    int64_t n;              /* of the order, over all ranks */
    int64_t total, planned; /* positions of this rank; of these, in jobs; total -1: not known */
    int64_t jobs, given;    /* batches */
    int fresh;              /* jobs for which no worker was called yet */
    int64_t taken;          /* positions of the jobs that the loop took */
    int64_t positions;      /* given */
    tern_job *hand;         /* the batch that the body has */
    tern_rest rest;         /* of batches that were filled up */
    int64_t began;          /* tern_os_now() */
    double waited;

    tern_mutex lock; /* guards what follows, and the jobs in the list */
    tern_cond work, done, move;
    bool prepared; /* lock and conditions are there */
    tern_job *first, *last;
    int queued, moved; /* jobs in the list; those that are on the device */
    int ahead;         /* how many there may be, for each worker */
    bool reading;      /* a worker is in an iterable data set */
    bool ended;        /* which has no more items */
    bool stop;
    bool orphan; /* freed while a worker hung, which ends it */
    int forks;
    int working;               /* threads that run */
    tern_data_worker *workers; /* of num_workers, and the mover */
    int n_workers;
    struct tern_loader *listed, **listed_at;
};

#define TERN_LOADER_GIVEN(l, function) TERN_GIVEN(l, "loader", function)

/* ---- job.c: on any thread ---------------------------------------------------------------- */
tern_job *tern_job_new(int64_t n);
void tern_job_free(tern_job *job, int count);
/* Read the items of a job of an iterable data set; nobody else reads. */
void tern_job_read(tern_loader *l, tern_job *job);
/* Make its batch; failures are noted in it. item records what is made. */
void tern_job_make(tern_loader *l, tern_job *job, atomic_llong *item, int worker);
/* Bring it to the device. */
void tern_job_move(tern_loader *l, tern_job *job);
/* Forget the jobs that are not in hand; with the lock held. */
void tern_jobs_drop(tern_loader *l);

/* Whether batches are filled up for items that are left out (refill.c): the items are kept then. */
bool tern_loader_refills(const tern_loader *l);
/* The batch that the collate function makes of job->size items, where the loop wants it. */
tern_status tern_job_collate(tern_loader *l, tern_job *job, tern_tensor *const *items);

/* ---- refill.c ---------------------------------------------------------------------------- */
/* *job, made or NULL at the end, becomes the batch to give; NULL: there is none yet, or none any
 * more. */
tern_status tern_loader_refill(tern_loader *l, tern_job **job);
void tern_rest_drop(tern_loader *l);

/* ---- workers.c --------------------------------------------------------------------------- */
/* Start them, if they are not running. */
tern_status tern_workers_start(tern_loader *l);
/* Stop and join them; true where one hangs, which keeps l until it comes back. */
bool tern_workers_stop(tern_loader *l);

/* ---- loader_end.c ------------------------------------------------------------------------- */
tern_loader *tern_loader_new(void);
/* The end, once no thread has it. */
void tern_loader_end(tern_loader *l);

#endif
