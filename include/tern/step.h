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
 * memory formats have recordings of their own; so have another training mode of the module, another
 * grad mode, another autocast, and another value of *variant. The results are those that the
 * function gives without recordings, bit for bit, on every device.
 *
 * What the function does may depend on nothing else. What it does on the host, such as printing,
 * happens in calls that run it and in the call that records it, in which tensors hold no values
 * yet. What the device does goes on as without recordings: random numbers, counts of steps, the
 * loss scale, clipping, and schedules, also those that the function steps (tern_lr_scheduler_step).
 * The function has to make the gradients that it adds to: it zeroes them first, and may then run
 * several micro-batches.
 *
 * A function runs in every call if it needs a value on the host (tern_item, a branch on a result),
 * computes on other devices too, writes to its inputs, or does anything else that can't be
 * recorded: a warning of kind "step" names the reason once, and tern_step_get_stats returns it. The
 * function also runs in every call for inputs that require a gradient, in anomaly detection and the
 * debug mode, inside of another recording, and for more kinds of inputs than max_recordings. */
#ifndef TERN_STEP_H
#define TERN_STEP_H
#include <tern/nn.h>

TERN_BEGIN_DECLS

typedef struct tern_step tern_step;
/* Computes out[k], new tensors, from in[n]. Returns TERN_OK, or the status of what failed. */
typedef tern_status (*tern_step_function)(void *user, tern_tensor *const *in, int n,
                                          tern_tensor **out, int k);

typedef struct tern_step_options {
    int warmup;             /* calls that run the function before one records it; 0: 2 */
    int max_recordings;     /* how many recordings the step keeps; 0: 8 */
    bool eager;             /* the function is never recorded */
    bool static_results;    /* results lie in the recording's memory, where its next replay writes;
                            else they are copies */
    tern_module *module;    /* the function depends on the training mode of this module and of those
                            below it; NULL: on none */
    const int64_t *variant; /* the function depends on this number of the program's, which each call
                               reads; NULL: on none */
    const char *device; /* of the recordings; NULL: the device of the module's parameters, or else
                           that of the first input */
    uint64_t reserved[4];
} tern_step_options;
/* Returns the default options, as TERN_DEFAULTS takes them. */
TERN_API tern_step_options tern_step_defaults(void);

/* Makes a step of the function. user, and what the function uses, must outlive the step. Returns
 * NULL after an error. The caller frees the step with tern_step_free. */
TERN_API tern_step *tern_step_new(tern_step_function function, void *user,
                                  const tern_step_options *options);
/* Makes one call. An input may be NULL where the function takes NULL. The results belong to the
 * innermost scope and are no part of a graph of gradients; after an error, which is the function's
 * own, all are NULL. */
TERN_API tern_status tern_step_run(tern_step *step, tern_tensor *const *in, int n,
                                   tern_tensor **out, int k);
/* Drops all recordings: the next calls run the function, and record it anew. Call it after changes
 * that a recording does not notice, such as hooks, or parameters that were replaced. Fails with
 * TERN_ERR_STATE in the step's own function. */
TERN_API tern_status tern_step_reset(tern_step *step);
/* Frees the step; NULL is fine. Results stay valid. */
TERN_API void tern_step_free(tern_step *step);

/* Returns the peak of device memory, in bytes, during a call of a function, which may be that of a
 * step: what tern_memory_get_stats would then report, with the tensors that exist already. Nothing
 * of the call runs on the device, and the tensors that it makes there take no memory, but for small
 * ones and for what an optimizer makes for good in its first step; so the peak may be more than the
 * device has. The parameters of module, which is needed, give the device; afterwards their
 * gradients and versions are those from before. The function runs twice, as in a recording: it may
 * ask for no values, what it does on the host happens, and it zeroes gradients first. It may make
 * its inputs itself (n = 0). The peak does not count memory that a vendor's library has for itself,
 * nor the temporary memory of half precision products and of convolutions on the cpu. Returns 0
 * after an error: that of the function, TERN_ERR_STATE where the function kept a tensor beyond its
 * end, or TERN_ERR_MEMORY where the process has no addresses left. */
TERN_API uint64_t tern_memory_estimate(tern_step_function function, void *user,
                                       tern_tensor *const *in, int n, int k, tern_module *module);

typedef struct tern_step_stats {
    int64_t ran, replayed; /* calls that ran the function, and that replayed a recording */
    int recordings;        /* how many the step has now */
    int64_t launches;      /* of the recording that was replayed last */
    const char *reason;    /* why calls run the function that would otherwise replay; NULL: they
                              replay. The text is valid until the next call. */
} tern_step_stats;
/* Returns what the step did so far; zeros after an error. */
TERN_API tern_step_stats tern_step_get_stats(const tern_step *step);

TERN_END_DECLS
#endif
