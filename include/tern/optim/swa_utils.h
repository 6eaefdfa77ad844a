/* optim/swa_utils.h -- averages of a module's parameters over the steps, which often are better
 * than the last ones (torch.optim.swa_utils). */
#ifndef TERN_OPTIM_SWA_UTILS_H
#define TERN_OPTIM_SWA_UTILS_H
#include <tern/optim.h>

TERN_BEGIN_DECLS

typedef struct tern_averaged_model tern_averaged_model;

typedef struct tern_averaged_model_options {
    double decay;     /* default 0.999, TERN_ZERO for 0: mean = decay mean + (1 - decay) x */
    bool equal;       /* instead: all steps weigh the same (stochastic weight averaging) */
    bool use_buffers; /* average floating point buffers too, instead of copying them */
    uint64_t reserved[4];
} tern_averaged_model_options;
/* Returns the default options, as TERN_DEFAULTS takes them. */
TERN_API tern_averaged_model_options tern_averaged_model_defaults(void);

/* torch.optim.swa_utils.AveragedModel: keeps an average beside every parameter and buffer of
 * module; to be freed with tern_swa_free. */
TERN_API tern_averaged_model *tern_swa_averaged_model(tern_module *module,
                                                      const tern_averaged_model_options *options);
/* Take the parameters as they are now into the average: one launch for each device and dtype. The
 * first update copies them. Like the step that it follows, it is refused while an error is
 * recorded. */
TERN_API tern_status tern_swa_update(tern_averaged_model *model);
/* Exchange averages and parameters: before an evaluation, and again after it. */
TERN_API tern_status tern_swa_swap(tern_averaged_model *model);
/* The average of a parameter or buffer, borrowed. */
TERN_API tern_tensor *tern_swa_average(const tern_averaged_model *model, const tern_tensor *x);
/* The i-th parameter or buffer that has an average, borrowed, in the order of the state dict behind
 * "n_averaged"; NULL, without an error, where there is none. */
TERN_API tern_tensor *tern_swa_parameter(const tern_averaged_model *model, int i);
/* The number of updates ("n_averaged") and the averages by their paths ("module.0.weight"), sharing
 * their elements; to be freed with tern_state_dict_free. */
TERN_API tern_state_dict *tern_swa_state_dict(const tern_averaged_model *model);
/* Put them back, from any device and dtype. Errors: TERN_ERR_STATE for other names or shapes,
 * nothing having changed. */
TERN_API tern_status tern_swa_load_state_dict(tern_averaged_model *model,
                                              const tern_state_dict *dict);
/* Frees the averages; NULL is fine. */
TERN_API void tern_swa_free(tern_averaged_model *model);

/* The next batch, NULL after the last one. */
typedef tern_tensor *(*tern_batch_source)(void *user);
/* Make the running statistics of m's batch norms anew, after its parameters became an average
 * (torch.optim.swa_utils.update_bn): the mean over the batches that next gives, up to NULL, each
 * run through m in training mode without a graph. A batch lives in a scope of its own. */
TERN_API tern_status tern_swa_update_bn(tern_module *m, tern_batch_source next, void *user);

TERN_END_DECLS
#endif
