/* matrix_gemm_case.h -- gemm_matrix.cl as CASE, for matrix_gemm.c, which defines what it is built
 * for. */
#include "gemm_matrix.cl"
static void K(run)(void *of)
{
    const product *p = of;
    K(gemm_matrix)
    (p->c, p->a, p->b, p->bias, p->shape, p->alpha, p->beta);
}
#undef CASE
#undef MATRIX_TA
#undef MATRIX_TB
#undef MATRIX_ODD
