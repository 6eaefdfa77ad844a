/* plugin.c -- a module of a program that uses tern. */
#include <tern/tern.h>

void use_tern(void);
__attribute__((visibility("default"))) void use_tern(void)
{
    tern_zeros(TERN_SHAPE(3), TERN_F32, "cpu");
}

/* A step of a training; 0, or 1 after an error. */
int train_on(const char *device);
__attribute__((visibility("default"))) int train_on(const char *device)
{
    TERN_SCOPE {
        tern_set_default_device(device);
        tern_module *model = tern_nn_sequential(tern_nn_linear(8, 16, NULL), tern_nn_gelu(NULL),
                                                tern_nn_linear(16, 4, NULL));
        tern_optimizer *optimizer = tern_optim_adam(model, 0.01, NULL);
        tern_tensor *x = tern_randn(TERN_SHAPE(32, 8), TERN_F32, NULL);
        tern_backward(tern_mean(tern_nn_forward(model, x)));
        tern_optim_step(optimizer);
        tern_synchronize(NULL);
        tern_optim_free(optimizer);
        tern_nn_free(model);
    }
    return tern_last_status() != TERN_OK;
}
