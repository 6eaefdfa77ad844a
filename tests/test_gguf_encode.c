/* test_gguf_encode.c -- floats as blocks of each type that is written: as near as ggml's own encoder comes, and defined for any numbers. */
#include "support.h"
#include "io/block.h"
#include "models/gguf/write.h"
#include <math.h>

enum { BLOCKS = 64, N = 256 * BLOCKS };

/* Nearly normal numbers, of which every 97th is larger in the second kind; the third has a mean. */
static void fill(float *x, int kind)
{
    uint32_t s = 12345;
    for (int i = 0; i < N; i++) {
        float sum = 0;
        for (int k = 0; k < 4; k++) {
            s = s * 1664525 + 1013904223;
            sum += (float)(s >> 8) * 0x1p-24f - 0.5f;
        }
        x[i] = 0.02f * sum * (kind == 1 && i % 97 == 0 ? 15 : 1) + (kind == 2 ? 0.05f : 0);
    }
}

/* The error that is left, root of the mean of squares over that of x. */
static double error_of(const char *type, const float *x, int n)
{
    const gguf_encoder *e = gguf_encoder_named(type);
    const io_block *block = io_block_named(type);
    unsigned char bytes[256];
    float y[256];
    double away = 0, all = 0;
    assert_non_null(e);
    for (int i = 0; i < n; i += block->elements) {
        memset(bytes, 0x5a, sizeof bytes);
        e->encode(x + i, bytes);
        for (int k = block->bytes; k < 256; k++)
            assert_int_equal(bytes[k], 0x5a);
        block->decode(bytes, y);
        for (int k = 0; k < block->elements; k++) {
            away += ((double)y[k] - (double)x[i + k]) * ((double)y[k] - (double)x[i + k]);
            all += (double)x[i + k] * (double)x[i + k];
        }
    }
    return all > 0 ? sqrt(away / all) : sqrt(away);
}

/* The errors of ggml's quantize_row_*_ref (the sources in PyPI's ggml-python 0.0.45) on these numbers. */
static void as_near_as_ggmls_encoder(void **state)
{
    static const struct {
        const char *type;
        double theirs[3];
    } rows[] = {
#include "gguf_errors.def"
    };
    static float x[N];
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        for (int kind = 0; kind < 3; kind++) {
            fill(x, kind);
            const double ours = error_of(rows[i].type, x, N);
            if (!(ours <= 1.01 * rows[i].theirs[kind]))
                print_error("%s, numbers %d: %g, and ggml's %g\n", rows[i].type, kind, ours,
                            rows[i].theirs[kind]);
            assert_true(ours <= 1.01 * rows[i].theirs[kind]);
            assert_true(ours > 0.3 * rows[i].theirs[kind]);
        }
}

/* Whatever is in a block, what is written is a block, and what can be exact is. */
static void any_numbers_become_blocks(void **state)
{
    static const char *const types[] = {"Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0",  "Q2_K",
                                        "Q3_K", "Q4_K", "Q5_K", "Q6_K", "IQ4_NL"};
    static const float odd[] = {0,         -0.0f,    1,         -1,     1e-8f,  -1e-8f,
                                1e-4f,     60000.0f, -60000.0f, 1e30f,  -1e30f, INFINITY,
                                -INFINITY, NAN,      1e-42f,    3.1e-5f};
    (void)state;
    for (size_t t = 0; t < sizeof types / sizeof *types; t++) {
        float x[256] = {0}, y[256];
        unsigned char bytes[256];
        assert_true(error_of(types[t], x, 256) == 0);
        uint32_t s = 7;
        for (int turn = 0; turn < 300; turn++) {
            for (int i = 0; i < 256; i++) {
                s = s * 1664525 + 1013904223;
                const uint32_t limit = turn < 16 ? 1 : turn < 100 ? 2 : 16;
                x[i] = turn < 16 ? odd[turn] : odd[((uint32_t)turn + (s >> 16) % limit) % 16];
            }
            gguf_encoder_named(types[t])->encode(x, bytes);
            io_block_named(types[t])->decode(bytes, y);
            for (int i = 0; turn == 2 && i < io_block_named(types[t])->elements; i++)
                assert_true(fabsf(y[i] - 1) < 2e-3f);
            for (int i = 0; turn == 3 && i < io_block_named(types[t])->elements; i++)
                assert_true(fabsf(y[i] + 1) < 2e-3f);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {TEST(as_near_as_ggmls_encoder),
                                       TEST(any_numbers_become_blocks)};
    return test_main(tests, sizeof tests / sizeof *tests);
}
