/* params_device.h -- KERNELn for OpenCL and CUDA: OpenCL C 1.2 has no variadic macros. Before a
 * kernel's own parameters are those of the chain in it (chain_slots.h). */
#define PARAM_(kind, T, a) PARAM_##kind(T, a)
#define FIRST_(kind, T, a) CHAIN_PARAMETERS PARAM_##kind(T, a)
#define CHAIN_PARAMETERS
#define KERNEL1(n, p1) \
    TERN_KERNEL(n)(FIRST_ p1)
#define KERNEL2(n, p1, p2) \
    TERN_KERNEL(n)(FIRST_ p1, PARAM_ p2)
#define KERNEL3(n, p1, p2, p3) \
    TERN_KERNEL(n)(FIRST_ p1, PARAM_ p2, PARAM_ p3)
#define KERNEL4(n, p1, p2, p3, p4) \
    TERN_KERNEL(n)(FIRST_ p1, PARAM_ p2, PARAM_ p3, PARAM_ p4)
#define KERNEL5(n, p1, p2, p3, p4, p5) \
    TERN_KERNEL(n)(FIRST_ p1, PARAM_ p2, PARAM_ p3, PARAM_ p4, PARAM_ p5)
#define KERNEL6(n, p1, p2, p3, p4, p5, p6) \
    TERN_KERNEL(n)(FIRST_ p1, PARAM_ p2, PARAM_ p3, PARAM_ p4, PARAM_ p5, PARAM_ p6)
#define KERNEL7(n, p1, p2, p3, p4, p5, p6, p7) \
    TERN_KERNEL(n)(FIRST_ p1, PARAM_ p2, PARAM_ p3, PARAM_ p4, PARAM_ p5, PARAM_ p6, PARAM_ p7)
#define KERNEL8(n, p1, p2, p3, p4, p5, p6, p7, p8)                                                 \
    TERN_KERNEL(n)(FIRST_ p1, PARAM_ p2, PARAM_ p3, PARAM_ p4, PARAM_ p5, PARAM_ p6, PARAM_ p7,    \
        PARAM_ p8)
#define KERNEL9(n, p1, p2, p3, p4, p5, p6, p7, p8, p9)                                             \
    TERN_KERNEL(n)(FIRST_ p1, PARAM_ p2, PARAM_ p3, PARAM_ p4, PARAM_ p5, PARAM_ p6, PARAM_ p7,    \
        PARAM_ p8, PARAM_ p9)
#define KERNEL10(n, p1, p2, p3, p4, p5, p6, p7, p8, p9, p10)                                       \
    TERN_KERNEL(n)(FIRST_ p1, PARAM_ p2, PARAM_ p3, PARAM_ p4, PARAM_ p5, PARAM_ p6, PARAM_ p7,    \
        PARAM_ p8, PARAM_ p9, PARAM_ p10)
#define KERNEL11(n, p1, p2, p3, p4, p5, p6, p7, p8, p9, p10, p11)                                  \
    TERN_KERNEL(n)(FIRST_ p1, PARAM_ p2, PARAM_ p3, PARAM_ p4, PARAM_ p5, PARAM_ p6, PARAM_ p7,    \
        PARAM_ p8, PARAM_ p9, PARAM_ p10, PARAM_ p11)
#define KERNEL12(n, p1, p2, p3, p4, p5, p6, p7, p8, p9, p10, p11, p12)                             \
    TERN_KERNEL(n)(FIRST_ p1, PARAM_ p2, PARAM_ p3, PARAM_ p4, PARAM_ p5, PARAM_ p6, PARAM_ p7,    \
        PARAM_ p8, PARAM_ p9, PARAM_ p10, PARAM_ p11, PARAM_ p12)
#define KERNEL13(n, p1, p2, p3, p4, p5, p6, p7, p8, p9, p10, p11, p12, p13)                        \
    TERN_KERNEL(n)(FIRST_ p1, PARAM_ p2, PARAM_ p3, PARAM_ p4, PARAM_ p5, PARAM_ p6, PARAM_ p7,    \
        PARAM_ p8, PARAM_ p9, PARAM_ p10, PARAM_ p11, PARAM_ p12, PARAM_ p13)
#define KERNEL14(n, p1, p2, p3, p4, p5, p6, p7, p8, p9, p10, p11, p12, p13, p14)                   \
    TERN_KERNEL(n)(FIRST_ p1, PARAM_ p2, PARAM_ p3, PARAM_ p4, PARAM_ p5, PARAM_ p6, PARAM_ p7,    \
        PARAM_ p8, PARAM_ p9, PARAM_ p10, PARAM_ p11, PARAM_ p12, PARAM_ p13, PARAM_ p14)
#define KERNEL15(n, p1, p2, p3, p4, p5, p6, p7, p8, p9, p10, p11, p12, p13, p14, p15)              \
    TERN_KERNEL(n)(FIRST_ p1, PARAM_ p2, PARAM_ p3, PARAM_ p4, PARAM_ p5, PARAM_ p6, PARAM_ p7,    \
        PARAM_ p8, PARAM_ p9, PARAM_ p10, PARAM_ p11, PARAM_ p12, PARAM_ p13, PARAM_ p14,          \
        PARAM_ p15)
#define KERNEL16(n, p1, p2, p3, p4, p5, p6, p7, p8, p9, p10, p11, p12, p13, p14, p15, p16)         \
    TERN_KERNEL(n)(FIRST_ p1, PARAM_ p2, PARAM_ p3, PARAM_ p4, PARAM_ p5, PARAM_ p6, PARAM_ p7,    \
        PARAM_ p8, PARAM_ p9, PARAM_ p10, PARAM_ p11, PARAM_ p12, PARAM_ p13, PARAM_ p14,          \
        PARAM_ p15, PARAM_ p16)
#define KERNEL17(n, p1, p2, p3, p4, p5, p6, p7, p8, p9, p10, p11, p12, p13, p14, p15, p16, p17)    \
    TERN_KERNEL(n)(FIRST_ p1, PARAM_ p2, PARAM_ p3, PARAM_ p4, PARAM_ p5, PARAM_ p6, PARAM_ p7,    \
        PARAM_ p8, PARAM_ p9, PARAM_ p10, PARAM_ p11, PARAM_ p12, PARAM_ p13, PARAM_ p14,          \
        PARAM_ p15, PARAM_ p16, PARAM_ p17)
#define KERNEL18(n, p1, p2, p3, p4, p5, p6, p7, p8, p9, p10, p11, p12, p13, p14, p15, p16, p17,    \
    p18)                                                                                           \
    TERN_KERNEL(n)(FIRST_ p1, PARAM_ p2, PARAM_ p3, PARAM_ p4, PARAM_ p5, PARAM_ p6, PARAM_ p7,    \
        PARAM_ p8, PARAM_ p9, PARAM_ p10, PARAM_ p11, PARAM_ p12, PARAM_ p13, PARAM_ p14,          \
        PARAM_ p15, PARAM_ p16, PARAM_ p17, PARAM_ p18)
#define KERNEL19(n, p1, p2, p3, p4, p5, p6, p7, p8, p9, p10, p11, p12, p13, p14, p15, p16, p17,    \
    p18, p19)                                                                                      \
    TERN_KERNEL(n)(FIRST_ p1, PARAM_ p2, PARAM_ p3, PARAM_ p4, PARAM_ p5, PARAM_ p6, PARAM_ p7,    \
        PARAM_ p8, PARAM_ p9, PARAM_ p10, PARAM_ p11, PARAM_ p12, PARAM_ p13, PARAM_ p14,          \
        PARAM_ p15, PARAM_ p16, PARAM_ p17, PARAM_ p18, PARAM_ p19)
#define KERNEL20(n, p1, p2, p3, p4, p5, p6, p7, p8, p9, p10, p11, p12, p13, p14, p15, p16, p17,    \
    p18, p19, p20)                                                                                 \
    TERN_KERNEL(n)(FIRST_ p1, PARAM_ p2, PARAM_ p3, PARAM_ p4, PARAM_ p5, PARAM_ p6, PARAM_ p7,    \
        PARAM_ p8, PARAM_ p9, PARAM_ p10, PARAM_ p11, PARAM_ p12, PARAM_ p13, PARAM_ p14,          \
        PARAM_ p15, PARAM_ p16, PARAM_ p17, PARAM_ p18, PARAM_ p19, PARAM_ p20)
