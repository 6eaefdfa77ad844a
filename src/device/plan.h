/* plan.h -- the memory plan of a recording: which of its values share memory (plan.c). */
#ifndef TERN_DEVICE_PLAN_H
#define TERN_DEVICE_PLAN_H
#include "device/recording.h"

/* The memory of a value, a result that only the recording's commands use. A later value may take
 * it over: the command that computes that one writes over the operand. */
typedef struct tern_slot {
    tern_block *block;
    struct tern_slot *over; /* the slot whose memory this one takes over; NULL: none */
    int64_t first, last;    /* the commands from which to which the memory is in use; first is that
                             * of `over`, if there is one */
    int64_t end;            /* the command that writes over the value; 0: none */
    size_t bytes, at;       /* `at` bytes into the arena */
    int arena;
    tern_buffer other; /* of two buffers, in an arena and from the recording, the one that the block
                        * does not have now */
} tern_slot;

struct tern_plan {
    tern_slot *slots;   /* in the order of first commands */
    int64_t n, n_parts; /* n_parts: so many slots have a buffer in an arena */
    tern_block *arenas;
    int n_arenas, n_taken;
    size_t bytes;    /* of all arenas: the peak */
    size_t after;    /* the bytes that the recording reserves if the plan is used */
    bool keeps;      /* values keep the memory from the recording too (options.check) */
    bool is_planned; /* blocks have their buffers in arenas */
};

/* The first returns whether the kernel is that of an elementwise row (elementwise.def and others),
 * the second whether the command launches one. */
bool tern_is_row(const tern_kernel_ref *kernel);
static inline bool tern_is_row_command(const tern_command *command)
{
    return command->kind == TERN_COMMAND_KERNEL && tern_is_row(command->what.launch.kernel->ref);
}

#endif
