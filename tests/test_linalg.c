/* test_linalg.c -- matrices that can't be factored: the error tells where that became clear. */
#include "support.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef tern_tensor *(*factor)(tern_tensor *x);

static tern_tensor *cholesky(tern_tensor *x)
{
    return tern_linalg_cholesky(x, false);
}

static tern_tensor *cholesky_upper(tern_tensor *x)
{
    return tern_linalg_cholesky(x, true);
}

static tern_tensor *solve(tern_tensor *x)
{
    return tern_linalg_solve(x, tern_ones_like(x));
}

static tern_tensor *inverse(tern_tensor *x)
{
    return tern_linalg_inv(x);
}

/* Matrices with several steps that fail; `first` counts from 1. */
static const struct {
    factor f;
    double x[3][3];
    int first;
    const char *text;
} refused[] = {
    {cholesky, {{-1, 0, 0}, {0, -1, 0}, {0, 0, -1}}, 1, "the leading minor of order %d "},
    {cholesky, {{4, 2, 0}, {2, 1, 0}, {0, 0, -1}}, 2, "the leading minor of order %d "},
    {cholesky_upper, {{1, 0, 0}, {0, -2, 0}, {0, 0, -1}}, 2, "the leading minor of order %d "},
    {solve, {{0, 0, 0}, {0, 0, 0}, {0, 0, 0}}, 1, "diagonal element %d;"},
    {solve, {{1, 2, 3}, {2, 4, 6}, {3, 6, 9}}, 2, "diagonal element %d;"},
    {inverse, {{0, 1, 2}, {0, 3, 4}, {0, 0, 0}}, 1, "diagonal element %d;"},
};

static void the_first_step_that_fails_is_told(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    {
        for (size_t i = 0; i < (test_pocl_gpu_form(device) ? 3 : sizeof refused / sizeof *refused);
             i++)
            TERN_SCOPE {
                char text[64];
                tern_tensor *x = tern_from_data(refused[i].x, TERN_SHAPE(3, 3), TERN_F64, "cpu");
                refused[i].f(tern_to(tern_to_dtype(x, TERN_F32), device));
                tern_synchronize(device);
                snprintf(text, sizeof text, refused[i].text, refused[i].first);
                assert_error(TERN_ERR_ARGUMENT, text);
            }
    }
}

static const struct CMUnitTest tests[] = {
    TEST(the_first_step_that_fails_is_told),
};
TEST_MAIN(tests)
