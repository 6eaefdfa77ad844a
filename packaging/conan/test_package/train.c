/* train.c -- a linear layer learns y = 2 x + 1 on the cpu: the test of packages. */
#include <math.h>
#include <stdio.h>
#include <tern/tern.h>

int main(void)
{
    tern_set_error_policy(TERN_ERRORS_ABORT, NULL, NULL);
    tern_module *model = tern_nn_linear(1, 1, NULL);
    tern_optimizer *optimizer = tern_optim_sgd(model, 0.1, NULL);
    const float points[] = {-1, 0, 1, 2};
    double last = INFINITY;
    TERN_SCOPE {
        tern_tensor *x = tern_from_data(points, TERN_SHAPE(4, 1), TERN_F32, "cpu");
        tern_tensor *y = tern_add(tern_mul(x, 2.0), 1.0);
        for (int step = 0; step < 300; step++)
            TERN_SCOPE {
                tern_tensor *loss = tern_mse_loss(tern_nn_forward(model, x), y, NULL);
                tern_optim_zero_grad(optimizer);
                tern_backward(loss);
                tern_optim_step(optimizer);
                last = tern_item(loss);
            }
    }
    tern_optim_free(optimizer);
    tern_nn_free(model);
    printf("the loss is %.2g\n", last);
    return last < 1e-6 ? 0 : 1;
}
