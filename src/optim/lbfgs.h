/* lbfgs.h -- what L-BFGS keeps from step to step. */
#ifndef TERN_OPTIM_LBFGS_H
#define TERN_OPTIM_LBFGS_H
#include "optim/optimizer.h"

typedef struct tern_lbfgs_memory {
    tern_lbfgs_values values;
    int64_t iterations;
    tern_tensor *d, *grad;        /* the last direction, and the gradient before it */
    double t, scale;              /* the last step's length; the initial Hessian's */
    tern_tensor **change, **step; /* of count, each pair one step */
    double *ro;                   /* 1 / their product */
    int count;
} tern_lbfgs_memory;

/* As tern_optim_parts says (lbfgs_state.c). */
tern_status tern_lbfgs_each_state(tern_optimizer *o, tern_tensor_visit visit, void *user);
tern_status tern_lbfgs_load_state(tern_optimizer *o, const tern_state_dict *dict, bool apply);

#endif
