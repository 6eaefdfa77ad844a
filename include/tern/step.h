/* step.h -- a function of the program as a step that records itself (torch.compile with
 * mode="reduce-overhead").
 *
 *   static tern_status train(void *user, tern_tensor *const *in, int n, tern_tensor **out, int k)
 *   {
 *       struct training *t = user;
 *       tern_optim_zero_grad(t->optimizer);
 *       out[0] = tern_cross_entropy(tern_nn_forward(t->model, in[0]), in[1], NULL);
 *       tern_backward(out[0]);
 *       return tern_optim_step(t->optimizer);
 *   }
 *   tern_step *step = tern_step_new(train, &t, &(tern_step_options){.module = t.model});
 *   TERN_EACH_BATCH(batch, loader) { tern_step_run(step, batch.tensors, 2, &loss, 1); ... }
 *
 * The first two calls for inputs of some shapes run the function. The third records it
 * (tern/graph.h); from then on a call copies the inputs to where the recording reads them and
 * replays it, without the host's part of the function. Inputs of other shapes, dtypes, devices or
 * memory formats, another training mode of the module, another grad mode, autocast or value of
 * *variant have recordings of their own. The results are those that the function gives without
 * recordings, bit for bit, on every device.
 *
 * The function's course depends on nothing else. What it does on the host, such as printing,
 * happens in calls that run it and in the one that records, where tensors hold no values yet. What
 * the device does goes on as without recordings: random numbers, counts of steps, the loss scale,
 * clipping, and schedules, also those that the function steps (tern_lr_scheduler_step). Gradients
 * that the function adds to are to be made in it: it zeroes them first, and may run several
 * micro-batches.
 *
 * A function that needs a value on the host (tern_item, a branch on a result), computes on other
 * devices too, writes to its inputs, or does anything else that can't be recorded runs in every
 * call: a warning of kind "step" says once what stood in the way, and tern_step_get_stats says so
 * too. It also runs in every call for inputs that require a gradient, in anomaly detection and the
 * debug mode, inside of another recording, and for more kinds of inputs than max_recordings. */
#ifndef TERN_STEP_H
#define TERN_STEP_H
#include <tern/nn.h>

TERN_BEGIN_DECLS

typedef struct tern_step tern_step;
/* n tensors in, k out, which the function makes; TERN_OK, or the status of what failed. */
typedef tern_status (*tern_step_function)(void *user, tern_tensor *const *in, int n,
                                          tern_tensor **out, int k);

typedef struct tern_step_options {
    int warmup;         /* calls that run the function before it is recorded; 0: 2 */
    int max_recordings; /* 0: 8 */
    bool eager;         /* never record */
    bool
        static_results; /* results lie in the recording's memory, where its next replay writes; else
                           they are copies */
    tern_module
        *module; /* whose training mode, and that of all below it, the function's course depends on;
                   NULL: none */
    const int64_t
        *variant; /* a number of the program's that it depends on, read in each call; NULL: none */
    const char
        *device; /* of the recordings; NULL: that of the module's parameters, else of the first
                   input */
    uint64_t reserved[4];
} tern_step_options;
/* Its defaults, as TERN_DEFAULTS takes them. */
TERN_API tern_step_options tern_step_defaults(void);

/* user and what the function uses must outlive the step. NULL after an error. The caller frees
 * it. */
TERN_API tern_step *tern_step_new(tern_step_function function, void *user,
                                  const tern_step_options *options);
/* One call. Inputs may be NULL where the function takes that. The results belong to the innermost
 * scope and are no part of a graph of gradients; all are NULL after an error, which is the
 * function's own. */
TERN_API tern_status tern_step_run(tern_step *step, tern_tensor *const *in, int n,
                                   tern_tensor **out, int k);
/* Give up all recordings: the next calls run the function, and record it anew. For what changed
 * that a recording does not look at, such as hooks, or parameters that were replaced. */
TERN_API tern_status tern_step_reset(tern_step *step);
/* NULL is fine. Results stay valid. */
TERN_API void tern_step_free(tern_step *step);

/* How many bytes of device memory tensors hold at most during a call of a function, which may be
 * that of a step, together with those that there are already: the peak that tern_memory_get_stats
 * then says. Nothing of it runs on the device, and what it makes there takes no memory, but for
 * small tensors and what an optimizer makes for good in its first step: so the answer may be more
 * than the device has. The module's parameters (needed) have the device, and have the gradients
 * afterwards that they had before. The function runs twice, as in a recording: it asks for no
 * values, what it does on the host happens, and it zeroes gradients first. It may make its inputs
 * itself (n = 0). Not in it is memory that a vendor's library has for itself, and on the cpu what
 * products of halves and convolutions take while they run. 0 after an error: that of the function,
 * or TERN_ERR_STATE where the function kept a tensor beyond its end. */
TERN_API uint64_t tern_memory_estimate(tern_step_function function, void *user,
                                       tern_tensor *const *in, int n, int k, tern_module *module);

typedef struct tern_step_stats {
    int64_t ran, replayed; /* calls that ran the function, and that replayed a recording */
    int recordings;        /* that there are now */
    int64_t launches;      /* of the recording that was replayed last */
    const char
        *reason; /* why calls run the function that would otherwise replay; NULL: they replay. Valid
                   until the next call */
} tern_step_stats;
/* What the step did so far; zeros after an error. */
TERN_API tern_step_stats tern_step_get_stats(const tern_step *step);

TERN_END_DECLS
#endif
