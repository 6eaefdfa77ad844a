/* matrix_attention_case.h -- the kernels of attention_matrix.cl and of its gradients as VARIANT,
 * for matrix_attention.c, which defines what they are built for. */
#define MATRIX_PASS 0
#include "attention_matrix.cl"
static void K(run)(void *of)
{
    const problem *p = of;
    K(attention_matrix)
    (p->out, p->lse, p->q, p->k, p->v, p->numbers, p->bools, p->state, p->s, p->kept);
}
#define NOTE_CUTS(pass) enum { TERN_CAT(TERN_CAT(cuts, VARIANT), pass) = CUTS }
NOTE_CUTS(0);
#undef MATRIX_PASS
#define RUN_GRADIENT(name)                                                                         \
    static void K(run)(void *of)                                                                   \
    {                                                                                              \
        const problem *p = of;                                                                     \
        K(name)                                                                                    \
        (p->dq, p->dk, p->dv, p->delta, p->q, p->k, p->v, p->out, p->dout, p->lse, p->numbers,     \
         p->bools, p->state, p->s, p->kept);                                                       \
    }
#define MATRIX_PASS 1
#include "attention_matrix_gradient.cl"
RUN_GRADIENT(attention_matrix_dq)
NOTE_CUTS(1);
#undef MATRIX_PASS
#define MATRIX_PASS 2
#include "attention_matrix_gradient.cl"
RUN_GRADIENT(attention_matrix_dk)
NOTE_CUTS(2);
#undef MATRIX_PASS
#define MATRIX_PASS 3
#include "attention_matrix_gradient.cl"
RUN_GRADIENT(attention_matrix_dv)
NOTE_CUTS(3);
#undef MATRIX_PASS
enum { TERN_CAT(whole, VARIANT) = IS_WHOLE };
#undef VARIANT
#undef MATRIX_WIDTH
#undef MATRIX_EXTRAS
#undef MATRIX_ODD
