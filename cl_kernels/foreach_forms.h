/* foreach_forms.h -- kernels over the chunks of many tensors, in two forms that find them. */
#ifndef TERN_FOREACH_FORMS_H
#define TERN_FOREACH_FORMS_H

/* ---- the two forms of a kernel over many tensors -------------------------------------------
 * NAME follows the table's rows as addresses. NAME_arguments is for devices whose memory has none:
 * the tensors of TERN_FOREACH_ARGUMENTS rows are its arguments, and the table has 1 + the first
 * element's offset. TABLE_ and ARGUMENTS_ find the tensors of chunk c, ps gs as bs cs; 0 where
 * there is none. */
#define TABLE_(c)                                                                                  \
    tern_foreach_row row = rows[chunks[c].row];                                                    \
    GLOBAL STO *ps = (GLOBAL STO *)row.address[0], *gs = (GLOBAL STO *)row.address[1];             \
    GLOBAL REAL *as = (GLOBAL REAL *)row.address[2], *bs = (GLOBAL REAL *)row.address[3];          \
    GLOBAL REAL *cs = (GLOBAL REAL *)row.address[4];

#ifdef __OPENCL_VERSION__
#define TWENTY_(M)                                                                                 \
    M(0) M(1) M(2) M(3) M(4) M(5) M(6) M(7) M(8) M(9)                                              \
    M(10) M(11) M(12) M(13) M(14) M(15) M(16) M(17) M(18) M(19)
#define ARGUMENT_(i) , GLOBAL STO *p##i, GLOBAL STO *g##i, GLOBAL REAL *a##i, GLOBAL REAL *b##i,   \
    GLOBAL REAL *c##i
#define PICK_(i)                                                                                   \
    case i:                                                                                        \
        ps = p##i, gs = g##i, as = a##i, bs = b##i, cs = c##i;                                     \
        break;
#define PLACE_(T, p, k) p = row.address[k] != 0 ? p + (i64)(row.address[k] - 1) : (GLOBAL T *)0;
#define ARGUMENTS_(c)                                                                              \
    tern_foreach_row row = rows[chunks[c].row];                                                    \
    GLOBAL STO *ps = 0, *gs = 0;                                                                   \
    GLOBAL REAL *as = 0, *bs = 0, *cs = 0;                                                         \
    switch ((i32)(chunks[c].row % TERN_FOREACH_ARGUMENTS)) {                                       \
        TWENTY_(PICK_)                                                                             \
    }                                                                                              \
    PLACE_(STO, ps, 0)                                                                             \
    PLACE_(STO, gs, 1)                                                                             \
    PLACE_(REAL, as, 2)                                                                            \
    PLACE_(REAL, bs, 3)                                                                            \
    PLACE_(REAL, cs, 4)
#define LISTED_(NAME, BODY, parameters)                                                            \
    TERN_KERNEL(K(NAME##_arguments)) parameters BODY(NAME, ARGUMENTS_)
#define LISTED4_(NAME, BODY, p1, p2, p3, p4)                                                       \
    LISTED_(NAME, BODY, (PARAM_ p1, PARAM_ p2, PARAM_ p3, PARAM_ p4 TWENTY_(ARGUMENT_)))
#define LISTED5_(NAME, BODY, p1, p2, p3, p4, p5)                                                   \
    LISTED_(NAME, BODY, (PARAM_ p1, PARAM_ p2, PARAM_ p3, PARAM_ p4, PARAM_ p5 TWENTY_(ARGUMENT_)))
#define LISTED6_(NAME, BODY, p1, p2, p3, p4, p5, p6)                                               \
    LISTED_(NAME, BODY, (PARAM_ p1, PARAM_ p2, PARAM_ p3, PARAM_ p4, PARAM_ p5, PARAM_ p6          \
                      TWENTY_(ARGUMENT_)))
#define LISTED7_(NAME, BODY, p1, p2, p3, p4, p5, p6, p7)                                           \
    LISTED_(NAME, BODY, (PARAM_ p1, PARAM_ p2, PARAM_ p3, PARAM_ p4, PARAM_ p5, PARAM_ p6,         \
                         PARAM_ p7                                                                 \
                      TWENTY_(ARGUMENT_)))
#elif TERN_HOST
#define LISTED_(NAME, text)                                                                        \
    DECLARED_(K(NAME##_arguments), text                                                            \
              "*20(OUT, STO, p)(OUT, STO, g)(OUT, REAL, a)(OUT, REAL, b)(OUT, REAL, c)")
#define LISTED4_(NAME, BODY, p1, p2, p3, p4)             LISTED_(NAME, #p1 #p2 #p3 #p4)
#define LISTED5_(NAME, BODY, p1, p2, p3, p4, p5)         LISTED_(NAME, #p1 #p2 #p3 #p4 #p5)
#define LISTED6_(NAME, BODY, p1, p2, p3, p4, p5, p6)     LISTED_(NAME, #p1 #p2 #p3 #p4 #p5 #p6)
#define LISTED7_(NAME, BODY, p1, p2, p3, p4, p5, p6, p7) LISTED_(NAME, #p1 #p2 #p3 #p4 #p5 #p6 #p7)
#else
#define LISTED4_(NAME, BODY, p1, p2, p3, p4)
#define LISTED5_(NAME, BODY, p1, p2, p3, p4, p5)
#define LISTED6_(NAME, BODY, p1, p2, p3, p4, p5, p6)
#define LISTED7_(NAME, BODY, p1, p2, p3, p4, p5, p6, p7)
#endif
#define BOTH4_(NAME, BODY, p1, p2, p3, p4)                                                         \
    LISTED4_(NAME, BODY, p1, p2, p3, p4)                                                           \
    KERNEL4(K(NAME), p1, p2, p3, p4)                                                               \
    BODY(NAME, TABLE_)
#define BOTH5_(NAME, BODY, p1, p2, p3, p4, p5)                                                     \
    LISTED5_(NAME, BODY, p1, p2, p3, p4, p5)                                                       \
    KERNEL5(K(NAME), p1, p2, p3, p4, p5)                                                           \
    BODY(NAME, TABLE_)
#define BOTH6_(NAME, BODY, p1, p2, p3, p4, p5, p6)                                                 \
    LISTED6_(NAME, BODY, p1, p2, p3, p4, p5, p6)                                                   \
    KERNEL6(K(NAME), p1, p2, p3, p4, p5, p6)                                                       \
    BODY(NAME, TABLE_)
#define BOTH7_(NAME, BODY, p1, p2, p3, p4, p5, p6, p7)                                             \
    LISTED7_(NAME, BODY, p1, p2, p3, p4, p5, p6, p7)                                               \
    KERNEL7(K(NAME), p1, p2, p3, p4, p5, p6, p7)                                                   \
    BODY(NAME, TABLE_)

/* BODY(NAME, how a chunk's tensors are found) as a kernel in both forms, with none to three
 * parameters besides those that all have. */
#define ROWS_   (IN, tern_foreach_row, rows)
#define CHUNKS_ (IN, tern_foreach_chunk, chunks)
#define FAULTS_ (IN, i64, faults)
#define N_      (ARG, i64, n)
#define FOREACH0(NAME, BODY)          BOTH4_(NAME, BODY, ROWS_, CHUNKS_, FAULTS_, N_)
#define FOREACH1(NAME, BODY, p)       BOTH5_(NAME, BODY, ROWS_, CHUNKS_, p, FAULTS_, N_)
#define FOREACH2(NAME, BODY, p, q)    BOTH6_(NAME, BODY, ROWS_, CHUNKS_, p, q, FAULTS_, N_)
#define FOREACH3(NAME, BODY, p, q, r) BOTH7_(NAME, BODY, ROWS_, CHUNKS_, p, q, r, FAULTS_, N_)
#endif
