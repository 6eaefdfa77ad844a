/* profile.h -- the events that are reported to a running profiler (profile/). */
#ifndef TERN_BASE_PROFILE_H
#define TERN_BASE_PROFILE_H
#include "base/error.h"
#include <tern/profiler.h>

/* Whether a profiler runs. */
extern bool tern_profiling;

typedef enum tern_range_kind {
    TERN_RANGE_OPERATION,
    TERN_RANGE_BACKWARD,
    TERN_RANGE_LABEL,
    TERN_RANGE_COPY,
    TERN_RANGE_WAIT,
    TERN_RANGE_COMMAND /* a command of a device */
} tern_range_kind;

struct tern_call;
struct tern_place;

/* A device command whose time a profiler measures. */
typedef struct tern_command_range {
    struct tern_place *place;
    void *from; /* an event; NULL on the cpu */
    int64_t range;
} tern_command_range;

/* The functions of the profiler, which the layers below profile/ call while it runs. */
typedef struct tern_profiler_functions {
    /* Begin and end a range of time of this thread. begin returns the number of the range, 0 if no
     * profiler records it. */
    int64_t (*begin)(tern_range_kind kind, const char *name, int64_t bytes);
    void (*end)(int64_t range);
    /* Reports the call of a range, after the call has run. */
    void (*call)(int64_t range, const struct tern_call *call);
    /* Reports that a block of `bytes` bytes was allocated, or freed (negative); live tensors of the
     * device have `allocated` bytes now. *maker, of the block: its allocation's event, or 0. */
    void (*memory)(const char *device, uint64_t allocated, int64_t bytes, int64_t *maker);
    /* Report the begin of a command on a place, and then whether it was submitted (done). */
    void (*command_begin)(tern_command_range *command, struct tern_place *place, const char *name);
    void (*command_end)(tern_command_range *command, bool done);
} tern_profiler_functions;

/* The functions of profile/, which are registered when the first profiler is created. To be read
 * only if tern_profiling is, or was, true. */
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
