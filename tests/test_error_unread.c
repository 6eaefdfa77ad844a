/* test_error_unread.c -- errors that nobody asks for: when they are printed, and that no NaN is
 * printed with a sign. */
#include "rerun.h"
#include <math.h>
#include <pthread.h>

static tern_tensor *fail_quietly(void)
{
    tern_module *m = tern_nn_linear(4, 2, NULL);
    tern_tensor *y = tern_nn_forward(m, tern_ones(TERN_SHAPE(8, 5), TERN_F32, "cpu"));
    tern_nn_free(m);
    return y;
}

/* The mistake of a first program: a NULL that goes on and on. */
static int nobody_checks(void)
{
    TERN_SCOPE
        printf("loss %g\n", fabs(tern_item(tern_sum(fail_quietly()))));
    return 0;
}

static int asks_for_the_status(void)
{
    TERN_SCOPE
        fail_quietly();
    printf("%s\n", tern_status_name(tern_last_status()));
    return 0;
}

static int asks_for_all(void)
{
    tern_error_info error;
    TERN_SCOPE
        fail_quietly();
    tern_get_error(&error);
    return 0;
}

static int clears(void)
{
    TERN_SCOPE
        fail_quietly();
    tern_clear_error();
    TERN_SCOPE
        fail_quietly();
    tern_clear_error();
    return 0;
}

static void *in_thread(void *unused)
{
    TERN_SCOPE
        fail_quietly();
    return unused;
}

static int in_a_thread(void)
{
    pthread_t thread;
    if (pthread_create(&thread, NULL, in_thread, NULL) != 0 || pthread_join(thread, NULL) != 0)
        return 1;
    puts("joined");
    return 0;
}

static int asks_for_printing(void)
{
    tern_set_error_policy(TERN_ERRORS_PRINT, NULL, NULL);
    return nobody_checks();
}

static void hear(const tern_error_info *error, void *user)
{
    printf("heard %s%s\n", tern_status_name(error->status), (const char *)user);
}

static int has_a_handler(void)
{
    tern_set_error_policy(TERN_ERRORS_RECORD, hear, "");
    TERN_SCOPE
        fail_quietly();
    return 0;
}

static int asks_a_question(void)
{
    return tern_device_is_available("nonsense") ? 1 : 0;
}

static const scenario scenarios[] = {
    {"nobody", nobody_checks},  {"status", asks_for_the_status}, {"all", asks_for_all},
    {"clears", clears},         {"thread", in_a_thread},         {"prints", asks_for_printing},
    {"handler", has_a_handler}, {"question", asks_a_question},
};

static const char shape[] =
    "tern_linear: mat1 and mat2 shapes cannot be multiplied (8x5 and 4x2) (SHAPE)";

static int count(const char *text, const char *part)
{
    int n = 0;
    for (; (text = strstr(text, part)); text++)
        n++;
    return n;
}

/* How often the error is printed as it is recorded, at the end of a thread, and of the process.
 * TERN_WARN has rerun.h read stderr. */
static const struct {
    const char *scenario, *warn, *debug;
    int recorded, of_thread, of_process;
} cases[] = {
    {"nobody", "TERN_WARN=1", "TERN_DEBUG", 1, 0, 1},
    {"nobody", "TERN_WARN=0", "TERN_DEBUG", 0, 0, 0},
    {"nobody", "TERN_WARN=", "TERN_DEBUG", 0, 0, 0},
    {"nobody", "TERN_WARN=", "TERN_DEBUG=1", 1, 0, 1},
    {"nobody", "TERN_WARN=0", "TERN_DEBUG=1", 0, 0, 0},
    {"status", "TERN_WARN=1", "TERN_DEBUG", 1, 0, 0},
    {"all", "TERN_WARN=1", "TERN_DEBUG", 1, 0, 0},
    {"clears", "TERN_WARN=1", "TERN_DEBUG", 2, 0, 0},
    {"thread", "TERN_WARN=1", "TERN_DEBUG", 1, 1, 0},
    {"thread", "TERN_WARN=", "TERN_DEBUG", 0, 0, 0},
    {"prints", "TERN_WARN=", "TERN_DEBUG", 1, 0, 1},
    {"prints", "TERN_WARN=0", "TERN_DEBUG", 1, 0, 1},
    {"handler", "TERN_WARN=1", "TERN_DEBUG", 0, 0, 0},
    {"question", "TERN_WARN=1", "TERN_DEBUG", 0, 0, 0},
};

static void an_error_that_nobody_asks_for_is_printed(void **state)
{
    (void)state;
    char line[256];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *output = RUN(cases[i].scenario, cases[i].warn, cases[i].debug, "TERN_DEVICE");
        snprintf(line, sizeof line, "tern: error: %s", shape);
        bool right = count(output, line) == cases[i].recorded;
        snprintf(line, sizeof line, "tern: a thread ends with an error that nobody asked for: %s",
                 shape);
        right = right && count(output, line) == cases[i].of_thread;
        snprintf(line, sizeof line,
                 "tern: the program ends with an error that nobody asked for: %s", shape);
        right = right && count(output, line) == cases[i].of_process;
        right = right && count(output, "tern: ") ==
                             cases[i].recorded + cases[i].of_thread + cases[i].of_process;
        if (!right)
            fail_msg("%s, %s, %s: %s", cases[i].scenario, cases[i].warn, cases[i].debug, output);
    }
}

/* ---- NaN ----------------------------------------------------------------------------------- */

static void give_nan(int i, double nan)
{
    tern_tensor *x = tern_ones(TERN_SHAPE(4, 4), TERN_F32, NULL);
    tern_tensor *labels = tern_zeros(TERN_SHAPE(4), TERN_I64, NULL);
    const tern_cross_entropy_options smooth = {.label_smoothing = nan};
    const tern_smooth_l1_loss_options beta = {.beta = nan};
    switch (i) {
    case 0:
        tern_dropout(x, nan, true);
        break;
    case 1:
        tern_arange(nan, 1, 1, TERN_F32, NULL);
        break;
    case 2:
        tern_cross_entropy(x, labels, &smooth);
        break;
    case 3:
        tern_smooth_l1_loss(x, x, &beta);
        break;
    case 4:
        tern_bernoulli_(x, nan);
        break;
    case 5:
        tern_renorm(x, nan, 0, 1);
        break;
    case 6:
        tern_normal_(x, 0, nan);
        break;
    case 7:
        tern_uniform_(x, nan, 0);
        break;
    default:
        tern_fill_(tern_zeros(TERN_SHAPE(2), TERN_I32, NULL), nan);
        break;
    }
}

static void a_nan_is_printed_without_a_sign(void **state)
{
    (void)state;
    const double nan = copysign(NAN, -1);
    int failures = 0;
    for (int i = 0; i <= 8; i++) {
        TERN_SCOPE
            give_nan(i, nan);
        failures += tern_last_status() != TERN_OK && strstr(tern_last_error(), "nan");
        if (strstr(tern_last_error(), "-nan"))
            fail_msg("%s", tern_last_error());
        tern_clear_error();
    }
    assert_true(failures >= 5);
    TERN_SCOPE {
        const double values[] = {nan, 1, -nan};
        char *text = tern_to_text(tern_from_data(values, TERN_SHAPE(3), TERN_F64, NULL));
        assert_non_null(text);
        assert_non_null(strstr(text, "nan"));
        assert_null(strstr(text, "-nan"));
        tern_free_text(text);
        char number[32];
        const tern_dtype dtypes[] = {TERN_F32, TERN_F64, TERN_F16, TERN_BF16};
        for (int i = 0; i < 4; i++) {
            tern_tensor *x = tern_from_data(values, TERN_SHAPE(3), TERN_F64, NULL);
            tern_tensor *first = tern_select(tern_to_dtype(x, dtypes[i]), 0, 0);
            snprintf(number, sizeof number, "%g", tern_item(first)); /* a program's own print */
            assert_string_equal(number, "nan");
        }
    }
    tern_fail(TERN_ERR_ARGUMENT, "f: %g, (%g), no-nan, -nanotube, [%f]", nan, nan, nan);
    assert_string_equal(tern_last_error(), "f: nan, (nan), no-nan, -nanotube, [nan]");
    tern_clear_error();
}

int main(int argc, char **argv)
{
    int code = rerun_scenario(argc, argv, scenarios, sizeof scenarios / sizeof *scenarios);
    if (code >= 0)
        return code;
    const struct CMUnitTest tests[] = {
        TEST(an_error_that_nobody_asks_for_is_printed),
        TEST(a_nan_is_printed_without_a_sign),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    remove_folder();
    return failed;
}
