/* program.c -- README's program in the plain form: functions and no macro but TERN_SHAPE. */
#include <tern/dist.h>
#include <tern/dlpack.h>
#include <tern/graph.h>
#include <tern/interop.h>
#include <tern/models.h>
#include <tern/names.h>
#include <tern/profiler.h>
#include <tern/report.h>
#include <tern/tern.h>

static void learn(tern_module *model, tern_optimizer *optimizer)
{
    static const float points[] = {0, 0, 0, 1, 1, 0, 1, 1}, answers[] = {0, 1, 1, 0};
    tern_scope_block all = tern_scope_enter();
    tern_tensor *x = tern_from_data(points, TERN_SHAPE(4, 2), TERN_F32, NULL);
    tern_tensor *y = tern_from_data(answers, TERN_SHAPE(4, 1), TERN_F32, NULL);
    for (int step = 0; step < 300; step++) {
        tern_scope_block turn = tern_scope_enter();
        tern_optim_zero_grad(optimizer);
        tern_backward(tern_mse_loss(tern_nn_forward(model, x), y, NULL));
        tern_optim_step(optimizer);
        tern_scope_leave(&turn);
    }
    tern_print(tern_gt_scalar(tern_nn_forward(model, x), tern_scalar_real(0.5)));
    tern_scope_leave(&all);
}

int main(void)
{
    tern_module *layers[] = {tern_nn_linear(2, 16, NULL), tern_nn_tanh(),
                             tern_nn_linear(16, 1, NULL)};
    tern_module *model = tern_nn_sequential_of(layers, 3);
    tern_optimizer *optimizer = tern_optim_adam(model, 0.05, NULL);
    tern_device_block device = tern_device_block_enter("auto");
    learn(model, optimizer);
    tern_device_block_leave(&device);
    tern_optim_free(optimizer);
    tern_nn_free(model);
    printf("%s\n", tern_last_error());
    return 0;
}
