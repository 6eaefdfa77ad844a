/* ddp.h -- internals of DistributedDataParallel. */
#ifndef TERN_DIST_DDP_INSIDE_H
#define TERN_DIST_DDP_INSIDE_H
#include "base/thread.h"
#include "dist/dist.h"
#include "nn/module.h"
#include <tern/dist/ddp.h>

typedef struct tern_ddp tern_ddp;

enum { DDP_LEVELS = 16 };

/* A parameter that requires a gradient. */
typedef struct tern_ddp_slot {
    tern_ddp *of;
    tern_tensor *x, *bucket_view; /* bucket_view is the gradient's view of the bucket */
    char *path;
    int hook, bucket;
    int64_t came; /* order of arrival in the last backward pass, from 1 on, or 0 if the gradient did
                     not arrive */
    bool used;    /* some shard of this step computed its gradient */
} tern_ddp_slot;

/* Gradients that are all-reduced together. */
typedef struct tern_ddp_bucket {
    tern_tensor *flat;
    tern_tensor *packed; /* gradients in the dtype of the all-reduce, or NULL if flat itself is
                            sent */
    int slots, waiting;  /* waiting is the number of slots whose gradient is not final yet */
    tern_dist_work *work;
    /* Sums of 1, 2, 4, ... shards that wait for the sum of as many more. */
    tern_tensor *stack[DDP_LEVELS];
} tern_ddp_bucket;

struct tern_ddp {
    tern_after_backward end; /* must be the first member */
    tern_module *self;
    tern_dist_group *group;
    int ranks;
    bool broadcasts;
    tern_dtype compress;
    tern_ddp_slot *slots; /* slots, sorted by bucket */
    int n;
    tern_ddp_bucket *buckets;
    /* given: number of leading buckets whose all-reduce has begun in this backward pass. */
    int n_buckets, given;
    tern_tensor *counts; /* all-reduced numbers: rows, then for each slot how many ranks used it */
    double rows;         /* rows of this rank since the last all-reduce */
    bool no_sync;        /* inside of a TERN_NO_SYNC block */
    /* Inside of a TERN_JOIN block: each step begins with an exchange of the active ranks. */
    bool joins;
    /* The TERN_JOIN block failed: a rank had no batches left, and a module needs all ranks. */
    bool torn;
    int last;  /* greatest active rank of the last step */
    bool sums; /* the last forward was outside of TERN_NO_SYNC: gradients will be all-reduced */
    bool buffers_due;
    bool in_backward;
    bool kept; /* .grad still held the last all-reduced gradients when the last forward began */
    int64_t step, result;
    int64_t came; /* gradients that have arrived in this backward pass */
    /* sorted: buckets are in order of arrival. due: a backward pass has shown this order. */
    bool sorted, due;
    double limit;        /* bytes of a bucket */
    int shards, own;     /* number of shards of all ranks (0 without .shards), and of this rank */
    int done;            /* own shards of this step that are done */
    tern_rng_state seed; /* generator state at the step's start */
};

/* ---- buckets.c ------------------------------------------------------------------------------- */
/* Makes slots for the module's parameters and buckets for their gradients: the first of 1 MiB, the
 * others of limit bytes. */
tern_status tern_ddp_make_buckets(tern_ddp *d, tern_module *module, double limit);
/* Sorts the parameters into buckets again, in the order in which rank 0's gradients arrived in the
 * last backward pass. */
tern_status tern_ddp_sort_buckets(tern_ddp *d);
void tern_ddp_free_buckets(tern_ddp *d);

/* ---- consistency.c --------------------------------------------------------------------------- */
typedef tern_status (*tern_ddp_each)(tern_module *m, tern_tensor_visit visit, void *user);
/* Compares the parameters and buffers of all ranks. A difference is TERN_ERR_PEER, whose message
 * starts with `function` and names the first tensor that differs. */
tern_status tern_ddp_compare(const char *function, tern_module *module, tern_ddp_each parameters,
                             tern_ddp_each buffers, tern_dist_group *group);
/* Overwrites all tensors that `each` visits by those of the group's rank `from`, several a
 * message. */
tern_status tern_ddp_broadcast_from(int from, tern_module *module, tern_ddp_each each,
                                    tern_dist_group *group, const char *label);
/* The same with from = 0. */
tern_status tern_ddp_broadcast(tern_module *module, tern_ddp_each each, tern_dist_group *group,
                               const char *label);

/* ---- reduce.c -------------------------------------------------------------------------------- */
/* The hook of a slot, which autograd calls when the slot's gradient is final. */
tern_status tern_ddp_arrived(tern_tensor *x, void *slot);
/* Takes part in a step of the other ranks with zero gradients; drops the results. */
tern_status tern_ddp_step_with_zeros(tern_ddp *d);

/* ---- uneven_inputs.c ------------------------------------------------------------------------- */
/* Called in TERN_JOIN before a step's broadcast of buffers (`buffers`) or all-reduce of gradients
 * (`gradients`). Sets *from to the rank whose buffers are sent. */
tern_status tern_ddp_go_on(tern_ddp *d, bool buffers, bool gradients, int *from);
/* Called at the end of TERN_JOIN: takes part in the steps of other ranks until none has batches,
 * then copies the parameters and buffers of the last active rank. */
tern_status tern_ddp_follow(tern_ddp *d);

#endif
