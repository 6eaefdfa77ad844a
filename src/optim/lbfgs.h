/* lbfgs.h -- the state of L-BFGS. */
#ifndef TERN_OPTIM_LBFGS_H
#define TERN_OPTIM_LBFGS_H
#include "optim/optimizer.h"

typedef struct tern_lbfgs_memory {
    tern_lbfgs_values values;
    int64_t iterations;
    tern_tensor *d, *grad;        /* the last direction, and the gradient before that step */
    double t, scale;              /* t is the length of the last step, scale that of the initial
                                     Hessian */
    tern_tensor **change, **step; /* count pairs, one for each remembered step */
    double *ro;                   /* 1 / (change . step) */
    int count;
} tern_lbfgs_memory;

/* See tern_optim_parts (lbfgs_state.c). */
tern_status tern_lbfgs_each_state(tern_optimizer *o, tern_tensor_visit visit, void *user);
tern_status tern_lbfgs_load_state(tern_optimizer *o, const tern_state_dict *dict, bool apply);

#endif
