/* test_where.c -- what errors tell: the operation, the module's path, file and line. */
#include "support.h"
#include <pthread.h>
#include <tern/where.h>

#define LINE_OF(call) ((call), __LINE__)

static tern_tensor *ones(int64_t rows, int64_t columns, const char *device)
{
    return tern_ones(TERN_SHAPE(rows, columns), TERN_F32, device);
}

/* The recorded error is that one. */
static void assert_where(const char *operation, const char *module, const char *type, int line)
{
    tern_error_info e = {0};
    assert_int_equal(tern_get_error(&e), tern_last_status());
    assert_int_not_equal(e.status, TERN_OK);
    assert_string_equal(e.message, tern_last_error());
    assert_string_equal(e.operation, operation);
    if (!module) {
        assert_null(e.module);
        assert_null(e.module_type);
    } else {
        assert_non_null(e.module);
        assert_string_equal(e.module, module);
        assert_string_equal(e.module_type, type);
    }
    assert_non_null(e.file);
    assert_non_null(strstr(e.file, "test_where.c"));
    assert_int_equal(e.line, line);
    tern_clear_error();
}

static void without_an_error_there_is_nothing(void **state)
{
    (void)state;
    tern_error_info e = {.line = 7, .file = "x"};
    assert_ok(tern_get_error(&e));
    assert_int_equal(e.status, TERN_OK);
    assert_string_equal(e.message, "");
    assert_string_equal(e.operation, "");
    assert_null(e.module);
    assert_null(e.module_type);
    assert_null(e.file);
    assert_int_equal(e.line, 0);
    assert_ok(tern_get_error(NULL));
}

static void operation_and_line_are_told(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    TERN_SCOPE {
        tern_tensor *x = ones(2, 3, device);
        int line = LINE_OF(tern_matmul(x, x));
        tern_exp(x); /* the first is kept */
        assert_where("matmul", NULL, NULL, line);
        line = LINE_OF(tern_add_(x, ones(4, 4, device)));
        assert_where("add_", NULL, NULL, line);
        line = LINE_OF(tern_nn_sequential(tern_nn_relu(), NULL));
        assert_where("nn_sequential", NULL, NULL, line);
        line = LINE_OF(tern_fail(TERN_ERR_IO, "neither here"));
        assert_where("", NULL, NULL, line);
    }
}

/* Each level is called "0", "1" of a Sequential; the failing one is at the path. */
static void nested_containers_are_a_path(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    TERN_SCOPE {
        tern_module *inner = tern_nn_sequential(tern_nn_relu(), tern_nn_linear(9, 2, NULL));
        tern_module *m = tern_nn_sequential(tern_nn_linear(4, 8, NULL),
                                            tern_nn_sequential(tern_nn_relu(), inner));
        tern_tensor *x = ones(2, 4, device);
        assert_non_null(tern_nn_to(m, device));
        int line = LINE_OF(tern_nn_forward(m, x));
        assert_where("linear", "1.1.1", "Linear", line);
        line = LINE_OF(tern_nn_forward(tern_nn_child(m, "1"), x));
        assert_where("linear", "1.1", "Linear", line); /* from the one that was called */
        line = LINE_OF(tern_nn_forward(tern_nn_child(inner, "1"), x));
        assert_where("linear", "", "Linear", line);
        line = LINE_OF(tern_matmul(x, x));
        assert_where("matmul", NULL, NULL, line); /* none runs any more */
        tern_nn_free(m);
    }
}

/* ---- modules of one's own ---------------------------------------------------------------- */

static _Thread_local int line_inside;

static tern_tensor *run_blocks(tern_module *self, tern_tensor *x)
{
    tern_module *blocks = tern_nn_child(self, "blocks");
    for (int i = 0; i < 2 && x; i++)
        x = tern_nn_forward(tern_nn_child(blocks, i ? "1" : "0"), x);
    return x;
}

static tern_tensor *run_mlp(tern_module *self, tern_tensor *x)
{
    line_inside = LINE_OF(x = tern_nn_forward(tern_nn_child(self, "mlp"), tern_relu(x)));
    return x;
}

static tern_module *block(int in)
{
    tern_module *m = tern_nn_module("Block", run_mlp, NULL);
    tern_nn_add(m, "mlp", tern_nn_sequential(tern_nn_relu(), tern_nn_linear(in, 4, NULL)));
    return m;
}

static tern_tensor *fails_itself(tern_module *self, tern_tensor *x)
{
    (void)self;
    line_inside = LINE_OF(x = tern_matmul(x, x));
    return x;
}

static tern_tensor *gives_nothing(tern_module *self, tern_tensor *x)
{
    (void)self;
    tern_exp(x);
    return NULL;
}

static tern_tensor *run_stranger(tern_module *self, tern_tensor *x)
{
    line_inside = LINE_OF(x = tern_nn_forward(tern_nn_data(self), x));
    return x;
}

static void own_modules_are_told_with_the_line_inside(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    TERN_SCOPE {
        tern_module *m = tern_nn_module("Model", run_blocks, NULL);
        tern_nn_add(m, "blocks", tern_nn_module_list(block(4), block(5)));
        tern_nn_to(m, device);
        tern_tensor *x = ones(2, 4, device);
        assert_null(tern_nn_forward(m, x));
        assert_where("linear", "blocks.1.mlp.1", "Linear", line_inside);
        tern_nn_free(m);

        m = tern_nn_sequential(tern_nn_relu(), tern_nn_module("Mine", fails_itself, NULL));
        assert_null(tern_nn_forward(m, x));
        assert_where("matmul", "1", "Mine", line_inside);
        tern_nn_free(m);
    }
}

/* What a call does not know: one that is not compiled with the macros tells no line. */
static void a_call_without_the_macros_tells_no_line(void **state)
{
    (void)state;
    TERN_SCOPE {
        tern_tensor *(*matmul)(tern_tensor *, tern_tensor *) = tern_matmul;
        tern_tensor *x = ones(2, 3, "cpu");
        tern_error_info e;
        assert_null(matmul(x, x));
        tern_get_error(&e);
        assert_null(e.file);
        assert_int_equal(e.line, 0);
        tern_clear_error();
        tern_at("lua", 3);
        assert_null(matmul(x, x));
        tern_get_error(&e);
        assert_string_equal(e.file, "lua");
        assert_int_equal(e.line, 3);
        tern_at(NULL, 0);
        tern_clear_error();
    }
}

/* After code of the program's ran inside of a call, what fails is told with the line of that call. */
static void the_line_is_that_of_the_call_that_goes_on(void **state)
{
    (void)state;
    TERN_SCOPE {
        tern_tensor *x = ones(2, 4, "cpu");
        tern_module *m = tern_nn_sequential(block(4), tern_nn_linear(9, 1, NULL));
        int line = LINE_OF(tern_nn_forward(m, x));
        assert_where("linear", "1", "Linear", line);
        tern_nn_free(m);
        m = tern_nn_sequential(tern_nn_module("Empty", gives_nothing, NULL));
        line = LINE_OF(tern_nn_forward(m, x));
        assert_int_equal(tern_last_status(), TERN_ERR_ARGUMENT);
        assert_where("nn_call", "0", "Empty", line);
        tern_nn_free(m);
    }
}

static void a_module_that_is_not_below_is_told_by_its_type(void **state)
{
    (void)state;
    TERN_SCOPE {
        tern_tensor *x = ones(2, 4, "cpu");
        tern_module *other = tern_nn_sequential(tern_nn_relu(), tern_nn_linear(9, 1, NULL));
        tern_module *m = tern_nn_module("Model", run_stranger, other);
        assert_null(tern_nn_forward(m, x));
        assert_where("linear", "Sequential.1", "Linear", line_inside);
        tern_nn_free(m);
        tern_nn_free(other);
    }
}

static tern_tensor *run_itself(tern_module *self, tern_tensor *x)
{
    return fails_itself(self, x);
}

static void long_paths_are_cut_at_their_beginning(void **state)
{
    (void)state;
    TERN_SCOPE {
        tern_module *m = tern_nn_module("Last", run_itself, NULL);
        for (int i = 0; i < 400; i++)
            m = tern_nn_sequential(m);
        assert_null(tern_nn_forward(m, ones(2, 4, "cpu")));
        tern_error_info e;
        tern_get_error(&e);
        assert_string_equal(e.module_type, "Last");
        assert_in_range(strlen(e.module), 100, 799);
        assert_string_equal(e.module + strlen(e.module) - 5, "0.0.0");
        tern_clear_error();
        tern_nn_free(m);
    }
}

/* ---- backward ---------------------------------------------------------------------------- */

/* Writes into what the gradient of the square needs. */
static tern_tensor *spoil(tern_module *self, tern_tensor *x)
{
    (void)self;
    tern_tensor *y = tern_exp(x), *z = tern_square(y);
    tern_add_scalar_(y, TERN_SCALAR(1));
    return z;
}

static void backward_tells_the_operation_and_the_module_of_the_forward(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    TERN_SCOPE {
        tern_module *m = tern_nn_sequential(
            tern_nn_linear(4, 4, NULL), tern_nn_sequential(tern_nn_module("Spoil", spoil, NULL)));
        tern_nn_to(m, device);
        tern_tensor *loss = tern_sum(tern_nn_forward(m, ones(2, 4, device)));
        int line = LINE_OF(tern_backward(loss));
        tern_error_info e;
        assert_int_equal(tern_get_error(&e), TERN_ERR_STATE);
        assert_true(e.backward);
        assert_where("square", "1.0", "Spoil", line);

        loss = tern_sum(tern_nn_forward(m, ones(2, 4, device)));
        tern_nn_free(m); /* nothing is told of a module that is gone */
        line = LINE_OF(tern_backward(loss));
        assert_where("square", NULL, NULL, line);

        tern_tensor *x = tern_requires_grad_(ones(2, 4, device), true);
        loss = tern_sum(spoil(NULL, x));
        line = LINE_OF(tern_backward(loss));
        assert_where("square", NULL, NULL, line);
        line = LINE_OF(tern_matmul(x, x));
        tern_get_error(&e);
        assert_false(e.backward);
        assert_where("matmul", NULL, NULL, line);
    }
}

static tern_status run_module(void *data, tern_tensor *const *in, int n, tern_tensor **out, int k)
{
    (void)n;
    (void)k;
    out[0] = tern_nn_forward(data, in[0]);
    return out[0] ? TERN_OK : tern_last_status();
}

static bool narrow_now;

static tern_tensor *fails_again(tern_module *self, tern_tensor *x)
{
    (void)self;
    line_inside = LINE_OF(x = narrow_now ? tern_matmul(x, ones(7, 7, tern_device(x))) : x);
    return x;
}

static void a_checkpoint_tells_the_module_that_runs_again(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    TERN_SCOPE {
        tern_module *m =
            tern_nn_sequential(tern_nn_relu(), tern_nn_module("Again", fails_again, NULL));
        tern_tensor *x = tern_requires_grad_(ones(2, 4, device), true), *y;
        narrow_now = false;
        assert_ok(tern_checkpoint(run_module, m, &x, 1, &y, 1, NULL));
        narrow_now = true;
        assert_int_equal(tern_backward(tern_sum(y)), TERN_ERR_SHAPE);
        tern_error_info e;
        tern_get_error(&e);
        assert_false(e.backward);
        assert_where("matmul", "1", "Again", line_inside);
        tern_nn_free(m);
    }
}

/* ---- policies, threads, warnings --------------------------------------------------------- */

static void count_and_note(const tern_error_info *error, void *user)
{
    int *lines = user;
    assert_string_equal(error->operation, "matmul");
    lines[++lines[0]] = error->line;
}

static void every_failure_has_its_line(void **state)
{
    (void)state;
    TERN_SCOPE {
        int lines[8] = {0};
        tern_tensor *x = ones(2, 3, "cpu");
        assert_ok(tern_set_error_policy(TERN_ERRORS_CALL, count_and_note, lines));
        int first = LINE_OF(tern_matmul(x, x));
        int second = LINE_OF(tern_matmul(x, x));
        assert_ok(tern_set_error_policy(TERN_ERRORS_RECORD, NULL, NULL));
        assert_int_equal(lines[0], 2);
        assert_int_equal(lines[1], first);
        assert_int_equal(lines[2], second);
        assert_where("matmul", NULL, NULL, first);
    }
}

static void count_failures(const tern_error_info *error, void *user)
{
    int *failures = user;
    failures[error->status == TERN_ERR_SHAPE]++;
}

/* A module that fails is one failure, however deep it is. */
static void what_only_passes_a_failure_on_is_not_told(void **state)
{
    (void)state;
    TERN_SCOPE {
        int failures[2] = {0};
        tern_module *m = tern_nn_sequential(tern_nn_sequential(block(9)), tern_nn_relu());
        assert_ok(tern_set_error_policy(TERN_ERRORS_CALL, count_failures, failures));
        assert_null(tern_nn_forward(m, ones(2, 4, "cpu")));
        assert_ok(tern_set_error_policy(TERN_ERRORS_RECORD, NULL, NULL));
        assert_int_equal(failures[0], 0);
        assert_int_equal(failures[1], 1);
        tern_clear_error();
        tern_nn_free(m);
    }
}

static void *fail_elsewhere(void *data)
{
    bool right = true;
    for (int i = 0; i < 50; i++)
        TERN_SCOPE {
            tern_module *m = tern_nn_sequential(tern_nn_linear(4, 8, NULL), block(9));
            int line = LINE_OF(tern_nn_forward(m, ones(2, 4, "cpu")));
            tern_error_info e;
            tern_get_error(&e);
            right = right && e.module && strcmp(e.module, "1.mlp.1") == 0 && e.line != line;
            tern_clear_error();
            tern_nn_free(m);
        }
    *(bool *)data = right;
    return NULL;
}

static void threads_have_records_of_their_own(void **state)
{
    (void)state;
    pthread_t thread[4];
    bool right[4] = {false};
    TERN_SCOPE {
        tern_tensor *x = ones(2, 3, "cpu");
        int line = LINE_OF(tern_matmul(x, x));
        for (int i = 0; i < 4; i++)
            assert_int_equal(pthread_create(&thread[i], NULL, fail_elsewhere, &right[i]), 0);
        for (int i = 0; i < 4; i++)
            assert_int_equal(pthread_join(thread[i], NULL), 0);
        for (int i = 0; i < 4; i++)
            assert_true(right[i]);
        assert_where("matmul", NULL, NULL, line);
    }
}

static void count_lines(const char *kind, const char *text, void *user)
{
    (void)kind;
    assert_non_null(strstr(text, "test_where.c:"));
    ++*(int *)user;
}

static void a_warning_is_told_once_for_each_line(void **state)
{
    (void)state;
    TERN_SCOPE {
        int count = 0;
        tern_tensor *x = ones(2, 4, "cpu"), *y = ones(2, 1, "cpu");
        tern_on_warning(count_lines, &count);
        for (int i = 0; i < 3; i++) {
            tern_mse_loss(x, y, NULL);
            tern_mse_loss(x, y, NULL);
        }
        assert_int_equal(count, 2);
        tern_on_warning(NULL, NULL);
    }
}

/* ---- the macros -------------------------------------------------------------------------- */

static void names_are_still_functions(void **state)
{
    (void)state;
    tern_tensor *(*exp_of)(tern_tensor *) = tern_exp;
    tern_tensor *(*log_of)(tern_tensor *) = &tern_log;
    TERN_SCOPE {
        tern_tensor *x = log_of(exp_of(ones(1, 2, "cpu")));
        assert_values(x, 1, 1);
        assert_values((tern_add)(x, x), 2, 2);
        assert_values(tern_add(tern_mul(x, x), tern_mul(tern_mul(x, x), x)), 2, 2);
    }
    assert_no_error();
}

static const struct CMUnitTest tests[] = {
    TEST(without_an_error_there_is_nothing),
    TEST(operation_and_line_are_told),
    TEST(nested_containers_are_a_path),
    TEST(own_modules_are_told_with_the_line_inside),
    TEST(a_call_without_the_macros_tells_no_line),
    TEST(the_line_is_that_of_the_call_that_goes_on),
    TEST(a_module_that_is_not_below_is_told_by_its_type),
    TEST(long_paths_are_cut_at_their_beginning),
    TEST(backward_tells_the_operation_and_the_module_of_the_forward),
    TEST(a_checkpoint_tells_the_module_that_runs_again),
    TEST(every_failure_has_its_line),
    TEST(what_only_passes_a_failure_on_is_not_told),
    TEST(threads_have_records_of_their_own),
    TEST(a_warning_is_told_once_for_each_line),
    TEST(names_are_still_functions),
};
TEST_MAIN(tests)
