/* profile.h -- what happens, told to a profiler (profile/) while one runs. */
#ifndef TERN_BASE_PROFILE_H
#define TERN_BASE_PROFILE_H
#include "base/error.h"
#include <tern/profiler.h>

/* Whether one does, for where every nanosecond counts. */
extern bool tern_profiling;

typedef enum tern_span_kind {
    TERN_SPAN_OPERATION,
    TERN_SPAN_BACKWARD,
    TERN_SPAN_LABEL,
    TERN_SPAN_COPY,
    TERN_SPAN_WAIT,
    TERN_SPAN_WORK /* of a device */
} tern_span_kind;

/* A stretch of time on this thread begins; its number, 0 where nobody looks on; and it ends. */
int64_t tern_hook_span_begin(tern_span_kind kind, const char *name, int64_t bytes);
void tern_hook_span_end(int64_t span);

static inline int64_t tern_span_begin(tern_span_kind kind, const char *name, int64_t bytes)
{
    return __builtin_expect(tern_profiling, 0) ? tern_hook_span_begin(kind, name, bytes) : 0;
}
static inline void tern_span_end(int64_t span)
{
    if (__builtin_expect(span != 0, 0))
        tern_hook_span_end(span);
}

/* The bytes of live tensors of a device are so many now: a block of theirs was taken, which *maker tells when it is given
 * back. */
void tern_hook_memory(const char *device, uint64_t allocated, int64_t bytes, int64_t *maker);

#endif
