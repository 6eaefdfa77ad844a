/* main.c -- trains a small network to separate the two arms of a spiral.
 *
 *   @NAME@ [DEVICE]     cpu, opencl:0, cuda:0 or auto (the default)
 *
 * Ends with 0 if it learned that, with 1 if it did not, with 77 if there is no such device. */
#include <math.h>
#include <stdio.h>
#include <tern/tern.h>

enum { POINTS = 400, STEPS = 400 };

/* Points of two arms, in turn, and the arm of each. */
static void make_points(float x[POINTS][2], int64_t arm[POINTS])
{
    for (int i = 0; i < POINTS; i++) {
        const float at = (float)(i / 2) / (POINTS / 2),
                    angle = 9 * at + 3.14159265f * (float)(i % 2);
        x[i][0] = at * cosf(angle);
        x[i][1] = at * sinf(angle);
        arm[i] = i % 2;
    }
}

static tern_module *model_new(void)
{
    return tern_nn_sequential(tern_nn_linear(2, 64, NULL), tern_nn_relu(), /* (N, 2) -> (N, 64) */
                              tern_nn_linear(64, 64, NULL), tern_nn_relu(),
                              tern_nn_linear(64, 2, NULL));
}

/* Trains on all points at once, and returns the share of them that is classified correctly. */
static double train(tern_module *model, tern_tensor *x, tern_tensor *arm)
{
    tern_optimizer *optimizer = tern_optim_adamw(model, 1e-2, NULL);
    for (int step = 1; step <= STEPS; step++)
        TERN_SCOPE { /* tensors that are made here are freed at its end */
            tern_optim_zero_grad(optimizer);
            tern_tensor *loss = tern_cross_entropy(tern_nn_forward(model, x), arm, NULL);
            tern_backward(loss);
            tern_optim_step(optimizer);
            if (step % 100 == 0)
                printf("step %d: loss %.4f\n", step, tern_item(loss));
        }
    tern_optim_free(optimizer);
    double right = 0;
    TERN_SCOPE {
        TERN_NO_GRAD_HERE;
        tern_tensor *answer = tern_argmax_dim(tern_nn_forward(model, x), 1, false);
        right = tern_item(tern_sum(tern_eq(answer, arm))) / POINTS;
    }
    return right;
}

int main(int argc, char **argv)
{
    static float x[POINTS][2];
    static int64_t arm[POINTS];
    const char *device = argc > 1 ? argv[1] : "auto";
    if (tern_set_default_device(device) != TERN_OK) {
        fprintf(stderr, "%s\n", tern_last_error());
        return 77;
    }
    tern_set_error_policy(TERN_ERRORS_ABORT, NULL, NULL); /* print what fails, and stop */
    tern_manual_seed(0);
    make_points(x, arm);
    tern_module *model = model_new();
    double right = 0;
    TERN_SCOPE {
        right = train(model, tern_from_data(x, TERN_SHAPE(POINTS, 2), TERN_F32, NULL),
                      tern_from_data(arm, TERN_SHAPE(POINTS), TERN_I64, NULL));
    }
    printf("%s: %.1f %% of the points are right\n", tern_default_device(), 100 * right);
    tern_nn_save(model, "model.safetensors", NULL);
    tern_nn_free(model);
    return right < 0.98;
}
