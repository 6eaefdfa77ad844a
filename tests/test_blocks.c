/* test_blocks.c -- leaving a block in any way restores what it set; scopes
 * release what they own. */
#include "support.h"

/* Each way out of a block is a case of one function, so that both are the same code for all. */
typedef enum way { FALL, RETURN, GOTO, CONTINUE, WAYS } way;

#define LEAVE(how)                                                                                 \
    if ((how) == RETURN)                                                                           \
        return;                                                                                    \
    if ((how) == GOTO)                                                                             \
        goto out;                                                                                  \
    if ((how) == CONTINUE)                                                                         \
    continue /* ends the block */

static void no_grad(way how)
{
    TERN_NO_GRAD {
        assert_false(tern_is_grad_enabled());
        TERN_ENABLE_GRAD
        {
            assert_true(tern_is_grad_enabled());
            LEAVE(how);
        }
        assert_false(tern_is_grad_enabled());
    }
out:
    return;
}

static void device(way how, const char *name)
{
    TERN_DEVICE (name) {
        assert_string_equal(tern_default_device(), name);
        TERN_DEVICE ("cpu") {
            assert_string_equal(tern_default_device(), "cpu");
            LEAVE(how);
        }
        assert_string_equal(tern_default_device(), name);
    }
out:
    return;
}

static void scope(way how)
{
    int64_t before = tern_live_tensors();
    TERN_SCOPE {
        tern_tensor *outer = tern_zeros(TERN_SHAPE(2), TERN_F32, NULL);
        assert_non_null(outer);
        TERN_SCOPE {
            tern_exp(outer);
            assert_int_equal(tern_live_tensors(), before + 2);
            LEAVE(how);
        }
        assert_int_equal(tern_live_tensors(), before + 1);
    }
out:
    return;
}

/* With the twins `break` and `continue` are the loop's. */
static int no_grad_here(way how)
{
    int turns = 0;
    for (; turns < 3; turns++) {
        TERN_NO_GRAD_HERE;
        assert_false(tern_is_grad_enabled());
        {
            TERN_ENABLE_GRAD_HERE;
            assert_true(tern_is_grad_enabled());
        }
        assert_false(tern_is_grad_enabled());
        if (how == RETURN)
            return turns;
        if (how == GOTO)
            break;
        if (how == CONTINUE)
            continue;
        assert_false(tern_is_grad_enabled());
    }
    assert_true(tern_is_grad_enabled());
    return turns;
}

static int everything_here(const char *name, int64_t live)
{
    int turns = 0;
    for (;; turns++) {
        TERN_SCOPE_HERE;
        TERN_DEVICE_HERE(name);
        TERN_DETECT_ANOMALY_HERE;
        TERN_ANOMALY_LABEL_HERE("here");
        TERN_AUTOCAST_HERE("cpu", TERN_BF16);
        TERN_GRAD_MODE_HERE(false);
        TERN_UNRECORDED_HERE;
        assert_int_equal(tern_live_tensors(), live);
        assert_non_null(tern_zeros(TERN_SHAPE(2), TERN_F32, NULL));
        assert_string_equal(tern_default_device(), name);
        assert_true(tern_is_anomaly_enabled());
        assert_int_equal(tern_get_autocast_dtype("cpu"), TERN_BF16);
        assert_false(tern_is_grad_enabled());
        if (turns < 2)
            continue;
        break;
    }
    return turns;
}

static void twins_hold_until_the_braces_end(void **state)
{
    (void)state;
    assert_int_equal(no_grad_here(FALL), 3);
    assert_int_equal(no_grad_here(RETURN), 0);
    assert_true(tern_is_grad_enabled());
    assert_int_equal(no_grad_here(GOTO), 0);
    assert_int_equal(no_grad_here(CONTINUE), 3);
    FOR_EACH_DEVICE(name)
    {
        int64_t live = tern_live_tensors();
        assert_int_equal(everything_here(name, live), 2);
        assert_int_equal(tern_live_tensors(), live);
        assert_string_equal(tern_default_device(), "cpu");
        assert_false(tern_is_anomaly_enabled());
        assert_int_equal(tern_get_autocast_dtype("cpu"), TERN_DTYPE_DEFAULT);
        assert_true(tern_is_grad_enabled());
    }
}

static void every_way_out_restores_grad_mode(void **state)
{
    (void)state;
    for (way how = FALL; how < WAYS; how++) {
        no_grad(how);
        assert_true(tern_is_grad_enabled());
    }
    TERN_GRAD_MODE(false)
    for (way how = FALL; how < WAYS; how++) {
        no_grad(how);
        assert_false(tern_is_grad_enabled());
    }
}

static void every_way_out_restores_the_device(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(name)
    for (way how = FALL; how < WAYS; how++) {
        device(how, name);
        assert_string_equal(tern_default_device(), "cpu");
    }
}

static void a_refused_device_changes_nothing(void **state)
{
    (void)state;
    int turns = 0;
    TERN_DEVICE ("gpu") {
        turns++;
        assert_string_equal(tern_default_device(), "cpu");
    }
    assert_int_equal(turns, 1);
    assert_error(TERN_ERR_DEVICE, "TERN_DEVICE: ");
    assert_string_equal(tern_default_device(), "cpu");
}

static void every_way_out_releases_the_scope(void **state)
{
    (void)state;
    int64_t before = tern_live_tensors();
    for (way how = FALL; how < WAYS; how++) {
        scope(how);
        assert_int_equal(tern_live_tensors(), before);
    }
}

static tern_tensor *helper(tern_tensor *x)
{
    TERN_SCOPE {
        tern_tensor *twice = tern_add(x, x);
        return tern_escape(tern_mul(twice, twice));
    }
    return NULL;
}

static void results_returned_from_scopes_do_not_pile_up(void **state)
{
    (void)state;
    int64_t before = tern_live_tensors();
    TERN_SCOPE {
        tern_tensor *x = tern_full(TERN_SHAPE(3), TERN_SCALAR(2.0), TERN_F32, NULL);
        tern_memory_stats first, last;
        for (int i = 0; i < 200; i++)
            TERN_SCOPE {
                tern_tensor *y = helper(helper(x));
                if (i == 0)
                    assert_values(y, 1024, 1024, 1024);
                assert_int_equal(tern_live_tensors(), before + 3); /* x, inner result, y */
                assert_ok(tern_memory_get_stats("cpu", i == 10 ? &first : &last));
            }
        assert_int_equal(first.allocated, last.allocated);
        assert_int_equal(first.reserved, last.reserved);
    }
    assert_int_equal(tern_live_tensors(), before);
}

static void escape_out_of_two_scopes(void **state)
{
    (void)state;
    int64_t before = tern_live_tensors();
    TERN_SCOPE {
        tern_tensor *kept = NULL;
        TERN_SCOPE {
            TERN_SCOPE {
                tern_zeros(TERN_SHAPE(1), TERN_F32, NULL);
                kept = tern_ones(TERN_SHAPE(1), TERN_F32, NULL);
                tern_zeros(TERN_SHAPE(1), TERN_F32, NULL);
                tern_escape(kept);
            }
            tern_escape(kept);
        }
        assert_int_equal(tern_live_tensors(), before + 1);
        assert_values(kept, 1);
    }
    assert_int_equal(tern_live_tensors(), before);
}

static void kept_tensors_outlive_their_scope(void **state)
{
    (void)state;
    tern_tensor *x = NULL;
    int64_t before = tern_live_tensors();
    TERN_SCOPE {
        x = tern_keep(tern_ones(TERN_SHAPE(2), TERN_F32, NULL));
    }
    assert_values(x, 1, 1);
    tern_release(x);
    tern_release(NULL);
    assert_null(tern_keep(NULL));
    tern_scope_clear();
    assert_int_equal(tern_live_tensors(), before);
}

static void clearing_the_root_scope_frees_what_no_scope_owns(void **state)
{
    (void)state;
    tern_scope_clear();
    int64_t before = tern_live_tensors();
    tern_zeros(TERN_SHAPE(2), TERN_F32, NULL);
    assert_int_equal(tern_live_tensors(), before + 1);
    tern_scope_clear();
    assert_int_equal(tern_live_tensors(), before);
}

static int depth_reached;

static void nest(int depth)
{
    TERN_SCOPE {
        depth_reached++;
        if (depth > 1)
            nest(depth - 1);
    }
}

static void too_many_scopes_are_an_error_not_a_crash(void **state)
{
    (void)state;
    nest(1500);
    assert_int_equal(depth_reached, 1500);
    assert_error(TERN_ERR_STATE, "TERN_SCOPE: more than");
    nest(1000);
    assert_no_error();
}

static const struct CMUnitTest tests[] = {
    TEST(twins_hold_until_the_braces_end),
    TEST(every_way_out_restores_grad_mode),
    TEST(every_way_out_restores_the_device),
    TEST(a_refused_device_changes_nothing),
    TEST(every_way_out_releases_the_scope),
    TEST(results_returned_from_scopes_do_not_pile_up),
    TEST(escape_out_of_two_scopes),
    TEST(kept_tensors_outlive_their_scope),
    TEST(clearing_the_root_scope_frees_what_no_scope_owns),
    TEST(too_many_scopes_are_an_error_not_a_crash),
};
TEST_MAIN(tests)
