/* test_null_arrays.c -- NULL in place of an array with a count above 0 is an error of every function that takes one,
 * and no crash (null_arrays.def). */
#include "support.h"
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>

static sigjmp_buf before;

static void crashed(int signal)
{
    (void)signal;
    siglongjmp(before, 1);
}

static tern_status run(void *data, tern_tensor *const *in, int n, tern_tensor **out, int k)
{
    (void)data;
    for (int i = 0; i < k; i++)
        out[i] = i < n ? in[i] : NULL;
    return TERN_OK;
}

static int wrong;

static void look(const char *call)
{
    if (tern_last_status() != TERN_OK && tern_last_error()[0]) {
        tern_clear_error();
        return;
    }
    print_error("no error: %s\n", call);
    wrong++;
}

static void arrays_that_are_not_there_are_refused(void **state)
{
    (void)state;
    signal(SIGSEGV, crashed);
    tern_tensor *x = tern_ones(TERN_SHAPE(2, 2), TERN_F32, NULL), *list[] = {x, x}, *out[4];
    tern_tensor *flat = tern_ones(TERN_SHAPE(2), TERN_F32, NULL);
    tern_tensor *sequence = tern_ones(TERN_SHAPE(3, 2, 2), TERN_F32, NULL);
    tern_module *linear = tern_nn_linear(2, 2, NULL);
    tern_module *sequential =
        tern_nn_sequential(tern_nn_linear(2, 2, NULL), tern_nn_linear(2, 2, NULL));
    tern_optimizer *optimizer = tern_optim_sgd(linear, 0.1, NULL);
    tern_dataset *dataset = tern_data_tensor_dataset_of(list, 2), *parts[2];
    tern_packed_sequence packed;
    tern_rnn_result result;
    tern_shape shape = TERN_SHAPE(2);
#define ROW(...)                                                                                   \
    if (sigsetjmp(before, 1) == 0) {                                                               \
        (void)(__VA_ARGS__);                                                                       \
        look(#__VA_ARGS__);                                                                        \
    } else {                                                                                       \
        print_error("crashed: %s\n", #__VA_ARGS__);                                                \
        wrong++;                                                                                   \
    }
#include "null_arrays.def"
#undef ROW
    signal(SIGSEGV, SIG_DFL);
    tern_optim_free(optimizer);
    tern_dataset_free(dataset);
    tern_nn_free(linear);
    tern_nn_free(sequential);
    assert_int_equal(wrong, 0);
}

static const struct CMUnitTest tests[] = {TEST(arrays_that_are_not_there_are_refused)};
TEST_MAIN(tests)
