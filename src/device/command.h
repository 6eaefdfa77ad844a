/* command.h -- the commands of a device, and the dispatcher, which runs a command, or during a
 * capture records it. */
#ifndef TERN_DEVICE_COMMAND_H
#define TERN_DEVICE_COMMAND_H
#include "device/place.h"

/* The kinds before TERN_COMMAND_COPY are launches, which tern_memory_get_stats counts. */
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

/* A command. The caller owns all that it points to; the graph does for a recorded command. */
typedef struct tern_command {
    tern_command_kind kind;
    union {
        struct {
            const tern_resolved *kernel; /* TERN_COMMAND_USER: user_kernel and user_grid instead */
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
        struct { /* TERN_COMMAND_ZERO uses `to`, to_at and bytes */
            const tern_buffer *from, *to;
            size_t from_at, to_at, bytes;
        } copy;
        struct { /* a call on the host, which only replays make */
            tern_status (*run)(void *user);
            void (*drop)(void *user);
            void *user;
        } call;
    } what;
} tern_command;

/* Opens the place, and runs or records the command. *taken becomes false, and nothing happens, if
 * the vendor's library does not support the command; taken may be NULL for other commands. */
tern_status tern_command_dispatch(tern_place *place, const tern_command *command, bool *taken);
/* Runs the command with the backend's function, also during a capture. */
tern_status tern_command_run(tern_place *place, const tern_command *command, bool *taken);

#endif
