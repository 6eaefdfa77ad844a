/* test_chain_programs.c -- random programs of elementwise operations, views and writes in place: a
 * recording of them, with memory planned and operations fused in all ways, has the bits of the
 * program that runs at once. */
#include "support.h"
#include <stdlib.h>
#include <string.h>
#include <tern/graph.h>

enum { INPUTS = 4, STEPS = 12, VALUES = INPUTS + STEPS, MOST_ARGUMENTS = 3 };

/* Operations by their names, and how many tensors they take; one more argument may be a number.
 * None of them fails on a device for some integers, as fmod does at 0. */
typedef struct row {
    const char *name;
    int tensors;
    bool number;
} row;

static const row rows[] = {
    {"neg", 1, false},
    {"abs", 1, false},
    {"exp", 1, false},
    {"sigmoid", 1, false},
    {"tanh", 1, false},
    {"nn.functional.relu", 1, false},
    {"nn.functional.gelu", 1, false},
    {"nn.functional.silu", 1, false},
    {"sqrt", 1, false},
    {"reciprocal", 1, false},
    {"square", 1, false},
    {"floor", 1, false},
    {"sign", 1, false},
    {"log1p", 1, false},
    {"isfinite", 1, false},
    {"logical_not", 1, false},
    {"add", 2, false},
    {"sub", 2, false},
    {"mul", 2, false},
    {"div", 2, false},
    {"maximum", 2, false},
    {"copysign", 2, false},
    {"atan2", 2, false},
    {"minimum", 2, false},
    {"gt", 2, false},
    {"le", 2, false},
    {"logical_and", 2, false},
    {"add", 1, true},
    {"mul", 1, true},
    {"div", 1, true},
    {"eq", 1, true},
    {"where", 3, false},
    {"addcmul", 3, false},
    {"lerp", 3, false},
};
enum { ROWS = sizeof rows / sizeof *rows };

typedef enum kind { CALL, NARROW, TRANSPOSE, ADD_IN_PLACE, MUL_IN_PLACE, CAST } kind;

typedef struct step {
    kind kind;
    const row *row;
    int in[MOST_ARGUMENTS];
    double number;
    tern_dtype dtype; /* of CAST; NARROW leaves out the first or the last row by it */
    bool kept;        /* outlives the recording */
} step;

typedef struct program {
    const char *device;
    uint64_t state;
    step steps[STEPS];
    int n;
    tern_tensor *inputs[INPUTS];
    bool is_input[VALUES]; /* an input or a view of one, which no step writes: replays read it */
} program;

/* Marsaglia's xorshift with 64 bits. */
static uint32_t pick(program *p, uint32_t n)
{
    p->state ^= p->state << 13;
    p->state ^= p->state >> 7;
    p->state ^= p->state << 17;
    return (uint32_t)(p->state >> 33) % n;
}

static const tern_dtype dtypes[] = {TERN_F32, TERN_F32, TERN_BF16, TERN_F16, TERN_I32, TERN_BOOL};
enum { DTYPES = sizeof dtypes / sizeof *dtypes };

/* Dense, a row, a column, one number, or a transposed view: all broadcast to (rows, columns). */
static tern_tensor *make_input(program *p, int64_t n, int64_t m, tern_dtype dtype)
{
    const uint64_t seed = p->state;
    const double low = dtype == TERN_BOOL ? 0 : -3, high = dtype == TERN_BOOL ? 2 : 3;
    const tern_shape shapes[] = {TERN_SHAPE(n, m), TERN_SHAPE(n, m), TERN_SHAPE(m),
                                 TERN_SHAPE(n, 1), TERN_SHAPE_SCALAR};
    const uint32_t which = pick(p, 6);
    return which == 5 ? tern_transpose(
                            test_uniform(p->device, dtype, TERN_SHAPE(m, n), low, high, seed), 0, 1)
                      : test_uniform(p->device, dtype, shapes[which], low, high, seed);
}

static void make(program *p)
{
    const int64_t n = 1 + pick(p, 9), m = 1 + pick(p, 700);
    const tern_dtype dtype = dtypes[pick(p, DTYPES)];
    for (int i = 0; i < INPUTS; i++)
        p->inputs[i] = make_input(p, n, m, pick(p, 4) ? dtype : dtypes[pick(p, DTYPES)]);
    p->n = 2 + (int)pick(p, STEPS - 1);
    for (int i = 0; i < p->n; i++) {
        step *s = &p->steps[i];
        const uint32_t which = pick(p, 20);
        *s = (step){.kind = which < 10 ? (kind)(NARROW + which / 2) : CALL,
                    .row = &rows[pick(p, ROWS)],
                    .number = (double)pick(p, 9) / 4 - 1,
                    .dtype = dtypes[pick(p, DTYPES)],
                    .kept = i + 1 == p->n || pick(p, 4) == 0};
        for (int k = 0; k < MOST_ARGUMENTS; k++) {
            const int all = INPUTS + i, late = all < 3 ? all : 3;
            s->in[k] = (int)(pick(p, 2) ? pick(p, (uint32_t)all)
                                        : (uint32_t)(all - 1) - pick(p, (uint32_t)late));
        }
    }
}

static tern_tensor *call(const step *s, tern_tensor *const *values)
{
    tern_value arguments[MOST_ARGUMENTS + 1];
    tern_tensor *y = NULL;
    for (int k = 0; k < s->row->tensors; k++)
        arguments[k] = tern_value_tensor(NULL, values[s->in[k]]);
    arguments[s->row->tensors] = tern_value_real(NULL, s->number);
    return tern_call_by_name(s->row->name, arguments, s->row->tensors + s->row->number, &y, 1) == 1
               ? y
               : NULL;
}

/* The result of a step; NULL: it is refused. */
static tern_tensor *run_step(const program *p, const step *s, tern_tensor *const *values)
{
    tern_tensor *x = values[s->in[0]], *y = values[s->in[1]];
    switch (s->kind) {
    case NARROW:
        return tern_dim(x) && tern_size(x, 0) > 1
                   ? tern_narrow(x, 0, s->dtype == TERN_F32, tern_size(x, 0) - 1)
                   : NULL;
    case TRANSPOSE:
        return tern_dim(x) == 2 ? tern_transpose(x, 0, 1) : NULL;
    case ADD_IN_PLACE:
        return p->is_input[s->in[0]] ? NULL : tern_add_(x, y);
    case MUL_IN_PLACE:
        return p->is_input[s->in[0]] ? NULL : tern_mul_(x, y);
    case CAST:
        return tern_to_dtype(x, s->dtype);
    default:
        return call(s, values);
    }
}

/* Runs the program at once and takes out the steps that are refused. Values are of the innermost
 * scope. */
static void run_at_once(program *p, tern_tensor **values)
{
    for (int i = 0; i < INPUTS; i++) {
        values[i] = p->inputs[i];
        p->is_input[i] = true;
    }
    for (int i = 0; i < p->n; i++) {
        step *s = &p->steps[i];
        tern_tensor *y = run_step(p, s, values);
        p->is_input[INPUTS + i] =
            !y || (s->kind != CALL && p->is_input[s->in[0]] &&
                   (s->kind != CAST || tern_dtype_of(values[s->in[0]]) == s->dtype));
        if (!y) { /* the steps that name its value find an input */
            tern_clear_error();
            s->row = NULL;
            y = p->inputs[i % INPUTS];
        }
        values[INPUTS + i] = y;
    }
}

static void record(program *p, tern_graph *graph, tern_tensor **kept)
{
    tern_tensor *values[VALUES];
    for (int i = 0; i < INPUTS; i++)
        values[i] = p->inputs[i];
    TERN_CAPTURE (graph)
        TERN_SCOPE
            for (int i = 0; i < p->n; i++) {
                const step *s = &p->steps[i];
                values[INPUTS + i] = s->row ? run_step(p, s, values) : p->inputs[i % INPUTS];
                if (s->row && s->kept)
                    kept[i] = tern_keep(values[INPUTS + i]);
            }
    assert_no_error();
}

static int64_t fused; /* programs that had operations which were fused */

/* Replayed as recorded, planned, fused, and both; a replay with check compares the bits of all
 * that it writes, this compares what is kept with the values that ran at once. */
static void replay_and_compare(program *p, tern_tensor *const *values)
{
    int64_t launches[4];
    for (int way = 0; way < 4; way++) {
        tern_tensor *kept[STEPS] = {NULL};
        tern_graph *graph = tern_graph_new_with(
            p->device,
            &(tern_graph_options){.no_plan = way & 1, .no_fusion = way & 2, .check = way == 0});
        record(p, graph, kept);
        launches[way] = tern_graph_size(graph);
        for (int k = 0; k < 2; k++)
            if (tern_graph_size(graph))
                assert_ok(tern_graph_replay(graph));
        for (int i = 0; i < p->n; i++)
            if (kept[i])
                assert_same(kept[i], values[INPUTS + i]);
        tern_graph_free(graph);
        for (int i = 0; i < p->n; i++)
            tern_release(kept[i]);
    }
    fused += launches[0] < launches[2];
}

static uint64_t running; /* the program's number */

static void run_program(const char *device, uint64_t seed)
{
    TERN_SCOPE
        TERN_NO_GRAD {
            program p = {.device = device, .state = seed * UINT64_C(0x9e3779b97f4a7c15) + 1};
            tern_tensor *values[VALUES];
            make(&p);
            assert_no_error();
            run_at_once(&p, values);
            replay_and_compare(&p, values);
        }
}

/* TERN_TEST_SEED and TERN_TEST_PROGRAMS run others, and more. */
static void recordings_have_the_bits_of_what_runs_at_once(void **state)
{
    (void)state;
    const char *seed = getenv("TERN_TEST_SEED"), *count = getenv("TERN_TEST_PROGRAMS");
    const uint64_t first = seed ? strtoull(seed, NULL, 10) : 1;
    FOR_EACH_DEVICE(device)
    {
        fused = 0;
        const bool all = getenv("TERN_TEST_ALL"), cpu = strcmp(device, "cpu") == 0;
        const int64_t most = count ? strtoll(count, NULL, 10)
                             : cpu ? (all ? 100000 : 5000)
                                   : (all ? 500 : 8);
        for (int64_t i = 0; i < most; i++) {
            running = first + (uint64_t)i;
            run_program(device, running);
        }
        if (strncmp(device, "cuda", 4) != 0)
            assert_true(fused > most / 10);
    }
}

/* Of a test that failed it is the program at fault. */
static int teardown(void **state)
{
    print_message("the last program was %llu, %lld had operations that were fused\n",
                  (unsigned long long)running, (long long)fused);
    return test_teardown(state);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup_teardown(recordings_have_the_bits_of_what_runs_at_once, test_setup,
                                    teardown),
};
TEST_MAIN(tests)
