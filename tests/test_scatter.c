/* test_scatter.c -- reductions of elements that share a place: gradients of products with zeros in them. */
#include "support.h"

typedef struct product {
    tern_tensor *index;
    bool by_rows; /* index_reduce */
} product;

static tern_tensor *product_of(tern_tensor *const *in, void *user)
{
    const product *p = user;
    return p->by_rows ? tern_index_reduce(in[0], 0, p->index, in[1], TERN_REDUCE_PROD, true)
                      : tern_scatter_reduce(in[0], 0, p->index, in[1], TERN_REDUCE_PROD, true);
}

/* The product of the others is the gradient at the only zero of a place, and has a gradient itself. */
static void products_with_a_zero_have_second_derivatives(void **state)
{
    (void)state;
    for (int by_rows = 0; by_rows < 2; by_rows++)
        for (int x_zero = 0; x_zero < 2; x_zero++) {
            product p = {TENSOR("cpu", TERN_I64, TERN_SHAPE(4), 0, 0, 1, 2), by_rows};
            tern_tensor *in[] = {
                tern_requires_grad_(TENSOR("cpu", TERN_F64, TERN_SHAPE(3), x_zero ? 0 : 2, 0.5, 3),
                                    true),
                tern_requires_grad_(TENSOR("cpu", TERN_F64, TERN_SHAPE(4), 0, 1.5, 5, 0), true)};
            gradcheck(product_of, in, 2, .user = &p, .second = true);
        }
}

/* As PyTorch: the first derivative is right, the second one refused and not wrong. */
static void several_zeros_in_a_place_refuse_second_derivatives(void **state)
{
    (void)state;
    product p = {TENSOR("cpu", TERN_I64, TERN_SHAPE(3), 0, 0, 1), false};
    tern_tensor *in[] = {
        tern_requires_grad_(TENSOR("cpu", TERN_F64, TERN_SHAPE(2), 2, 3), true),
        tern_requires_grad_(TENSOR("cpu", TERN_F64, TERN_SHAPE(3), 0, 0, 4), true)};
    gradcheck(product_of, in, 2, .user = &p);
    tern_tensor *y = tern_sum(product_of(in, &p)), *grad, *second;
    assert_ok(tern_autograd_grad(&y, 1, &in[1], 1, &grad,
                                 &(tern_autograd_grad_options){.create_graph = true}));
    assert_values(grad, 0, 0, 3);
    y = tern_sum(grad);
    assert_int_not_equal(tern_autograd_grad(&y, 1, &in[1], 1, &second, NULL), TERN_OK);
    assert_error(TERN_ERR_UNSUPPORTED, "Double backward is unsupported for src when >1 zeros");
}

/* A device that tells later of a place out of bounds refuses values as the cpu does. */
static void values_are_looked_at_before_places(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    {
        tern_tensor *x = tern_ones(TERN_SHAPE(3, 2), TERN_F32, device);
        tern_tensor *far = tern_full(TERN_SHAPE(1), tern_scalar_int(7), TERN_I64, device);
        tern_tensor *places[] = {far, far}, *values = tern_ones(TERN_SHAPE(2), TERN_F32, device);
        assert_null(tern_index_put(x, places, 2, values, true));
        assert_error(TERN_ERR_SHAPE, "cannot be broadcast to indexing result of shape [1]");
        assert_null(tern_index_put_(x, places, 2, values, false));
        assert_error(TERN_ERR_SHAPE, "cannot be broadcast to indexing result of shape [1]");
        assert_ok(tern_synchronize(device));
    }
}

static const struct CMUnitTest tests[] = {TEST(products_with_a_zero_have_second_derivatives),
                                          TEST(values_are_looked_at_before_places),
                                          TEST(several_zeros_in_a_place_refuse_second_derivatives)};
TEST_MAIN(tests)
