/* sanitizers.c -- how the sanitizers take it when too much memory is asked for: as a system that
 * has none. */
#include "fuzz.h"
#include <sys/resource.h>

const char *__asan_default_options(void);
const char *__ubsan_default_options(void);

const char *__asan_default_options(void)
{
    return "allocator_may_return_null=1:max_allocation_size_mb=8:soft_rss_limit_mb=3000:"
           "handle_abort=1:detect_stack_use_after_return=0:detect_odr_violation=0";
}

const char *__ubsan_default_options(void)
{
    return "print_stacktrace=1";
}

/* Elsewhere the address space is small. */
__attribute__((constructor)) static void limit_memory(void)
{
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
    struct rlimit limit = {3ULL << 30, 3ULL << 30};
    setrlimit(RLIMIT_AS, &limit);
#endif
}
