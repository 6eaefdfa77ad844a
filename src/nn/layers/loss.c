/* loss.c -- losses as modules, called with input and target. */
#include "nn/layers/layer.h"

/* Checks the number of inputs and outputs of a call. */
static tern_status check_two(const char *name, int n, int k)
{
    if (n == 2 && k == 1)
        return TERN_OK;
    return tern_fail(TERN_ERR_ARGUMENT,
                     "tern_nn_call: %s takes input and target and gives one tensor, not %d and %d",
                     name, n, k);
}

static tern_status mse_call(tern_module *self, tern_tensor *const *in, int n, tern_tensor **out,
                            int k)
{
    TERN_TRY(check_two("MSELoss", n, k));
    out[0] = tern_mse_loss(in[0], in[1], tern_nn_data(self));
    return out[0] ? TERN_OK : tern_last_status();
}

tern_module *tern_nn_mse_loss(const tern_loss_options *options)
{
    tern_loss_options o = options ? *options : (tern_loss_options){0};
    return tern_layer_loss("MSELoss", mse_call, &o, sizeof o);
}

/* The class weights are a buffer, so that they move to a device with the module. */
static tern_status cross_entropy_call(tern_module *self, tern_tensor *const *in, int n,
                                      tern_tensor **out, int k)
{
    TERN_TRY(check_two("CrossEntropyLoss", n, k));
    tern_cross_entropy_options *o = tern_nn_data(self);
    tern_cross_entropy_options now = *o;
    now.weight = tern_nn_buffer(self, "weight");
    out[0] = tern_cross_entropy(in[0], in[1], &now);
    return out[0] ? TERN_OK : tern_last_status();
}

tern_module *tern_nn_cross_entropy_loss(const tern_cross_entropy_options *options)
{
    TERN_NAMED_IN_ERRORS;
    tern_cross_entropy_options o = options ? *options : (tern_cross_entropy_options){0};
    tern_tensor *weight = o.weight;
    o.weight = NULL; /* the buffer holds the tensor now */
    if (!(o.label_smoothing >= 0 && o.label_smoothing <= 1))
        return tern_fail_null(TERN_ERR_ARGUMENT,
                              "tern_nn_cross_entropy_loss: label_smoothing must be between 0.0 and "
                              "1.0. Got: %s",
                              TERN_NUMBER_TEXT(o.label_smoothing));
    tern_module *m = tern_layer_loss("CrossEntropyLoss", cross_entropy_call, &o, sizeof o);
    return tern_layer_if(m, m ? tern_layer_buffer(m, "weight", weight) : tern_last_status());
}
