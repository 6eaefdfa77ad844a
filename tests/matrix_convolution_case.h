/* matrix_convolution_case.h -- convolution_matrix.cl as CASE, for matrix_convolution.c, which defines
 * what it is built for. */
#include "convolution_matrix.cl"
static void K(run)(void *of)
{
    const product *p = of;
    K(conv_matrix)(p->c, p->sums, p->a, p->b, p->bias, p->shape);
}
static void K(sum)(void *of)
{
    const product *p = of;
    K(conv_parts)(p->c, p->sums, p->bias, p->shape);
}
#undef CASE
#undef CONV_PASS
#undef CONV_LAST
#undef CONV_UNIT
#undef CONV_IMAGE_ODD
#undef CONV_OTHER_ODD
