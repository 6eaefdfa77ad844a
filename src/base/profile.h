/* profile.h -- what happens, reported to a profiler (profile/) while one runs. */
#ifndef TERN_BASE_PROFILE_H
#define TERN_BASE_PROFILE_H
#include "base/error.h"
#include <tern/profiler.h>

/* Whether a profiler runs, for where every nanosecond counts. */
extern bool tern_profiling;

typedef enum tern_range_kind {
    TERN_RANGE_OPERATION,
    TERN_RANGE_BACKWARD,
    TERN_RANGE_LABEL,
    TERN_RANGE_COPY,
    TERN_RANGE_WAIT,
    TERN_RANGE_COMMAND /* of a device */
} tern_range_kind;

struct tern_call;
struct tern_place;

/* A command of a device that a profiler times. */
typedef struct tern_command_range {
    struct tern_place *place;
    void *from; /* an event, NULL on the cpu */
    int64_t range;
} tern_command_range;

/* What the layers below profile/ call while a profiler runs. */
typedef struct tern_profiler_functions {
    /* A range of time of this thread begins, and ends. The number of the range, 0 where no profiler
     * records it. */
    int64_t (*begin)(tern_range_kind kind, const char *name, int64_t bytes);
    void (*end)(int64_t range);
    /* The call that a range is of, once the call was run. */
    void (*call)(int64_t range, const struct tern_call *call);
    /* A block of `bytes` was taken, or given back (negative); live tensors of the device have
     * `allocated` bytes now. *maker is the block's: the event that took it, 0 for none. */
    void (*memory)(const char *device, uint64_t allocated, int64_t bytes, int64_t *maker);
    /* A command begins on a place, and was given to it, or was not. */
    void (*command_begin)(tern_command_range *command, struct tern_place *place, const char *name);
    void (*command_end)(tern_command_range *command, bool done);
} tern_profiler_functions;

/* The functions of profile/, which registers them when the first profiler is made. Read only where
 * tern_profiling holds, or has held. */
extern const tern_profiler_functions *_Atomic tern_from_profiler;

static inline int64_t tern_range_begin(tern_range_kind kind, const char *name, int64_t bytes)
{
    return __builtin_expect(tern_profiling, 0) ? tern_from_profiler->begin(kind, name, bytes) : 0;
}
static inline void tern_range_end(int64_t range)
{
    if (__builtin_expect(range != 0, 0))
        tern_from_profiler->end(range);
}

#endif
