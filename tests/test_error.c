/* test_error.c -- the first error is kept, named, cleared and handed to the hook. */
#include "support.h"
#include "base/error.h"
#include <pthread.h>

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
    static const char *const names[] = {"OK",          "ARGUMENT",   "SHAPE", "DTYPE",
                                        "DEVICE",      "MEMORY",     "STATE", "IO",
                                        "UNSUPPORTED", "DEVICE_LOST"};
    for (int i = 0; i < 10; i++)
        assert_string_equal(tern_status_name((tern_status)i), names[i]);
    assert_string_equal(tern_status_name((tern_status)10), "?");
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
    char message[64];
} seen;

static void remember(tern_status status, const char *message, void *user)
{
    seen *s = user;
    s->calls++;
    s->status = status;
    strncpy(s->message, message, sizeof s->message - 1);
}

static void hook_sees_each_first_error(void **state)
{
    (void)state;
    seen s = {0};
    tern_on_error(remember, &s);
    tern_fail(TERN_ERR_DTYPE, "one");
    tern_fail(TERN_ERR_SHAPE, "its echo");
    assert_int_equal(s.calls, 1);
    assert_int_equal(s.status, TERN_ERR_DTYPE);
    assert_string_equal(s.message, "one");
    tern_clear_error();
    tern_fail(TERN_ERR_SHAPE, "two");
    assert_int_equal(s.calls, 2);
    tern_on_error(NULL, NULL);
    tern_clear_error();
    tern_fail(TERN_ERR_SHAPE, "three");
    assert_int_equal(s.calls, 2);
    tern_clear_error();
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

static void fail_again(tern_status status, const char *message, void *user)
{
    ++*(int *)user;
    tern_clear_error();
    tern_fail(status, "again: %s", message);
}

static void a_hook_that_fails_is_not_told(void **state)
{
    (void)state;
    int calls = 0;
    tern_on_error(fail_again, &calls);
    tern_fail(TERN_ERR_SHAPE, "cause");
    assert_int_equal(calls, 1);
    tern_clear_error();
    tern_fail(TERN_ERR_SHAPE, "another");
    assert_int_equal(calls, 2);
    tern_on_error(NULL, NULL);
    tern_clear_error();
}

static const struct CMUnitTest tests[] = {
    TEST(a_hook_that_fails_is_not_told),
    TEST(first_error_is_kept),
    TEST(null_argument_is_named_unless_an_error_is_its_cause),
    TEST(null_passes_through_an_expression),
    TEST(statuses_have_names),
    TEST(a_long_message_is_cut_not_overrun),
    TEST(hook_sees_each_first_error),
    TEST(each_thread_has_its_own_error),
};
TEST_MAIN(tests)
