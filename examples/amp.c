/* amp.c -- training in mixed precision: matrix products in half, losses in float32, and gradients
 * scaled so that halves hold them.
 *
 *   ./amp [device] [f16 | bf16]
 *
 * What to expect: a loss below 0.001, near that of the same training in float32; f16's scale falls from 2^30 until nothing overflows. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <tern/report.h>
#include <tern/tern.h>
#include <tern/where.h> /* errors tell file and line of the calls below */

enum { STEPS = 60, ROWS = 512, INPUTS = 32, CLASSES = 4 };

/* Points around the corners of a cube, each row of labels its corner. */
static void make_data(tern_tensor **x, tern_tensor **y)
{
    tern_tensor *centres = tern_randn(TERN_SHAPE(CLASSES, INPUTS), TERN_F32, NULL);
    *y = tern_randint(0, CLASSES, TERN_SHAPE(ROWS), TERN_I64, NULL);
    *x = tern_add(tern_index_select(centres, 0, *y),
                  tern_randn(TERN_SHAPE(ROWS, INPUTS), TERN_F32, NULL));
}

static tern_tensor *loss_of(tern_module *model, tern_tensor *x, tern_tensor *y, tern_dtype half)
{
    tern_tensor *loss = NULL;
    TERN_AUTOCAST (NULL, half)
        loss = tern_cross_entropy(tern_nn_forward(model, x), y, NULL);
    return loss;
}

static tern_module *network(void)
{
    return tern_nn_sequential(tern_nn_linear(INPUTS, 64, NULL), tern_nn_gelu(NULL),
                              tern_nn_linear(64, CLASSES, NULL));
}

/* The same training in float32: its last loss. */
static double reference(tern_tensor *x, tern_tensor *y)
{
    tern_module *model = network();
    tern_optimizer *optimizer = tern_optim_adamw(model, 1e-2, NULL);
    double last = NAN;
    for (int step = 0; step < STEPS; step++)
        TERN_SCOPE {
            tern_tensor *loss = tern_cross_entropy(tern_nn_forward(model, x), y, NULL);
            tern_optim_zero_grad(optimizer);
            tern_backward(loss);
            tern_nn_clip_grad_norm_(model, 5);
            tern_optim_step(optimizer);
            last = tern_item(loss);
        }
    tern_optim_free(optimizer);
    tern_nn_free(model);
    return last;
}

static double train(tern_tensor *x, tern_tensor *y, tern_dtype half, tern_report *report)
{
    tern_module *model = network();
    tern_optimizer *optimizer = tern_optim_adamw(model, 1e-2, NULL);
    /* 2^30 is too much for f16: the first steps are skipped until the scale fits. */
    tern_scaler *scaler = tern_amp_grad_scaler(&(tern_grad_scaler_options){.init_scale = 0x1p30});
    double last = NAN;
    for (int step = 1; step <= STEPS; step++)
        TERN_SCOPE {
            tern_tensor *loss = loss_of(model, x, y, half);
            tern_optim_zero_grad(optimizer);
            tern_backward(tern_amp_scale(scaler, loss));
            tern_amp_unscale_(scaler, optimizer);
            tern_nn_clip_grad_norm_(model, 5);
            tern_amp_step(scaler, optimizer);
            tern_amp_update(scaler);
            tern_report_value(report, "loss", step, last = tern_item(loss));
            tern_report_value(report, "scale", step, tern_amp_get_scale(scaler));
            tern_report_step(report, step, ROWS);
        }
    tern_amp_free(scaler);
    tern_optim_free(optimizer);
    tern_nn_free(model);
    return last;
}

int main(int argc, char **argv)
{
    tern_dtype half = argc > 2 && strcmp(argv[2], "bf16") == 0 ? TERN_BF16 : TERN_F16;
    if (tern_set_default_device(argc > 1 ? argv[1] : "auto") != TERN_OK) {
        fprintf(stderr, "amp: %s\n", tern_last_error());
        return 1;
    }
    /* What fails from here on is a mistake of this program: print all of it, and stop. */
    tern_set_error_policy(TERN_ERRORS_ABORT, NULL, NULL);
    tern_manual_seed(1);
    printf("%s on %s: %s\n", tern_dtype_name(half), tern_default_device(), tern_device_name(NULL));

    double last = NAN;
    TERN_SCOPE {
        tern_tensor *x, *y;
        make_data(&x, &y);
        double whole = reference(x, y);
        tern_report *report =
            tern_report_new(NULL, &(tern_report_options){.steps = STEPS, .unit = "rows"});
        last = train(x, y, half, report);
        tern_report_compare(report, "loss", whole, "the same in float32");
        tern_report_close(report);
    }
    return last < 0.3 ? 0 : 2;
}
