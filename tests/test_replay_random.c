/* test_replay_random.c -- random small programs, recorded and replayed, against the same programs run one operation after
 * another: every tensor that is left, those that outlive a step, and gradients. Tensors are let go of in between, so that a
 * recording uses memory again, and inputs change from replay to replay, so that what is not done again shows. */
#include "device/recording.h"
#include "tensor/fields.h"
#include "support.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { SLOTS = 5, STEPS = 18, REPLAYS = 3, LEAVES = 4 };

typedef struct program {
    uint64_t seed;
    const char *device;
    tern_dtype half;
    int64_t rows, n;
    bool trains; /* nothing is written in place, and there are gradients */
} program;

/* What a program reads, and `mean`, which goes on from step to step. x and h have twice the rows. */
typedef struct outer {
    tern_tensor *x, *h, *w, *b, *half_w, *matrix, *mean;
} outer;

typedef struct results {
    tern_tensor *slot[SLOTS], *gradient[LEAVES];
} results;

static uint64_t draw(uint64_t *state, uint64_t below)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return (*state >> 20) % below;
}

/* ---- programs ---------------------------------------------------------------------------------- */

static void put(tern_tensor **slot, tern_tensor *x)
{
    tern_tensor *old = *slot;
    *slot = tern_keep(x);
    tern_release(old);
}

/* Rows of something of twice as many. */
static tern_tensor *fresh(const program *p, const outer *o, uint64_t *r)
{
    tern_tensor *all = draw(r, 2) ? tern_neg(o->h) : tern_cos(o->x);
    if (draw(r, 3) == 0)
        all = tern_cat((tern_tensor *[]){all, all}, 2, 0);
    return tern_narrow(all, 0, draw(r, 2) ? p->rows : 0, p->rows);
}

static tern_tensor *norm_of(const program *p, const outer *o, uint64_t *r, tern_tensor *x,
                            tern_tensor *other)
{
    const tern_shape row = TERN_SHAPE(p->n);
    const bool full = tern_dtype_of(x) == TERN_F32;
    tern_tensor *w = full ? o->w : o->half_w, *b = full && draw(r, 2) ? o->b : NULL;
    const int64_t k = (int64_t)draw(r, (uint64_t)p->rows);
    switch (draw(r, 6)) { /* some of what it is a norm of, or of another, as its weight or bias */
    case 0:
        w = tern_select(x, 0, k);
        break;
    case 1:
        b = tern_select(x, 0, k);
        break;
    case 2:
        if (tern_dtype_of(other) == tern_dtype_of(x))
            w = tern_select(other, 0, k);
    }
    return draw(r, 4) ? tern_layer_norm(x, row, w, b, 1) : tern_rms_norm(x, row, w, 1);
}

static tern_dtype other_type(const program *p, const tern_tensor *x)
{
    return tern_dtype_of(x) == TERN_F32 ? p->half : TERN_F32;
}

/* A sum and the norm behind it, whose operands and whose float32 result may be let go of. */
static void residual(const program *p, const outer *o, uint64_t *r, tern_tensor **slot)
{
    const uint64_t i = draw(r, SLOTS), j = draw(r, SLOTS), k = draw(r, SLOTS), how = draw(r, 32);
    tern_tensor *x = tern_keep(slot[i]), *h = tern_keep(slot[j]), *z = NULL, *y = NULL;
    TERN_SCOPE
        z = tern_keep(how & 1 && !p->trains && tern_dtype_of(x) == TERN_F32 ? tern_add_(x, h)
                                                                            : tern_add(x, h));
    tern_release(x);
    tern_release(h);
    if (how & 2 || p->rows * p->n < 16)
        put(&slot[i], z);
    if (how & 4 || p->rows * p->n < 16)
        put(&slot[j], z);
    TERN_SCOPE
        y = tern_keep(norm_of(p, o, r, z, slot[k]));
    TERN_SCOPE
        put(&slot[k], how & 8 ? tern_to_dtype(y, other_type(p, y)) : y);
    if (how & 16)
        put(&slot[i], y);
    tern_release(z);
    tern_release(y);
}

static void one(const program *p, outer *o, uint64_t *r, tern_tensor **slot)
{
    tern_tensor **at = &slot[draw(r, SLOTS)], **a = &slot[draw(r, SLOTS)], *y = NULL;
    switch (draw(r, 12)) {
    case 0:
        put(at, fresh(p, o, r));
        break;
    case 1:
        put(at, tern_add(*at, *a));
        break;
    case 2:
        put(at, norm_of(p, o, r, *at, *a));
        break;
    case 3:
        put(at, tern_to_dtype(*a, other_type(p, *a)));
        break;
    case 4:
        put(at, tern_cos(*a));
        break;
    case 5:
        if (p->n > 64)
            break;
        TERN_AUTOCAST (p->device, p->half)
            y = tern_linear(*a, o->matrix, draw(r, 2) ? o->b : NULL);
        put(at, y);
        break;
    case 6:
        put(at, tern_clone(*a));
        break;
    case 7:
        if (p->trains)
            break;
        if (draw(r, 2))
            tern_mul_scalar_(*at, TERN_SCALAR(-0.5));
        else
            tern_copy_(*at, *a);
        break;
    case 8:
        TERN_NO_GRAD {
            tern_mul_scalar_(o->mean, TERN_SCALAR(0.5));
            tern_add_(o->mean, tern_detach(*a));
        }
        break;
    default:
        residual(p, o, r, slot);
    }
}

static void run(const program *p, outer *o, results *out)
{
    uint64_t r = p->seed;
    *out = (results){{NULL}, {NULL}};
    for (int i = 0; i < SLOTS; i++)
        TERN_SCOPE
            put(&out->slot[i], fresh(p, o, &r));
    for (int i = 0; i < STEPS; i++)
        TERN_SCOPE
            one(p, o, &r, out->slot);
    TERN_SCOPE
        if (p->trains) {
            tern_tensor *loss = tern_sum(o->x), *leaves[LEAVES] = {o->x, o->h, o->w, o->b};
            for (int i = 0; i < SLOTS; i++)
                loss = tern_add(loss, tern_sum(tern_sin(tern_to_dtype(out->slot[i], TERN_F32))));
            loss = tern_add(
                loss, tern_sum(tern_add(tern_to_dtype(o->h, TERN_F32), tern_add(o->w, o->b))));
            assert_ok(tern_autograd_grad(&loss, 1, leaves, LEAVES, out->gradient, NULL));
            for (int i = 0; i < LEAVES; i++)
                tern_keep(out->gradient[i]);
        }
}

static void let_go(results *out)
{
    for (int i = 0; i < SLOTS; i++)
        tern_release(out->slot[i]);
    for (int i = 0; i < LEAVES; i++)
        tern_release(out->gradient[i]);
}

/* ---- comparing --------------------------------------------------------------------------------- */

/* Compilers may order a norm's sums otherwise, which may round a half, or a product, otherwise. */
static void compare(const program *p, const tern_tensor *a, const tern_tensor *b, const char *what)
{
    const int64_t n = tern_numel(a);
    const double most = p->half == TERN_BF16 ? 0.1 : 0.02;
    double *x = test_read(a), *y = test_read(b), large = 1;
    assert_int_equal(tern_dtype_of(a), tern_dtype_of(b));
    assert_int_equal(n, tern_numel(b));
    for (int64_t i = 0; i < n; i++)
        large = isfinite(y[i]) && fabs(y[i]) > large ? fabs(y[i]) : large;
    for (int64_t i = 0; i < n; i++)
        if (!(fabs(x[i] - y[i]) <= most * large || (isnan(x[i]) && isnan(y[i])) || x[i] == y[i]))
            fail_msg("%s: program %llu, %lld x %lld: %s, element %lld is %g, and not %g", p->device,
                     (unsigned long long)p->seed, (long long)p->rows, (long long)p->n, what,
                     (long long)i, x[i], y[i]);
    free(x);
    free(y);
}

static void compare_all(const program *p, const results *recorded, const results *run,
                        const outer *o, const outer *other)
{
    char what[32];
    for (int i = 0; i < SLOTS; i++) {
        snprintf(what, sizeof what, "tensor %d", i);
        compare(p, recorded->slot[i], run->slot[i], what);
    }
    for (int i = 0; i < LEAVES && p->trains; i++) {
        snprintf(what, sizeof what, "gradient %d", i);
        compare(p, recorded->gradient[i], run->gradient[i], what);
    }
    compare(p, o->mean, other->mean, "what is carried on");
}

/* No kernel reads memory that it also writes, but where an element's own place is read before it is written: items of a
 * device run in any order. */
static void check_memory(const program *p, const tern_graph *graph)
{
    for (int64_t k = 0; k < graph->n_nodes; k++) {
        const tern_command *command = &graph->nodes[k]->command;
        if (command->kind != TERN_COMMAND_KERNEL)
            continue;
        const tern_arg *args = command->what.launch.args;
        for (int i = 0; i < command->what.launch.n; i++)
            for (int j = 0; j < command->what.launch.n; j++)
                if (args[i].buffer && args[i].buffer == args[j].buffer &&
                    args[i].role == TERN_ROLE_OUT && args[j].role == TERN_ROLE_IN &&
                    (args[i].at != args[j].at || args[i].bytes != args[j].bytes))
                    fail_msg("%s: program %llu: %s's argument %d is written where %d is read",
                             p->device, (unsigned long long)p->seed,
                             command->what.launch.kernel->ref->name, i, j);
    }
}

/* ---- the comparison ---------------------------------------------------------------------------- */

static tern_tensor *leaf(const program *p, tern_dtype dtype, tern_shape shape, uint64_t seed)
{
    return tern_requires_grad_(test_uniform(p->device, dtype, shape, -1, 1, seed), p->trains);
}

static outer open_outer(const program *p)
{
    const tern_shape row = TERN_SHAPE(p->n), two = TERN_SHAPE(2 * p->rows, p->n);
    return (outer){.x = leaf(p, TERN_F32, two, 1),
                   .h = leaf(p, p->half, two, 2),
                   .w = leaf(p, TERN_F32, row, 3),
                   .b = leaf(p, TERN_F32, row, 4),
                   .half_w = leaf(p, p->half, row, 5),
                   .matrix = leaf(p, TERN_F32, TERN_SHAPE(p->n, p->n), 6),
                   .mean = tern_zeros(TERN_SHAPE(p->rows, p->n), TERN_F32, p->device)};
}

/* What the next step reads; the two worlds have the same. */
static void change(outer *o)
{
    TERN_NO_GRAD {
        tern_mul_scalar_(o->x, TERN_SCALAR(-0.75));
        tern_mul_scalar_(o->h, TERN_SCALAR(-0.75));
    }
}

static void try(const program *p)
{
    outer o[2] = {open_outer(p), open_outer(p)};
    results recorded, out;
    for (int time = 0; time < 2; time++) /* norms learn that casts follow */
        for (int k = 0; k < 2; k++) {
            run(p, &o[k], &out);
            let_go(&out);
        }
    tern_graph *graph = tern_graph_new(p->device);
    TERN_CAPTURE (graph)
        run(p, &o[0], &recorded);
    assert_no_error();
    check_memory(p, graph);
    for (int time = 0; time < REPLAYS; time++) {
        change(&o[0]);
        change(&o[1]);
        assert_ok(tern_graph_replay(graph));
        run(p, &o[1], &out);
        compare_all(p, &recorded, &out, &o[0], &o[1]);
        let_go(&out);
    }
    let_go(&recorded);
    tern_graph_free(graph);
}

/* Each kernel of each type costs its compilation. */
static bool compiles_long(const char *device)
{
    return strncmp(device, "opencl", 6) == 0 && !test_thorough(device);
}

static void replays_are_as_running_it(void **state)
{
    (void)state;
    static const int64_t sizes[][2] = {{3, 4}, {2, 3}, {40, 5}, {17, 16}, {1, 9}, {6, 300}, {5, 1}};
    FOR_EACH_DEVICE(device)
    for (uint64_t k = 1; k <= (compiles_long(device) ? 16 : test_thorough(device) ? 48 : 24); k++)
        TERN_SCOPE {
            const int64_t *size = sizes[k % 7];
            const program p = {.seed = k * UINT64_C(0x9E3779B97F4A7C15),
                               .device = device,
                               .half = k % 2 || compiles_long(device) ? TERN_BF16 : TERN_F16,
                               .rows = size[0],
                               .n = size[1],
                               .trains = k % 3 == 0};
            try(&p);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {TEST(replays_are_as_running_it)};
    return test_main(tests, sizeof tests / sizeof *tests);
}
