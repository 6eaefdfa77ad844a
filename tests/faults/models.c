/* models.c -- small models of the kinds that the examples train, and a step of each. */
#include "faults/models.h"
#include "char_gpt/gpt.h"
#include "vit/model.h"
#include <math.h>

/* ---- the models -------------------------------------------------------------------------- */

static tern_module *linear(void)
{
    return tern_nn_linear(3, 1, NULL);
}

static tern_module *mlp(void)
{
    return tern_nn_sequential(tern_nn_linear(6, 8, NULL), tern_nn_relu(), /* in one with the next */
                              tern_nn_linear(8, 8, NULL), tern_nn_dropout(NULL),
                              tern_nn_linear(8, 4, NULL));
}

static tern_module *lenet(void)
{
    return tern_nn_sequential(
        tern_nn_conv2d(1, 3, TERN_SHAPE(3, 3), &(tern_conv_options){.padding = TERN_SHAPE(1, 1)}),
        tern_nn_batch_norm2d(3, NULL), tern_nn_relu(), tern_nn_max_pool2d(TERN_SHAPE(2, 2), NULL),
        tern_nn_conv2d(3, 4, TERN_SHAPE(3, 3), NULL), tern_nn_tanh(), tern_nn_flatten(),
        tern_nn_linear(16, 4, NULL));
}

static tern_module *gpt(void)
{
    return gpt_new(&(gpt_options){
        .vocabulary = 11, .layers = 1, .width = 8, .heads = 2, .context = 5, .tied = true});
}

static tern_module *vit(void)
{
    return vit_new(&(vit_options){.width = 8, .heads = 2, .layers = 1, .classes = 4});
}

/* Parameters are copied to the cpu, rows dealt out, gradients come back. */
static tern_module *two_devices(void)
{
    const char *const devices[] = {tern_default_device(), "cpu"};
    return tern_nn_data_parallel(mlp(), devices, 2, NULL);
}

static tern_optimizer *sgd(tern_module *m)
{
    return tern_optim_sgd(m, 0.1, &(tern_sgd_options){.momentum = 0.9});
}

/* With an eps that keeps a rounding error in a small gradient small. */
static tern_optimizer *adam(tern_module *m)
{
    return tern_optim_adam(m, 0.01, &(tern_adam_options){.eps = 0.01});
}

/* Two groups, which are stepped one after the other. */
static tern_optimizer *adamw(tern_module *m)
{
    tern_tensor *first = tern_nn_parameter(m, "0.weight"), *second = tern_nn_parameter(m, "0.bias");
    tern_optimizer *o = tern_optim_adamw_of(&first, 1, 0.01, NULL);
    tern_optim_set_option(o, tern_optim_add_param_group(o, &second, 1), "lr", 0.1);
    return o;
}

const test_model test_models[] = {
    {"linear", linear, {2, {4, 3}}, {2, {4, 1}}, 0, 0, sgd, TERN_DTYPE_DEFAULT, false},
    {"mlp", mlp, {2, {5, 6}}, {1, {5}}, 0, 4, adam, TERN_DTYPE_DEFAULT, false},
    {"mlp in two groups", mlp, {2, {5, 6}}, {1, {5}}, 0, 4, adamw, TERN_DTYPE_DEFAULT, false},
    {"mlp in bfloat16", mlp, {2, {5, 6}}, {1, {5}}, 0, 4, adam, TERN_BF16, false},
    {"mlp on two devices",
     two_devices,
     {2, {5, 6}},
     {1, {5}},
     0,
     4,
     adam,
     TERN_DTYPE_DEFAULT,
     true},
    {"lenet", lenet, {4, {2, 1, 8, 8}}, {1, {2}}, 0, 4, sgd, TERN_DTYPE_DEFAULT, false},
    {"gpt", gpt, {2, {2, 5}}, {1, {10}}, 11, 11, adam, TERN_DTYPE_DEFAULT, true},
    {"vit", vit, {4, {2, 1, 28, 28}}, {1, {2}}, 0, 4, adam, TERN_DTYPE_DEFAULT, true},
};
const int test_models_count = sizeof test_models / sizeof *test_models;

/* ---- training ---------------------------------------------------------------------------- */

static tern_tensor *data(tern_shape shape, int64_t classes)
{
    tern_tensor *x = tern_rand(shape, TERN_F32, NULL);
    if (classes)
        return tern_to_dtype(tern_mul_scalar(x, TERN_SCALAR((double)classes)), TERN_I64);
    return tern_sub_scalar(tern_mul_scalar(x, TERN_SCALAR(2.0)), TERN_SCALAR(1.0));
}

tern_status test_training_start(test_training *t, const test_model *model, const char *device)
{
    *t = (test_training){.model = model, .device = device};
    tern_manual_seed(11);
    TERN_DEVICE (device)
        TERN_SCOPE {
            t->m = model->make();
            t->x = tern_keep(data(model->input, model->ids));
            t->y = tern_keep(data(model->target, model->classes));
        }
    return tern_last_status();
}

static void drop_optimizer(test_training *t)
{
    tern_optim_free(t->optimizer);
    tern_amp_free(t->scaler);
    t->optimizer = NULL;
    t->scaler = NULL;
}

tern_status test_training_begin(test_training *t)
{
    drop_optimizer(t);
    t->optimizer = t->model->optimizer(t->m);
    if (t->model->amp != TERN_DTYPE_DEFAULT)
        t->scaler = tern_amp_grad_scaler(&(tern_grad_scaler_options){.init_scale = 128});
    return tern_last_status();
}

void test_training_end(test_training *t)
{
    drop_optimizer(t);
    tern_nn_free(t->m);
    tern_release(t->x);
    tern_release(t->y);
    *t = (test_training){0};
}

static tern_tensor *loss_of(test_training *t)
{
    bool failed = tern_last_status() != TERN_OK;
    tern_tensor *out = tern_nn_forward(t->m, t->x);
    t->is_odd = out && !failed && tern_last_status() != TERN_OK;
    return t->model->classes ? tern_cross_entropy(out, t->y, NULL) : tern_mse_loss(out, t->y, NULL);
}

tern_status test_training_step(test_training *t, double *value)
{
    *value = NAN;
    tern_manual_seed(5);
    TERN_SCOPE {
        tern_tensor *loss = NULL;
        tern_optim_zero_grad(t->optimizer);
        if (t->scaler)
            TERN_AUTOCAST (t->device, t->model->amp)
                loss = loss_of(t);
        else
            loss = loss_of(t);
        tern_backward(t->scaler ? tern_amp_scale(t->scaler, loss) : loss);
        if (t->model->clips)
            tern_nn_clip_grad_norm_(t->m, 0.5);
        *value = tern_item(loss);
        if (t->scaler) {
            tern_amp_step(t->scaler, t->optimizer);
            tern_amp_update(t->scaler);
        } else {
            tern_optim_step(t->optimizer);
        }
        tern_synchronize(t->device);
    }
    return tern_last_status();
}
