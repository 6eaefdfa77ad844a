/* test_flush.c -- a driver is told to begin what was enqueued: counted by a driver that stands before
 * PoCL's (faults/shim.c). */
#include "support.h"
#include "faults/source.h"

static const char *device;

static unsigned long long calls(const char *name)
{
    for (int i = 0; i < driver.points(); i++)
        if (strcmp(driver.name(i), name) == 0)
            return driver.calls(i);
    return 0;
}

static void start_counting(void)
{
    assert_ok(tern_synchronize(device));
    driver.arm(NULL, 0, false, 0);
}

static void many_launches_are_begun_by_and_by(void **state)
{
    (void)state;
    TERN_SCOPE {
        tern_tensor *x = tern_ones(TERN_SHAPE(64), TERN_F32, device);
        tern_neg_(x);
        start_counting();
        for (int i = 0; i < 160; i++)
            tern_neg_(x);
        unsigned long long launched = calls("clEnqueueNDRangeKernel"), flushed = calls("clFlush");
        assert_int_equal(launched, 160);
        assert_true(flushed >= launched / 16 && flushed <= launched / 8 + 2);
    }
}

/* The first one at once, and the rest when the program turns to something else. */
static void what_a_scope_leaves_is_begun(void **state)
{
    (void)state;
    TERN_SCOPE {
        tern_tensor *x = tern_ones(TERN_SHAPE(64), TERN_F32, device);
        tern_neg_(x);
        start_counting();
        tern_neg_(x);
        assert_int_equal(calls("clFlush"), 1);
        TERN_SCOPE {
            tern_neg_(x);
            tern_neg_(x);
            assert_int_equal(calls("clFlush"), 1);
        }
        assert_int_equal(calls("clFlush"), 2);
        TERN_SCOPE {
        }
        assert_int_equal(calls("clFlush"), 2);
    }
}

int main(void)
{
    device = test_device(0);
    if (!load_driver() || !device || tern_device_count("opencl") == 0) {
        puts("SKIP: no OpenCL device behind the tests' driver");
        return 77;
    }
    const struct CMUnitTest tests[] = {TEST(many_launches_are_begun_by_and_by),
                                       TEST(what_a_scope_leaves_is_begun)};
    return test_main(tests, sizeof tests / sizeof *tests);
}
