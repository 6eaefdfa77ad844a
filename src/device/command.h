/* command.h -- the commands of a device, and the dispatcher through which each of them goes: a
 * command runs, or while a graph is captured, it is recorded. */
#ifndef TERN_DEVICE_COMMAND_H
#define TERN_DEVICE_COMMAND_H
#include "device/place.h"

/* Those before TERN_COMMAND_COPY are launches, which tern_memory_get_stats counts. */
typedef enum tern_command_kind {
    TERN_COMMAND_KERNEL,
    TERN_COMMAND_USER,
    TERN_COMMAND_GEMM,
    TERN_COMMAND_CONVOLUTION,
    TERN_COMMAND_ATTENTION,
    TERN_COMMAND_COLLECTIVE,
    TERN_COMMAND_COPY,
    TERN_COMMAND_ZERO,
    TERN_COMMAND_CALL
} tern_command_kind;

/* All that it points to is the caller's, and of a recorded one the graph's. */
typedef struct tern_command {
    tern_command_kind kind;
    union {
        struct {
            const tern_resolved *kernel; /* or the user's own, and the grid for it */
            void *compiled;              /* the backend's kernel for these arguments */
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
} tern_command;

/* Opens the place, and runs or records the command. *taken becomes false if a vendor's routine does
 * not take the command; nothing happened then. taken is NULL for commands that are always taken. */
tern_status tern_command_dispatch(tern_place *place, const tern_command *command, bool *taken);
/* Calls the backend's function for the command, now. */
tern_status tern_command_run(tern_place *place, const tern_command *command, bool *taken);

#endif
