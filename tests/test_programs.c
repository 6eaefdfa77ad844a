/* test_programs.c -- programs for devices: how many a training takes. Those are states of a process, so each is a child
 * that runs this program again. */
#include "rerun.h"

/* ---- scenarios: what a child prints ------------------------------------------------------ */

static void print_counts(const char *device)
{
    tern_memory_stats stats = {0};
    tern_memory_get_stats(device, &stats);
    printf("built %d loaded %d ", (int)stats.programs_built, (int)stats.programs_loaded);
}

static tern_module *model_of(void)
{
    return tern_nn_sequential(tern_nn_linear(8, 16, NULL), tern_nn_gelu(NULL),
                              tern_nn_layer_norm(TERN_SHAPE(16), NULL),
                              tern_nn_linear(16, 4, NULL));
}

/* A training step; how its programs came about. */
static int step(void)
{
    tern_set_default_device("opencl:0");
    tern_module *model = model_of();
    tern_optimizer *optimizer = tern_optim_adamw(model, 1e-3, NULL);
    tern_tensor *x = tern_randn(TERN_SHAPE(6, 8), TERN_F32, NULL);
    tern_tensor *y = tern_zeros(TERN_SHAPE(6), TERN_I64, NULL);
    tern_tensor *loss = tern_cross_entropy(tern_nn_forward(model, x), y, NULL);
    tern_backward(loss);
    tern_optim_step(optimizer);
    double value = tern_item(loss);
    tern_device_info info = {0};
    tern_device_get_info("opencl:0", &info);
    print_counts("opencl:0");
    printf("right %d on %s %s", value > 0.1 && value < 10, info.platform, tern_last_error());
    tern_optim_free(optimizer);
    tern_nn_free(model);
    return 0;
}

static const scenario scenarios[] = {{"step", step}};

/* ---- tests ------------------------------------------------------------------------------- */

static void kernels_of_a_training_come_together(void **state)
{
    (void)state;
    if (tern_device_count("opencl") == 0)
        skip();
    int built = 0, loaded = 0;
    const char *output = RUN("step", "TERN_OPENCL_FORM=cpu", NULL);
    assert_int_equal(sscanf(output, "built %d loaded %d", &built, &loaded), 2);
    assert_non_null(strstr(output, "right 1 "));
    if (!strstr(output, "Portable Computing Language"))
        skip(); /* others compile all that is in a program */
    if (built + loaded > 8)
        fail_msg("a step takes %d programs", built + loaded);
}

int main(int argc, char **argv)
{
    int done = rerun_scenario(argc, argv, scenarios, sizeof scenarios / sizeof *scenarios);
    if (done >= 0)
        return done;
    const struct CMUnitTest tests[] = {TEST(kernels_of_a_training_come_together)};
    done = cmocka_run_group_tests(tests, NULL, NULL);
    remove_folder();
    return done;
}
