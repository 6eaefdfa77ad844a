/* test_interop.c -- memory, queues and contexts that a program shares with tern. */
#include "support.h"
#include <stdio.h>
#include <stdlib.h>
#include <tern/interop.h>

#define SHAPE TERN_SHAPE

static void count(void *user)
{
    ++*(int *)user;
}

/* The memory of a tensor stands for the application's, which every device has. */
static void borrowed_memory_is_looked_at_and_written(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    {
        int ended = 0;
        int64_t live = tern_live_tensors();
        tern_tensor *base, *view;
        TERN_SCOPE {
            tern_memory_handle handle;
            base = tern_keep(tern_arange(0, 12, 1, TERN_F32, device));
            assert_ok(tern_get_memory_handle(base, &handle));
            assert_non_null(handle.memory);
            assert_true(handle.bytes >= 48 && handle.offset == 0);
            const int64_t strides[] = {4, 1};
            tern_from_blob_options options = {.device = device,
                                              .strides = strides,
                                              .offset = 1,
                                              .deleter = count,
                                              .user = &ended};
            tern_tensor *x = tern_from_blob(handle.memory, SHAPE(3, 2), TERN_F32, &options);
            assert_non_null(x);
            assert_false(tern_is_contiguous(x));
            assert_values(x, 1, 2, 5, 6, 9, 10);
            assert_values(tern_matmul(tern_transpose(x, 0, 1), x), 107, 122, 122, 140);
            tern_mul_(x, tern_full(SHAPE(1), TERN_SCALAR(2), TERN_F32, device));
            view = tern_keep(tern_select(x, 1, 1));
            tern_memory_handle inner;
            assert_ok(tern_get_memory_handle(view, &inner));
            assert_ptr_equal(inner.memory, handle.memory);
            assert_int_equal(inner.offset, 8);
        }
        assert_int_equal(ended, 0);
        assert_values(view, 4, 12, 20);
        tern_release(view);
        assert_int_equal(ended, 1);
        assert_values(base, 0, 2, 4, 3, 4, 10, 12, 7, 8, 18, 20, 11);
        tern_release(base);
        assert_int_equal(tern_live_tensors(), live);
    }
}

static void host_memory_is_borrowed(void **state)
{
    (void)state;
    int ended = 0;
    float *data = malloc(6 * sizeof *data);
    for (int i = 0; i < 6; i++)
        data[i] = (float)i;
    TERN_SCOPE {
        tern_from_blob_options options = {.deleter = count, .user = &ended};
        tern_tensor *x = tern_from_blob(data, SHAPE(2, 3), 0, &options);
        assert_ptr_equal(tern_data(x), data);
        tern_add_(x, x);
        assert_true(data[5] == 10);
        FOR_EACH_DEVICE(device)
        assert_values(tern_to(x, device), 0, 2, 4, 6, 8, 10);
    }
    assert_int_equal(ended, 1);
    free(data);
}

static void bad_memory_is_refused_and_stays_the_callers(void **state)
{
    (void)state;
    int ended = 0;
    float data[8] = {0};
    TERN_SCOPE {
        const int64_t back[] = {-1}, far[] = {INT64_MAX / 2};
        tern_from_blob_options o = {.deleter = count, .user = &ended};
        assert_null(tern_from_blob(NULL, SHAPE(3), TERN_F32, &o));
        assert_error(TERN_ERR_ARGUMENT, "data");
        assert_null(tern_from_blob((char *)data + 1, SHAPE(3), TERN_F32, &o));
        assert_error(TERN_ERR_ARGUMENT, "not aligned to the element's 4 bytes");
        assert_null(tern_from_blob(data, SHAPE(3), (tern_dtype)99, &o));
        assert_error(TERN_ERR_DTYPE, "99 is not a dtype");
        assert_null(tern_from_blob(data, SHAPE(-1), TERN_F32, &o));
        assert_error(TERN_ERR_SHAPE, "");
        o.strides = back;
        assert_null(tern_from_blob(data, SHAPE(3), TERN_F32, &o));
        assert_error(TERN_ERR_SHAPE, "negative strides");
        o.strides = far;
        assert_null(tern_from_blob(data, SHAPE(9), TERN_F32, &o));
        assert_error(TERN_ERR_SHAPE, "overflowed");
        o.strides = NULL;
        o.offset = -1;
        assert_null(tern_from_blob(data, SHAPE(3), TERN_F32, &o));
        assert_error(TERN_ERR_SHAPE, "the offset -1 is negative");
        o.offset = 0;
        o.device = "nothing:0";
        assert_null(tern_from_blob(data, SHAPE(3), TERN_F32, &o));
        assert_error(TERN_ERR_DEVICE, "");
        o.device = NULL;
        assert_int_equal(ended, 0);
        assert_non_null(tern_from_blob(NULL, SHAPE(2, 0), TERN_F32, &o));
        assert_int_equal(ended, 1); /* nothing stands on it */
        FOR_EACH_DEVICE(device)
        {
            tern_memory_handle handle;
            tern_tensor *x = tern_zeros(SHAPE(4), TERN_F32, device);
            assert_ok(tern_get_memory_handle(x, &handle));
            o.device = device;
            o.offset = 4;
            if (strncmp(device, "opencl", 6) == 0) {
                assert_null(
                    tern_from_blob(handle.memory, SHAPE((int64_t)handle.bytes), TERN_F32, &o));
                assert_error(TERN_ERR_SHAPE, "and the cl_mem has");
            } else if (strncmp(device, "cuda", 4) == 0) {
                assert_null(tern_from_blob(data, SHAPE(3), TERN_F32, &o));
                assert_error(TERN_ERR_DEVICE, "the memory is the host's");
            }
            assert_int_equal(ended, 1);
        }
    }
}

static void a_graph_keeps_what_it_borrowed(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    {
        int ended = 0;
        tern_memory_handle handle;
        tern_tensor *base = tern_keep(tern_ones(SHAPE(8), TERN_F32, device)), *y = NULL;
        tern_graph *graph = tern_graph_new(device);
        assert_ok(tern_get_memory_handle(base, &handle));
        TERN_SCOPE {
            const tern_from_blob_options options = {
                .device = device, .deleter = count, .user = &ended};
            tern_tensor *x = tern_from_blob(handle.memory, SHAPE(8), TERN_F32, &options);
            tern_add(x, x); /* kernels are built outside */
            TERN_CAPTURE (graph)
                y = tern_keep(tern_add(x, x));
        }
        assert_int_equal(ended, 0);
        tern_fill_(base, TERN_SCALAR(3));
        assert_ok(tern_graph_replay(graph));
        assert_values(tern_narrow(y, 0, 6, 2), 6, 6);
        tern_graph_free(graph);
        assert_int_equal(ended, 1);
        tern_release(y);
        tern_release(base);
    }
}

static void a_device_shows_and_takes_its_queue(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    TERN_SCOPE {
        tern_device_handles handles;
        char kind[16] = "";
        assert_ok(tern_device_get_handles(device, &handles));
        snprintf(kind, sizeof kind, "%.*s", (int)strcspn(device, ":"), device);
        assert_string_equal(tern_device_from_handles(kind, &handles),
                            tern_device_canonical(device));
        if (strcmp(kind, "cpu") == 0) {
            assert_null(handles.queue);
            assert_int_equal(tern_device_set_handles(device, &handles), TERN_ERR_UNSUPPORTED);
            assert_error(TERN_ERR_UNSUPPORTED, "cpu has no context");
            continue;
        }
        assert_non_null(handles.queue);
        tern_tensor *x = tern_ones(SHAPE(1000), TERN_F32, device);
        x = tern_add(x, x);
        assert_ok(tern_device_set_handles(device, &(tern_device_handles){.queue = handles.queue}));
        assert_true(tern_item(tern_sum(tern_add(x, x))) == 4000);
        const tern_device_handles none = {.index = 0};
        assert_int_equal(tern_device_set_handles(device, &none), TERN_ERR_ARGUMENT);
        assert_error(TERN_ERR_ARGUMENT, "tern_device_set_handles: ");
        assert_null(tern_device_from_handles(
            kind, &(tern_device_handles){.device = (void *)&none, .index = 77}));
        assert_error(TERN_ERR_DEVICE, "is that one");
    }
}

static const struct CMUnitTest tests[] = {
    TEST(borrowed_memory_is_looked_at_and_written),    TEST(host_memory_is_borrowed),
    TEST(bad_memory_is_refused_and_stays_the_callers), TEST(a_graph_keeps_what_it_borrowed),
    TEST(a_device_shows_and_takes_its_queue),
};

TEST_MAIN(tests)
