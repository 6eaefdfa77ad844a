/* test_inplace.c -- writes through views: what they leave, their gradients, what is refused. */
#include "support.h"
#include <math.h>
#include <stdio.h>

typedef tern_tensor *(*function)(tern_tensor *x);

#define SHAPE TERN_SHAPE

/* ---- programs: golden/view.txt has what they end with in PyTorch ------------------------- */

static tern_tensor *twice(tern_tensor *a)
{
    return tern_mul_scalar(a, TERN_SCALAR(2));
}

static tern_tensor *from(tern_tensor *x, int dim, int64_t start)
{
    return tern_slice(x, dim, start, TERN_SLICE_END, 1);
}

static tern_tensor *flat(tern_tensor *x)
{
    return tern_view(x, SHAPE(-1));
}

static tern_tensor *slice_times(tern_tensor *a)
{
    tern_tensor *y = twice(a);
    tern_mul_scalar_(tern_select(y, 0, 1), TERN_SCALAR(3));
    return y;
}

static tern_tensor *chain(tern_tensor *a)
{
    tern_tensor *y = twice(a);
    tern_mul_(tern_select(from(tern_t(y), 0, 1), 1, 0), from(tern_select(a, 0, 0), 0, 1));
    return y;
}

static tern_tensor *old_view_of_written_base(tern_tensor *a)
{
    tern_tensor *y = twice(a), *v = from(y, 1, 1);
    tern_mul_scalar_(y, TERN_SCALAR(3));
    return tern_mul_scalar(v, TERN_SCALAR(1));
}

static tern_tensor *written_twice(tern_tensor *a)
{
    tern_tensor *y = twice(a), *v = from(y, 1, 1), *w = tern_slice(flat(y), 0, 2, 5, 1);
    tern_mul_scalar_(v, TERN_SCALAR(5));
    tern_add_(w, tern_narrow(flat(a), 0, 0, 3));
    return tern_add(y, tern_cat((tern_tensor *[]){v, tern_narrow(v, 1, 0, 1)}, 2, 1));
}

static tern_tensor *sibling_sees_write(tern_tensor *a)
{
    tern_tensor *y = twice(a), *v = tern_select(y, 0, 0), *w = tern_select(y, 1, 2);
    tern_exp_(v);
    return tern_mul_scalar(w, TERN_SCALAR(1));
}

static tern_tensor *copy_into(tern_tensor *a)
{
    tern_tensor *y = tern_zeros(SHAPE(3, 3), TERN_F32, tern_device(a));
    tern_copy_(from(y, 0, 1), a);
    return y;
}

static tern_tensor *zero_base_view_first(tern_tensor *a)
{
    tern_tensor *y = tern_zeros(SHAPE(2, 3), TERN_F32, tern_device(a)), *v = tern_select(y, 0, 1);
    tern_add_(y, a);
    return tern_mul_scalar(v, TERN_SCALAR(1));
}

static tern_tensor *fill_part(tern_tensor *a)
{
    tern_tensor *y = tern_mul(a, a);
    tern_fill_(tern_select(y, 1, 1), TERN_SCALAR(4));
    return y;
}

static tern_tensor *expanded_input(tern_tensor *a)
{
    tern_tensor *y = twice(a);
    tern_mul_(tern_slice(y, 1, 0, 2, 1), tern_expand(from(a, 1, 2), SHAPE(2, 2)));
    return y;
}

static tern_tensor *permuted_write(tern_tensor *a)
{
    tern_tensor *y = tern_mul_scalar(a, TERN_SCALAR(1));
    tern_mul_(tern_select(tern_t(tern_view(y, SHAPE(3, 2))), 0, 0), tern_sum(y));
    return y;
}

static tern_tensor *overlapping_look(tern_tensor *x)
{
    return tern_as_strided(x, SHAPE(4, 3), SHAPE(1, 1), 0);
}

static tern_tensor *overlapping_look_of_expanded(tern_tensor *x)
{
    tern_tensor *wide = tern_expand(tern_narrow(x, 1, 0, 1), SHAPE(2, 3));
    return tern_as_strided(wide, SHAPE(3), SHAPE(1), 1);
}

static tern_tensor *look_of_transposed(tern_tensor *x)
{
    return tern_as_strided(from(tern_t(x), 0, 1), SHAPE(2, 2), SHAPE(1, 2), -1);
}

static tern_tensor *split_pieces(tern_tensor *a)
{
    tern_tensor *p[2] = {NULL};
    assert_int_equal(tern_split(a, 2, 1, p, 2), 2);
    return tern_mul(p[0], p[1]);
}

static tern_tensor *chunks(tern_tensor *a)
{
    tern_tensor *p[7], *three = tern_cat((tern_tensor *[]){flat(a), flat(a), flat(a)}, 3, 0);
    int n = tern_chunk(three, 7, 0, p, 7);
    for (int i = 0; i < n; i++)
        p[i] = tern_mul_scalar(p[i], TERN_SCALAR(i + 1));
    return tern_cat(p, n, 0);
}

static const struct {
    const char *name;
    function call;
} programs[] = {
    {"slice_times", slice_times},
    {"chain", chain},
    {"old_view_of_written_base", old_view_of_written_base},
    {"written_twice", written_twice},
    {"sibling_sees_write", sibling_sees_write},
    {"copy_into", copy_into},
    {"zero_base_view_first", zero_base_view_first},
    {"fill_part", fill_part},
    {"expanded_input", expanded_input},
    {"permuted_write", permuted_write},
    {"overlapping_look", overlapping_look},
    {"overlapping_look_of_expanded", overlapping_look_of_expanded},
    {"look_of_transposed", look_of_transposed},
    {"split_pieces", split_pieces},
    {"chunks", chunks},
};

static void programs_that_write_through_views_end_as_in_pytorch(void **state)
{
    (void)state;
    test_golden *golden = test_golden_open("view");
    FOR_EACH_DEVICE(device)
    for (size_t i = 0; i < sizeof programs / sizeof *programs; i++)
        TERN_SCOPE {
            char name[64];
            tern_tensor *a = tern_view(tern_arange(1, 7, 1, TERN_F32, device), SHAPE(2, 3));
            a = tern_requires_grad_(tern_clone(a), true);
            tern_tensor *y = programs[i].call(a);
            snprintf(name, sizeof name, "%s.y", programs[i].name);
            assert_close(y, test_golden_tensor(golden, name, device), .rel = 1e-6);
            tern_tensor *weights = tern_arange(0, (double)tern_numel(y), 1, TERN_F32, device);
            weights = tern_add_scalar(tern_mul_scalar(weights, TERN_SCALAR(0.5)), TERN_SCALAR(1));
            weights = tern_view(weights, tern_shape_of(y));
            assert_ok(tern_backward(tern_sum(tern_mul(tern_mul(y, y), weights))));
            snprintf(name, sizeof name, "%s.grad", programs[i].name);
            assert_close(tern_grad(a), test_golden_tensor(golden, name, device), .rel = 1e-6);
        }
    test_golden_close(golden);
}

#define REFUSED(call, status, words)                                                               \
    do {                                                                                           \
        assert_null(call);                                                                         \
        assert_error(status, words);                                                               \
    } while (0)

static void writes_that_pytorch_refuses_are_refused(void **state)
{
    (void)state;
    tern_tensor *p[3], *a = tern_requires_grad_(tern_arange(0, 3, 1, TERN_F32, "cpu"), true),
                       *y = twice(a);
    REFUSED(tern_zero_(tern_narrow(a, 0, 0, 1)), TERN_ERR_STATE,
            "a view of a leaf Variable that requires grad is being used in an in-place operation.");
    assert_int_equal(tern_split(y, 1, 0, p, 3), 3);
    REFUSED(tern_mul_scalar_(p[1], TERN_SCALAR(2)), TERN_ERR_STATE,
            "This view is the output of a function that returns multiple views.");
    assert_int_equal(tern_chunk(y, 1, 0, p, 3), 1);
    REFUSED(tern_mul_scalar_(p[0], TERN_SCALAR(2)), TERN_ERR_STATE, "returns multiple views.");
    tern_tensor *x = tern_zeros(SHAPE(5), TERN_F32, "cpu");
    int64_t version = tern_version(x);
    REFUSED(tern_zero_(tern_expand(tern_narrow(x, 0, 0, 1), SHAPE(4))), TERN_ERR_ARGUMENT,
            "more than one element of the written-to tensor refers to a single memory location.");
    REFUSED(tern_zero_(tern_as_strided(x, SHAPE(3, 2), SHAPE(1, 1), 0)), TERN_ERR_ARGUMENT,
            "more than one element of the written-to tensor refers to a single memory location.");
    REFUSED(tern_copy_(tern_narrow(x, 0, 1, 4), tern_narrow(x, 0, 0, 4)), TERN_ERR_ARGUMENT,
            "some elements of the input tensor and the written-to tensor refer to a single memory");
    assert_int_equal(tern_version(x), version); /* the refused calls wrote nothing */
    assert_ptr_equal(tern_copy_(x, x), x);
    TERN_NO_GRAD {
        assert_int_equal(tern_split(y, 1, 0, p, 3), 3);
        assert_non_null(tern_mul_scalar_(p[1], TERN_SCALAR(2)));
        assert_non_null(tern_zero_(tern_narrow(a, 0, 0, 1)));
    }
}

static void a_view_made_without_recording_is_not_written_with_it(void **state)
{
    (void)state;
    tern_tensor *a = tern_requires_grad_(tern_ones(SHAPE(2, 3), TERN_F32, "cpu"), true), *v = NULL;
    tern_tensor *y = twice(a);
    TERN_NO_GRAD {
        v = tern_select(y, 0, 0);
    }
    REFUSED(tern_mul_scalar_(v, TERN_SCALAR(3)), TERN_ERR_STATE,
            "A view was created in no_grad mode and is being modified inplace with grad mode "
            "enabled.");
    REFUSED(tern_zero_(tern_narrow(v, 0, 0, 1)), TERN_ERR_STATE, "A view was created in no_grad");
    TERN_NO_GRAD {
        assert_non_null(tern_mul_scalar_(v, TERN_SCALAR(3)));
    }
    assert_values(y, 6, 6, 6, 2, 2, 2);
}

static void interleaved_columns_do_not_overlap(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    {
        tern_tensor *x = tern_view(tern_arange(0, 4, 1, TERN_F32, device), SHAPE(2, 2));
        assert_non_null(tern_copy_(tern_select(x, 1, 0), tern_select(x, 1, 1)));
        assert_values(x, 1, 1, 3, 3);
        tern_tensor *y = tern_arange(0, 6, 1, TERN_F32, device);
        assert_non_null(tern_add_(tern_slice(y, 0, 0, 5, 2), tern_slice(y, 0, 1, 6, 2)));
        assert_values(y, 1, 1, 5, 3, 9, 5);
    }
}

static void inputs_that_the_write_touches_are_read_as_they_were(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    {
        tern_tensor *x = tern_view(tern_arange(0, 8, 1, TERN_F32, device), SHAPE(2, 4));
        assert_non_null(tern_copy_(tern_slice(x, 1, 1, 4, 1), tern_slice(x, 1, 0, 3, 1)));
        assert_values(x, 0, 0, 1, 2, 4, 4, 5, 6);
        tern_tensor *y = tern_view(tern_arange(0, 4, 1, TERN_F32, device), SHAPE(2, 2));
        assert_null(tern_add_(y, tern_t(y)));
        assert_error(TERN_ERR_ARGUMENT, "refer to a single memory location");
        assert_null(tern_mul_(y, tern_select(tern_select(y, 0, 0), 0, 0)));
        assert_error(TERN_ERR_ARGUMENT, "refer to a single memory location");
        assert_values(y, 0, 1, 2, 3);
    }
}

static void an_old_view_asks_for_gradients_once_its_base_does(void **state)
{
    (void)state;
    tern_tensor *a = tern_requires_grad_(tern_ones(SHAPE(2), TERN_F32, "cpu"), true);
    tern_tensor *y = tern_zeros(SHAPE(2), TERN_F32, "cpu"), *v = tern_select(y, 0, 1);
    tern_add_(y, a);
    assert_true(tern_requires_grad(v));
    assert_false(tern_is_leaf(v));
    assert_string_equal(tern_grad_fn(v), "as_strided");
    assert_ok(tern_backward(tern_mul(v, v)));
    assert_values(tern_grad(a), 0, 2);
}

static void a_saved_view_changed_through_its_base_is_found(void **state)
{
    (void)state;
    tern_tensor *a = tern_requires_grad_(tern_ones(SHAPE(2), TERN_F32, "cpu"), true);
    tern_tensor *y = twice(a), *z = tern_exp(tern_select(y, 0, 1));
    tern_tensor *w = tern_mul(tern_select(y, 0, 0), z);
    tern_zero_(y);
    assert_int_equal(tern_backward(w), TERN_ERR_STATE);
    assert_error(TERN_ERR_STATE, "has been modified by an inplace operation");
}

static void a_retained_gradient_follows_writes_in_place(void **state)
{
    (void)state;
    tern_tensor *a = tern_requires_grad_(tern_ones(SHAPE(2), TERN_F32, "cpu"), true), *z = NULL;
    tern_tensor *y = twice(a);
    assert_ok(tern_retain_grad(y));
    tern_mul_scalar_(y, TERN_SCALAR(3));
    assert_ok(tern_backward(tern_sum(tern_mul(y, y))));
    assert_values(tern_grad(y), 12, 12);
    assert_values(tern_grad(a), 72, 72);
    TERN_SCOPE { /* the one that retains is gone before the backward pass */
        tern_tensor *w = twice(a);
        assert_ok(tern_retain_grad(w));
        tern_tensor *v = tern_mul_scalar(w, TERN_SCALAR(1));
        tern_mul_scalar_(w, TERN_SCALAR(3));
        z = tern_keep(tern_sum(v));
    }
    assert_ok(tern_backward(z));
    assert_values(tern_grad(a), 74, 74);
    tern_release(z);
}

static void a_leaf_is_no_view_of_what_it_was_cut_from(void **state)
{
    (void)state;
    int64_t live = tern_live_tensors();
    TERN_SCOPE {
        tern_tensor *base = tern_ones(SHAPE(2, 2), TERN_F32, "cpu");
        tern_tensor *leaf = tern_requires_grad_(tern_t(base), true);
        assert_null(tern_cos_(tern_diagonal(leaf, 0, 0, 1)));
        assert_error(TERN_ERR_STATE, "a view of a leaf Variable that requires grad");
        tern_add_(base, twice(leaf)); /* base holds the leaf from now on, not the leaf base */
        assert_true(tern_is_leaf(leaf));
    }
    assert_int_equal(tern_live_tensors(), live);
}

static void a_scatter_does_not_hold_itself(void **state)
{
    (void)state;
    int64_t live = tern_live_tensors();
    TERN_SCOPE {
        tern_tensor *x = TENSOR("cpu", TERN_F32, TERN_SHAPE(3), 1, 5, 3);
        tern_tensor *src = TENSOR("cpu", TERN_F32, TERN_SHAPE(3), 2, 4, 6);
        tern_tensor *index = tern_arange(0, 3, 1, TERN_I64, "cpu");
        tern_requires_grad_(src, true);
        tern_scatter_reduce_(x, 0, index, src, TERN_REDUCE_AMAX, true);
        assert_values(x, 2, 5, 6);
        assert_ok(tern_backward(tern_sum(x)));
        assert_values(tern_grad(src), 1, 0, 1);
    }
    assert_int_equal(tern_live_tensors(), live);
}

static void a_view_may_be_its_own_operand(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    TERN_SCOPE {
        tern_tensor *a = tern_requires_grad_(tern_ones(SHAPE(2, 2), TERN_F32, device), true);
        tern_tensor *y = twice(a), *v = tern_select(y, 0, 0);
        tern_add_(v, v);
        assert_ok(tern_backward(tern_sum(tern_mul(y, y)))); /* (4 a)^2 and (2 a)^2 */
        assert_values(tern_grad(a), 32, 32, 8, 8);
        tern_set_grad(a, NULL);
        y = twice(a);
        v = tern_select(y, 0, 0);
        tern_mul_(v, v);
        assert_ok(tern_backward(tern_sum(y))); /* (2 a)^2 and 2 a */
        assert_values(tern_grad(a), 8, 8, 2, 2);
        tern_set_grad(a, NULL);
        y = twice(a);
        v = tern_select(y, 0, 0);
        tern_sub_(v, v);
        tern_copy_(tern_select(y, 0, 1), tern_select(y, 0, 1));
        assert_ok(tern_backward(tern_sum(tern_mul(y, y))));
        assert_values(tern_grad(a), 0, 0, 8, 8);
    }
}

static void numbers_that_do_not_fit_are_refused_before_a_write(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    TERN_SCOPE {
        tern_tensor *x = TENSOR(device, TERN_F16, SHAPE(3), NAN, INFINITY, -INFINITY);
        tern_nan_to_num_(x, 0, 1, -4e9);
        if (tern_last_status() != TERN_OK) {
            tern_clear_error();
            assert_values(x, NAN, INFINITY, -INFINITY);
        }
    }
}

static void a_copy_of_itself_changes_nothing(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    TERN_SCOPE {
        tern_tensor *x = TENSOR(device, TERN_F32, SHAPE(2, 3), 1, 2, 3, 4, 5, 6);
        assert_non_null(tern_copy_(x, x));
        assert_non_null(tern_copy_(x, tern_detach(x)));
        tern_tensor *row = tern_narrow(x, 0, 1, 1);
        assert_non_null(tern_copy_(row, tern_detach(row)));
        assert_ok(tern_last_status());
        assert_values(x, 1, 2, 3, 4, 5, 6);
    }
}

static const struct CMUnitTest tests[] = {
    TEST(a_copy_of_itself_changes_nothing),
    TEST(a_leaf_is_no_view_of_what_it_was_cut_from),
    TEST(a_scatter_does_not_hold_itself),
    TEST(a_view_may_be_its_own_operand),
    TEST(numbers_that_do_not_fit_are_refused_before_a_write),
    TEST(programs_that_write_through_views_end_as_in_pytorch),
    TEST(writes_that_pytorch_refuses_are_refused),
    TEST(a_view_made_without_recording_is_not_written_with_it),
    TEST(interleaved_columns_do_not_overlap),
    TEST(inputs_that_the_write_touches_are_read_as_they_were),
    TEST(a_retained_gradient_follows_writes_in_place),
    TEST(an_old_view_asks_for_gradients_once_its_base_does),
    TEST(a_saved_view_changed_through_its_base_is_found),
};

TEST_MAIN(tests)
