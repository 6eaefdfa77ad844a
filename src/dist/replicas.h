/* replicas.h -- one module run on several devices: while it runs on another, its tensors are copies
 * there. */
#ifndef TERN_DIST_REPLICAS_H
#define TERN_DIST_REPLICAS_H
#include "nn/module.h"

/* A parameter, buffer or computed member somewhere in the module. */
typedef struct tern_replica_slot {
    tern_module *module;
    int member;
    int first;      /* the slot where its tensor stands first: parameters may be tied */
    tern_tensor *x; /* its own */
} tern_replica_slot;

/* A copy that stays until its original is written, where no gradient goes through it. */
typedef struct tern_replica_copy {
    tern_tensor *of, *copy; /* of: another handle on the original's memory */
    int64_t version, copy_version;
} tern_replica_copy;

typedef struct tern_replicas {
    tern_replica_slot *slots;
    int count, capacity;
    tern_replica_copy *copies; /* of each device, count in turn */
    tern_tensor *
        *sent; /* likewise: what members are while a replica runs; the copies', or the scope's */
    int devices, copied;
} tern_replicas;

/* Look at what the module has now; all of it is on `device` (TERN_ERR_DEVICE). */
tern_status tern_replicas_look(tern_replicas *r, tern_module *module, const char *device);
/* Its tensors to replicas 1 to n - 1 that have a part, on their devices; those that gradients come
 * back from belong to the innermost scope. */
tern_status tern_replicas_send(tern_replicas *r, const char *const *device, const int64_t *part,
                               int n);
/* Its tensors become those of replica i > 0. Then leave puts its own back. */
void tern_replicas_enter(tern_replicas *r, int i);
void tern_replicas_leave(tern_replicas *r);
void tern_replicas_free(tern_replicas *r);

#endif
