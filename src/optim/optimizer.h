/* optimizer.h -- the inside of an optimizer. */
#ifndef TERN_OPTIM_OPTIMIZER_H
#define TERN_OPTIM_OPTIMIZER_H
#include "base/text.h"
#include "nn/option.h"
#include "ops/multi_tensor.h"
#include <tern/autograd.h>
#include <tern/optim.h>

enum { OPTIM_STATES = 3, OPTIM_NUMBERS = 9 };

/* A parameter, and where it was when its group was made. */
typedef struct tern_optim_slot {
    tern_tensor *x;
    tern_tensor *state[OPTIM_STATES]; /* made with the first gradient */
    const char *device;
    tern_dtype dtype;
    int64_t numel;
    int group, row;
} tern_optim_slot;

/* The parameters of one device and dtype: what one launch updates. */
typedef struct tern_optim_group {
    int *slot; /* of count */
    int count;
    tern_multi *table;
    tern_tensor *steps;   /* int64, an element for each chunk; kernels count */
    tern_tensor *numbers; /* the hyperparameters, on the device */
    tern_tensor *no_skip; /* a zero: nothing tells the kernel to skip */
    double written[OPTIM_NUMBERS];
    bool is_written;
} tern_optim_group;

struct tern_optimizer {
    const tern_kernel_ref *many, *few;
    const char *name; /* "tern_optim_sgd" */
    int n_states;
    int32_t flags;
    double lr;
    double numbers[OPTIM_NUMBERS]; /* as the kernel wants them; the first is lr */
    tern_optim_slot *slots;
    int n;
    tern_optim_group *groups;
    int n_groups;
};

/* An optimizer of these kernels for all parameters of module that require gradients, or for a list;
 * the caller fills in the rest. NULL after an error that names name. */
tern_optimizer *tern_optim_new(const char *name, tern_module *module, double lr);
tern_optimizer *tern_optim_new_of(const char *name, tern_tensor *const *parameters, int n,
                                  double lr);
/* Sort the parameters into groups, anew where one moved; states and steps come along (groups.c). */
tern_status tern_optim_regroup(tern_optimizer *o);
void tern_optim_groups_free(tern_optim_group *groups, int n);
/* tern_optim_step, but the kernels change nothing where *skip (float32, one element) is not zero.
 */
tern_status tern_optim_step_unless(tern_optimizer *o, tern_tensor *skip);
/* Divide all gradients by *scale, and set *found to 1 where one is infinite or NaN (both float32,
 * one element); *n counts the gradients (unscale.c). */
tern_status tern_optim_unscale(tern_optimizer *o, tern_tensor *scale, tern_tensor *found, int *n);

#endif
