/* os_cpu.c -- the features of the processor: CPUID, with XGETBV for the registers that the system
 * saves; on Arm, HWCAP of Linux. */
#include "base/os_cpu.h"
#include <stdatomic.h>
#if defined __x86_64__
#include <cpuid.h>

static unsigned find_features(void)
{
    enum { XSAVE_USED = 1 << 27, AVX = 0x6, AVX512 = 0xe6 };
    unsigned a, b, c, d, b7 = 0, a71 = 0, found = 0, saved = 0, high;
    if (!__get_cpuid(1, &a, &b, &c, &d))
        return 0;
    found |= c & 1 << 9 ? TERN_CPU_SSSE3 : 0;
    found |= c & 1 << 20 ? TERN_CPU_SSE4_2 : 0;
    if (c & XSAVE_USED)
        __asm__ volatile("xgetbv" : "=a"(saved), "=d"(high) : "c"(0));
    if ((saved & AVX) == AVX && c & 1 << 12)
        found |= TERN_CPU_FMA;
    if (!__get_cpuid_count(7, 0, &a, &b7, &c, &d))
        return found;
    if (a >= 1) /* a: the highest subleaf of leaf 7 */
        __get_cpuid_count(7, 1, &a71, &b, &c, &d);
    found |= b7 & 1 << 8 ? TERN_CPU_BMI2 : 0;
    if ((saved & AVX) == AVX)
        found |= b7 & 1 << 5 ? TERN_CPU_AVX2 : 0;
    if ((saved & AVX512) != AVX512)
        return found;
    found |= b7 & 1 << 16 ? TERN_CPU_AVX512F : 0;
    found |= b7 & 1 << 17 ? TERN_CPU_AVX512DQ : 0;
    found |= b7 & 1 << 28 ? TERN_CPU_AVX512CD : 0;
    found |= b7 & 1 << 30 ? TERN_CPU_AVX512BW : 0;
    found |= b7 & 1u << 31 ? TERN_CPU_AVX512VL : 0;
    found |= a71 & 1 << 5 ? TERN_CPU_AVX512BF16 : 0;
    return found;
}
#elif defined __aarch64__ && defined __linux__
#include <sys/auxv.h>
static unsigned find_features(void)
{
    enum { ASIMDDP = 1 << 20 };
    return getauxval(AT_HWCAP) & ASIMDDP ? TERN_CPU_DOTPROD : 0;
}
#elif defined __aarch64__ && defined __APPLE__
static unsigned find_features(void)
{
    return TERN_CPU_DOTPROD; /* all of Apple's processors with macOS have it */
}
#else
static unsigned find_features(void)
{
    return 0;
}
#endif

bool tern_cpu_has(unsigned features)
{
    static atomic_uint known; /* 1 << 31: the features were read */
    unsigned found = atomic_load_explicit(&known, memory_order_relaxed);
    if (!found) {
        found = find_features() | 1u << 31;
        atomic_store_explicit(&known, found, memory_order_relaxed);
    }
    return (found & features) == features;
}
