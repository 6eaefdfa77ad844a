/* pipeline.h -- the inside of a pipeline: its stages, and what is between them in a step. */
#ifndef TERN_DIST_PIPELINE_INSIDE_H
#define TERN_DIST_PIPELINE_INSIDE_H
#include "base/memory.h"
#include "tensor/storage.h"
#include <tern/dist.h>
#include <tern/dist/pipeline.h>
#include <tern/tern.h>

/* A tensor on its way to the next stage, or a gradient on its way back. */
typedef struct tern_stage_message {
    tern_tensor *x;       /* held */
    tern_transfer *copy;  /* x is being copied to the cpu */
    tern_tensor *head;    /* of a message: dtype and shape of x; held */
    tern_dist_work *work; /* by which head or x is being received */
    int round;            /* in which it was handed over */
    bool there;
} tern_stage_message;

typedef struct tern_stage_run {    /* of a stage in a step */
    int forwards, backwards;       /* done */
    tern_tensor **in, **out;       /* of each micro-batch: a leaf, and what was computed of it */
    tern_stage_message *up, *down; /* to this stage: inputs, gradients of out */
} tern_stage_run;

struct tern_pipeline {
    tern_module *sequential;
    int n, micro_batches;
    tern_pipeline_schedule schedule;
    bool no_scale_grads;
    int *begin;          /* n + 1: the first child of each stage */
    const char **device; /* texts of the library's; NULL: another rank's */
    int *rank;
    tern_stage_run *run;
    tern_dist_work **sent; /* what was sent in a step */
    int n_sent, capacity;
};

/* ---- stage_message.c: between stages --------------------------------------------------------- */
/* Hand x over from one stage to another, whoever has it. */
tern_status tern_stage_message_give(tern_pipeline *p, int from, int to, int micro, tern_tensor *x,
                                    int round);
/* Whether it is there, handed over in a round before this one; of messages, what comes next is
 * received. An error is there too: taking it reports it. */
bool tern_stage_message_is_there(tern_pipeline *p, int from, int to, int micro, int round);
/* The tensor on the stage's device, owned by the innermost scope; NULL after an error. */
tern_tensor *tern_stage_message_take(tern_pipeline *p, int from, int to, int micro);
void tern_stage_message_drop(tern_stage_message *message);
/* Until all that was sent has gone. */
tern_status tern_stage_messages_wait(tern_pipeline *p);

#endif
