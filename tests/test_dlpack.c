/* test_dlpack.c -- tensors lent to other libraries and borrowed from them, and structs that lie. */
#include "support.h"
#include <stdlib.h>
#include <tern/dlpack.h>

#define SHAPE TERN_SHAPE

/* The ABI on 64 bits. */
_Static_assert(sizeof(DLTensor) == 48 && offsetof(DLTensor, ndim) == 16 &&
                   offsetof(DLTensor, dtype) == 20 && offsetof(DLTensor, shape) == 24 &&
                   offsetof(DLTensor, byte_offset) == 40,
               "DLTensor");
_Static_assert(sizeof(DLManagedTensorVersioned) == 80 &&
                   offsetof(DLManagedTensorVersioned, deleter) == 16 &&
                   offsetof(DLManagedTensorVersioned, flags) == 24 &&
                   offsetof(DLManagedTensorVersioned, dl_tensor) == 32,
               "DLManagedTensorVersioned");
_Static_assert(sizeof(DLManagedTensor) == 64 && offsetof(DLManagedTensor, manager_ctx) == 48,
               "DLManagedTensor");

static void what_is_lent_comes_back(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    {
        int64_t live = tern_live_tensors();
        TERN_SCOPE
            for (int type = TERN_F32; type <= TERN_F8_E5M2; type++) {
                tern_device_info info = {0};
                assert_ok(tern_device_get_info(device, &info));
                bool few = type == TERN_F32 || type == TERN_I64 || type == TERN_U16;
                if ((type == TERN_F64 && !info.has_f64) || (!few && !test_thorough(device)))
                    continue;
                tern_tensor *x =
                    tern_to_dtype(tern_view(tern_arange(0, 12, 1, TERN_F32, device), SHAPE(3, 4)),
                                  (tern_dtype)type);
                tern_tensor *part = tern_transpose(tern_narrow(x, 1, 1, 2), 0, 1);
                DLManagedTensorVersioned *lent = tern_to_dlpack(part);
                assert_non_null(lent);
                const DLTensor *t = &lent->dl_tensor;
                assert_int_equal(lent->version.major, 1);
                assert_int_equal(t->ndim, 2);
                assert_true(t->shape[0] == 2 && t->shape[1] == 3);
                assert_true(t->strides[0] == 1 && t->strides[1] == 4);
                assert_int_equal(t->dtype.bits, 8 * tern_dtype_size((tern_dtype)type));
                assert_int_equal(t->device.device_type, *device == 'o'     ? kDLOpenCL
                                                        : device[1] == 'u' ? kDLCUDA
                                                                           : kDLCPU);
                tern_tensor *y = tern_from_dlpack(lent);
                assert_int_equal(tern_dtype_of(y), type);
                assert_string_equal(tern_device(y), tern_device(x));
                assert_true(tern_equal(y, part));
                tern_zero_(y); /* it is x's memory */
                assert_true(tern_equal(part, tern_zeros_like(part)));
                assert_false(tern_equal(x, tern_zeros_like(x)));
                DLManagedTensor *old = tern_to_dlpack_unversioned(x, NULL);
                assert_true(tern_equal(tern_from_dlpack_unversioned(old, NULL), x));
                tern_tensor *copy =
                    tern_from_dlpack_with(tern_to_dlpack(x), &(tern_dlpack_options){.copy = true});
                tern_fill_(x, TERN_SCALAR((bool)1));
                assert_false(tern_equal(copy, x));
            }
        assert_int_equal(tern_live_tensors(), live);
    }
}

static void lending_outlives_the_tensor(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    {
        int64_t live = tern_live_tensors();
        DLManagedTensorVersioned *lent = NULL, *empty = NULL;
        TERN_SCOPE {
            lent = tern_to_dlpack(tern_full(SHAPE(5), TERN_SCALAR(7), TERN_F32, device));
            empty = tern_to_dlpack(tern_zeros(SHAPE(0, 2), TERN_F32, device));
            assert_null(empty->dl_tensor.data);
            tern_tensor *leaf = tern_ones(SHAPE(1), TERN_F32, device);
            tern_requires_grad_(leaf, true);
            assert_null(tern_to_dlpack(leaf));
            assert_error(TERN_ERR_STATE, "Can't export tensors that require gradient");
            assert_null(tern_to_dlpack(NULL));
            assert_error(TERN_ERR_ARGUMENT, "tern_to_dlpack");
        }
        assert_int_equal(tern_live_tensors(), live + 2);
        TERN_SCOPE {
            assert_values(tern_from_dlpack(lent), 7, 7, 7, 7, 7);
            assert_int_equal(tern_numel(tern_from_dlpack(empty)), 0);
        }
        assert_int_equal(tern_live_tensors(), live);
    }
}

/* ---- structs of others --------------------------------------------------------------------- */

static int ended;
static float numbers[24];
static int64_t sizes[32] = {2, 3}, steps[32] = {3, 1};

static void end(DLManagedTensorVersioned *self)
{
    ended++;
    memset(self, 0xee, sizeof *self);
}

static DLManagedTensorVersioned good(void)
{
    for (int i = 0; i < 24; i++)
        numbers[i] = (float)i;
    sizes[0] = 2, sizes[1] = 3, steps[0] = 3, steps[1] = 1;
    DLManagedTensorVersioned m = {.deleter = end};
    m.version.major = 1;
    m.dl_tensor = (DLTensor){.data = numbers,
                             .device = {kDLCPU, 0},
                             .ndim = 2,
                             .dtype = {kDLFloat, 32, 1},
                             .shape = sizes,
                             .strides = steps};
    return m;
}

#define REFUSED(CHANGE, CODE, TEXT)                                                                \
    do {                                                                                           \
        DLManagedTensorVersioned m = good();                                                       \
        DLTensor *t = &m.dl_tensor;                                                                \
        (void)t;                                                                                   \
        CHANGE;                                                                                    \
        ended = 0;                                                                                 \
        assert_null(tern_from_dlpack(&m));                                                         \
        assert_error(CODE, TEXT);                                                                  \
        assert_int_equal(ended, 1); /* taken over all the same */                                  \
    } while (0)

static void structs_that_lie_are_refused_and_given_back(void **state)
{
    (void)state;
    REFUSED(m.version.major = 2;
            t->shape = (int64_t *)1, TERN_ERR_UNSUPPORTED, "DLPack 2.0, and tern reads 1.x");
    REFUSED(m.version.major = 0, TERN_ERR_UNSUPPORTED, "");
    REFUSED(m.flags = 1, TERN_ERR_ARGUMENT, "read-only: ask for a copy");
    REFUSED(t->ndim = -1, TERN_ERR_SHAPE, "-1 dims");
    REFUSED(t->ndim = 13, TERN_ERR_SHAPE, "13 dims, 0 to 12");
    REFUSED(t->ndim = INT32_MAX, TERN_ERR_SHAPE, "dims");
    REFUSED(t->shape = NULL, TERN_ERR_ARGUMENT, "shape");
    REFUSED(sizes[1] = -3, TERN_ERR_SHAPE, "");
    REFUSED(sizes[0] = INT64_MAX, TERN_ERR_SHAPE, "");
    REFUSED(steps[1] = -1, TERN_ERR_SHAPE, "negative strides are not supported (-1 along dim 1)");
    REFUSED(steps[0] = INT64_MAX, TERN_ERR_SHAPE, "overflowed");
    REFUSED(steps[0] = INT64_MIN, TERN_ERR_SHAPE, "negative strides");
    REFUSED(t->data = NULL, TERN_ERR_ARGUMENT, "data");
    REFUSED(t->data = (char *)numbers + 2, TERN_ERR_ARGUMENT, "not aligned");
    REFUSED(t->byte_offset = 1, TERN_ERR_ARGUMENT, "not aligned");
    REFUSED(t->dtype.lanes = 4, TERN_ERR_DTYPE, "float of 32 bits and 4 lanes");
    REFUSED(t->dtype.bits = 128, TERN_ERR_DTYPE, "float of 128 bits");
    REFUSED(t->dtype.code = kDLComplex, TERN_ERR_DTYPE, "complex of 32 bits");
    REFUSED(t->dtype.code = 99, TERN_ERR_DTYPE, "DLPack's type 99");
    REFUSED(t->device.device_type = kDLROCM, TERN_ERR_UNSUPPORTED, "device type 10");
    REFUSED(t->device.device_type = (DLDeviceType)77, TERN_ERR_UNSUPPORTED, "device type 77");
    REFUSED(t->device = ((DLDevice){kDLOpenCL, 999}), TERN_ERR_DEVICE, "");
    REFUSED(t->device = ((DLDevice){kDLOpenCL, -1}), TERN_ERR_DEVICE, "");
    REFUSED(t->device = ((DLDevice){kDLCUDA, 999}), TERN_ERR_DEVICE, "");
    assert_null(tern_from_dlpack(NULL));
    assert_error(TERN_ERR_ARGUMENT, "managed");
}

static void structs_of_other_libraries_are_read(void **state)
{
    (void)state;
    DLManagedTensorVersioned m = good(); /* tern has it until the scope's end */
    TERN_SCOPE {
        ended = 0;
        m.dl_tensor.strides = NULL; /* before 1.2: dense */
        m.dl_tensor.byte_offset = 4;
        m.dl_tensor.device.device_type = kDLCUDAHost;
        tern_tensor *x = tern_from_dlpack(&m);
        assert_values(x, 1, 2, 3, 4, 5, 6);
        tern_mul_(x, x);
        assert_true(numbers[6] == 36);
        assert_int_equal(ended, 0);
    }
    assert_int_equal(ended, 1);
    m = good();
    TERN_SCOPE {
        m.flags = 1;
        tern_tensor *x = tern_from_dlpack_with(&m, &(tern_dlpack_options){.copy = true});
        assert_int_equal(ended, 2);
        assert_values(x, 0, 1, 2, 3, 4, 5);
        m = good();
        sizes[0] = 0, steps[0] = steps[1] = 0; /* NumPy's empty array */
        m.dl_tensor.data = NULL;
        assert_int_equal(tern_numel(tern_from_dlpack(&m)), 0);
        assert_int_equal(ended, 3);
        m = good();
        m.deleter = NULL;
        m.dl_tensor.ndim = 0;
        m.dl_tensor.shape = NULL;
        assert_values(tern_from_dlpack(&m), 0);
    }
    assert_int_equal(ended, 3);
}

static const struct CMUnitTest tests[] = {
    TEST(what_is_lent_comes_back),
    TEST(lending_outlives_the_tensor),
    TEST(structs_that_lie_are_refused_and_given_back),
    TEST(structs_of_other_libraries_are_read),
};

TEST_MAIN(tests)
