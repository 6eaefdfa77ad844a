/* memory.h -- the allocator of host memory, with a test hook that lets the n-th allocation fail. */
#ifndef TERN_BASE_MEMORY_H
#define TERN_BASE_MEMORY_H
#include "base/error.h"

/* Returns zeroed memory, to be freed with tern_free; NULL after recording TERN_ERR_MEMORY. */
TERN_PRIVATE void *tern_alloc(size_t bytes);
/* Does the same as realloc; NULL after recording TERN_ERR_MEMORY, and the old block stays valid. */
TERN_PRIVATE void *tern_grow(void *block, size_t bytes);
/* Returns memory for elements, aligned to 64 bytes and not zeroed, to be freed with tern_free.
 * Returns NULL without recording an error: the device layer tries again and records the error. */
void *tern_alloc_aligned(size_t bytes);
TERN_PRIVATE void tern_free(void *block);
/* For code that reuses memory: returns whether the allocation that is avoided should have failed by
 * the hook below, and records TERN_ERR_MEMORY then. */
bool tern_memory_fails(size_t bytes);
TERN_PRIVATE char *tern_copy_text(const char *text);

/* Test hook: the n-th allocation from now (1: the next) fails, later ones succeed; 0 turns the hook
 * off. Returns how many allocations were made while it was on. Those of a thread that works ahead
 * of the program (tern_thread.works_ahead) are not counted; the same holds for driver calls. */
uint64_t tern_memory_fail_at(uint64_t n);
/* The n-th allocation from now and all later ones fail, until tern_memory_fail_at. */
uint64_t tern_memory_fail_from(uint64_t n);

#endif
