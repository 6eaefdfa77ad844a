/* test_error.c -- the first error is kept, named, cleared and told to whom the policy says. */
#include "support.h"
#include "base/error.h"
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static void first_error_is_kept(void **state)
{
    (void)state;
    assert_int_equal(tern_fail(TERN_ERR_SHAPE, "cause %d", 1), TERN_ERR_SHAPE);
    assert_int_equal(tern_fail(TERN_ERR_IO, "echo"), TERN_ERR_IO);
    assert_null(tern_fail_null(TERN_ERR_MEMORY, "echo"));
    assert_int_equal(tern_last_status(), TERN_ERR_SHAPE);
    assert_string_equal(tern_last_error(), "cause 1");
    tern_clear_error();
    assert_int_equal(tern_last_status(), TERN_OK);
    assert_string_equal(tern_last_error(), "");
}

static void null_argument_is_named_unless_an_error_is_its_cause(void **state)
{
    (void)state;
    assert_int_equal(tern_fail_argument_null("tern_f", "x"), TERN_ERR_ARGUMENT);
    assert_error(TERN_ERR_ARGUMENT, "tern_f: x is NULL");
    tern_fail(TERN_ERR_DEVICE, "cause");
    assert_int_equal(tern_fail_argument_null("tern_f", "x"), TERN_ERR_DEVICE);
    assert_error(TERN_ERR_DEVICE, "cause");
}

static void null_passes_through_an_expression(void **state)
{
    (void)state;
    tern_tensor *bad = tern_zeros(TERN_SHAPE(-1), TERN_F32, NULL);
    assert_null(bad);
    assert_null(tern_exp(tern_add(bad, tern_mul(bad, bad))));
    assert_error(TERN_ERR_SHAPE, "tern_zeros: Trying to create tensor with negative dimension -1");
    assert_null(tern_exp(NULL));
    assert_error(TERN_ERR_ARGUMENT, "tern_exp: input 0 is NULL");
}

static void statuses_have_names(void **state)
{
    (void)state;
    static const char *const names[] = {"OK",          "ARGUMENT",    "SHAPE", "DTYPE",
                                        "DEVICE",      "MEMORY",      "STATE", "IO",
                                        "UNSUPPORTED", "DEVICE_LOST", "PEER"};
    for (int i = 0; i < 11; i++)
        assert_string_equal(tern_status_name((tern_status)i), names[i]);
    assert_string_equal(tern_status_name((tern_status)11), "?");
    assert_string_equal(tern_status_name((tern_status)-1), "?");
}

static void a_long_message_is_cut_not_overrun(void **state)
{
    (void)state;
    static char text[10000];
    memset(text, 'x', sizeof text - 1);
    tern_fail(TERN_ERR_IO, "%s", text);
    assert_in_range(strlen(tern_last_error()), 1000, 9998);
    tern_clear_error();
}

typedef struct seen {
    int calls;
    tern_status status;
    char message[64], operation[64];
} seen;

static void remember(const tern_error_info *error, void *user)
{
    seen *s = user;
    s->calls++;
    s->status = error->status;
    snprintf(s->message, sizeof s->message, "%s", error->message);
    snprintf(s->operation, sizeof s->operation, "%s", error->operation);
}

static void record(void)
{
    assert_ok(tern_set_error_policy(TERN_ERRORS_RECORD, NULL, NULL));
}

static void a_handler_hears_each_first_error(void **state)
{
    (void)state;
    seen s = {0};
    assert_ok(tern_set_error_policy(TERN_ERRORS_RECORD, remember, &s));
    tern_fail(TERN_ERR_DTYPE, "one");
    tern_fail(TERN_ERR_SHAPE, "its echo");
    assert_int_equal(s.calls, 1);
    assert_int_equal(s.status, TERN_ERR_DTYPE);
    assert_string_equal(s.message, "one");
    tern_clear_error();
    tern_fail(TERN_ERR_SHAPE, "two");
    assert_int_equal(s.calls, 2);
    record();
    tern_clear_error();
    tern_fail(TERN_ERR_SHAPE, "three");
    assert_int_equal(s.calls, 2);
    tern_clear_error();
}

static void with_call_a_handler_hears_every_failure(void **state)
{
    (void)state;
    seen s = {0};
    tern_tensor *x = tern_ones(TERN_SHAPE(2, 3), TERN_F32, NULL);
    assert_ok(tern_set_error_policy(TERN_ERRORS_CALL, remember, &s));
    assert_null(tern_matmul(x, x));
    assert_int_equal(s.calls, 1);
    assert_string_equal(s.operation, "matmul");
    assert_null(tern_exp(tern_matmul(x, x))); /* what NULL is passed on by is no failure */
    assert_int_equal(s.calls, 2);
    assert_null(tern_cat((tern_tensor *[]){x, x}, 2, 7));
    assert_int_equal(s.calls, 3);
    assert_string_equal(s.operation, "cat");
    assert_string_equal(s.message + 5,
                        "cat: Dimension out of range (expected to be in range of [-");
    record();
    assert_null(tern_matmul(x, x));
    assert_int_equal(s.calls, 3);
    assert_int_equal(tern_last_status(), TERN_ERR_SHAPE);
    assert_non_null(strstr(tern_last_error(), "tern_matmul: "));
    tern_clear_error();
    tern_scope_clear();
}

static void policies_are_checked(void **state)
{
    (void)state;
    seen s = {0};
    assert_int_equal(tern_set_error_policy(TERN_ERRORS_CALL, NULL, NULL), TERN_ERR_ARGUMENT);
    assert_error(TERN_ERR_ARGUMENT, "tern_set_error_policy: handler is NULL");
    assert_int_equal(tern_set_error_policy((tern_error_policy)4, remember, &s), TERN_ERR_ARGUMENT);
    assert_error(TERN_ERR_ARGUMENT, "tern_set_error_policy: policy 4 is none of tern_error_policy");
    tern_fail(TERN_ERR_SHAPE, "one");
    assert_int_equal(s.calls, 0);
    tern_clear_error();
}

/* What a child process prints that fails under TERN_ERRORS_ABORT; it must end by abort(). */
static void printed_by(void (*fails)(void), tern_error_handler handler, char *text, size_t bytes)
{
    FILE *file = tmpfile();
    assert_non_null(file);
    fflush(NULL);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        dup2(fileno(file), 2);
        signal(SIGABRT, SIG_DFL);
        setrlimit(RLIMIT_CORE, &(struct rlimit){0});
        tern_set_error_policy(TERN_ERRORS_ABORT, handler, NULL);
        fails();
        _exit(0);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
    rewind(file);
    text[fread(text, 1, bytes - 1, file)] = '\0';
    fclose(file);
}

static void fail_in_a_module(void)
{
    tern_module *m = tern_nn_sequential(tern_nn_relu(), tern_nn_linear(4, 4, NULL));
    tern_at("main.c", 12);
    tern_nn_forward(m, tern_ones(TERN_SHAPE(2, 3), TERN_F32, NULL));
}

static void fail_plainly(void)
{
    tern_fail(TERN_ERR_IO, "no such thing");
}

static void say(const tern_error_info *error, void *user)
{
    (void)user;
    fprintf(stderr, "heard %s\n", error->operation);
}

static void with_abort_all_of_it_is_printed_and_the_program_stops(void **state)
{
    (void)state;
    char text[1024];
    printed_by(fail_plainly, NULL, text, sizeof text);
    assert_string_equal(text, "tern: error: no such thing (IO)\n");
    printed_by(fail_in_a_module, say, text, sizeof text);
    assert_ptr_equal(strstr(text, "heard linear\ntern: error: tern_linear: "), text);
    assert_non_null(strstr(text, " (SHAPE)\n  operation: linear\n  module: 1 (Linear)\n"
                                 "  called at: main.c:12\n"));
}

static void *fail_elsewhere(void *result)
{
    *(bool *)result = tern_last_status() == TERN_OK;
    tern_fail(TERN_ERR_IO, "elsewhere");
    return NULL;
}

static void each_thread_has_its_own_error(void **state)
{
    (void)state;
    pthread_t thread;
    bool clean = false;
    tern_fail(TERN_ERR_STATE, "here");
    assert_int_equal(pthread_create(&thread, NULL, fail_elsewhere, &clean), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_true(clean);
    assert_error(TERN_ERR_STATE, "here");
}

static void fail_again(const tern_error_info *error, void *user)
{
    ++*(int *)user;
    tern_clear_error();
    tern_fail(error->status, "again: %s", error->message);
}

static void a_handler_that_fails_is_not_told(void **state)
{
    (void)state;
    int calls = 0;
    for (tern_error_policy policy = TERN_ERRORS_RECORD; policy <= TERN_ERRORS_CALL; policy++) {
        calls = 0;
        assert_ok(tern_set_error_policy(policy, fail_again, &calls));
        tern_fail(TERN_ERR_SHAPE, "cause");
        assert_int_equal(calls, 1);
        assert_error(TERN_ERR_SHAPE, "again: cause");
        tern_fail(TERN_ERR_SHAPE, "another");
        assert_int_equal(calls, 2);
        record();
        tern_clear_error();
    }
}

static const struct CMUnitTest tests[] = {
    TEST(a_handler_that_fails_is_not_told),
    TEST(first_error_is_kept),
    TEST(null_argument_is_named_unless_an_error_is_its_cause),
    TEST(null_passes_through_an_expression),
    TEST(statuses_have_names),
    TEST(a_long_message_is_cut_not_overrun),
    TEST(a_handler_hears_each_first_error),
    TEST(with_call_a_handler_hears_every_failure),
    TEST(policies_are_checked),
    TEST(with_abort_all_of_it_is_printed_and_the_program_stops),
    TEST(each_thread_has_its_own_error),
};
TEST_MAIN(tests)
