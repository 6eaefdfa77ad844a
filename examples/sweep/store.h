/* store.h -- what a search knows, in a folder that all its processes see: who took what, and what came of it.
 *
 * A job is a trial up to a rung, of which each has ETA times the epochs of the one below. Who creates the file
 * <trial>-<rung>.claim has the job; <trial>-<rung>.result is written under another name first. So a search whose
 * processes were killed goes on where it was, with as many as there are then. */
#ifndef SWEEP_STORE_H
#define SWEEP_STORE_H
#include <stdbool.h>

enum { STORE_TRIALS = 1024, STORE_RUNGS = 8, STORE_ETA = 3 };

typedef struct store_result {
    bool claimed, done;
    double loss, accuracy, seconds;
    int worker;
} store_result;

typedef struct store {
    const char *folder;
    int trials, rungs;
    store_result results[STORE_TRIALS][STORE_RUNGS];
} store;

typedef struct store_job {
    int trial, rung;
} store_job;

/* Make the folder; forget what was taken and not done: nobody works on it any more. False after a message. */
bool store_begin(store *s);
/* Read all of it again. */
void store_read(store *s);
/* Take a job: a trial that is among the best 1/ETA of its rung goes up, else a new one begins. 1: *job is this
 * worker's; 0: there is none now, others may make some; -1: there will be none. */
int store_take(store *s, store_job *job);
bool store_write(const store *s, const store_job *job, const store_result *result);
/* The epochs of a rung. */
int store_epochs(int rung);

#endif
