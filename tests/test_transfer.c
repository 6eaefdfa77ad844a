/* test_transfer.c -- the memory under tensors (storage.h): emptied and refilled, copied by bytes and as tensors to and
 * from devices without waiting. */
#include "support.h"
#include "tensor/storage.h"
#ifdef TERN_WITH_OPENCL
#include "device/device.h"
#include "device/opencl/opencl.h"
#include <dlfcn.h>
#include <time.h>
#endif

#define SHAPE TERN_SHAPE

static void tensors_go_to_a_device_and_back(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    TERN_SCOPE {
        tern_tensor *x = tern_arange(0, 5000, 1, TERN_F32, "cpu");
        tern_transfer *there = tern_transfer_begin(x, device);
        assert_non_null(there);
        if (strcmp(device, "cpu") != 0)
            tern_zero_(x); /* it was copied to staging memory */
        tern_tensor *y = tern_transfer_take(there);
        assert_string_equal(tern_device(y), tern_device_canonical(device));
        tern_tensor *z = tern_add(y, y);
        tern_transfer *back = tern_transfer_begin(z, "cpu");
        tern_tensor *host = tern_transfer_take(back);
        assert_true(tern_transfer_take(tern_transfer_begin(z, device)) != NULL);
        if (strcmp(device, "cpu") != 0)
            assert_true(((float *)tern_data(host))[4999] == 9998);
        /* strides, halves, nothing */
        tern_tensor *grid = tern_view(tern_arange(0, 24, 1, TERN_F16, "cpu"), SHAPE(4, 6));
        tern_tensor *turned = tern_transpose(grid, 0, 1);
        tern_tensor *moved = tern_transfer_take(tern_transfer_begin(turned, device));
        assert_same(moved, tern_to(turned, device));
        tern_tensor *again =
            tern_transfer_take(tern_transfer_begin(tern_transpose(moved, 0, 1), "cpu"));
        assert_same(again, grid);
        tern_tensor *none = tern_zeros(SHAPE(0, 3), TERN_I64, "cpu");
        assert_int_equal(tern_numel(tern_transfer_take(tern_transfer_begin(none, device))), 0);
    }
}

/* As a loader does: batches ahead of a loop, each used and dropped; memory is used again, and no batch is another's. */
static void batches_ahead_are_each_their_own(void **state)
{
    enum { BATCHES = 40, AHEAD = 3, N = 3000 };
    (void)state;
    FOR_EACH_DEVICE(device)
    {
        tern_transfer *under_way[AHEAD];
        tern_memory_stats before = {0}, after = {0};
        int64_t live = tern_live_tensors();
        tern_tensor *sum = NULL;
        TERN_SCOPE {
            sum = tern_keep(tern_zeros(SHAPE(N), TERN_F32, device));
        }
        for (int i = 0; i < BATCHES + AHEAD; i++) {
            tern_tensor *y = NULL;
            TERN_SCOPE {
                if (i >= AHEAD) {
                    y = tern_transfer_take(under_way[i % AHEAD]);
                    assert_non_null(y);
                    tern_add_(sum, tern_mul(y, y));
                    tern_sub_(sum, y);
                }
                if (i < BATCHES) { /* collated right into staging memory */
                    tern_tensor *x = tern_staged_empty(SHAPE(N), TERN_F32, device);
                    float *values = tern_data(x);
                    for (int j = 0; j < N; j++)
                        values[j] = (float)i;
                    under_way[i % AHEAD] = tern_transfer_begin(x, device);
                    assert_non_null(under_way[i % AHEAD]);
                }
            }
            if (i % 8 == 7)
                TERN_SCOPE /* now and then the loop looks at a number */
                    assert_true(tern_item(tern_select(sum, 0, 5)) >= 0);
            if (i == 20)
                assert_ok(tern_memory_get_stats(device, &before));
        }
        double wanted = 0;
        for (int i = 0; i < BATCHES; i++)
            wanted += (double)i * i - i;
        TERN_SCOPE
            assert_true(tern_item(tern_max(sum)) == wanted && tern_item(tern_min(sum)) == wanted);
        assert_ok(tern_memory_get_stats(device, &after));
        if (strcmp(device, "cpu") != 0)
            assert_true(after.driver_calls - before.driver_calls <= 2);
        tern_release(sum);
        assert_int_equal(tern_live_tensors(), live);
    }
}

static void what_is_left_leaves_nothing(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    {
        int64_t live = tern_live_tensors();
        TERN_SCOPE {
            tern_tensor *x = tern_ones(SHAPE(999), TERN_F32, "cpu"), *y = tern_to(x, device);
            tern_transfer_free(tern_transfer_begin(x, device));
            tern_transfer *back = tern_transfer_begin(y, "cpu");
            tern_transfer_free(back);
            tern_transfer_free(NULL);
            assert_null(tern_transfer_begin(NULL, device));
            assert_error(TERN_ERR_ARGUMENT, "tern_transfer_begin");
            assert_null(tern_transfer_begin(x, "nothing:1"));
            assert_error(TERN_ERR_DEVICE, "");
        }
        assert_int_equal(tern_live_tensors(), live);
        assert_ok(tern_empty_cache(device));
    }
}

static void a_tensor_written_while_it_was_read_is_told(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    TERN_SCOPE {
        if (strcmp(device, "cpu") == 0)
            continue;
        tern_tensor *x = tern_ones(SHAPE(64), TERN_F32, device);
        tern_transfer *t = tern_transfer_begin(x, "cpu");
        tern_zero_(x);
        assert_null(tern_transfer_take(t));
        assert_error(TERN_ERR_STATE, "was written in place while it was read");
        t = tern_transfer_begin(tern_clone(x), "cpu");
        tern_fill_(x, TERN_SCALAR(3));
        assert_values(tern_narrow(tern_transfer_take(t), 0, 0, 2), 0, 0);
    }
}

static void stages_carry_bytes_both_ways(void **state)
{
    enum { PIECE = 4096, N = 10000 };
    (void)state;
    FOR_EACH_DEVICE(device)
    TERN_SCOPE {
        tern_tensor *x = tern_empty(SHAPE(N), TERN_I32, device);
        tern_stage *stages[2] = {tern_stage_new(device, PIECE), tern_stage_new(device, PIECE)};
        const size_t all = N * sizeof(int32_t);
        for (size_t at = 0, turn = 0; at < all; at += PIECE, turn++) {
            tern_stage *stage = stages[turn % 2];
            size_t bytes = all - at < PIECE ? all - at : PIECE;
            assert_ok(tern_stage_wait(stage));
            for (size_t i = 0; i < bytes / 4; i++)
                ((int32_t *)tern_stage_memory(stage))[i] = (int32_t)(at / 4 + i);
            assert_ok(tern_stage_write(stage, 0, x, at, bytes));
        }
        assert_ok(tern_stage_wait(stages[0]));
        assert_ok(tern_stage_wait(stages[1]));
        assert_same(x, tern_arange(0, N, 1, TERN_I32, device));
        tern_tensor *y = tern_add(x, x);
        assert_ok(tern_stage_read(stages[0], 8, y, 400, 16));
        assert_ok(tern_stage_wait(stages[0]));
        assert_int_equal(((int32_t *)tern_stage_memory(stages[0]))[3], 202);
        assert_int_equal(tern_stage_write(stages[0], PIECE - 4, x, 0, 8), TERN_ERR_ARGUMENT);
        assert_error(TERN_ERR_ARGUMENT, "the stage has 4096 bytes");
        assert_int_equal(tern_stage_write(stages[0], 0, x, all - 4, 8), TERN_ERR_ARGUMENT);
        assert_error(TERN_ERR_ARGUMENT, "x has 40000 bytes");
        tern_stage_free(stages[0]);
        tern_stage_free(stages[1]);
        int32_t few[2] = {7, 8};
        assert_ok(tern_storage_write(x, 4, few, sizeof few));
        assert_ok(tern_storage_read(tern_narrow(x, 0, 2, 5), 0, few, sizeof few));
        assert_int_equal(few[0], 8);
        assert_int_equal(few[1], 3);
    }
}

static void storage_is_emptied_and_refilled(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    TERN_SCOPE {
        tern_memory_stats full, without;
        tern_tensor *x = tern_ones(SHAPE(1000), TERN_F32, device), *view = tern_narrow(x, 0, 3, 4);
        int64_t version = tern_version(x);
        assert_ok(tern_memory_get_stats(device, &full));
        assert_ok(tern_storage_empty(x));
        assert_ok(tern_storage_empty(view));
        assert_true(tern_storage_is_empty(view));
        assert_ok(tern_memory_get_stats(device, &without));
        assert_int_equal(full.allocated - without.allocated, 4000);
        assert_null(tern_add(view, view));
        assert_error(TERN_ERR_STATE,
                     "tern_add: the memory of the tensor of shape [4] was given back");
        float out[4];
        assert_int_equal(tern_copy_to_host(view, out, sizeof out), TERN_ERR_STATE);
        assert_error(TERN_ERR_STATE, "tern_copy_to_host");
        assert_ok(tern_storage_refill(x));
        assert_ok(tern_storage_refill(x));
        tern_fill_(x, TERN_SCALAR(4));
        assert_values(view, 4, 4, 4, 4);
        assert_int_equal(tern_version(x), version + 1);
        tern_tensor *wide = tern_storage_view(view, SHAPE(2, 2), (int64_t[]){500, 1}, -3);
        assert_values(wide, 4, 4, 4, 4);
        assert_null(tern_storage_view(view, SHAPE(2, 2), (int64_t[]){1000, 1}, 0));
        assert_error(TERN_ERR_SHAPE, "is not in the storage");
        tern_tensor *bits = tern_storage_as(view, TERN_U32);
        assert_int_equal(tern_item_int(tern_select(bits, 0, 0)), 0x40800000);
    }
}

/* ---- failures ------------------------------------------------------------------------------ */

uint64_t tern_memory_fail_at(uint64_t n);

/* Two transfers there and one back with all that is theirs; whether all of it went well. */
static bool go(tern_tensor *x, const char *device)
{
    bool well = false;
    TERN_SCOPE {
        tern_tensor *staged = tern_staged_empty(SHAPE(70), TERN_F32, device);
        if (staged)
            tern_zero_(staged);
        tern_transfer *a = tern_transfer_begin(x, device);
        tern_transfer *b = staged ? tern_transfer_begin(staged, device) : NULL;
        tern_tensor *y = a ? tern_transfer_take(a) : NULL, *z = b ? tern_transfer_take(b) : NULL;
        tern_tensor *sum = y && z ? tern_add(y, z) : NULL;
        tern_transfer *back = sum ? tern_transfer_begin(sum, "cpu") : NULL;
        tern_tensor *host = back ? tern_transfer_take(back) : NULL;
        tern_stage *stage = tern_stage_new(device, 64);
        well = host && stage && tern_stage_read(stage, 0, sum, 0, 64) == TERN_OK &&
               tern_stage_wait(stage) == TERN_OK;
        float *piece = well ? tern_stage_memory(stage) : NULL;
        if (well) {
            assert_true(piece[3] == 3);
            assert_true(((float *)tern_data(host))[69] == 69);
        }
        tern_stage_free(stage);
    }
    return well;
}

static void sweep(tern_tensor *x, const char *device, uint64_t (*arm)(uint64_t n))
{
    assert_true(go(x, device));
    int64_t live = tern_live_tensors();
    bool done = false;
    for (uint64_t n = 1; !done; n++) {
        assert_ok(tern_empty_cache(device)); /* so that memory is asked for */
        arm(n);
        bool well = go(x, device);
        done = arm(0) < n;
        if (!well)
            assert_true(tern_last_status() != TERN_OK);
        tern_clear_error();
        assert_int_equal(tern_live_tensors(), live);
        assert_true(!done || well);
        assert_true(n < 1000);
    }
    assert_true(go(x, device));
}

static void a_failure_leaves_nothing_behind(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    TERN_SCOPE {
        tern_tensor *x = tern_arange(0, 70, 1, TERN_F32, "cpu");
        sweep(x, device, tern_memory_fail_at);
#ifdef TERN_WITH_OPENCL
        if (strncmp(device, "opencl", 6) == 0)
            sweep(x, device, tern_opencl_fail_at);
#endif
    }
}

#ifdef TERN_WITH_OPENCL
/* The queue for copies waits for an event of the program's, which another thread sets a little later. */
typedef struct gate {
    cl_event event;
    atomic_bool open;
    pthread_t thread;
    __typeof__(&clSetUserEventStatus) set;
} gate;

static void *open_later(void *data)
{
    gate *g = data;
    nanosleep(&(struct timespec){.tv_nsec = 30000000}, NULL);
    atomic_store(&g->open, true);
    g->set(g->event, CL_COMPLETE);
    return NULL;
}

static void shut(gate *g, const char *device)
{
    static void *library;
    tern_cl_state *s = tern_cl_state_of(tern_place_find(device, "shut"));
    if (!library)
        library = dlopen("libOpenCL.so.1", RTLD_NOW);
    assert_non_null(library);
    __typeof__(&clCreateUserEvent) create;
    *g = (gate){.open = false};
    *(void **)&create = dlsym(library, "clCreateUserEvent");
    *(void **)&g->set = dlsym(library, "clSetUserEventStatus");
    cl_int code = CL_SUCCESS;
    g->event = create(s->context, &code);
    assert_int_equal(code, CL_SUCCESS);
    assert_int_equal(tern_cl.EnqueueBarrierWithWaitList(s->copies, 1, &g->event, NULL), CL_SUCCESS);
    pthread_create(&g->thread, NULL, open_later, g);
}

/* What the failed call left under way is done when it returns: the memory may be freed then. */
static void was_waited_for(gate *g)
{
    bool open = atomic_load(&g->open);
    pthread_join(g->thread, NULL);
    tern_cl.ReleaseEvent(g->event);
    tern_opencl_fail_at(0);
    tern_clear_error();
    assert_true(open);
}

static void a_copy_under_way_is_waited_for_when_a_call_fails(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    {
        gate g;
        if (strncmp(device, "opencl", 6) != 0)
            continue;
        TERN_SCOPE {
            tern_tensor *x = tern_ones(SHAPE(5000), TERN_F32, "cpu");
            tern_tensor *y = tern_transfer_take(tern_transfer_begin(x, device));
            assert_ok(tern_synchronize(device));
            for (int way = 0; way < 5; way++) {
                tern_stage *stage = tern_stage_new(device, 4096);
                shut(&g, device);
                tern_transfer *t = way < 2    ? tern_transfer_begin(x, device)
                                   : way == 2 ? tern_transfer_begin(y, "cpu")
                                              : NULL;
                assert_true(t || way > 2);
                if (way >= 3)
                    assert_ok(tern_stage_read(stage, 0, y, 0, 4096));
                tern_opencl_fail_at(1);
                if (way == 1)
                    tern_transfer_free(t);
                else if (t)
                    assert_null(tern_transfer_take(t));
                else if (way == 3)
                    assert_true(tern_stage_wait(stage) != TERN_OK);
                else
                    tern_stage_free(stage);
                was_waited_for(&g);
                if (way < 4)
                    tern_stage_free(stage);
            }
            assert_ok(tern_empty_cache(device));
        }
    }
}
#endif

static const struct CMUnitTest tests[] = {
    TEST(tensors_go_to_a_device_and_back),
    TEST(batches_ahead_are_each_their_own),
    TEST(what_is_left_leaves_nothing),
    TEST(a_tensor_written_while_it_was_read_is_told),
    TEST(stages_carry_bytes_both_ways),
    TEST(storage_is_emptied_and_refilled),
    TEST(a_failure_leaves_nothing_behind),
#ifdef TERN_WITH_OPENCL
    TEST(a_copy_under_way_is_waited_for_when_a_call_fails),
#endif
};

TEST_MAIN(tests)
