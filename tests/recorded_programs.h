/* recorded_programs.h -- programs of random operations: what a recording of them has to compute. Which operations follow each
 * other is one number's, tensors and sizes another's: where each chain is a text that is compiled, a program comes many times. */
#ifndef TERN_TESTS_RECORDED_PROGRAMS_H
#define TERN_TESTS_RECORDED_PROGRAMS_H
#include "support.h"
#include <stdio.h>
#include <string.h>

enum { RESULTS = 3, LIVE = 6, INPUTS = 3, ROWS = 6 };

/* A number below n, of a sequence that a program's seed begins. */
static inline int draw(uint64_t *state, int n)
{
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (int)((*state >> 33) % (uint64_t)n);
}

/* Rows of a new tensor are added to the rows behind them: what is read is written later, at another place. */
static inline tern_tensor *rows_added_in_place(tern_tensor *x, tern_tensor *y)
{
    tern_tensor *z = tern_mul(x, y);
    tern_tensor *before = tern_abs(tern_narrow(z, 0, 0, ROWS - 1));
    tern_add_(tern_narrow(z, 0, 1, ROWS - 1), before);
    return z;
}

/* The stand-in runs the host's expansion of a row, and the text of a chain, which for GELU of halves is another. */
static inline tern_tensor *gelu_of(tern_tensor *x)
{
    const bool half = tern_dtype_size(tern_dtype_of(x)) == 2;
    return half && strstr(tern_device_name(tern_device(x)), "stand-in") ? tern_tanh(x)
                                                                        : tern_gelu(x);
}

/* One operation on tensors of ROWS rows; most are rows of elementwise.def, in all forms that these have. */
static inline tern_tensor *random_operation(uint64_t *s, tern_tensor *x, tern_tensor *y,
                                            tern_tensor *z, bool real)
{
    tern_tensor *row = tern_select(y, 0, 0), *column = tern_narrow(y, 1, 0, 1);
    switch (draw(s, real ? 34 : 14)) {
    case 0:
        return tern_add(x, y);
    case 1:
        return tern_sub(x, y);
    case 2:
        return tern_mul(x, y);
    case 3:
        return tern_maximum(x, y);
    case 4:
        return tern_mul_scalar(x, TERN_SCALAR(3));
    case 5:
        return tern_neg(x);
    case 6:
        return tern_add(x, row);
    case 7:
        return tern_sub(row, x);
    case 8:
        return tern_mul(x, column);
    case 9:
        return tern_addcmul(x, y, z, TERN_SCALAR(2));
    case 10:
        return tern_where(tern_gt(x, y), x, z);
    case 11:
        return tern_contiguous(tern_transpose(tern_contiguous(tern_transpose(x, 0, 1)), 0, 1));
    case 12:
        return rows_added_in_place(x, y);
    case 13:
        return tern_add_(tern_neg(x), y);
    case 14:
        return tern_relu(x);
    case 15:
        return gelu_of(x);
    case 16:
        return tern_tanh(x);
    case 17:
        return tern_sigmoid(x);
    case 18:
        return tern_exp(tern_clamp(x, -3, 3));
    case 19:
        return tern_div(x, tern_add_scalar(tern_abs(y), TERN_SCALAR(1)));
    case 20:
        return tern_lerp(x, y, tern_sigmoid(z));
    case 21:
        return tern_softmax(x, -1);
    case 22:
        return tern_layer_norm(x, TERN_SHAPE(tern_size(x, 1)), NULL, NULL, 1e-5);
    case 23:
        return tern_sub(x, tern_mean_dim(x, TERN_DIMS(1), true));
    case 24:
        y = tern_sum_dim(y, TERN_DIMS(0), true); /* a recording may have both side by side */
        return tern_mul(x, tern_sub(y, tern_sum_dim(z, TERN_DIMS(0), true)));
    case 25:
        return tern_matmul(x, tern_matmul(tern_transpose(y, 0, 1), z));
    case 26:
        return tern_silu(x);
    case 27:
        return tern_square(x);
    case 28:
        return tern_addcdiv(x, y, tern_add_scalar(tern_square(z), TERN_SCALAR(1)),
                            TERN_SCALAR(0.5));
    case 29:
        return tern_rsqrt(tern_add_scalar(tern_square(x), TERN_SCALAR(0.25)));
    case 30:
        return tern_add_(tern_clone(x), y);
    case 31:
        return tern_to_dtype(tern_square(tern_to_dtype(x, TERN_BF16)), tern_dtype_of(x));
    case 32: /* what follows may be in its store */
        x = tern_unsqueeze(x, 0);
        x = tern_batch_norm(x, NULL, NULL, NULL, NULL, true, 0.1, 1e-5);
        return tern_squeeze_dim(x, 0);
    default:
        return tern_dropout(x, 0.3, true);
    }
}

typedef struct recorded_program {
    const char *device;
    tern_dtype dtype;
    uint64_t operations, tensors; /* seeds */
} recorded_program;

/* Half of the steps are in a scope whose other tensors end with it. How many operations there were. */
static inline int random_program(const recorded_program *p, tern_tensor *const *in,
                                 tern_tensor **out)
{
    uint64_t s = p->operations * 2 + 1;
    tern_tensor *live[LIVE];
    const bool real = tern_dtype_is_floating_point(p->dtype);
    int calls = 0;
    for (int i = 0; i < 20; i++)
        draw(&s, 2);
    const int n = 4 + draw(&s, 20);
    for (int i = 0; i < LIVE; i++)
        live[i] = tern_keep(in[i % INPUTS]);
    for (int i = 0; i < n; i++)
        TERN_SCOPE {
            const int at = draw(&s, LIVE);
            tern_tensor *x = live[draw(&s, LIVE)], *y = live[draw(&s, LIVE)],
                        *z = live[draw(&s, LIVE)];
            for (int k = 1 + draw(&s, 4); x && k > 0; k--, calls++)
                x = random_operation(&s, x, y, z, real);
            assert_no_error();
            tern_release(live[at]);
            live[at] = tern_keep(x);
        }
    for (int i = 0; i < LIVE; i++)
        if (i < RESULTS)
            out[i] = live[i];
        else
            tern_release(live[i]);
    return calls;
}

static inline void same_results(const recorded_program *p, tern_tensor **out,
                                tern_tensor **expected)
{
    char what[80];
    for (int k = 0; k < RESULTS; k++) {
        snprintf(what, sizeof what, "operations %llu, tensors %llu: result %d and what is expected",
                 (unsigned long long)p->operations, (unsigned long long)p->tensors, k);
        test_same(out[k], expected[k], what, __FILE__, __LINE__);
    }
}

/* Of two NaNs a sum is either, as a compiler likes, which the check of a replay would find. On the cpu chains have the code of
 * rows that are alone. */
static inline bool has_infinite(const recorded_program *p)
{
    return tern_dtype_is_floating_point(p->dtype) && strcmp(p->device, "cpu") == 0;
}

/* The same results as without a recording, and each replay the same. How many operations were recorded. */
static inline int check_program(const recorded_program *p, const tern_graph_options *options)
{
    static const int64_t columns[] = {135, 35,  35, 135, 35,
                                      35,  128, 36, 9}; /* and more and fewer than 512 elements */
    int calls = 0;
    TERN_SCOPE
        TERN_NO_GRAD {
            tern_tensor *in[INPUTS], *expected[2][RESULTS], *out[RESULTS];
            tern_graph *graph = tern_graph_new_with(p->device, options);
            for (int i = 0; i < INPUTS; i++)
                in[i] = test_uniform(p->device, p->dtype, TERN_SHAPE(ROWS, columns[p->tensors % 9]),
                                     -4, 4, p->tensors + (uint64_t)i);
            if (p->tensors % 8 == 3 && has_infinite(p))
                in[0] = tern_div(in[0], tern_trunc(in[1]));
            tern_manual_seed(p->tensors);
            for (int i = 0; i < 2; i++)
                random_program(p, in, expected[i]);
            tern_manual_seed(p->tensors);
            TERN_CAPTURE (graph)
                calls = random_program(p, in, out);
            assert_no_error();
            for (int i = 0; i < 2; i++) {
                if (tern_graph_replay(graph) != TERN_OK)
                    fail_msg("operations %llu, tensors %llu: %s", (unsigned long long)p->operations,
                             (unsigned long long)p->tensors, tern_last_error());
                same_results(p, out, expected[i]);
            }
            tern_graph_free(graph);
            same_results(p, out, expected[1]); /* what is kept outlives the recording */
            for (int k = 0; k < RESULTS; k++) {
                tern_release(out[k]);
                tern_release(expected[0][k]);
                tern_release(expected[1][k]);
            }
        }
    assert_no_error();
    return calls;
}

#endif
