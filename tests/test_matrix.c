/* test_matrix.c -- kernels over cl_kernels/matrix.h with each matrix instruction as its vendor's
 * manual has it (matrix_unit.h). No GPU takes part. */
#include "support.h"
#include "matrix_gemm.h"

static void compare(const char *way, const char *type, matrix_gemm_test *test)
{
    const char *name;
    for (int w = 0;; w++) {
        double worst = test(w, &name);
        if (!name)
            return;
        if (!(worst <= 1)) {
            print_error("%s, %s, %s: %g times what may be\n", way, type, name, worst);
            fail();
        }
    }
}

#define X(NAME, WAY)                                                                               \
    static void products_by_##NAME(void **state)                                                   \
    {                                                                                              \
        (void)state;                                                                               \
        compare(#NAME, "float16", matrix_gemm_##WAY##_f16);                                        \
        compare(#NAME, "bfloat16", matrix_gemm_##WAY##_bf16);                                      \
    }                                                                                              \
    static void attention_by_##NAME(void **state)                                                  \
    {                                                                                              \
        (void)state;                                                                               \
        compare(#NAME, "float16", matrix_attention_##WAY##_f16);                                   \
        compare(#NAME, "bfloat16", matrix_attention_##WAY##_bf16);                                 \
    }                                                                                              \
    static void convolutions_by_##NAME(void **state)                                               \
    {                                                                                              \
        (void)state;                                                                               \
        compare(#NAME, "float16", matrix_convolution_##WAY##_f16);                                 \
        compare(#NAME, "bfloat16", matrix_convolution_##WAY##_bf16);                               \
    }
MATRIX_EACH_WAY(X)
#undef X

int main(void)
{
    const struct CMUnitTest tests[] = {
#define X(NAME, WAY)                                                                               \
    TEST(products_by_##NAME), TEST(attention_by_##NAME), TEST(convolutions_by_##NAME),
        MATRIX_EACH_WAY(X)
#undef X
    };
    return test_main(tests, sizeof tests / sizeof *tests);
}
