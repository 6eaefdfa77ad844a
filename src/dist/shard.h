/* shard.h -- internals of fully_shard: units, whose parameters are gathered and freed together.
 *
 * Parameters of one dtype and device lie in a bucket, one flat tensor on each rank: this rank's
 * rows of each parameter, padded with zeros where other ranks have more rows. A whole bucket is
 * all-gathered at once and copied to whole parameters; gradients go the reverse way. An autograd
 * function computes the whole parameters from the parts; they replace the module's members while it
 * runs. */
#ifndef TERN_DIST_SHARD_H
#define TERN_DIST_SHARD_H
#include "base/thread.h"
#include "dist/dist.h"
#include "nn/module.h"
#include "tensor/ranks.h"
#include "tensor/storage.h"
#include <tern/dist/sharding.h>

/* The ranks among which parameters are cut. One struct exists for each pair of groups and cut, so
 * that norms are summed once. */
typedef struct tern_shard_mesh {
    tern_dist_ranks of; /* must be the first member */
    tern_dist_group *group, *replicate;
    tern_ranks *cut; /* ranks of the tensor-parallel layer whose part is cut again, or NULL */
    uint64_t epoch;  /* increases when the parts of a keep_whole unit are found to have changed */
    struct tern_shard_mesh *next;
} tern_shard_mesh;

typedef struct tern_shard_slot {
    tern_tensor *x;           /* the parameter, which has this rank's rows */
    tern_tensor *bucket_view; /* place of these rows in the bucket */
    tern_ranks *cut;          /* as in tern_shard_mesh */
    tern_shape shape;         /* shape of the whole parameter */
    int64_t each, elements;   /* rows and elements of a rank's part; the last ranks may have
                                 fewer */
    int64_t at;               /* first element in the bucket */
    int bucket, places;       /* places is the number of members that have this parameter */
    bool shared;              /* x was replaced by its part */
} tern_shard_slot;

typedef struct tern_shard_bucket {
    tern_tensor *flat;
    int first, slots; /* range of the unit's slots */
} tern_shard_bucket;

typedef struct tern_shard_unit tern_shard_unit;

struct tern_shard_item {
    tern_tensor *in, *out;
    tern_dist_work *work;
};

/* An all-gather of parameters, or a reduce-scatter of gradients, that is under way. */
typedef struct tern_shard_traffic {
    tern_shard_unit *unit;         /* unit, by a reference */
    struct tern_shard_item *items; /* one for each bucket, or NULL if nothing is under way */
    bool *own, *trained; /* for each slot, whether this rank has a gradient, and whether some rank
                            should have one */
} tern_shard_traffic;

/* One forward of a unit's module; the autograd graph holds a reference. */
typedef struct tern_shard_pass {
    atomic_int refs;
    tern_shard_unit *unit, *root;
    int index;          /* index in the root's order */
    bool recorded;      /* the forward was recorded for a backward pass */
    tern_tensor **full; /* whole parameter of each slot, without history */
    /* Members of the module while a backward pass is inside of it. */
    tern_tensor **stand;
    struct tern_shard_pass *next_open; /* list of passes that a backward pass is inside of */
} tern_shard_pass;

typedef struct tern_shard_units {
    tern_shard_unit **units; /* units, by references */
    int n, capacity;
} tern_shard_units;

struct tern_shard_unit {
    tern_module_around around; /* must be the first member */
    tern_after_backward end;   /* called at the end of a backward pass, for an outermost unit */
    atomic_int refs;
    int number;
    tern_module *module; /* NULL after the module was freed */
    tern_shard_mesh *mesh;
    bool keeps; /* option no_reshard_after_forward */
    tern_dtype param_dtype, reduce_dtype;
    bool stays;             /* option keep_whole, which uses the next three fields */
    tern_tensor **whole;    /* whole parameter of each slot, or NULL until gathered */
    uint64_t epoch;         /* the mesh's epoch at that time */
    int64_t seen;           /* sum of the parts' versions at that time */
    bool waits;             /* gradients are summed on this rank, without communication */
    tern_tensor **local;    /* sum of local gradients of each slot, or NULL */
    tern_shard_slot *slots; /* slots, sorted by bucket */
    int n;
    tern_shard_bucket *buckets;
    int n_buckets;
    tern_shard_traffic gather;  /* all-gather that was begun ahead */
    tern_tensor *const *inside; /* the module's current members, or NULL for the parts */
    int runs;                   /* forwards under way */
    bool recorded;              /* the last forward was recorded for a backward pass */
    /* Only an outermost unit uses the next five: the units of its last forward in order, those of
     * the forward that runs, the gradients that are being averaged, and the passes that a backward
     * pass is inside of. A unit is in its own plan, and in the plan of no other unit of its
     * plan. */
    tern_shard_units plan, order;
    tern_shard_traffic reduce;
    tern_shard_pass *open;
    bool in_backward;
    tern_shard_unit *next; /* list of all units */
};

/* ---- shard_unit.c ---------------------------------------------------------------------------- */
/* Adds the unit to the list of all units and sets its number. */
void tern_shard_list(tern_shard_unit *u);
/* Returns the slot with the parameter x and sets *unit (if not NULL) to its unit, or returns
 * NULL. */
const tern_shard_slot *tern_shard_find(const tern_tensor *x, tern_shard_unit **unit);
/* Returns the sum of the versions of the unit's parts, or -1 if one has other memory now. */
int64_t tern_shard_version(const tern_shard_unit *u);
/* Returns whether the parts of a keep_whole unit of the mesh have changed since it was gathered.
 * Sets *any to whether the mesh has such units. */
bool tern_shard_changed(const tern_shard_mesh *mesh, bool *any);
void tern_shard_release(tern_tensor **list, int n);
void tern_shard_hold(tern_shard_unit *u);
void tern_shard_drop(tern_shard_unit *u);
/* Makes these tensors the module's members, or the parts if NULL. */
void tern_shard_swap(tern_shard_unit *u, tern_tensor *const *with);

/* ---- shard_mesh.c ---------------------------------------------------------------------------- */
/* Returns the mesh of these groups and cut, or NULL after TERN_ERR_MEMORY. */
tern_shard_mesh *tern_shard_mesh_of(tern_dist_group *group, tern_dist_group *replicate,
                                    tern_ranks *cut);

/* Called before a forward of root: exchanges whether parts of keep_whole units changed on any
 * rank. */
tern_status tern_shard_look(const tern_shard_unit *root);

/* ---- shard_traffic.c ------------------------------------------------------------------------- */
/* tern_shard_gather begins to all-gather the unit's buckets; tern_shard_take waits for them and
 * copies them to the n whole parameters. The all-gather is over then, also after an error. */
tern_status tern_shard_gather(tern_shard_unit *u);
tern_status tern_shard_take(tern_shard_unit *u, tern_tensor *const *full);
/* Begins to average the gradients of the slots that are trained. grads[i] is NULL if slot i has no
 * gradient here. */
tern_status tern_shard_reduce(tern_shard_unit *u, tern_shard_traffic *t, tern_tensor *const *grads,
                              const bool *trained);
/* Waits for the averages. Sets parts[i] to this rank's part of slot i, or to NULL. */
tern_status tern_shard_take_reduced(tern_shard_traffic *t, tern_tensor **parts);
void tern_shard_end_traffic(tern_shard_traffic *t);

/* ---- shard_run.c ----------------------------------------------------------------------------- */
/* The function around.call of a unit. */
tern_status tern_shard_run(tern_module *m, tern_module_run run, tern_tensor *const *in, int n,
                           tern_tensor **out, int k);

#endif
