/* sanitizers.c -- how the sanitizers take it when too much memory is asked for: as a system that
 * has none. */
#include "fuzz.h"
#include <stdlib.h>

const char *__asan_default_options(void);
const char *__ubsan_default_options(void);

#ifdef TERN_LIBFUZZER /* it has tables of its own */
#define MOST "64"
#else
#define MOST "8"
#endif

const char *__asan_default_options(void)
{
    return "allocator_may_return_null=1:max_allocation_size_mb=" MOST ":soft_rss_limit_mb=3000:"
           "handle_abort=1:detect_stack_use_after_return=0:detect_odr_violation=0";
}

const char *__ubsan_default_options(void)
{
    return "print_stacktrace=1";
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#if defined(__has_feature)
#define SANITIZED (__has_feature(address_sanitizer) || __has_feature(thread_sanitizer))
#else
#define SANITIZED 0
#endif
#else
#define SANITIZED 1
#endif

size_t fuzz_most_bytes = 8 << 20;

/* Elsewhere malloc and its like do the same, so that a program does the same in every build. */
#if !SANITIZED && defined(__GLIBC__)
#include <errno.h>
#include <malloc.h>

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *block, size_t size);
void *__libc_memalign(size_t align, size_t size);

static bool refused(size_t size)
{
    if (size <= fuzz_most_bytes)
        return false;
    errno = ENOMEM;
    return true;
}

void *malloc(size_t size)
{
    return refused(size) ? NULL : __libc_malloc(size);
}

void *calloc(size_t n, size_t size)
{
    size_t bytes;
    bool wraps = __builtin_mul_overflow(n, size, &bytes);
    return refused(wraps ? SIZE_MAX : bytes) ? NULL : __libc_calloc(n, size);
}

void *realloc(void *block, size_t size)
{
    return refused(size) ? NULL : __libc_realloc(block, size);
}

void *aligned_alloc(size_t align, size_t size)
{
    return refused(size) ? NULL : __libc_memalign(align, size);
}

int posix_memalign(void **block, size_t align, size_t size)
{
    void *made = aligned_alloc(align, size);
    if (!made)
        return ENOMEM;
    *block = made;
    return 0;
}

/* Pages that are free stay: most programs want as many again. */
__attribute__((constructor)) static void keep_pages(void)
{
    mallopt(M_MMAP_THRESHOLD, 32 << 20);
    mallopt(M_TRIM_THRESHOLD, 512 << 20);
}
#endif
