/* parallel.c -- the call of a model's root module with several inputs, and models inside
 * DataParallel and DistributedDataParallel. */
#include "models/model.h"
#include <string.h>

/* The inputs of a model's root module, in order; labels are the last. */
enum { IDS, MASK, POSITIONS, TYPES, PIXELS, FEATURES, DECODER_IDS, LABELS, INPUTS };

/* in: one tensor, which is the model's main input, or all INPUTS, of which any may be NULL. The
 * result is the loss if there are labels, else the logits. */
tern_status models_call_root(tern_module *self, tern_tensor *const *in, int n, tern_tensor **out,
                             int k)
{
    tern_model_inputs given;
    tern_model_outputs results = {0};
    if ((n != 1 && n != INPUTS) || k != 1)
        return tern_fail(TERN_ERR_ARGUMENT, "tern_nn_call: %s takes 1 or %d tensors and gives one",
                         tern_nn_name(self), INPUTS);
    if (n == 1)
        given =
            (tern_model_inputs){.input_ids = in[0], .pixel_values = in[0], .input_features = in[0]};
    else
        given = (tern_model_inputs){.input_ids = in[IDS],
                                    .attention_mask = in[MASK],
                                    .position_ids = in[POSITIONS],
                                    .token_type_ids = in[TYPES],
                                    .pixel_values = in[PIXELS],
                                    .input_features = in[FEATURES],
                                    .decoder_input_ids = in[DECODER_IDS],
                                    .labels = in[LABELS],
                                    .logits_to_keep = in[LABELS] ? -1 : 0};
    TRY(tern_models_call(self, &given, &results));
    out[0] = given.labels     ? results.loss
             : results.logits ? results.logits
                              : results.last_hidden_state;
    return out[0] ? TERN_OK : tern_last_status();
}

/* Returns the module inside a DataParallel or DistributedDataParallel, else NULL; *parallel: it is
 * a DataParallel, which uses several devices of this process. */
static tern_module *inside(tern_module *m, bool *parallel)
{
    const char *name = m ? tern_nn_name(m) : NULL;
    *parallel = name && strcmp(name, "DataParallel") == 0;
    return *parallel || (name && strcmp(name, "DistributedDataParallel") == 0)
               ? tern_nn_child_at(m, 0)
               : NULL;
}

models_model *models_inside(tern_module *module, bool *parallel)
{
    tern_module *m = inside(module, parallel);
    bool inner = false;
    tern_module *next = m ? inside(m, &inner) : NULL;
    *parallel = *parallel || inner;
    m = next ? next : m;
    return m && models_is(m) ? tern_nn_data(m) : NULL;
}

tern_status models_call_inside(tern_module *wrapper, models_model *m, bool parallel,
                               const tern_model_inputs *in, tern_model_outputs *out)
{
    tern_tensor *y = NULL, *all[INPUTS] = {in->input_ids,         in->attention_mask,
                                           in->position_ids,      in->token_type_ids,
                                           in->pixel_values,      in->input_features,
                                           in->decoder_input_ids, parallel ? NULL : in->labels};
    if (in->cache || in->cu_seqlens || in->inputs_embeds || in->encoder_hidden_states)
        return tern_fail(TERN_ERR_UNSUPPORTED,
                         "tern_models_call: caches, cu_seqlens, inputs_embeds and "
                         "encoder_hidden_states do not go into %s",
                         tern_nn_name(wrapper));
    if (parallel && in->labels && !m->kind->classifies && !m->kind->generates)
        return tern_fail(TERN_ERR_UNSUPPORTED,
                         "tern_models_call: the loss of %s is not one of rows", m->kind->name);
    /* The decoder's ids are computed from the labels here, because the labels are not passed on. */
    if (parallel && m->kind->encode && in->labels &&
        !(all[DECODER_IDS] = models_decoder_ids(m, in)))
        return tern_last_status();
    TRY(tern_nn_call(wrapper, all, INPUTS, &y, 1));
    if (all[LABELS]) {
        out->loss = y;
        return TERN_OK;
    }
    out->logits = y;
    return in->labels ? models_loss_of_logits(m, in, out) : TERN_OK;
}
