/* shard.h -- inside of fully_shard: units, whose parameters are gathered and given back together.
 *
 * Parameters of one dtype and device lie in a bucket, one flat tensor a rank: this rank's rows of
 * each, and zeros behind them where other ranks have more. All of a bucket is gathered at once, and
 * copied to whole parameters; gradients go the reverse way. Whole parameters are the results of a
 * function of the parts, in the members' places while the module runs. */
#ifndef TERN_DIST_SHARD_H
#define TERN_DIST_SHARD_H
#include "base/thread.h"
#include "dist/dist.h"
#include "nn/module.h"
#include "tensor/ranks.h"
#include "tensor/storage.h"
#include <tern/dist/sharding.h>

/* The ranks that share parameters out. There is one for each pair of groups and cut, so that norms
 * are summed once. */
typedef struct tern_shard_mesh {
    tern_dist_ranks of; /* first */
    tern_dist_group *group, *replicate;
    tern_ranks *
        cut; /* what is shared out is a part of a tensor parallel layer: who has the others; NULL */
    uint64_t epoch; /* how often parts were seen to have changed that stay whole as well */
    struct tern_shard_mesh *next;
} tern_shard_mesh;

typedef struct tern_shard_slot {
    tern_tensor *x;           /* the parameter: this rank's rows */
    tern_tensor *bucket_view; /* where they are in the bucket */
    tern_ranks *cut;          /* as the mesh's */
    tern_shape shape;         /* of the whole */
    int64_t each,
        elements;       /* rows of a rank, and elements of these; the last ranks may have fewer */
    int64_t at;         /* first element in the bucket */
    int bucket, places; /* places: members that it is */
    bool shared;        /* x is the part */
} tern_shard_slot;

typedef struct tern_shard_bucket {
    tern_tensor *flat;
    int first, slots; /* of the unit's */
} tern_shard_bucket;

typedef struct tern_shard_unit tern_shard_unit;

struct tern_shard_item {
    tern_tensor *in, *out;
    tern_dist_work *work;
};

/* Parameters on their way to this rank, or gradients on theirs to all. */
typedef struct tern_shard_traffic {
    tern_shard_unit *unit;         /* held */
    struct tern_shard_item *items; /* one for each bucket; NULL: there is no traffic */
    bool *own, *trained; /* of slots: which have a gradient here, which should have one somewhere */
} tern_shard_traffic;

/* A run of a unit's module, as its graph has it. */
typedef struct tern_shard_pass {
    atomic_int refs;
    tern_shard_unit *unit, *root;
    int index;                         /* in the root's order */
    bool recorded;                     /* for a backward pass */
    tern_tensor **full;                /* of each slot, without history */
    tern_tensor **stand;               /* in the members' places while a backward pass is in it */
    struct tern_shard_pass *next_open; /* that a backward pass is in */
} tern_shard_pass;

typedef struct tern_shard_units {
    tern_shard_unit **units; /* held */
    int n, capacity;
} tern_shard_units;

struct tern_shard_unit {
    tern_module_around around; /* first */
    tern_after_backward end;   /* of a backward pass through what this outermost unit ran */
    atomic_int refs;
    int number;
    tern_module *module; /* NULL: gone */
    tern_shard_mesh *mesh;
    bool keeps; /* no_reshard_after_forward */
    tern_dtype param_dtype, reduce_dtype;
    bool stays;             /* keep_whole; then: */
    tern_tensor **whole;    /* of each slot, once gathered; NULL: not yet */
    uint64_t epoch;         /* the mesh's then */
    int64_t seen;           /* the parts' versions then */
    bool waits;             /* gradients are added up here */
    tern_tensor **local;    /* of each slot; NULL: none */
    tern_shard_slot *slots; /* bucket by bucket */
    int n;
    tern_shard_bucket *buckets;
    int n_buckets;
    tern_shard_traffic gather;  /* begun before it is needed */
    tern_tensor *const *inside; /* what stands in the members' places; NULL: the parts */
    int runs;                   /* forwards under way */
    bool recorded;              /* the last of them was, for a backward pass */
    /* Of an outermost unit: the units of its last forward, in order, those of the one that runs,
     * what is being averaged, and what a backward pass is in. It is in no unit of its own plan but
     * itself. */
    tern_shard_units plan, order;
    tern_shard_traffic reduce;
    tern_shard_pass *open;
    bool in_backward;
    tern_shard_unit *next; /* all there are */
};

/* ---- shard_unit.c ---------------------------------------------------------------------------- */
/* Found from now on, under a number. */
void tern_shard_list(tern_shard_unit *u);
/* The slot whose parameter x is; NULL. */
const tern_shard_slot *tern_shard_find(const tern_tensor *x, tern_shard_unit **unit);
/* The sum of the versions of its parts; -1 where one lies elsewhere by now. */
int64_t tern_shard_version(const tern_shard_unit *u);
/* Whether some unit of the mesh has other parts than when it was gathered to stay; *any: there are
 * such units. */
bool tern_shard_changed(const tern_shard_mesh *mesh, bool *any);
void tern_shard_release(tern_tensor **list, int n);
void tern_shard_hold(tern_shard_unit *u);
void tern_shard_drop(tern_shard_unit *u);
/* In the places of the unit's parameters: those tensors, NULL: the parts. */
void tern_shard_swap(tern_shard_unit *u, tern_tensor *const *with);

/* ---- shard_mesh.c ---------------------------------------------------------------------------- */
/* NULL after TERN_ERR_MEMORY. */
tern_shard_mesh *tern_shard_mesh_of(tern_dist_group *group, tern_dist_group *replicate,
                                    tern_ranks *cut);

/* Before a forward of root, and what it runs: whether parts that stay whole have changed
 * anywhere. */
tern_status tern_shard_look(const tern_shard_unit *root);

/* ---- shard_traffic.c ------------------------------------------------------------------------- */
/* Begin to gather the unit's buckets; wait for them, and copy them to the n whole parameters.
 * Whatever happens, the traffic is over then. */
tern_status tern_shard_gather(tern_shard_unit *u);
tern_status tern_shard_take(tern_shard_unit *u, tern_tensor *const *full);
/* Begin to average gradients (NULL: none) of those slots that are trained. */
tern_status tern_shard_reduce(tern_shard_unit *u, tern_shard_traffic *t, tern_tensor *const *grads,
                              const bool *trained);
/* Wait for them: of each slot this rank's part, or NULL. */
tern_status tern_shard_take_reduced(tern_shard_traffic *t, tern_tensor **parts);
void tern_shard_end_traffic(tern_shard_traffic *t);

/* ---- shard_run.c ----------------------------------------------------------------------------- */
/* around.call of a unit. */
tern_status tern_shard_run(tern_module *m, tern_module_run run, tern_tensor *const *in, int n,
                           tern_tensor **out, int k);

#endif
