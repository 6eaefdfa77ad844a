/* multi_tensor.h -- kernels over the chunks of many tensors: how they find them, in two forms, and what
 * optimizers share. */
#ifndef TERN_MULTI_TENSOR_H
#define TERN_MULTI_TENSOR_H

/* ---- the two forms of a kernel over many tensors -------------------------------------------
 * NAME follows the table's rows as addresses. NAME_few is for devices whose memory has none: the
 * tensors of TERN_MULTI_FEW rows are its arguments, and the table has 1 + the first element's offset.
 * TABLE_ and ARGUMENTS_ find the tensors of chunk c, ps gs as bs cs; 0 where there is none. */
#define TABLE_(c)                                                                                  \
    tern_multi_row row = rows[chunks[c].row];                                                      \
    GLOBAL STO *ps = (GLOBAL STO *)row.address[0], *gs = (GLOBAL STO *)row.address[1];             \
    GLOBAL REAL *as = (GLOBAL REAL *)row.address[2], *bs = (GLOBAL REAL *)row.address[3];          \
    GLOBAL REAL *cs = (GLOBAL REAL *)row.address[4];

#ifdef __OPENCL_VERSION__
#define TWENTY_(M)                                                                                 \
    M(0) M(1) M(2) M(3) M(4) M(5) M(6) M(7) M(8) M(9)                                              \
    M(10) M(11) M(12) M(13) M(14) M(15) M(16) M(17) M(18) M(19)
#define ARGUMENT_(i) , GLOBAL STO *p##i, GLOBAL STO *g##i, GLOBAL REAL *a##i, GLOBAL REAL *b##i, GLOBAL REAL *c##i
#define PICK_(i)                                                                                   \
    case i:                                                                                        \
        ps = p##i, gs = g##i, as = a##i, bs = b##i, cs = c##i;                                     \
        break;
#define PLACE_(T, p, k) p = row.address[k] != 0 ? p + (idx)(row.address[k] - 1) : (GLOBAL T *)0;
#define ARGUMENTS_(c)                                                                              \
    tern_multi_row row = rows[chunks[c].row];                                                      \
    GLOBAL STO *ps = 0, *gs = 0;                                                                   \
    GLOBAL REAL *as = 0, *bs = 0, *cs = 0;                                                         \
    switch ((i32)(chunks[c].row % TERN_MULTI_FEW)) {                                               \
        TWENTY_(PICK_)                                                                             \
    }                                                                                              \
    PLACE_(STO, ps, 0)                                                                             \
    PLACE_(STO, gs, 1)                                                                             \
    PLACE_(REAL, as, 2)                                                                            \
    PLACE_(REAL, bs, 3)                                                                            \
    PLACE_(REAL, cs, 4)
#endif

/* An optimizer. steps counts for each chunk, so that no two groups meet. Nothing changes after a
 * fault on the device, or where *skip says so. */
#define OPTIMIZER_BODY_(NAME, FIND)                                                                \
    {                                                                                              \
        BASE(rows);                                                                                \
        BASE(chunks);                                                                              \
        BASE(steps);                                                                               \
        BASE(h);                                                                                   \
        BASE(skip);                                                                                \
        BASE(faults);                                                                              \
        idx count = faults[0] != 0 || skip[0] != 0 ? 0 : (idx)n;                                   \
        GROUPS(c, count)                                                                           \
        {                                                                                          \
            idx at = (idx)chunks[c].first;                                                         \
            i64 t = steps[c] + 1;                                                                  \
            BARRIER();                                                                             \
            FIND(c)                                                                                \
            if (gs != 0) {                                                                         \
                K(NAME##_chunk)(ps + at, gs + at, as + at, bs + at, cs + at,                       \
                                (idx)chunks[c].count, t, h, flags);                                \
                LANES(j, 1) steps[c] = t;                                                          \
            }                                                                                      \
        }                                                                                          \
    }
#define OPTIMIZER_MANY_(NAME, BODY)                                                                \
    KERNEL8(K(NAME), (IN, tern_multi_row, rows), (IN, tern_multi_chunk, chunks),                   \
            (OUT, i64, steps), (IN, REAL, h), (IN, f32, skip), (IN, i64, faults), (ARG, i64, n),   \
            (ARG, i32, flags))                                                                     \
    BODY(NAME, TABLE_)
#ifdef __OPENCL_VERSION__
#define OPTIMIZER_FORMS(NAME, BODY)                                                                \
    OPTIMIZER_MANY_(NAME, BODY)                                                                    \
    TERN_KERNEL(K(NAME##_few))                                                                     \
    (PARAM_IN(tern_multi_row, rows), PARAM_IN(tern_multi_chunk, chunks), PARAM_OUT(i64, steps),    \
     PARAM_IN(REAL, h), PARAM_IN(f32, skip), PARAM_IN(i64, faults), PARAM_ARG(i64, n),             \
     PARAM_ARG(i32, flags) TWENTY_(ARGUMENT_))                                                     \
    BODY(NAME, ARGUMENTS_)
#else
#define OPTIMIZER_FORMS(NAME, BODY) OPTIMIZER_MANY_(NAME, BODY)
#endif
#define OPTIMIZER(NAME) OPTIMIZER_FORMS(NAME, OPTIMIZER_BODY_)

/* 1 - beta^t without cancellation: -(e^x - 1), x = t log(beta), by its series near 0. */
#define ONE_MINUS_POWER                                                                            \
    INLINE REAL K(one_minus_power)(REAL log_beta, i64 t)                                           \
    {                                                                                              \
        REAL x = (REAL)t * log_beta, series = C(1.0);                                              \
        for (i32 k = 18; k >= 2; k--)                                                              \
            series = C(1.0) + x / (REAL)k * series;                                                \
        return x > C(-0.35) ? -x * series : C(1.0) - exp(x);                                       \
    }
#endif
