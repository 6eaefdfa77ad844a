/* optim/swa_utils.h -- averages of a module's parameters over the steps, which often give better
 * results than the last parameters (torch.optim.swa_utils). */
#ifndef TERN_OPTIM_SWA_UTILS_H
#define TERN_OPTIM_SWA_UTILS_H
#include <tern/optim.h>

TERN_BEGIN_DECLS

typedef struct tern_averaged_model tern_averaged_model;

typedef struct tern_averaged_model_options {
    double decay;     /* default 0.999, TERN_ZERO for 0: average = decay average + (1 - decay) x */
    bool equal;       /* all steps have the same weight instead (stochastic weight averaging) */
    bool use_buffers; /* average floating point buffers too, instead of copying them */
    uint64_t reserved[4];
} tern_averaged_model_options;
/* Returns the default options, as TERN_DEFAULTS takes them. */
TERN_API tern_averaged_model_options tern_averaged_model_defaults(void);

/* Returns a copy of every parameter and buffer of module in which tern_swa_update keeps averages
 * (torch.optim.swa_utils.AveragedModel). The caller frees it with tern_swa_free. */
TERN_API tern_averaged_model *tern_swa_averaged_model(tern_module *module,
                                                      const tern_averaged_model_options *options);
/* Updates the averages with the current parameters, in one launch for each device and dtype. The
 * first update copies them. While an error is recorded it does nothing and returns that error, as
 * an optimizer's step does. */
TERN_API tern_status tern_swa_update(tern_averaged_model *model);
/* Exchanges the averages and the parameters. Call it before an evaluation and again after it. */
TERN_API tern_status tern_swa_swap(tern_averaged_model *model);
/* Returns the average of a parameter or buffer, borrowed. */
TERN_API tern_tensor *tern_swa_average(const tern_averaged_model *model, const tern_tensor *x);
/* Returns the i-th parameter or buffer that has an average, borrowed, in the order of the state
 * dict after "n_averaged"; NULL, without an error, if there is none. */
TERN_API tern_tensor *tern_swa_parameter(const tern_averaged_model *model, int i);
/* Returns the number of updates ("n_averaged") and the averages by their paths ("module.0.weight").
 * The tensors share their elements with the averages. The caller frees the dict with
 * tern_state_dict_free. */
TERN_API tern_state_dict *tern_swa_state_dict(const tern_averaged_model *model);
/* Loads the averages from any device and dtype. Errors: TERN_ERR_STATE for different names or
 * shapes, after which nothing has changed. */
TERN_API tern_status tern_swa_load_state_dict(tern_averaged_model *model,
                                              const tern_state_dict *dict);
/* Frees the averages; NULL is fine. */
TERN_API void tern_swa_free(tern_averaged_model *model);

/* A function that returns the next batch, and NULL after the last one. */
typedef tern_tensor *(*tern_batch_source)(void *user);
/* Computes the running statistics of m's batch norms again, after its parameters were replaced by
 * averages (torch.optim.swa_utils.update_bn). They become the mean over the batches that next
 * returns, each of which is run through m in training mode without autograd. Each batch has a scope
 * of its own. */
TERN_API tern_status tern_swa_update_bn(tern_module *m, tern_batch_source next, void *user);

TERN_END_DECLS
#endif
