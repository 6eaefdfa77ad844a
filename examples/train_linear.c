/* train_linear.c -- the smallest training loop: a line through noisy points.
 *
 *   train_linear opencl:0
 *
 * What to expect: y = 3.0 x - 1.0, and a loss of the variance of the noise, 0.01. */
#include <stdio.h>
#include <tern/report.h>
#include <tern/tern.h>
#include <tern/where.h> /* errors tell file and line of the calls below */

int main(int argc, char **argv)
{
    if (tern_set_default_device(argc > 1 ? argv[1] : "auto") != TERN_OK) {
        fprintf(stderr, "train_linear: %s\n", tern_last_error());
        return 1;
    }
    /* What fails from here on is a mistake of this program: print all of it, and stop. */
    tern_set_error_policy(TERN_ERRORS_ABORT, NULL, NULL);
    tern_manual_seed(0);

    tern_module *model = tern_nn_linear(1, 1, NULL);
    tern_module *criterion = tern_nn_mse_loss(NULL);
    tern_optimizer *optimizer = tern_optim_sgd(model, 0.1, NULL);
    tern_report *report =
        tern_report_new(NULL, &(tern_report_options){.steps = 50, .unit = "points"});

    TERN_SCOPE {
        /* y = 3 x - 1, give or take 0.1 */
        tern_tensor *x = tern_randn(TERN_SHAPE(100, 1), TERN_F32, NULL);
        tern_tensor *noise = tern_randn(TERN_SHAPE(100, 1), TERN_F32, NULL);
        tern_tensor *y = tern_sub_scalar(tern_mul_scalar(x, TERN_SCALAR(3)), TERN_SCALAR(1));
        y = tern_add(y, tern_mul_scalar(noise, TERN_SCALAR(0.1)));

        for (int step = 1; step <= 50; step++)
            TERN_SCOPE {
                tern_optim_zero_grad(optimizer);
                tern_tensor *loss = tern_nn_loss(criterion, tern_nn_forward(model, x), y);
                tern_backward(loss);
                tern_optim_step(optimizer);
                tern_report_value(report, "loss", step, tern_item(loss));
                tern_report_step(report, step, 100);
            }
        /* Least squares through the same points have no loss but that of the noise. */
        tern_report_compare(report, "loss", 0.01, "the variance of the noise");
        tern_report_close(report);
        printf("y = %.3f x + %.3f on %s, from points around y = 3 x - 1\n",
               tern_item(tern_nn_parameter(model, "weight")),
               tern_item(tern_nn_parameter(model, "bias")), tern_device(x));
    }

    tern_optim_free(optimizer);
    tern_nn_free(criterion);
    tern_nn_free(model);
    return 0;
}
