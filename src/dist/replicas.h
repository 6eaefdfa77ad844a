/* replicas.h -- one module that runs on several devices: while it runs on another device, its
 * members are copies there. */
#ifndef TERN_DIST_REPLICAS_H
#define TERN_DIST_REPLICAS_H
#include "nn/module.h"

/* A parameter, buffer or computed member somewhere in the module. */
typedef struct tern_replica_slot {
    tern_module *module;
    int member;
    int first;      /* first slot with this tensor: parameters may be tied */
    tern_tensor *x; /* the module's own tensor */
} tern_replica_slot;

/* A cached copy of a tensor without gradient, valid until the original is written. */
typedef struct tern_replica_copy {
    tern_tensor *of, *copy; /* of: another handle on the original's memory */
    int64_t version, copy_version;
} tern_replica_copy;

typedef struct tern_replicas {
    tern_replica_slot *slots;
    int count, capacity;
    tern_replica_copy *copies; /* count for each device */
    /* As copies: the members while a replica runs, owned by copies or by the scope. */
    tern_tensor **sent;
    int devices, copied;
} tern_replicas;

/* Lists the module's tensors. Fails with TERN_ERR_DEVICE if one is not on `device`. */
tern_status tern_replicas_look(tern_replicas *r, tern_module *module, const char *device);
/* Copies the tensors to the devices of replicas 1 to n - 1 that have a part. Copies through which
 * gradients flow belong to the innermost scope. */
tern_status tern_replicas_send(tern_replicas *r, const char *const *device, const int64_t *part,
                               int n);
/* tern_replicas_enter makes the copies of replica i > 0 the module's members; tern_replicas_leave
 * restores its own. */
void tern_replicas_enter(tern_replicas *r, int i);
void tern_replicas_leave(tern_replicas *r);
void tern_replicas_free(tern_replicas *r);

#endif
