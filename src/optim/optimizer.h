/* optimizer.h -- internals of an optimizer. */
#ifndef TERN_OPTIM_OPTIMIZER_H
#define TERN_OPTIM_OPTIMIZER_H
#include "base/life.h"
#include "base/handle.h"
#include "base/option.h"
#include "base/text.h"
#include "ops/foreach/foreach.h"
#include "optim/values.h"
#include <tern/autograd.h>
#include <tern/graph.h>
#include <tern/optim.h>

typedef struct tern_optim_batch tern_optim_batch;
typedef struct tern_optim_columns tern_optim_columns;

/* Functions of one kind of optimizer; each may be NULL. */
typedef struct tern_optim_parts {
    /* Called before the step writes anything: fills further columns. */
    tern_status (*prepare)(const tern_optimizer *o, tern_optim_batch *b);
    const tern_foreach_kernel *before; /* launch before the step's, or NULL */
    tern_status (*check_parameter)(const tern_tensor *x);
    /* Replaces the launch: a step that evaluates the model itself. */
    tern_status (*closure_step)(tern_optimizer *o, tern_closure closure, void *user, double *loss);
    /* Replaces the launch: a step of the program (custom.c). */
    tern_status (*step)(tern_optimizer *o, tern_tensor *skip);
    tern_status (*make_data)(tern_optimizer *o);
    void (*free_data)(void *data);
    /* Replace the functions for the slots' states: each_state visits the kind's states; load_state
     * loads all "state." entries of dict, or only checks them if apply is false. */
    tern_status (*each_state)(tern_optimizer *o, tern_tensor_visit visit, void *user);
    tern_status (*load_state)(tern_optimizer *o, const tern_state_dict *dict, bool apply);
} tern_optim_parts;
extern const tern_optim_parts tern_lamb_parts, tern_muon_parts, tern_lbfgs_parts;

/* A kind of optimizer: its rows of optimizers.def. values are a tern_<name>_values. */
typedef struct tern_optim_kind {
    const char *name; /* such as "tern_optim_sgd" */
    tern_foreach_kernel kernel;
    bool only_wide; /* the kernel has only f32 and f64 forms: half precision is computed in
                       copies */
    const tern_optim_row *rows;
    int n_values;
    const char *const *state_names; /* PyTorch's names */
    void (*read)(const void *options, void *values);
    void (*derive)(void *values);
    uint32_t (*states)(const void *values);      /* a bit for each state in use */
    const char *(*conflict)(const void *values); /* error text for conflicting options, or NULL */
    const tern_optim_parts *parts;
} tern_optim_kind;

/* A parameter, and its properties when its batch was made. */
typedef struct tern_optim_slot {
    tern_tensor *x;
    tern_tensor *state[OPTIM_STATES]; /* states, made when the first gradient arrives */
    uint32_t made;                    /* equals the optimizer's states once all states are made */
    const char *device;
    tern_dtype dtype;
    tern_memory_format format; /* memory format of the parameter and of its states */
    int64_t numel;
    int group;
    int batch, row;
} tern_optim_slot;

/* A parameter group: parameters with common options. */
typedef struct tern_param_group {
    union {
        double lr; /* the first of values */
        double values[OPTIM_VALUES];
    };
    double initial_lr; /* the learning rate before any scheduler */
    bool has_initial_lr;
} tern_param_group;

/* The kernel's columns for a batch; in a row all tensors have one memory format. target: the
 * parameters; x: the same, or copies in that format or in float32. */
struct tern_optim_columns {
    tern_tensor **target, **x, **grad, **state[OPTIM_STATES];
};

/* The parameters of one group, device and dtype, which one launch updates. */
struct tern_optim_batch {
    int *slot; /* indices of `count` slots */
    int count;
    tern_foreach *table;
    tern_tensor *steps;           /* int64: the number of steps, for each chunk; kernels increase
                                     it */
    tern_tensor *values;          /* the group's values, on the device */
    tern_tensor *no_skip;         /* a zero, for launches that are never skipped */
    double written[OPTIM_VALUES]; /* the group's values when they were last written */
    bool is_written;
    tern_optim_columns columns; /* columns, call and ready belong to the current step */
    tern_foreach_call call;
    tern_foreach_ready ready;
};

struct tern_optimizer {
    tern_handle handle;
    const tern_optim_kind *kind;
    uint32_t states; /* bit k: state k is used */
    tern_param_group *groups;
    int n_groups;
    tern_optim_slot *slots;
    int n;
    tern_optim_batch *batches;
    int n_batches;
    bool stepped;              /* a step was made, or skipped for an infinite gradient */
    void *data;                /* the kind's data */
    void *own_kind;            /* the kind, if the program made it; else NULL */
    _Atomic(tern_life *) life; /* for its schedulers */
};

/* Returns all n parameters of module, which tern_free frees, or NULL after an error. */
tern_tensor **tern_optim_collect(tern_module *module, int *n, const char *function);
/* Sets o to NULL after an error if it was freed. */
#define TERN_OPTIMIZER_GIVEN(o, function) TERN_GIVEN(o, "optimizer", function)

/* Returns an optimizer for all parameters of module, or for a list; options: a tern_<name>_options,
 * or NULL. Returns NULL after an error that names the kind. */
tern_optimizer *tern_optim_new(const tern_optim_kind *kind, tern_module *module, double lr,
                               const void *options);
tern_optimizer *tern_optim_new_of(const tern_optim_kind *kind, tern_tensor *const *parameters,
                                  int n, double lr, const void *options);
/* Records an error if some x can't be parameters of o in addition to those that it has. */
tern_status tern_optim_check_parameters(const tern_optimizer *o, tern_tensor *const *x, int n);
/* Appends checked parameters to a group. */
tern_status tern_optim_append(tern_optimizer *o, tern_tensor *const *x, int n, int group);
tern_status tern_optim_check_value(const tern_optim_kind *kind, int i, double value,
                                   const char *function);
/* The same for an existing group: a schedule may make lr negative, by rounding or after its end. */
tern_status tern_optim_check_group(const tern_optim_kind *kind, int i, double value,
                                   const char *function);
tern_status tern_optim_check_lr(const tern_optimizer *o, double lr, const char *function);
/* Returns the values of a batch's group, a tern_<name>_values without derived numbers. */
const void *tern_optim_values(const tern_optimizer *o, const tern_optim_batch *b);
/* Returns the memory format in which x is contiguous; TERN_CONTIGUOUS_FORMAT if none. */
tern_memory_format tern_optim_format(const tern_tensor *x);
/* Returns x in that format, itself or a copy, for kernels over contiguous memory. */
static inline tern_tensor *tern_optim_in_format(tern_tensor *x, tern_memory_format format)
{
    return format ? tern_to_memory_format(x, format) : tern_contiguous(x);
}
/* Sorts the parameters into batches, again if one has moved; states and step counts move along
 * (group_tensors.c). */
tern_status tern_optim_regroup(tern_optimizer *o);
/* Copies changed options, such as the learning rate, to the devices, where replayed recordings read
 * them. */
tern_status tern_optim_refresh(const tern_optimizer *o);
void tern_optim_batches_free(tern_optim_batch *batches, int n);
/* Makes the slot's states that are in use. */
tern_status tern_optim_make_states(const tern_optimizer *o, tern_optim_slot *slot);
/* As tern_optim_step, but kernels change nothing if *skip (float32, one element) is not zero. */
tern_status tern_optim_step_unless(tern_optimizer *o, tern_tensor *skip);
/* Divides all gradients by *scale, and sets *found to 1 if one is infinite or NaN (both float32,
 * one element). Sets *n to the number of gradients, the largest over ranks (unscale_grads.c). */
tern_status tern_optim_unscale(tern_optimizer *o, tern_tensor *scale, tern_tensor *found, int *n);

#endif
