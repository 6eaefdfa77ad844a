/* memory.h -- every host allocation of the library, so that tests can fail the n-th one. */
#ifndef TERN_BASE_MEMORY_H
#define TERN_BASE_MEMORY_H
#include "base/error.h"

/* Zeroed memory, or NULL after recording TERN_ERR_MEMORY. Free with tern_free. */
TERN_PRIVATE void *tern_alloc(size_t bytes);
/* realloc; on failure the old block stays valid. */
TERN_PRIVATE void *tern_grow(void *block, size_t bytes);
/* Memory aligned to 64 bytes, not zeroed, for element data; NULL without recording an error (the
 * device layer retries and words the message). Free with tern_free. */
void *tern_alloc_aligned(size_t bytes);
TERN_PRIVATE void tern_free(void *block);
/* For who uses memory again: whether the allocation that this saves was to fail, by the hook below;
 * then TERN_ERR_MEMORY is recorded. */
bool tern_memory_fails(size_t bytes);
TERN_PRIVATE char *tern_copy_text(const char *text);

/* Test hook: the n-th call from now (1 = the next) fails, later ones succeed again; 0 disarms.
 * Returns how many calls were made while it was armed. Calls of a thread that works ahead of the
 * program (tern_thread.works_ahead) are not counted, here and of drivers. */
uint64_t tern_memory_fail_at(uint64_t n);
/* The n-th call from now fails, and all after it until tern_memory_fail_at. */
uint64_t tern_memory_fail_from(uint64_t n);

#endif
