/* pipeline.h -- internals of a pipeline: its stages, and the tensors sent between them in a
 * step. */
#ifndef TERN_DIST_PIPELINE_INSIDE_H
#define TERN_DIST_PIPELINE_INSIDE_H
#include "base/memory.h"
#include "tensor/storage.h"
#include <tern/dist.h>
#include <tern/dist/pipeline.h>
#include <tern/tern.h>

/* An activation for the next stage, or a gradient for the one before. */
typedef struct tern_stage_message {
    tern_tensor *x;       /* tensor that is sent, by a reference */
    tern_transfer *copy;  /* copy of x to the cpu that is under way */
    tern_tensor *head;    /* in a message from another rank, a reference to dtype and shape of x */
    tern_dist_work *work; /* the receive of head or x, or NULL */
    int round;            /* the round in which the sender gave it */
    bool there;
} tern_stage_message;

typedef struct tern_stage_run {    /* the state of a stage in a step */
    int forwards, backwards;       /* number of micro-batches done */
    tern_tensor **in, **out;       /* for each micro-batch, the input as a leaf and the output or
                                      loss */
    tern_stage_message *up, *down; /* for each micro-batch, the messages to this stage: the input,
                                      and the gradient of out */
} tern_stage_run;

struct tern_pipeline {
    tern_module *sequential;
    int n, micro_batches;
    tern_pipeline_schedule schedule;
    bool no_scale_grads;
    int *begin;          /* first child of each stage, n + 1 numbers */
    const char **device; /* device of each stage, owned by the library; NULL for a stage of another
                            rank */
    int *rank;
    tern_stage_run *run;
    tern_dist_work **sent; /* sends of this step */
    int n_sent, capacity;
};

/* ---- stage_message.c: tensors between stages ------------------------------------------------- */
/* Gives x to the other stage, on this rank or another. */
tern_status tern_stage_message_give(tern_pipeline *p, int from, int to, int micro, tern_tensor *x,
                                    int round);
/* Returns whether the tensor can be taken: it was given in an earlier round, or received from
 * another rank, whose messages this function receives. After an error it returns true, and
 * tern_stage_message_take fails. */
bool tern_stage_message_is_there(tern_pipeline *p, int from, int to, int micro, int round);
/* Returns the tensor on the stage's device, owned by the innermost scope, or NULL after an
 * error. */
tern_tensor *tern_stage_message_take(tern_pipeline *p, int from, int to, int micro);
void tern_stage_message_drop(tern_stage_message *message);
/* Waits until all sends are complete. */
tern_status tern_stage_messages_wait(tern_pipeline *p);

#endif
