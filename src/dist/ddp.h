/* ddp.h -- inside of DistributedDataParallel. */
#ifndef TERN_DIST_DDP_INSIDE_H
#define TERN_DIST_DDP_INSIDE_H
#include "base/thread.h"
#include "dist/dist.h"
#include "nn/module.h"
#include <tern/dist/ddp.h>

typedef struct tern_ddp tern_ddp;

/* A parameter that is trained. */
enum { DDP_LEVELS = 16 };

typedef struct tern_ddp_slot {
    tern_ddp *of;
    tern_tensor *x, *bucket_view; /* where its gradient lies in its bucket */
    char *path;
    int hook, bucket;
    int64_t came; /* when, among those of the last backward pass; 0: not in it */
    bool used;    /* in a shard of this step */
} tern_ddp_slot;

/* Gradients that travel together. */
typedef struct tern_ddp_bucket {
    tern_tensor *flat;
    tern_tensor *packed; /* in the type that it travels in; NULL: it is flat that does */
    int slots, waiting;  /* of its slots how many the backward pass has not come to */
    tern_dist_work *work;
    tern_tensor *stack[DDP_LEVELS]; /* of shards: sums of 1, 2, 4, ... that wait for as many more */
} tern_ddp_bucket;

struct tern_ddp {
    tern_after_backward end; /* first */
    tern_module *self;
    tern_dist_group *group;
    int ranks;
    bool broadcasts;
    tern_dtype compress;
    tern_ddp_slot *slots; /* bucket by bucket */
    int n;
    tern_ddp_bucket *buckets;
    int n_buckets, given; /* given: of them, the first so many, to MPI in this backward pass */
    tern_tensor *counts;  /* what ranks exchange beside gradients: rows, then how many used each
                             slot */
    double rows;          /* since the last sum */
    bool no_sync;         /* inside of a block */
    bool joins;           /* inside of TERN_JOIN: each step begins with who goes on */
    bool torn;            /* and has ended, as a rank left a model whose forward needs all */
    int last;             /* the last of those who did in the last step */
    bool sums;            /* the last forward was outside of one */
    bool buffers_due;
    bool in_backward;
    bool kept; /* gradients of the last sum were there still when a forward began */
    int64_t step, result;
    int64_t came; /* gradients, in this backward pass */
    bool sorted,
        due;      /* buckets are in the order in which gradients come; there is one now to learn it
                from */
    double limit; /* bytes of a bucket */
    int shards, own;     /* 0, or of all ranks, and of this one */
    int done;            /* of these, in this step */
    tern_rng_state seed; /* at the step's start */
};

/* ---- buckets.c ------------------------------------------------------------------------------- */
/* Slots of the module's parameters, and buckets with views for their gradients; the first of 1 MiB,
 * others of limit bytes. */
tern_status tern_ddp_make_buckets(tern_ddp *d, tern_module *module, double limit);
/* The same parameters in buckets anew, in the order in which rank 0's gradients came in the last
 * backward pass. */
tern_status tern_ddp_sort_buckets(tern_ddp *d);
void tern_ddp_free_buckets(tern_ddp *d);

/* ---- consistency.c --------------------------------------------------------------------------- */
typedef tern_status (*tern_ddp_each)(tern_module *m, tern_tensor_visit visit, void *user);
/* Whether all ranks have the same of what is visited, parameters and buffers: TERN_ERR_PEER that
 * names the first that differs, and function. */
tern_status tern_ddp_compare(const char *function, tern_module *module, tern_ddp_each parameters,
                             tern_ddp_each buffers, tern_dist_group *group);
/* All tensors that visit is called with become those of the group's rank `from`, several at a
 * time. */
tern_status tern_ddp_broadcast_from(int from, tern_module *module, tern_ddp_each each,
                                    tern_dist_group *group, const char *label);
/* The group's first one's. */
tern_status tern_ddp_broadcast(tern_module *module, tern_ddp_each each, tern_dist_group *group,
                               const char *label);

/* ---- reduce.c -------------------------------------------------------------------------------- */
/* A slot's hook: its gradient is final. */
tern_status tern_ddp_arrived(tern_tensor *x, void *slot);
/* A step of the others, with zeros. Gradients are dropped. */
tern_status tern_ddp_step_with_zeros(tern_ddp *d);

/* ---- uneven_inputs.c ------------------------------------------------------------------------- */
/* Before a step inside of TERN_JOIN, which begins with buffers, or ends with gradients: *from
 * becomes the rank whose buffers they are. */
tern_status tern_ddp_go_on(tern_ddp *d, bool buffers, bool gradients, int *from);
/* After the block: until nobody goes on; then all have what the last one has. */
tern_status tern_ddp_follow(tern_ddp *d);

#endif
