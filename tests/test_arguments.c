/* test_arguments.c -- arguments that are left out, or given as a plain value: the same as the long form. */
#include "support.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void correction_is_one_where_it_is_left_out(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    TERN_SCOPE {
        tern_tensor *x = tern_arange(0, 6, 1, TERN_F32, device);
        /* torch.arange(6.).std(), .var(), and with correction 0 */
        assert_float_equal(tern_item(tern_std(x)), 1.870828693, 1e-6);
        assert_float_equal(tern_item(tern_var(x)), 3.5, 1e-6);
        assert_float_equal(tern_item(tern_std(x, 0)), 1.707825128, 1e-6);
        assert_float_equal(tern_item(tern_var(tern_add(x, tern_std(x)), 0)), 35.0 / 12, 1e-5);
        tern_tensor *(*function)(tern_tensor *, double) = tern_std;
        assert_float_equal(tern_item(function(x, 0)), 1.707825128, 1e-6);
    }
}

static void train_is_true_where_it_is_left_out(void **state)
{
    (void)state;
    tern_module *m = tern_nn_dropout(0.5);
    assert_false(tern_nn_is_training(tern_nn_eval(m)));
    assert_true(tern_nn_is_training(tern_nn_train(m)));
    assert_false(tern_nn_is_training(tern_nn_train(m, false)));
    tern_module *(*function)(tern_module *, bool) = tern_nn_train;
    assert_true(tern_nn_is_training(function(m, true)));
    tern_nn_free(m);
}

static int calls;
static double count_calls(double p)
{
    calls++;
    return p;
}

/* The module prints its p; it is freed here. */
static void assert_prints(tern_module *module, const char *text)
{
    assert_non_null(module);
    char printed[256] = "";
    FILE *file = tmpfile();
    assert_non_null(file);
    fflush(stdout);
    const int out = dup(STDOUT_FILENO);
    assert_true(dup2(fileno(file), STDOUT_FILENO) >= 0);
    tern_nn_print(module);
    fflush(stdout);
    assert_true(dup2(out, STDOUT_FILENO) >= 0);
    close(out);
    rewind(file);
    assert_non_null(fgets(printed, sizeof printed, file));
    fclose(file);
    assert_non_null(strstr(printed, text));
    tern_nn_free(module);
}

static void dropout_takes_a_number_or_options(void **state)
{
    (void)state;
    assert_prints(tern_nn_dropout(0.25), "Dropout(p=0.25");
    assert_prints(tern_nn_dropout(0), "Dropout(p=0.0");
    assert_prints(tern_nn_dropout(0.5f), "Dropout(p=0.5");
    assert_prints(tern_nn_dropout(NULL), "Dropout(p=0.5");
    assert_prints(tern_nn_dropout(&(tern_dropout_options){.p = 0.125, .inplace = true}),
                  "p=0.125, inplace=True");
    assert_prints(tern_nn_dropout1d(TERN_DEFAULTS(dropout, .p = 0, .inplace = true)),
                  "Dropout1d(p=0.0, inplace=True");
    assert_prints(tern_nn_dropout2d(0.75), "Dropout2d(p=0.75");
    assert_prints(tern_nn_dropout3d(1), "Dropout3d(p=1.0");
    assert_prints(tern_nn_alpha_dropout(0.75), "AlphaDropout(p=0.75");
    assert_prints(tern_nn_feature_alpha_dropout(0.75), "FeatureAlphaDropout(p=0.75");
    assert_prints(tern_nn_dropout(count_calls(0.25)), "p=0.25");
    assert_int_equal(calls, 1);
    assert_null(tern_nn_dropout(1.5));
    assert_int_equal(tern_last_status(), TERN_ERR_ARGUMENT);
    tern_clear_error();
}

static void load_takes_a_device_or_options(void **state)
{
    (void)state;
    char path[] = "arguments-XXXXXX";
    const int file = mkstemp(path);
    assert_true(file >= 0);
    close(file);
    char named[64];
    snprintf(named, sizeof named, "%s.safetensors", path);
    tern_module *model = tern_nn_linear(2, 3, NULL);
    assert_int_equal(tern_nn_save(model, named, NULL), TERN_OK);
    FOR_EACH_DEVICE(device)
    {
        char array[32];
        snprintf(array, sizeof array, "%s", device);
        tern_state_dict *dicts[] = {
            tern_load(named, device), tern_load(named, array), tern_load(named, "cpu"),
            tern_load(named, NULL),
            tern_load(named, &(tern_load_options){.map_location = device, .prefix = "wei"})};
        const char *const devices[] = {device, device, "cpu", NULL, device};
        for (int i = 0; i < 5; i++) {
            assert_non_null(dicts[i]);
            tern_tensor *x = tern_state_dict_get(dicts[i], i < 4 ? "weight" : "ght");
            assert_non_null(x);
            if (devices[i])
                assert_string_equal(tern_device(x), tern_device_canonical(devices[i]));
            tern_state_dict_free(dicts[i]);
        }
    }
    tern_nn_free(model);
    unlink(named);
    unlink(path);
}

static const struct CMUnitTest tests[] = {
    TEST(correction_is_one_where_it_is_left_out),
    TEST(train_is_true_where_it_is_left_out),
    TEST(dropout_takes_a_number_or_options),
    TEST(load_takes_a_device_or_options),
};
TEST_MAIN(tests)
