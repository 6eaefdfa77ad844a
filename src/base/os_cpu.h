/* os_cpu.h -- features of the processor whose registers the system saves for each thread. */
#ifndef TERN_BASE_OS_CPU_H
#define TERN_BASE_OS_CPU_H
#include <stdbool.h>

typedef enum tern_cpu_feature {
    TERN_CPU_SSSE3 = 1,
    TERN_CPU_SSE4_2 = 2,
    TERN_CPU_AVX2 = 4,
    TERN_CPU_FMA = 8,
    TERN_CPU_BMI2 = 16,
    TERN_CPU_AVX512F = 32,
    TERN_CPU_AVX512CD = 64,
    TERN_CPU_AVX512BW = 128,
    TERN_CPU_AVX512DQ = 256,
    TERN_CPU_AVX512VL = 512,
    TERN_CPU_AVX512BF16 = 1024,
    TERN_CPU_DOTPROD = 2048 /* Arm's SDOT and UDOT */
} tern_cpu_feature;

/* Returns whether the processor has all of these features, which are joined by
 * . (The compiler's __builtin_cpu_supports is not available everywhere.) */
bool tern_cpu_has(unsigned features);

#endif
