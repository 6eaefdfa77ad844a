/* test_saved.c -- saved tensors that are not kept: hooks turn them into others and back, and gelu's
 * result, the input of a linear layer, is made again in backward; gradients are those of tensors
 * that are kept. */
#include "tensor/fuse/internal.h"
#include "support.h"
#include <math.h>
#include <string.h>
#include <tern/autograd.h>

/* ---- made again ------------------------------------------------------------------------------ */

static bool on_groups(const char *device)
{
    return test_gpu_form(device) || strncmp(device, "cuda", 4) == 0;
}

/* LARGE bytes are fewer than a hidden tensor's in float32; what is smaller is kept. */
enum { ROWS = 110, HIDDEN = 1024, WIDTH = 8, LARGE = 1 << 18 };

typedef struct mlp {
    tern_tensor *x, *w1, *w2, *b2;
    tern_tensor *(*gelu)(tern_tensor *x);
} mlp;

static mlp make(const char *device, tern_dtype dtype, tern_tensor *(*gelu)(tern_tensor *))
{
    const int64_t rows = dtype == TERN_F32 ? ROWS : 2 * ROWS;
    mlp m = {.x = test_uniform(device, dtype, TERN_SHAPE(rows, WIDTH), -1, 1, 1),
             .w1 = test_uniform(device, dtype, TERN_SHAPE(HIDDEN, WIDTH), -1, 1, 2),
             .w2 = test_uniform(device, dtype, TERN_SHAPE(WIDTH, HIDDEN), -1, 1, 3),
             .b2 = test_uniform(device, dtype, TERN_SHAPE(WIDTH), -1, 1, 4),
             .gelu = gelu};
    tern_requires_grad_(m.x, true);
    tern_requires_grad_(m.w1, true);
    tern_requires_grad_(m.w2, true);
    tern_requires_grad_(m.b2, true);
    return m;
}

/* keep: somebody multiplies gelu's result by one first, which is no gelu. */
static tern_tensor *loss_of(const mlp *m, bool keep, tern_tensor **also)
{
    tern_tensor *loss = NULL;
    TERN_SCOPE {
        tern_tensor *h = m->gelu(tern_linear(m->x, m->w1, NULL));
        if (also)
            *also = tern_escape(tern_sum(h));
        if (keep)
            h = tern_mul_scalar(h, TERN_SCALAR(1));
        loss = tern_escape(tern_sum(tern_square(tern_linear(h, m->w2, m->b2))));
    }
    return loss;
}

static void gradients(const mlp *m, tern_tensor *loss, tern_tensor *g[4])
{
    assert_ok(
        tern_autograd_grad(&loss, 1, (tern_tensor *[]){m->x, m->w1, m->w2, m->b2}, 4, g, NULL));
}

static void backward(const mlp *m, tern_tensor *loss, bool retain, tern_tensor *g[4])
{
    tern_tensor *const leaves[] = {m->x, m->w1, m->w2, m->b2};
    assert_ok(tern_backward_with(loss, &(tern_backward_options){.retain_graph = retain}));
    for (int i = 0; i < 4; i++) {
        g[i] = tern_grad(leaves[i]);
        assert_non_null(g[i]);
        g[i] = tern_clone(g[i]);
        assert_ok(tern_set_grad(leaves[i], NULL));
    }
}

static void same(tern_tensor *const got[4], tern_tensor *const want[4])
{
    for (int i = 0; i < 4; i++)
        assert_same(got[i], want[i]);
}

static void what_a_product_has_made_again_has_the_same_gradients(void **state)
{
    (void)state;
    static const tern_dtype dtypes[] = {TERN_F32, TERN_BF16};
    FOR_EACH_DEVICE(device)
    for (int i = 0; i < 4; i++)
        TERN_SCOPE {
            const mlp m = make(device, dtypes[i % 2], i < 2 ? tern_gelu : tern_gelu_tanh);
            tern_tensor *want[4], *got[4];
            backward(&m, loss_of(&m, true, NULL), false, want);
            /* in a pass, in two of a graph that is kept, and in one that catches gradients */
            backward(&m, loss_of(&m, false, NULL), false, got);
            same(got, want);
            tern_tensor *loss = loss_of(&m, false, NULL);
            backward(&m, loss, true, got);
            same(got, want);
            backward(&m, loss, false, got);
            same(got, want);
            gradients(&m, loss_of(&m, false, NULL), got);
            same(got, want);
        }
}

/* Another gradient of gelu's result comes before or after; a hook sees each. */
static tern_tensor *twice(tern_tensor *grad, void *user)
{
    ++*(int *)user;
    return tern_mul_scalar(grad, TERN_SCALAR(2));
}

static void other_readers_and_hooks_of_what_is_made_again_count(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    TERN_SCOPE {
        const mlp m = make(device, TERN_F32, tern_gelu);
        tern_tensor *also, *got[4], *want[4], *loss = loss_of(&m, true, &also);
        backward(&m, tern_add(loss, also), false, want);
        loss = loss_of(&m, false, &also);
        backward(&m, tern_add(loss, also), false, got);
        same(got, want);
        int seen = 0;
        TERN_SCOPE {
            tern_tensor *h = tern_gelu(tern_linear(m.x, m.w1, NULL));
            assert_true(tern_register_hook(h, twice, &seen) > 0);
            backward(&m, tern_sum(tern_square(tern_linear(h, m.w2, m.b2))), false, got);
            assert_int_equal(seen, 1);
            backward(&m, loss_of(&m, true, NULL), false, want);
            assert_same(got[2], want[2]);
            assert_same(got[1], tern_mul_scalar(want[1], TERN_SCALAR(2)));
        }
    }
}

static void a_pass_that_is_recorded_goes_through_what_is_made_again(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    TERN_SCOPE {
        const mlp m = make(device, TERN_F32, tern_gelu);
        tern_tensor *g[2][1], *second[2][3];
        for (int keep = 0; keep < 2; keep++) {
            tern_tensor *h = tern_gelu(tern_linear(m.x, m.w1, NULL));
            tern_tensor *kept = keep ? tern_mul_scalar(h, TERN_SCALAR(1)) : h;
            tern_tensor *loss = tern_sum(tern_square(tern_linear(kept, m.w2, m.b2)));
            assert_ok(tern_autograd_grad(&loss, 1, (tern_tensor *[]){m.w2}, 1, g[keep],
                                         &(tern_autograd_grad_options){.create_graph = true}));
            tern_tensor *norm = tern_sum(tern_square(g[keep][0]));
            assert_ok(tern_autograd_grad(&norm, 1, (tern_tensor *[]){m.x, m.w1, h}, 3, second[keep],
                                         NULL));
        }
        for (int i = 0; i < 3; i++) { /* sums in another order, beside the largest */
            const double most = tern_item(tern_max(tern_abs(second[1][i])));
            assert_close(second[0][i], second[1][i], .abs = 1e-5 * most);
        }
    }
}

/* On devices with work-groups the step takes one tensor less. */
static void the_result_of_gelu_takes_no_memory(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    TERN_SCOPE {
        const mlp m = make(device, TERN_F32, tern_gelu);
        const double size = 4.0 * ROWS * HIDDEN;
        double held[2];
        for (int keep = 0; keep < 2; keep++) {
            tern_memory_stats before, after;
            tern_synchronize(device);
            assert_ok(tern_memory_get_stats(device, &before));
            tern_tensor *loss = loss_of(&m, keep != 0, NULL);
            assert_ok(tern_memory_get_stats(device, &after));
            held[keep] = ((double)after.allocated - (double)before.allocated) / size;
            assert_ok(tern_backward(loss));
        }
        if (on_groups(device) && !(held[0] < 1.1 && held[1] > 1.9))
            fail_msg("%s: %.2f hidden tensors are held, and %.2f where gelu's result is kept",
                     device, held[0], held[1]);
    }
}

static void an_input_that_changed_is_an_error(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    TERN_SCOPE {
        const mlp m = make(device, TERN_F32, tern_gelu);
        tern_tensor *h = tern_linear(m.x, m.w1, NULL);
        tern_tensor *loss = tern_sum(tern_linear(tern_gelu(h), m.w2, NULL));
        TERN_NO_GRAD
            tern_add_scalar_(h, TERN_SCALAR(1));
        assert_int_equal(tern_backward(loss), TERN_ERR_STATE);
        assert_error(TERN_ERR_STATE, "modified by an inplace operation");
    }
}

/* ---- hooks ----------------------------------------------------------------------------------- */

typedef struct tally {
    int packed, unpacked;
    bool fails;
} tally;

static tern_tensor *halve(tern_tensor *x, void *user)
{
    ((tally *)user)->packed++;
    assert_false(tern_requires_grad(x));
    return tern_to_dtype(x, tern_dtype_of(x) == TERN_F32 ? TERN_BF16 : tern_dtype_of(x));
}

static tern_tensor *widen(tern_tensor *packed, void *user)
{
    tally *t = user;
    t->unpacked++;
    return t->fails ? NULL : tern_to_dtype(packed, TERN_F32);
}

static void hooks_pack_what_is_saved_and_unpack_it(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    TERN_SCOPE {
        tally t = {0};
        tern_tensor *x = TENSOR(device, TERN_F32, TERN_SHAPE(3), 1, 2.001, 3), *y = NULL;
        tern_requires_grad_(x, true);
        TERN_SAVED_TENSORS_HOOKS(halve, widen, &t)
        {
            y = tern_exp(x);                                               /* saves its result */
            y = tern_sum(tern_mul(y, tern_mul_scalar(x, TERN_SCALAR(2)))); /* both inputs */
        }
        assert_int_equal(t.packed, 3);
        assert_int_equal(t.unpacked, 0);
        assert_ok(tern_backward_with(y, &(tern_backward_options){.retain_graph = true}));
        assert_int_equal(t.unpacked, 3);
        const double e[] = {exp(1), exp(2.001), exp(3)};
        assert_values_close(tern_grad(x), 0.02, 2 * e[0] + 2 * e[0], 2 * e[1] + 2 * 2.001 * e[1],
                            2 * e[2] + 6 * e[2]);
        assert_ok(tern_backward(y)); /* again, of what was packed */
        assert_int_equal(t.unpacked, 6);
        /* outside of the block nothing is packed, and a leaf never is */
        y = tern_sum(tern_square(x));
        assert_int_equal(t.packed, 3);
        TERN_SAVED_TENSORS_HOOKS(halve, widen, &t)
        y = tern_sum(tern_square(x));
        assert_int_equal(t.packed, 3);
        /* a hook that has nothing to give is an error of the pass */
        TERN_SAVED_TENSORS_HOOKS(halve, widen, &t)
        y = tern_sum(tern_exp(tern_mul_scalar(x, TERN_SCALAR(2))));
        t.fails = true;
        assert_int_equal(tern_backward(y), TERN_ERR_STATE);
        assert_error(TERN_ERR_STATE, "unpack gave no tensor");
        TERN_SAVED_TENSORS_HOOKS(NULL, widen, &t)
        fail_msg("a block without pack was entered");
        assert_error(TERN_ERR_ARGUMENT, "pack");
    }
}

static tern_tensor *first_two(tern_tensor *x, void *user)
{
    (void)user;
    return tern_narrow(x, 0, 0, 2);
}

static void what_unpack_gives_has_the_shape_that_was_saved(void **state)
{
    (void)state;
    tern_tensor *x = TENSOR("cpu", TERN_F32, TERN_SHAPE(3), 1, 2, 3), *y = NULL;
    tern_requires_grad_(x, true);
    TERN_SAVED_TENSORS_HOOKS(first_two, first_two, NULL)
    y = tern_sum(tern_exp(x));
    assert_int_equal(tern_backward(y), TERN_ERR_SHAPE);
    assert_error(TERN_ERR_SHAPE, "unpack gave a tensor of float32 [2] for one of float32 [3]");
}

static void saved_tensors_wait_in_the_hosts_memory(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    TERN_SCOPE {
        const mlp m = make(device, TERN_F32, tern_gelu);
        tern_tensor *want[4], *got[4], *loss = NULL;
        tern_memory_stats before, after;
        backward(&m, loss_of(&m, true, NULL), false, want);
        tern_synchronize(device);
        assert_ok(tern_memory_get_stats(device, &before));
        TERN_SAVE_ON_CPU
        loss = loss_of(&m, false, NULL);
        assert_ok(tern_memory_get_stats(device, &after));
        if (strcmp(device, "cpu") != 0)
            assert_true(after.allocated - before.allocated < LARGE / 8);
        backward(&m, loss, false, got);
        same(got, want);
        /* second derivatives go through what came back */
        tern_tensor *x = TENSOR(device, TERN_F32, TERN_SHAPE(2), 1, 2), *y = NULL, *g = NULL;
        tern_requires_grad_(x, true);
        TERN_SAVE_ON_CPU
        {
            tern_tensor *z = tern_mul_scalar(x, TERN_SCALAR(1));
            y = tern_sum(tern_mul(tern_mul(z, z), z));
            assert_ok(tern_autograd_grad(&y, 1, &x, 1, &g,
                                         &(tern_autograd_grad_options){.create_graph = true}));
        }
        assert_values(g, 3, 12);
        assert_ok(tern_backward(tern_sum(g)));
        assert_values(tern_grad(x), 6, 12);
    }
}

static const struct CMUnitTest tests[] = {
    TEST(what_a_product_has_made_again_has_the_same_gradients),
    TEST(other_readers_and_hooks_of_what_is_made_again_count),
    TEST(a_pass_that_is_recorded_goes_through_what_is_made_again),
    TEST(the_result_of_gelu_takes_no_memory),
    TEST(an_input_that_changed_is_an_error),
    TEST(hooks_pack_what_is_saved_and_unpack_it),
    TEST(what_unpack_gives_has_the_shape_that_was_saved),
    TEST(saved_tensors_wait_in_the_hosts_memory)};
int main(void)
{
    tern_again_from = LARGE; /* smaller than programs have it: products of such tensors take long */
    return test_main(tests, sizeof tests / sizeof *tests);
}
