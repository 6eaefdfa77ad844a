/* test_inplace_leaf.c -- every function that writes into x refuses a leaf that requires grad, and leaves it as it was; what
 * does not depend on the elements of x has a gradient of zeros. inplace.def lists them all, or a test fails. */
#include "inplace.h"
#include <glob.h>
#include <stdio.h>
#include <string.h>

static void a_leaf_that_requires_grad_is_refused(void **state)
{
    (void)state;
    int wrong = 0;
    operands o = operands_of("cpu");
    for (int i = 0; i < N_ROWS; i++)
        TERN_SCOPE {
            tern_tensor *x = TENSOR("cpu", TERN_F32, TERN_SHAPE(2, 3), .1, .2, .3, .4, .5, .6);
            tern_requires_grad_(x, true);
            tern_tensor *done = rows[i].write(x, &o);
            bool right = !done && strstr(tern_last_error(), rows[i].says);
            if (!right) {
                print_error("%s_: %s\n", rows[i].name, done ? "was done" : tern_last_error());
                wrong++;
            }
            tern_clear_error();
            assert_values(x, .1, .2, .3, .4, .5, .6);
        }
    assert_int_equal(wrong, 0);
}

/* Names of headers that look like rows and are not. */
static bool another_kind(const char *name)
{
    static const char *const others[] = {"detach", "requires_grad", "set_data"};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (strcmp(name, others[i]) == 0)
            return true;
    return strncmp(name, "nn_", 3) == 0;
}

static bool listed(const char *name)
{
    for (int i = 0; i < N_ROWS; i++)
        if (strcmp(name, rows[i].name) == 0)
            return true;
    return false;
}

static void the_list_has_what_the_headers_have(void **state)
{
    (void)state;
    glob_t headers;
    int found = 0, missing = 0;
    assert_int_equal(glob(TEST_FOLDER "/../include/tern/*.h", 0, NULL, &headers), 0);
    assert_int_equal(glob(TEST_FOLDER "/../include/tern/*/*.h", GLOB_APPEND, NULL, &headers), 0);
    for (size_t i = 0; i < headers.gl_pathc; i++) {
        FILE *file = fopen(headers.gl_pathv[i], "r");
        char line[512], name[64];
        int end;
        assert_non_null(file);
        while (fgets(line, sizeof line, file)) {
            end = 0;
            if (sscanf(line, "TERN_API tern_tensor *tern_%60[a-z0-9_](tern_tensor *x%n", name,
                       &end) != 1 ||
                !end || name[strlen(name) - 1] != '_')
                continue;
            name[strlen(name) - 1] = '\0';
            if (another_kind(name))
                continue;
            found++;
            if (!listed(name)) {
                print_error("tern_%s_ is not in inplace.def\n", name);
                missing++;
            }
        }
        fclose(file);
    }
    globfree(&headers);
    assert_int_equal(missing, 0);
    assert_int_equal(found, N_ROWS);
}

/* Zeros, not none: weight decay and momentum are for those that have a gradient. */
static void what_does_not_read_x_has_zeros_as_gradient(void **state)
{
    (void)state;
    static const char *const names[] = {"bernoulli", "copy", "copy_non_blocking", "fill", "normal",
                                        "uniform",   "zero"};
    FOR_EACH_DEVICE(device)
    for (size_t n = 0; n < sizeof names / sizeof *names; n++)
        for (int rest = 0; rest <= 2; rest += 2) /* all of it is written, or one row */
            TERN_SCOPE {
                operands o = operands_of(device);
                tern_tensor *x = TENSOR(device, TERN_F32, TERN_SHAPE(2, 3), 1, 2, 3, 4, 5, 6);
                tern_requires_grad_(x, true);
                tern_tensor *twice = tern_mul_scalar(x, TERN_SCALAR(2)), *part = twice;
                if (rest) {
                    part = tern_select(twice, 0, 1);
                    o.y = tern_select(o.y, 0, 0);
                }
                for (int i = 0; i < N_ROWS; i++)
                    if (strcmp(rows[i].name, names[n]) == 0)
                        assert_ptr_equal(rows[i].write(part, &o), part);
                assert_ok(tern_backward(tern_sum(twice)));
                assert_values(tern_grad(x), rest, rest, rest, 0, 0, 0);
            }
}

static const struct CMUnitTest tests[] = {
    TEST(a_leaf_that_requires_grad_is_refused),
    TEST(the_list_has_what_the_headers_have),
    TEST(what_does_not_read_x_has_zeros_as_gradient),
};

TEST_MAIN(tests)
