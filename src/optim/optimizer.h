/* optimizer.h -- the inside of an optimizer. */
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

/* What an optimizer has of its own in C; all may be NULL. */
typedef struct tern_optim_parts {
    /* Before anything is written: more columns. */
    tern_status (*prepare)(const tern_optimizer *o, tern_optim_batch *b);
    const tern_foreach_kernel *before; /* a launch before the step's; or NULL */
    tern_status (*check_parameter)(const tern_tensor *x);
    /* Instead of a launch: a step that evaluates the model itself. */
    tern_status (*closure_step)(tern_optimizer *o, tern_closure closure, void *user, double *loss);
    /* Instead of a launch: a step of a program's own (custom.c). */
    tern_status (*step)(tern_optimizer *o, tern_tensor *skip);
    tern_status (*make_data)(tern_optimizer *o);
    void (*free_data)(void *data);
    /* Instead of the slots' states: visit what was gathered; all of dict's "state." into it, or
     * (apply is false) see whether that could be. */
    tern_status (*each_state)(tern_optimizer *o, tern_tensor_visit visit, void *user);
    tern_status (*load_state)(tern_optimizer *o, const tern_state_dict *dict, bool apply);
} tern_optim_parts;
extern const tern_optim_parts tern_lamb_parts, tern_muon_parts, tern_lbfgs_parts;

/* What distinguishes one optimizer from another: its rows of optimizers.def. values are a
 * tern_<name>_values. */
typedef struct tern_optim_kind {
    const char *name; /* "tern_optim_sgd" */
    tern_foreach_kernel kernel;
    bool only_wide; /* the kernels take f32 and f64: half precision is computed in copies */
    const tern_optim_row *rows;
    int n_values;
    const char *const *state_names; /* PyTorch's */
    void (*read)(const void *options, void *values);
    void (*derive)(void *values);
    uint32_t (*states)(const void *values);      /* a bit for each that is needed */
    const char *(*conflict)(const void *values); /* NULL: there is none */
    const tern_optim_parts *parts;
} tern_optim_kind;

/* A parameter, and where it was when its batch was made. */
typedef struct tern_optim_slot {
    tern_tensor *x;
    tern_tensor *state[OPTIM_STATES]; /* made with the first gradient */
    uint32_t made;                    /* equals the optimizer's states once all are there */
    const char *device;
    tern_dtype dtype;
    tern_memory_format format; /* its states' too */
    int64_t numel;
    int group;
    int batch, row;
} tern_optim_slot;

/* Parameters with options of their own. */
typedef struct tern_param_group {
    union {
        double lr; /* the first value of all */
        double values[OPTIM_VALUES];
    };
    double initial_lr; /* before any scheduler */
    bool has_initial_lr;
} tern_param_group;

/* What a kernel gets of its batch, column by column, each row in one memory format. target: the
 * parameters, of which x are dense copies where they are not dense. */
struct tern_optim_columns {
    tern_tensor **target, **x, **grad, **state[OPTIM_STATES];
};

/* The parameters of one group, device and dtype: what one launch updates. */
struct tern_optim_batch {
    int *slot; /* of count */
    int count;
    tern_foreach *table;
    tern_tensor *steps;           /* int64, an element for each chunk; kernels count */
    tern_tensor *values;          /* the group's, on the device */
    tern_tensor *no_skip;         /* a zero: nothing makes the kernel skip */
    double written[OPTIM_VALUES]; /* what the group had then */
    bool is_written;
    tern_optim_columns columns; /* of the step at hand, and its launch */
    tern_foreach_call call;
    tern_foreach_ready ready;
};

struct tern_optimizer {
    tern_handle handle;
    const tern_optim_kind *kind;
    uint32_t states; /* bit k: state k is in use */
    tern_param_group *groups;
    int n_groups;
    tern_optim_slot *slots;
    int n;
    tern_optim_batch *batches;
    int n_batches;
    bool stepped;              /* at least once, or would have without an infinite gradient */
    void *data;                /* the kind's own */
    void *own_kind;            /* what kind is, where the program made it; or NULL */
    _Atomic(tern_life *) life; /* for its schedulers */
};

/* All n parameters of module, to be freed with tern_free; NULL after an error. */
tern_tensor **tern_optim_collect(tern_module *module, int *n, const char *function);
/* o is NULL from here on if it was freed, which is an error. */
#define TERN_OPTIMIZER_GIVEN(o, function) TERN_GIVEN(o, "optimizer", function)

/* An optimizer for all parameters of module, or for a list; options: of the
 * kind's struct, or NULL. NULL after an error that names kind. */
tern_optimizer *tern_optim_new(const tern_optim_kind *kind, tern_module *module, double lr,
                               const void *options);
tern_optimizer *tern_optim_new_of(const tern_optim_kind *kind, tern_tensor *const *parameters,
                                  int n, double lr, const void *options);
/* Whether these can be parameters besides those that o has already. */
tern_status tern_optim_check_parameters(const tern_optimizer *o, tern_tensor *const *x, int n);
/* Append them to a group; parameters were checked. */
tern_status tern_optim_append(tern_optimizer *o, tern_tensor *const *x, int n, int group);
tern_status tern_optim_check_value(const tern_optim_kind *kind, int i, double value,
                                   const char *function);
/* The same of a group that is there: schedules go below a rate of zero, by rounding or beyond their
 * end. */
tern_status tern_optim_check_group(const tern_optim_kind *kind, int i, double value,
                                   const char *function);
tern_status tern_optim_check_lr(const tern_optimizer *o, double lr, const char *function);
/* A batch's group as its tern_<name>_values, without what is derived. */
const void *tern_optim_values(const tern_optimizer *o, const tern_optim_batch *b);
/* In which format the elements of x lie without gaps; rows where there is none. */
tern_memory_format tern_optim_format(const tern_tensor *x);
/* x in that format, itself or a copy, for kernels that go from the first element to the last. */
static inline tern_tensor *tern_optim_in_format(tern_tensor *x, tern_memory_format format)
{
    return format ? tern_to_memory_format(x, format) : tern_contiguous(x);
}
/* Sort the parameters into batches, anew where one moved; states and steps come
 * along (group_tensors.c). */
tern_status tern_optim_regroup(tern_optimizer *o);
/* The options, a learning rate that changed among them, to the devices: recorded steps that are
 * replayed read them there. */
tern_status tern_optim_refresh(const tern_optimizer *o);
void tern_optim_batches_free(tern_optim_batch *batches, int n);
/* Make the states of a slot that are in use. */
tern_status tern_optim_make_states(const tern_optimizer *o, tern_optim_slot *slot);
/* tern_optim_step, but the kernels change nothing where *skip (float32, one
 * element) is not zero. */
tern_status tern_optim_step_unless(tern_optimizer *o, tern_tensor *skip);
/* Divide all gradients by *scale, and set *found to 1 where one is infinite or NaN (both float32,
 * one element); *n counts the gradients, of the rank that has most (unscale_grads.c). */
tern_status tern_optim_unscale(tern_optimizer *o, tern_tensor *scale, tern_tensor *found, int *n);

#endif
