/* test_peephole.c -- recorded steps in which a sum and the norm behind it are one kernel, and results that nobody reads are not
 * written: the same numbers as of one operation after another. */
#include "device/recording.h"
#include "tensor/fields.h"
#include "support.h"
#include <string.h>

static tern_tensor *leaf(const char *device, tern_dtype dtype, tern_shape shape, uint64_t seed)
{
    return tern_requires_grad_(test_uniform(device, dtype, shape, -1, 1, seed), true);
}

static bool is_grouped(const char *device)
{
    return tern_place_is_grouped(tern_place_find(device, "test"));
}

static bool has(const char *device, tern_dtype dtype)
{
    return dtype != TERN_F64 || tern_place_has_f64(tern_place_find(device, "test"));
}

/* The recorded kernels of a name, and of those the ones whose argument `out` is written. */
typedef struct counted {
    int all, written;
} counted;

static counted count(const tern_graph *graph, const char *name, int out)
{
    counted c = {0};
    for (int64_t i = 0; i < graph->n_nodes; i++) {
        const tern_command *command = &graph->nodes[i]->command;
        if (command->kind != TERN_COMMAND_KERNEL ||
            strcmp(command->what.launch.kernel->ref->name, name) != 0)
            continue;
        c.all++;
        c.written += command->what.launch.args[out].role == TERN_ROLE_OUT;
    }
    return c;
}

/* ---- a sum and its norm ------------------------------------------------------------------------ */

enum {
    BIAS = 1,
    WEIGHT = 2,
    RMS = 4,
    CASTS = 8,
    APART = 16,
    LOOKED_AT = 32,
    IN_PLACE = 64,
    USES = 128
};
enum { SUM, NORM, DX, DH, DW, DB, RESULTS };

typedef struct sum_norm {
    tern_dtype x, h, half;
    int64_t rows, n;
    tern_tensor *xs, *hs, *w, *b, *c;
    int use;
} sum_norm;

/* z = f(x) + f(h), y = norm(z), its cast and the gradients of (z + y) c. APART: something is done between sum and norm.
 * LOOKED_AT: y is read although its cast is what follows. */
static void step(const sum_norm *s, tern_tensor **out)
{
    const tern_shape row = TERN_SHAPE(s->n);
    tern_tensor *f = tern_mul_scalar(s->xs, TERN_SCALAR(2)), *g = tern_neg(s->hs);
    tern_tensor *z = s->use & IN_PLACE ? tern_add_(f, g) : tern_add(f, g);
    tern_tensor *between = s->use & APART ? tern_neg(g) : NULL;
    tern_tensor *w = s->use & WEIGHT ? s->w : NULL, *b = s->use & BIAS ? s->b : NULL;
    tern_tensor *y =
        s->use & RMS ? tern_rms_norm(z, row, w, 0.1) : tern_layer_norm(z, row, w, b, 0.1);
    tern_tensor *used = s->use & CASTS ? tern_to_dtype(y, s->half) : y;
    tern_tensor *loss = tern_add(tern_sum(tern_mul(tern_cos(used), s->c)), tern_sum(tern_sin(z)));
    if (s->use & LOOKED_AT)
        loss = tern_add(loss, tern_sum(tern_mul(y, y)));
    if (between)
        loss = tern_add(loss, tern_sum(between));
    tern_tensor *in[] = {s->xs, s->hs, w ? w : s->xs, b ? b : s->xs};
    tern_tensor *gradients[4] = {0};
    assert_ok(tern_autograd_grad(&loss, 1, in, 4, gradients, NULL));
    out[SUM] = tern_keep(tern_detach(z));
    out[NORM] = tern_keep(tern_detach(used));
    for (int i = 0; i < 4; i++)
        out[DX + i] = tern_keep(gradients[i]);
}

static void let_go(tern_tensor **out)
{
    for (int i = 0; i < RESULTS; i++)
        tern_release(out[i]);
}

static void compare(tern_tensor *const *recorded, tern_tensor *const *run)
{
    assert_same(recorded[SUM], run[SUM]);
    for (int k = NORM; k < RESULTS; k++) { /* compilers may order sums otherwise */
        const tern_dtype of = tern_dtype_of(recorded[k]);
        const double most = of == TERN_BF16 ? 2e-2 : of == TERN_F16 ? 2e-3 : 1e-5;
        assert_int_equal(tern_dtype_of(run[k]), of);
        assert_close(recorded[k], run[k], .abs = most, .rel = most);
    }
}

static void try_use(const char *device, const sum_norm *s)
{
    tern_tensor *recorded[RESULTS], *run[RESULTS];
    for (int time = 0; time < 2; time++) /* it learns that a cast follows */
        TERN_SCOPE {
            step(s, run);
            let_go(run);
        }
    tern_graph *graph = tern_graph_new(device);
    TERN_CAPTURE (graph)
        TERN_SCOPE
            step(s, recorded);
    assert_no_error();
    const bool mixed = s->x == TERN_F32 && s->use & CASTS && s->use & WEIGHT && is_grouped(device);
    const counted one = count(graph, mixed ? "add_layer_norm_mixed" : "add_layer_norm", 3);
    const counted behind = count(graph, mixed ? "layer_norm_mixed" : "layer_norm", 0);
    const bool fits =
        is_grouped(device) && (mixed ? s->h == s->half : s->h == s->x) && !(s->use & APART);
    assert_int_equal(one.all, fits);
    assert_int_equal(behind.all, !fits);
    if (mixed) /* y, of which the cast alone is used */
        assert_int_equal(one.written + behind.written, (s->use & LOOKED_AT) != 0);
    for (int time = 0; time < 2; time++) {
        TERN_NO_GRAD
            tern_mul_scalar_(s->xs, TERN_SCALAR(0.75));
        assert_ok(tern_graph_replay(graph));
        step(s, run);
        compare(recorded, run);
        let_go(run);
    }
    let_go(recorded);
    tern_graph_free(graph);
}

static void a_sum_and_the_norm_behind_it_are_one_kernel(void **state)
{
    (void)state;
    static const int64_t sizes[][2] = {{3, 1}, {7, 5}, {9, 300}, {3, 1030}, {70, 32}};
    static const tern_dtype types[][3] = {
        {TERN_F32, TERN_F32, TERN_F16}, {TERN_F32, TERN_BF16, TERN_BF16},
        {TERN_F32, TERN_F16, TERN_F16}, {TERN_BF16, TERN_BF16, TERN_F16},
        {TERN_F64, TERN_F64, TERN_F16}, {TERN_F32, TERN_F16, TERN_BF16}};
    FOR_EACH_DEVICE(device)
    for (int t = 0; t < 6 && has(device, types[t][0]); t++)
        for (int use = 0; use < USES; use++)
            TERN_SCOPE {
                const int i = (t + use) % 5;
                sum_norm s = {types[t][0], types[t][1], types[t][2],
                              sizes[i][0], sizes[i][1], .use = use};
                if ((use & RMS && use & BIAS) || (use & LOOKED_AT && !(use & CASTS)) ||
                    (!test_thorough(device) && (use + t) % 5))
                    continue;
                const tern_shape shape = TERN_SHAPE(s.rows, s.n), row = TERN_SHAPE(s.n);
                const tern_dtype dtype = tern_promote_types(s.x, s.h);
                s.xs = leaf(device, s.x, shape, 1);
                s.hs = leaf(device, s.h, shape, 2);
                s.c = test_uniform(device, TERN_F32, shape, -1, 1, 3);
                s.w = leaf(device, dtype, row, 4);
                s.b = leaf(device, dtype, row, 5);
                try_use(device, &s);
            }
}

/* ---- what must not be left out ------------------------------------------------------------------- */

enum { KEPT, A_VIEW, COPIED, A_GRADIENT, DROPPED, ENDS };

/* y's cast is used, and y too: by who holds it when the recording ends, by a copy, by an optimizer; or it is not. */
static void what_is_read_is_written(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    for (int end = 0; end < ENDS; end++)
        TERN_SCOPE {
            const tern_shape shape = TERN_SHAPE(6, 40), row = TERN_SHAPE(40);
            tern_tensor *x = leaf(device, TERN_F32, shape, 1), *w = leaf(device, TERN_F32, row, 2);
            tern_tensor *p = leaf(device, TERN_F32, shape, 3), *kept = NULL;
            tern_tensor *from = tern_clone(tern_detach(p)), *half = NULL;
            tern_optimizer *sgd = tern_optim_sgd_of(&p, 1, 0.5, NULL);
            tern_graph *graph = tern_graph_new(device);
            for (int time = 0; time < 2; time++)
                TERN_SCOPE
                    tern_to_dtype(tern_layer_norm(tern_neg(x), row, w, NULL, 0.1), TERN_BF16);
            tern_set_grad(p, tern_zeros(shape, TERN_F32, device));
            assert_ok(tern_optim_step(sgd)); /* its state is made */
            TERN_CAPTURE (graph)
                TERN_SCOPE {
                    tern_tensor *y = tern_layer_norm(tern_neg(x), row, w, NULL, 0.1);
                    half = tern_keep(tern_detach(tern_to_dtype(y, TERN_BF16)));
                    if (end == KEPT)
                        kept = tern_keep(tern_detach(y));
                    if (end == A_VIEW)
                        kept = tern_keep(tern_detach(tern_narrow(y, 0, 0, 6)));
                    if (end == COPIED)
                        kept = tern_keep(tern_clone(tern_detach(y)));
                    if (end == A_GRADIENT) {
                        assert_ok(tern_set_grad(p, tern_detach(y)));
                        assert_ok(tern_optim_step(sgd));
                        assert_ok(tern_set_grad(p, NULL));
                    }
                }
            assert_no_error();
            if (is_grouped(device)) {
                const counted norms = count(graph, "layer_norm_mixed", 0);
                assert_int_equal(norms.all, 1);
                assert_int_equal(norms.written, end != DROPPED);
            }
            assert_ok(tern_graph_replay(graph));
            tern_tensor *y =
                tern_layer_norm(tern_neg(tern_detach(x)), row, tern_detach(w), NULL, 0.1);
            assert_close(half, tern_to_dtype(y, TERN_BF16), .abs = 1e-2, .rel = 1e-2);
            if (kept)
                assert_close(kept, y, .abs = 1e-6, .rel = 1e-6);
            else if (end == A_GRADIENT)
                assert_close(tern_detach(p), tern_sub(from, tern_mul_scalar(y, TERN_SCALAR(0.5))),
                             .abs = 1e-6, .rel = 1e-6);
            tern_release(half);
            tern_release(kept);
            tern_graph_free(graph);
            tern_optim_free(sgd);
        }
}

/* ---- what one kernel must not be ------------------------------------------------------------------ */

enum { FIRST_HALF, SECOND_HALF, A_ROW_ON, SMALL, OWN_WEIGHT, OWN_BIAS, NO_REASON, REASONS };

/* Of x + h the operands are gone when the norm's results get their memory: a result that lies there otherwise than an operand
 * did would be written before all is read. A row of the sum as the norm's weight or bias is read before it is made. */
static void one_after_another_where_rows_meet(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    for (int casts = 0; casts < 2; casts++)
        for (int why = 0; why < REASONS; why++)
            TERN_SCOPE {
                const int64_t rows = why == SMALL ? 3 : 40, n = why == SMALL ? 5 : 6;
                const tern_shape row = TERN_SHAPE(n);
                tern_tensor *x = test_uniform(device, TERN_F32, TERN_SHAPE(rows + 1, n), -1, 1, 1);
                tern_tensor *h = test_uniform(device, casts ? TERN_BF16 : TERN_F32,
                                              TERN_SHAPE(2 * rows, n), -1, 1, 2);
                tern_tensor *own = leaf(device, TERN_F32, row, 3), *out[2][2];
                tern_graph *graph = tern_graph_new(device);
                for (int time = 0; time < 3; time++) {
                    tern_tensor **to = out[time == 2];
                    if (time == 2)
                        assert_ok(tern_graph_capture_begin(graph));
                    TERN_SCOPE {
                        tern_tensor *z = NULL, *w = own, *b = own;
                        TERN_SCOPE {
                            tern_tensor *all = why == NO_REASON ? h : tern_neg(h);
                            tern_tensor *from = why == A_ROW_ON ? tern_neg(x) : x;
                            z = tern_keep(
                                tern_add(tern_narrow(from, 0, why == A_ROW_ON, rows),
                                         tern_narrow(all, 0, why == SECOND_HALF ? rows : 0, rows)));
                        }
                        if (why == OWN_WEIGHT)
                            w = tern_select(z, 0, rows - 1);
                        if (why == OWN_BIAS)
                            b = tern_select(z, 0, rows / 2);
                        tern_tensor *y = tern_layer_norm(z, row, w, b, 0.1);
                        to[0] = tern_keep(y);
                        to[1] = tern_keep(casts ? tern_to_dtype(y, TERN_BF16) : z);
                        tern_release(z);
                    }
                    for (int i = 0; i < 2 && time == 0; i++)
                        tern_release(to[i]);
                }
                assert_ok(tern_graph_capture_end(graph));
                const counted one = count(
                    graph, casts && why != OWN_WEIGHT ? "add_layer_norm_mixed" : "add_layer_norm",
                    3);
                if (why == NO_REASON)
                    assert_int_equal(one.all, is_grouped(device));
                else if (why >= OWN_WEIGHT)
                    assert_int_equal(one.all, 0);
                assert_ok(tern_graph_replay(graph));
                for (int i = 0; i < 2; i++) {
                    assert_close(out[1][i], out[0][i], .abs = i && casts ? 1e-2 : 1e-5,
                                 .rel = i && casts ? 1e-2 : 1e-5);
                    tern_release(out[0][i]);
                    tern_release(out[1][i]);
                }
                tern_graph_free(graph);
            }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_sum_and_the_norm_behind_it_are_one_kernel),
        TEST(what_is_read_is_written),
        TEST(one_after_another_where_rows_meet),
    };
    return test_main(tests, sizeof tests / sizeof *tests);
}
