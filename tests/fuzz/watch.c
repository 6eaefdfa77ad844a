/* watch.c -- memory and opened paths of the process (watch.h). */
#define _GNU_SOURCE
#include "watch.h"
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <malloc.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#if defined __SANITIZE_ADDRESS__ || defined __SANITIZE_THREAD__ || !defined __GLIBC__ ||           \
    defined TERN_LIBFUZZER
void watch_memory(void)
{
}
size_t watch_most(void)
{
    return 0;
}
void watch_folder(const char *folder)
{
    (void)folder;
}
#else

/* ---- memory ---------------------------------------------------------------------------------- */

void *__libc_malloc(size_t n);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *p, size_t n);
void *__libc_memalign(size_t alignment, size_t n);
void __libc_free(void *p);

static atomic_llong live, most;
static long long at_first;

enum { MOST_AT_ONCE = 1 << 28 };

static void note(long long now)
{
    long long old = atomic_load(&most);
    while (now > old && !atomic_compare_exchange_weak(&most, &old, now))
        ;
}

/* More at once than a fuzzer waits for is not there, and counts as if it was. */
static bool is_too_much(size_t n)
{
    if (n < MOST_AT_ONCE)
        return false;
    note(atomic_load(&live) + (n < PTRDIFF_MAX ? (long long)n : PTRDIFF_MAX / 2));
    errno = ENOMEM;
    return true;
}

static void *more(void *p)
{
    const long long n = p ? (long long)malloc_usable_size(p) : 0;
    if (p)
        note(atomic_fetch_add(&live, n) + n);
    return p;
}

static void less(void *p)
{
    if (p)
        atomic_fetch_sub(&live, (long long)malloc_usable_size(p));
}

void *malloc(size_t n)
{
    return is_too_much(n) ? NULL : more(__libc_malloc(n));
}

void *calloc(size_t n, size_t size)
{
    return is_too_much(size && n > SIZE_MAX / size ? SIZE_MAX : n * size)
               ? NULL
               : more(__libc_calloc(n, size));
}

void *realloc(void *p, size_t n)
{
    if (is_too_much(n))
        return NULL;
    const long long before = p ? (long long)malloc_usable_size(p) : 0;
    void *q = __libc_realloc(p, n);
    if (q || n == 0)
        atomic_fetch_sub(&live, before);
    return more(q);
}

void *memalign(size_t alignment, size_t n)
{
    return is_too_much(n) ? NULL : more(__libc_memalign(alignment, n));
}

void *aligned_alloc(size_t alignment, size_t n)
{
    return is_too_much(n) ? NULL : more(__libc_memalign(alignment, n));
}

int posix_memalign(void **p, size_t alignment, size_t n)
{
    *p = is_too_much(n) ? NULL : more(__libc_memalign(alignment, n));
    return *p ? 0 : ENOMEM;
}

void free(void *p)
{
    less(p);
    __libc_free(p);
}

void watch_memory(void)
{
    at_first = atomic_load(&live);
    atomic_store(&most, at_first);
}

size_t watch_most(void)
{
    return (size_t)(atomic_load(&most) - at_first);
}

/* Anonymous memory that is taken past malloc, which counts while it is taken alone. */
void *mmap(void *at, size_t n, int protection, int flags, int fd, off_t offset)
{
    if (flags & MAP_ANONYMOUS)
        note(atomic_load(&live) + (long long)n);
    return (void *)syscall(SYS_mmap, at, n, protection, flags, fd, offset);
}

/* ---- opened paths ---------------------------------------------------------------------------- */

static const char *inside;

void watch_folder(const char *folder)
{
    inside = folder;
}

static void look_at(int folder, const char *path)
{
    char at[PATH_MAX] = "", link[64], whole[2 * PATH_MAX];
    if (!inside || !path)
        return;
    if (path[0] != '/' && folder != AT_FDCWD) {
        snprintf(link, sizeof link, "/proc/self/fd/%d", folder);
        const ssize_t n = readlink(link, at, sizeof at - 1);
        at[n > 0 ? n : 0] = 0;
    }
    snprintf(whole, sizeof whole, "%s%s%s", at, *at ? "/" : "", path);
    static const char *const systems[] = {"/proc/", "/sys/", "/usr/lib/", "/lib/",
                                          "/etc/ld.so.cache"};
    for (size_t i = 0; i < sizeof systems / sizeof *systems; i++)
        if (!strncmp(whole, systems[i], strlen(systems[i])))
            return;
    const size_t n = strlen(inside);
    if (strncmp(whole, inside, n) || (whole[n] && whole[n] != '/') || strstr(whole, "/../")) {
        fprintf(stderr, "fuzz_structure: opens %s, which is outside of %s\n", whole, inside);
        abort();
    }
}

#define OPEN(name, number_of_folder, ...)                                                          \
    {                                                                                              \
        mode_t mode = 0;                                                                           \
        if (flags & (O_CREAT | O_TMPFILE)) {                                                       \
            va_list list;                                                                          \
            va_start(list, flags);                                                                 \
            mode = va_arg(list, mode_t);                                                           \
            va_end(list);                                                                          \
        }                                                                                          \
        look_at(number_of_folder, path);                                                           \
        return (int)syscall(SYS_openat, number_of_folder, path, flags, mode);                      \
    }

int open(const char *path, int flags, ...)
    OPEN(open, AT_FDCWD) int open64(const char *path, int flags, ...)
        OPEN(open64, AT_FDCWD) int openat(int folder, const char *path, int flags, ...)
            OPEN(openat, folder) int openat64(int folder, const char *path, int flags, ...)
                OPEN(openat64, folder)

                    FILE *fopen(const char *path, const char *mode)
{
    static FILE *(*real)(const char *, const char *);
    look_at(AT_FDCWD, path);
    if (!real) {
        void *found = dlsym(RTLD_NEXT, "fopen");
        memcpy(&real, &found, sizeof real);
    }
    return real(path, mode);
}
FILE *fopen64(const char *path, const char *mode)
{
    return fopen(path, mode);
}
#endif
