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

/* By both types of halves, or by one where a build has one for each instruction: the odd ones bfloat16. */
#ifdef MATRIX_ONE_TYPE
#define HAS(WAY, IS_BF16) ((WAY) % 2 == (IS_BF16))
#else
#define HAS(WAY, IS_BF16) true
#endif
#define COMPARE(NAME, WAY, TEST)                                                                   \
    do {                                                                                           \
        if (HAS(WAY, 0))                                                                           \
            compare(#NAME, "float16", TEST##_f16);                                                 \
        if (HAS(WAY, 1))                                                                           \
            compare(#NAME, "bfloat16", TEST##_bf16);                                               \
    } while (0)

#define X(NAME, WAY)                                                                               \
    static void products_by_##NAME(void **state)                                                   \
    {                                                                                              \
        (void)state;                                                                               \
        COMPARE(NAME, WAY, matrix_gemm_##WAY);                                                     \
    }                                                                                              \
    static void attention_by_##NAME(void **state)                                                  \
    {                                                                                              \
        (void)state;                                                                               \
        COMPARE(NAME, WAY, matrix_attention_##WAY);                                                \
    }                                                                                              \
    static void convolutions_by_##NAME(void **state)                                               \
    {                                                                                              \
        (void)state;                                                                               \
        COMPARE(NAME, WAY, matrix_convolution_##WAY);                                              \
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
