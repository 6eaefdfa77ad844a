/* params_host.h -- KERNELn for the host: the kernel as a function of its own, beside it one of the
 * common type that takes its arguments from an array, and an entry in the table of kernels with the
 * parameters as they are written, "(OUT, STO, ys)(ARG, tern_nd_index, w)(ARG, REAL, a)": launches
 * on every device are held against these (device/signature.h). The lowest instruction set, which
 * has every kernel and type, keeps them; kernels with the same ones share the string. */
#include "gather.h"
#define PARAM_(kind, T, a) PARAM_##kind(T, a)
#define PARAM_OUT(T, a)    T *a
#define PARAM_IN(T, a)     const T *a
#define PARAM_ARG(T, a)    const T a

#define FETCH_(i, kind, T) FETCH_##kind(i, T)
#define FETCH_OUT(i, T)    (T *)args[i]
#define FETCH_IN(i, T)     (const T *)args[i]
#define FETCH_ARG(i, T)    *(const T *)args[i]
#define FETCH_0(kind, T, a) FETCH_(0, kind, T)
#define FETCH_1(kind, T, a) FETCH_(1, kind, T)
#define FETCH_2(kind, T, a) FETCH_(2, kind, T)
#define FETCH_3(kind, T, a) FETCH_(3, kind, T)
#define FETCH_4(kind, T, a) FETCH_(4, kind, T)
#define FETCH_5(kind, T, a) FETCH_(5, kind, T)
#define FETCH_6(kind, T, a) FETCH_(6, kind, T)
#define FETCH_7(kind, T, a) FETCH_(7, kind, T)
#define FETCH_8(kind, T, a) FETCH_(8, kind, T)
#define FETCH_9(kind, T, a) FETCH_(9, kind, T)
#define FETCH_10(kind, T, a) FETCH_(10, kind, T)
#define FETCH_11(kind, T, a) FETCH_(11, kind, T)
#define FETCH_12(kind, T, a) FETCH_(12, kind, T)
#define FETCH_13(kind, T, a) FETCH_(13, kind, T)
#define FETCH_14(kind, T, a) FETCH_(14, kind, T)
#define FETCH_15(kind, T, a) FETCH_(15, kind, T)
#define FETCH_16(kind, T, a) FETCH_(16, kind, T)
#define FETCH_17(kind, T, a) FETCH_(17, kind, T)
#define FETCH_18(kind, T, a) FETCH_(18, kind, T)
#define FETCH_19(kind, T, a) FETCH_(19, kind, T)

/* Entries lie one behind the other, without the gaps that compilers like before large objects. */
#define ENTRY_(n, run, text)                                                                       \
    static const tern_host_entry n##_entry GATHERED(TERN_SECTION) = {                              \
        #n, run, TERN_LOWEST ? text : 0};
#define KERNEL_(n, text, parameters, fetched)                                                      \
    static void n##_body parameters;                                                               \
    static void n##_run(const tern_host_grid *grid, void *const *args)                             \
    {                                                                                              \
        n##_body fetched;                                                                          \
    }                                                                                              \
    ENTRY_(n, n##_run, text)                                                                       \
    static void n##_body parameters
/* A kernel that devices have and the host has not. */
#define DECLARED_(n, text) ENTRY_(n, 0, text)
/* The same with its text, which nobody calls: see attention_tiles.cl. */
#define DEVICE_KERNEL_(n, text, parameters, fetched)                                               \
    ENTRY_(n, 0, text)                                                                             \
    static __attribute__((unused)) void n##_body parameters
#define KERNEL1(n, p1) \
    KERNEL_(n, #p1, (const tern_host_grid tern_g, PARAM_ p1), (*grid, FETCH_0 p1))
#define KERNEL2(n, p1, p2)                                                                         \
    KERNEL_(n, #p1 #p2, (const tern_host_grid tern_g, PARAM_ p1, PARAM_ p2),                       \
        (*grid, FETCH_0 p1, FETCH_1 p2))
#define KERNEL3(n, p1, p2, p3)                                                                     \
    KERNEL_(n, #p1 #p2 #p3, (const tern_host_grid tern_g, PARAM_ p1, PARAM_ p2, PARAM_ p3),        \
        (*grid, FETCH_0 p1, FETCH_1 p2, FETCH_2 p3))
#define KERNEL4(n, p1, p2, p3, p4)                                                                 \
    KERNEL_(n, #p1 #p2 #p3 #p4, (const tern_host_grid tern_g, PARAM_ p1, PARAM_ p2, PARAM_ p3,     \
        PARAM_ p4), (*grid, FETCH_0 p1, FETCH_1 p2, FETCH_2 p3, FETCH_3 p4))
#define KERNEL5(n, p1, p2, p3, p4, p5)                                                             \
    KERNEL_(n, #p1 #p2 #p3 #p4 #p5, (const tern_host_grid tern_g, PARAM_ p1, PARAM_ p2, PARAM_ p3, \
        PARAM_ p4, PARAM_ p5), (*grid, FETCH_0 p1, FETCH_1 p2, FETCH_2 p3, FETCH_3 p4,             \
        FETCH_4 p5))
#define KERNEL6(n, p1, p2, p3, p4, p5, p6)                                                         \
    KERNEL_(n, #p1 #p2 #p3 #p4 #p5 #p6, (const tern_host_grid tern_g, PARAM_ p1, PARAM_ p2,        \
        PARAM_ p3, PARAM_ p4, PARAM_ p5, PARAM_ p6), (*grid, FETCH_0 p1, FETCH_1 p2, FETCH_2 p3,   \
        FETCH_3 p4, FETCH_4 p5, FETCH_5 p6))
#define KERNEL7(n, p1, p2, p3, p4, p5, p6, p7)                                                     \
    KERNEL_(n, #p1 #p2 #p3 #p4 #p5 #p6 #p7, (const tern_host_grid tern_g, PARAM_ p1, PARAM_ p2,    \
        PARAM_ p3, PARAM_ p4, PARAM_ p5, PARAM_ p6, PARAM_ p7), (*grid, FETCH_0 p1, FETCH_1 p2,    \
        FETCH_2 p3, FETCH_3 p4, FETCH_4 p5, FETCH_5 p6, FETCH_6 p7))
#define KERNEL8(n, p1, p2, p3, p4, p5, p6, p7, p8)                                                 \
    KERNEL_(n, #p1 #p2 #p3 #p4 #p5 #p6 #p7 #p8, (const tern_host_grid tern_g, PARAM_ p1,           \
        PARAM_ p2, PARAM_ p3, PARAM_ p4, PARAM_ p5, PARAM_ p6, PARAM_ p7, PARAM_ p8), (*grid,      \
        FETCH_0 p1, FETCH_1 p2, FETCH_2 p3, FETCH_3 p4, FETCH_4 p5, FETCH_5 p6, FETCH_6 p7,        \
        FETCH_7 p8))
#define KERNEL9(n, p1, p2, p3, p4, p5, p6, p7, p8, p9)                                             \
    KERNEL_(n, #p1 #p2 #p3 #p4 #p5 #p6 #p7 #p8 #p9, (const tern_host_grid tern_g, PARAM_ p1,       \
        PARAM_ p2, PARAM_ p3, PARAM_ p4, PARAM_ p5, PARAM_ p6, PARAM_ p7, PARAM_ p8, PARAM_ p9),   \
        (*grid, FETCH_0 p1, FETCH_1 p2, FETCH_2 p3, FETCH_3 p4, FETCH_4 p5, FETCH_5 p6,            \
        FETCH_6 p7, FETCH_7 p8, FETCH_8 p9))
#define KERNEL10(n, p1, p2, p3, p4, p5, p6, p7, p8, p9, p10)                                       \
    KERNEL_(n, #p1 #p2 #p3 #p4 #p5 #p6 #p7 #p8 #p9 #p10,                                           \
        (const tern_host_grid tern_g, PARAM_ p1, PARAM_ p2, PARAM_ p3, PARAM_ p4, PARAM_ p5,       \
        PARAM_ p6, PARAM_ p7, PARAM_ p8, PARAM_ p9, PARAM_ p10), (*grid, FETCH_0 p1, FETCH_1 p2,   \
        FETCH_2 p3, FETCH_3 p4, FETCH_4 p5, FETCH_5 p6, FETCH_6 p7, FETCH_7 p8, FETCH_8 p9,        \
        FETCH_9 p10))
#define KERNEL11(n, p1, p2, p3, p4, p5, p6, p7, p8, p9, p10, p11)                                  \
    KERNEL_(n, #p1 #p2 #p3 #p4 #p5 #p6 #p7 #p8 #p9 #p10 #p11,                                      \
        (const tern_host_grid tern_g, PARAM_ p1, PARAM_ p2, PARAM_ p3, PARAM_ p4, PARAM_ p5,       \
        PARAM_ p6, PARAM_ p7, PARAM_ p8, PARAM_ p9, PARAM_ p10, PARAM_ p11), (*grid, FETCH_0 p1,   \
        FETCH_1 p2, FETCH_2 p3, FETCH_3 p4, FETCH_4 p5, FETCH_5 p6, FETCH_6 p7, FETCH_7 p8,        \
        FETCH_8 p9, FETCH_9 p10, FETCH_10 p11))
#define KERNEL12(n, p1, p2, p3, p4, p5, p6, p7, p8, p9, p10, p11, p12)                             \
    KERNEL_(n, #p1 #p2 #p3 #p4 #p5 #p6 #p7 #p8 #p9 #p10 #p11 #p12,                                 \
        (const tern_host_grid tern_g, PARAM_ p1, PARAM_ p2, PARAM_ p3, PARAM_ p4, PARAM_ p5,       \
        PARAM_ p6, PARAM_ p7, PARAM_ p8, PARAM_ p9, PARAM_ p10, PARAM_ p11, PARAM_ p12), (*grid,   \
        FETCH_0 p1, FETCH_1 p2, FETCH_2 p3, FETCH_3 p4, FETCH_4 p5, FETCH_5 p6, FETCH_6 p7,        \
        FETCH_7 p8, FETCH_8 p9, FETCH_9 p10, FETCH_10 p11, FETCH_11 p12))
#define KERNEL13(n, p1, p2, p3, p4, p5, p6, p7, p8, p9, p10, p11, p12, p13)                        \
    KERNEL_(n, #p1 #p2 #p3 #p4 #p5 #p6 #p7 #p8 #p9 #p10 #p11 #p12 #p13,                            \
        (const tern_host_grid tern_g, PARAM_ p1, PARAM_ p2, PARAM_ p3, PARAM_ p4, PARAM_ p5,       \
        PARAM_ p6, PARAM_ p7, PARAM_ p8, PARAM_ p9, PARAM_ p10, PARAM_ p11, PARAM_ p12,            \
        PARAM_ p13), (*grid, FETCH_0 p1, FETCH_1 p2, FETCH_2 p3, FETCH_3 p4, FETCH_4 p5,           \
        FETCH_5 p6, FETCH_6 p7, FETCH_7 p8, FETCH_8 p9, FETCH_9 p10, FETCH_10 p11, FETCH_11 p12,   \
        FETCH_12 p13))
#define KERNEL14(n, p1, p2, p3, p4, p5, p6, p7, p8, p9, p10, p11, p12, p13, p14)                   \
    KERNEL_(n, #p1 #p2 #p3 #p4 #p5 #p6 #p7 #p8 #p9 #p10 #p11 #p12 #p13 #p14,                       \
        (const tern_host_grid tern_g, PARAM_ p1, PARAM_ p2, PARAM_ p3, PARAM_ p4, PARAM_ p5,       \
        PARAM_ p6, PARAM_ p7, PARAM_ p8, PARAM_ p9, PARAM_ p10, PARAM_ p11, PARAM_ p12,            \
        PARAM_ p13, PARAM_ p14), (*grid, FETCH_0 p1, FETCH_1 p2, FETCH_2 p3, FETCH_3 p4,           \
        FETCH_4 p5, FETCH_5 p6, FETCH_6 p7, FETCH_7 p8, FETCH_8 p9, FETCH_9 p10, FETCH_10 p11,     \
        FETCH_11 p12, FETCH_12 p13, FETCH_13 p14))
#define KERNEL15(n, p1, p2, p3, p4, p5, p6, p7, p8, p9, p10, p11, p12, p13, p14, p15)              \
    KERNEL_(n, #p1 #p2 #p3 #p4 #p5 #p6 #p7 #p8 #p9 #p10 #p11 #p12 #p13 #p14 #p15,                  \
        (const tern_host_grid tern_g, PARAM_ p1, PARAM_ p2, PARAM_ p3, PARAM_ p4, PARAM_ p5,       \
        PARAM_ p6, PARAM_ p7, PARAM_ p8, PARAM_ p9, PARAM_ p10, PARAM_ p11, PARAM_ p12,            \
        PARAM_ p13, PARAM_ p14, PARAM_ p15), (*grid, FETCH_0 p1, FETCH_1 p2, FETCH_2 p3,           \
        FETCH_3 p4, FETCH_4 p5, FETCH_5 p6, FETCH_6 p7, FETCH_7 p8, FETCH_8 p9, FETCH_9 p10,       \
        FETCH_10 p11, FETCH_11 p12, FETCH_12 p13, FETCH_13 p14, FETCH_14 p15))
#define KERNEL16(n, p1, p2, p3, p4, p5, p6, p7, p8, p9, p10, p11, p12, p13, p14, p15, p16)         \
    KERNEL_(n, #p1 #p2 #p3 #p4 #p5 #p6 #p7 #p8 #p9 #p10 #p11 #p12 #p13 #p14 #p15 #p16,             \
        (const tern_host_grid tern_g, PARAM_ p1, PARAM_ p2, PARAM_ p3, PARAM_ p4, PARAM_ p5,       \
        PARAM_ p6, PARAM_ p7, PARAM_ p8, PARAM_ p9, PARAM_ p10, PARAM_ p11, PARAM_ p12,            \
        PARAM_ p13, PARAM_ p14, PARAM_ p15, PARAM_ p16), (*grid, FETCH_0 p1, FETCH_1 p2,           \
        FETCH_2 p3, FETCH_3 p4, FETCH_4 p5, FETCH_5 p6, FETCH_6 p7, FETCH_7 p8, FETCH_8 p9,        \
        FETCH_9 p10, FETCH_10 p11, FETCH_11 p12, FETCH_12 p13, FETCH_13 p14, FETCH_14 p15,         \
        FETCH_15 p16))
#define KERNEL17(n, p1, p2, p3, p4, p5, p6, p7, p8, p9, p10, p11, p12, p13, p14, p15, p16, p17)    \
    KERNEL_(n, #p1 #p2 #p3 #p4 #p5 #p6 #p7 #p8 #p9 #p10 #p11 #p12 #p13 #p14 #p15 #p16 #p17,        \
        (const tern_host_grid tern_g, PARAM_ p1, PARAM_ p2, PARAM_ p3, PARAM_ p4, PARAM_ p5,       \
        PARAM_ p6, PARAM_ p7, PARAM_ p8, PARAM_ p9, PARAM_ p10, PARAM_ p11, PARAM_ p12,            \
        PARAM_ p13, PARAM_ p14, PARAM_ p15, PARAM_ p16, PARAM_ p17), (*grid, FETCH_0 p1,           \
        FETCH_1 p2, FETCH_2 p3, FETCH_3 p4, FETCH_4 p5, FETCH_5 p6, FETCH_6 p7, FETCH_7 p8,        \
        FETCH_8 p9, FETCH_9 p10, FETCH_10 p11, FETCH_11 p12, FETCH_12 p13, FETCH_13 p14,           \
        FETCH_14 p15, FETCH_15 p16, FETCH_16 p17))
#define KERNEL18(n, p1, p2, p3, p4, p5, p6, p7, p8, p9, p10, p11, p12, p13, p14, p15, p16, p17,    \
    p18)                                                                                           \
    KERNEL_(n, #p1 #p2 #p3 #p4 #p5 #p6 #p7 #p8 #p9 #p10 #p11 #p12 #p13 #p14 #p15 #p16 #p17 #p18,   \
        (const tern_host_grid tern_g, PARAM_ p1, PARAM_ p2, PARAM_ p3, PARAM_ p4, PARAM_ p5,       \
        PARAM_ p6, PARAM_ p7, PARAM_ p8, PARAM_ p9, PARAM_ p10, PARAM_ p11, PARAM_ p12,            \
        PARAM_ p13, PARAM_ p14, PARAM_ p15, PARAM_ p16, PARAM_ p17, PARAM_ p18), (*grid,           \
        FETCH_0 p1, FETCH_1 p2, FETCH_2 p3, FETCH_3 p4, FETCH_4 p5, FETCH_5 p6, FETCH_6 p7,        \
        FETCH_7 p8, FETCH_8 p9, FETCH_9 p10, FETCH_10 p11, FETCH_11 p12, FETCH_12 p13,             \
        FETCH_13 p14, FETCH_14 p15, FETCH_15 p16, FETCH_16 p17, FETCH_17 p18))
#define KERNEL19(n, p1, p2, p3, p4, p5, p6, p7, p8, p9, p10, p11, p12, p13, p14, p15, p16, p17,    \
    p18, p19)                                                                                      \
    KERNEL_(n, #p1 #p2 #p3 #p4 #p5 #p6 #p7 #p8 #p9 #p10 #p11 #p12 #p13 #p14 #p15 #p16 #p17 #p18    \
        #p19, (const tern_host_grid tern_g, PARAM_ p1, PARAM_ p2, PARAM_ p3, PARAM_ p4, PARAM_ p5, \
        PARAM_ p6, PARAM_ p7, PARAM_ p8, PARAM_ p9, PARAM_ p10, PARAM_ p11, PARAM_ p12,            \
        PARAM_ p13, PARAM_ p14, PARAM_ p15, PARAM_ p16, PARAM_ p17, PARAM_ p18, PARAM_ p19),       \
        (*grid, FETCH_0 p1, FETCH_1 p2, FETCH_2 p3, FETCH_3 p4, FETCH_4 p5, FETCH_5 p6,            \
        FETCH_6 p7, FETCH_7 p8, FETCH_8 p9, FETCH_9 p10, FETCH_10 p11, FETCH_11 p12, FETCH_12 p13, \
        FETCH_13 p14, FETCH_14 p15, FETCH_15 p16, FETCH_16 p17, FETCH_17 p18, FETCH_18 p19))
#define KERNEL20(n, p1, p2, p3, p4, p5, p6, p7, p8, p9, p10, p11, p12, p13, p14, p15, p16, p17,    \
    p18, p19, p20)                                                                                 \
    KERNEL_(n, #p1 #p2 #p3 #p4 #p5 #p6 #p7 #p8 #p9 #p10 #p11 #p12 #p13 #p14 #p15 #p16 #p17 #p18    \
        #p19 #p20, (const tern_host_grid tern_g, PARAM_ p1, PARAM_ p2, PARAM_ p3, PARAM_ p4,       \
        PARAM_ p5, PARAM_ p6, PARAM_ p7, PARAM_ p8, PARAM_ p9, PARAM_ p10, PARAM_ p11, PARAM_ p12, \
        PARAM_ p13, PARAM_ p14, PARAM_ p15, PARAM_ p16, PARAM_ p17, PARAM_ p18, PARAM_ p19,        \
        PARAM_ p20), (*grid, FETCH_0 p1, FETCH_1 p2, FETCH_2 p3, FETCH_3 p4, FETCH_4 p5,           \
        FETCH_5 p6, FETCH_6 p7, FETCH_7 p8, FETCH_8 p9, FETCH_9 p10, FETCH_10 p11, FETCH_11 p12,   \
        FETCH_12 p13, FETCH_13 p14, FETCH_14 p15, FETCH_15 p16, FETCH_16 p17, FETCH_17 p18,        \
        FETCH_18 p19, FETCH_19 p20))
