/* plan.h -- the memory plan of a recording: which of its values share memory (plan.c). */
#ifndef TERN_DEVICE_PLAN_H
#define TERN_DEVICE_PLAN_H
#include "device/recording.h"

/* The memory of an inner value, a result that only the recording's commands use. A later value may
 * take the memory over: the command that computes the later value overwrites this operand. */
typedef struct tern_slot {
    tern_block *block;
    struct tern_slot *over; /* the slot whose memory this one takes over; NULL: none */
    int64_t first, last;    /* the first and the last command that use the memory; with `over`,
                             * first is over->first */
    int64_t end;            /* the command that overwrites the value; 0: none */
    size_t bytes, at;       /* the size, and the offset in the arena */
    int arena;
    tern_buffer other; /* the buffer that the block does not have now: that in an arena or that from
                        * the recording */
} tern_slot;

struct tern_plan {
    tern_slot *slots;   /* in the order of first commands */
    int64_t n, n_parts; /* n_parts: the number of slots that have a buffer in an arena */
    tern_block *arenas;
    int n_arenas, n_taken;
    size_t bytes;    /* of all arenas: the peak */
    size_t after;    /* the bytes that the recording reserves if the plan is used */
    bool keeps;      /* the memory from the recording is not freed (options.check) */
    bool is_planned; /* blocks have their buffers in arenas */
};

/* tern_is_row returns whether the kernel is an elementwise row (elementwise.def and others),
 * tern_is_row_command whether the command launches one. */
bool tern_is_row(const tern_kernel_ref *kernel);
static inline bool tern_is_row_command(const tern_command *command)
{
    return command->kind == TERN_COMMAND_KERNEL && tern_is_row(command->what.launch.kernel->ref);
}

#endif
