/* memory.c -- the allocator of host memory, with a hook that lets the n-th allocation fail. */
#include "base/memory.h"
#include "base/os.h"
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum { SMALL = 1024 };

static atomic_ullong calls, fail_at; /* fail_at: the first call that fails, or 0 */
static atomic_bool goes_on;          /* the later calls fail too */

/* Calls are counted only while the hook is on, because an atomic addition takes as long as a small
 * malloc. */
static bool must_fail(void)
{
    if (atomic_load_explicit(&fail_at, memory_order_relaxed) == 0 || tern_thread.works_ahead)
        return false;
    unsigned long long call = atomic_fetch_add_explicit(&calls, 1, memory_order_relaxed) + 1;
    unsigned long long first = atomic_load_explicit(&fail_at, memory_order_relaxed);
    return call == first || (call > first && first && atomic_load(&goes_on));
}

static uint64_t arm(uint64_t n, bool on)
{
    atomic_store(&fail_at, n);
    atomic_store(&goes_on, on);
    return atomic_exchange(&calls, 0);
}

static void fail(size_t bytes)
{
    tern_fail(TERN_ERR_MEMORY, "out of host memory: tried to allocate %zu bytes", bytes);
}

bool tern_memory_fails(size_t bytes)
{
    if (!must_fail())
        return false;
    fail(bytes);
    return true;
}

uint64_t tern_memory_fail_at(uint64_t n)
{
    return arm(n, false);
}

uint64_t tern_memory_fail_from(uint64_t n)
{
    return arm(n, true);
}

/* glibc's malloc uses the thread's cache of small blocks, its calloc does not. Windows has no
 * calloc for aligned blocks. */
static void *zeroed(size_t bytes)
{
#ifndef _WIN32
    if (bytes > SMALL)
        return calloc(1, bytes);
#endif
    void *block = tern_os_alloc(bytes ? bytes : 1);
    return block ? memset(block, 0, bytes) : NULL;
}

void *tern_alloc(size_t bytes)
{
    void *block = must_fail() ? NULL : zeroed(bytes);
    if (!block)
        fail(bytes);
    return block;
}

void *tern_grow(void *block, size_t bytes)
{
    void *grown = must_fail() ? NULL : tern_os_realloc(block, bytes ? bytes : 1);
    if (!grown)
        fail(bytes);
    return grown;
}

void *tern_alloc_aligned(size_t bytes)
{
    if (must_fail() || bytes > SIZE_MAX - 63)
        return NULL;
    return tern_os_alloc_aligned((bytes + 63) / 64 * 64);
}

void tern_free(void *block)
{
    tern_os_free(block);
}

char *tern_copy_text(const char *text)
{
    size_t bytes = strlen(text) + 1;
    char *copy = tern_alloc(bytes);
    if (copy)
        memcpy(copy, text, bytes);
    return copy;
}
