/* look.h -- where a view looks: the attributes that every view operation begins with. */
#ifndef TERN_OPS_LOOK_H
#define TERN_OPS_LOOK_H
#include "tensor/op.h"

typedef struct tern_look {
    tern_shape shape;
    int64_t stride[TERN_MAX_DIMS];
    int64_t offset; /* relative to x */
} tern_look;

/* infer of view operations. */
tern_status tern_look_infer(tern_call *call);

#endif
