/* work.h -- what a device is given to do, a piece at a time, and the dispatcher through which each
 * piece goes: it is run, or while a graph is captured, recorded. */
#ifndef TERN_DEVICE_WORK_H
#define TERN_DEVICE_WORK_H
#include "device/place.h"

/* Those before TERN_WORK_COPY are launches, which tern_memory_get_stats counts. */
typedef enum tern_work_kind {
    TERN_WORK_KERNEL,
    TERN_WORK_USER,
    TERN_WORK_GEMM,
    TERN_WORK_CONVOLUTION,
    TERN_WORK_ATTENTION,
    TERN_WORK_COLLECTIVE,
    TERN_WORK_COPY,
    TERN_WORK_ZERO,
    TERN_WORK_CALL
} tern_work_kind;

/* All that it points to is the caller's, and of a recorded one the graph's. */
typedef struct tern_work {
    tern_work_kind kind;
    union {
        struct {
            const tern_resolved *kernel; /* or the user's own, and the grid for it */
            void *made;                  /* what the backend made of it for these arguments */
            void *user_kernel;
            const tern_grid *grid;
            const tern_kernel_grid *user_grid;
            const tern_arg *args;
            int n;
        } launch;
        const tern_gemm *gemm;
        const tern_convolution *convolution;
        const tern_attention *attention;
        struct {
            tern_place *const *places;
            const tern_collective *list;
            int n, k;
        } collectives;
        struct { /* zero: `to` alone */
            const tern_buffer *from, *to;
            size_t from_at, to_at, bytes;
        } copy;
        struct { /* of the host's, in replays alone */
            tern_status (*run)(void *user);
            void (*drop)(void *user);
            void *user;
        } call;
    } what;
} tern_work;

/* Open the place, and run or record the work. *taken is false where a vendor's routine has no
 * answer, and nothing happened; NULL for what is always done. */
tern_status tern_work_give(tern_place *place, const tern_work *work, bool *taken);
/* What it comes to: the backend's slot, now. */
tern_status tern_work_run(tern_place *place, const tern_work *work, bool *taken);

#endif
