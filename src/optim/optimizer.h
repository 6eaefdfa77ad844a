/* optimizer.h -- the inside of an optimizer. */
#ifndef TERN_OPTIM_OPTIMIZER_H
#define TERN_OPTIM_OPTIMIZER_H
#include "base/text.h"
#include "nn/option.h"
#include "ops/foreach/foreach.h"
#include <tern/autograd.h>
#include <tern/graph.h>
#include <tern/optim.h>

enum { OPTIM_STATES = 3, OPTIM_NUMBERS = 12, OPTIM_OPTIONS = 8 };

typedef struct tern_optim_batch tern_optim_batch;
typedef struct tern_optim_columns tern_optim_columns;

/* A number that every parameter group has its own of: low <= value < high, or "name: Invalid
 * <words> value: ..." */
typedef struct tern_optim_option {
    const char *name; /* "beta1" */
    const char *words;
    double low, high;
} tern_optim_option;

#define OPTIM_LR                                                                                   \
    {                                                                                              \
        "lr", "learning rate", 0, INFINITY                                                         \
    }
#define OPTIM_WEIGHT_DECAY                                                                         \
    {                                                                                              \
        "weight_decay", "weight_decay value", 0, INFINITY                                          \
    }
#define OPTIM_BETA1                                                                                \
    {                                                                                              \
        "beta1", "beta parameter at index 0", 0, 1                                                 \
    }
#define OPTIM_BETA2                                                                                \
    {                                                                                              \
        "beta2", "beta parameter at index 1", 0, 1                                                 \
    }
#define OPTIM_EPS                                                                                  \
    {                                                                                              \
        "eps", "epsilon value", 0, INFINITY                                                        \
    }
#define OPTIM_MOMENTUM                                                                             \
    {                                                                                              \
        "momentum", "momentum value", 0, INFINITY                                                  \
    }

/* What tells one optimizer from another. */
typedef struct tern_optim_kind {
    const char *name; /* "tern_optim_sgd" */
    tern_kernel_ref many, few;
    bool only_wide; /* the kernels take f32 and f64: halves are computed in copies */
    tern_optim_option option[OPTIM_OPTIONS]; /* the first is the learning rate */
    const char *state[OPTIM_STATES];         /* PyTorch's names */
    uint32_t momentum_states;                /* bits of those that only momentum needs */
    /* A group's options as the kernels want them. */
    void (*resolve)(const double *option, double *number);
    /* Before the launch, if need be: more columns, other launches. */
    tern_status (*prepare)(tern_optimizer *o, tern_optim_batch *b, tern_optim_columns *c,
                           tern_foreach_call *call);
    tern_status (*check_parameter)(const tern_tensor *x);
    /* Instead of a launch: a step that evaluates the model itself. */
    tern_status (*closure_step)(tern_optimizer *o, tern_closure closure, void *user, double *loss);
    void (*free_data)(void *data);
} tern_optim_kind;

/* A parameter, and where it was when its batch was made. */
typedef struct tern_optim_slot {
    tern_tensor *x;
    tern_tensor *state[OPTIM_STATES]; /* made with the first gradient */
    const char *device;
    tern_dtype dtype;
    int64_t numel;
    int group;
    int batch, row;
} tern_optim_slot;

/* Parameters with options of their own. */
typedef struct tern_param_group {
    double option[OPTIM_OPTIONS];
    double initial_lr; /* before any scheduler */
    bool has_initial_lr;
} tern_param_group;

/* The parameters of one group, device and dtype: what one launch updates. */
struct tern_optim_batch {
    int *slot; /* of count */
    int count;
    tern_foreach *table;
    tern_tensor *steps;   /* int64, an element for each chunk; kernels count */
    tern_tensor *numbers; /* the hyperparameters, on the device */
    tern_tensor *no_skip; /* a zero: nothing tells the kernel to skip */
    double written[OPTIM_OPTIONS];
    bool is_written;
};

/* What a kernel gets of its batch, column by column; inside of one scope. */
struct tern_optim_columns {
    tern_tensor **x, **grad, **state[OPTIM_STATES];
    void *memory;
};

struct tern_optimizer {
    const tern_optim_kind *kind;
    uint32_t states; /* bit k: state k is in use */
    int32_t flags;
    tern_param_group *groups;
    int n_groups;
    tern_optim_slot *slots;
    int n;
    tern_optim_batch *batches;
    int n_batches;
    void *data; /* the kind's own */
};

/* An optimizer for all parameters of module that require gradients, or for a list; not complete
 * yet. NULL after an error that names kind. */
tern_optimizer *tern_optim_new(const tern_optim_kind *kind, tern_module *module, double lr);
tern_optimizer *tern_optim_new_of(const tern_optim_kind *kind, tern_tensor *const *parameters,
                                  int n, double lr);
/* Complete it: options in the kind's order, without the learning rate. o, or
 * NULL after freeing it. */
tern_optimizer *tern_optim_finish(tern_optimizer *o, const double *options, int n, uint32_t states,
                                  int32_t flags);
/* Whether these can be parameters besides those that o has already. */
tern_status tern_optim_check_parameters(const tern_optimizer *o, tern_tensor *const *x, int n);
/* Append them to a group; parameters were checked. */
tern_status tern_optim_append(tern_optimizer *o, tern_tensor *const *x, int n, int group);
tern_status tern_optim_check_option(const tern_optim_kind *kind, int i, double value,
                                    const char *function);
/* Sort the parameters into batches, anew where one moved; states and steps come
 * along (group_tensors.c). */
tern_status tern_optim_regroup(tern_optimizer *o);
void tern_optim_batches_free(tern_optim_batch *batches, int n);
/* Make the states of a slot that are in use. */
tern_status tern_optim_make_states(const tern_optimizer *o, tern_optim_slot *slot);
/* tern_optim_step, but the kernels change nothing where *skip (float32, one
 * element) is not zero. */
tern_status tern_optim_step_unless(tern_optimizer *o, tern_tensor *skip);
/* Divide all gradients by *scale, and set *found to 1 where one is infinite or NaN (both float32,
 * one element); *n counts the gradients (unscale_grads.c). */
tern_status tern_optim_unscale(tern_optimizer *o, tern_tensor *scale, tern_tensor *found, int *n);

/* log(beta), a number that is low enough for beta^t to be 0 in every type where beta is 0. */
double tern_optim_log_beta(double beta);
/* resolve for option {lr, beta1, beta2, eps, weight decay, ...} (moments.c). */
void tern_optim_resolve_moments(const double *option, double *number);

/* tern_optim_<x>(module, lr, options) and tern_optim_<x>_of(parameters, n, lr, options), by
 * finish(o, options), which takes NULL. */
#define OPTIM_CONSTRUCTORS(X, OPTIONS, KIND, finish)                                               \
    tern_optimizer *tern_optim_##X(tern_module *module, double lr, const OPTIONS *options)         \
    {                                                                                              \
        return finish(tern_optim_new(&(KIND), module, lr), options);                               \
    }                                                                                              \
    tern_optimizer *tern_optim_##X##_of(tern_tensor *const *parameters, int n, double lr,          \
                                        const OPTIONS *options)                                    \
    {                                                                                              \
        return finish(tern_optim_new_of(&(KIND), parameters, n, lr), options);                     \
    }

#endif
