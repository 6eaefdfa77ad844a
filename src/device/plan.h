/* plan.h -- the inside of a recording's plan of memory. */
#ifndef TERN_DEVICE_PLAN_H
#define TERN_DEVICE_PLAN_H
#include "device/recording.h"

/* A value's place, which later ones may go on from. */
typedef struct tern_slot {
    tern_block *block;
    struct tern_slot *over; /* whose place it takes; NULL: nobody's */
    int64_t first, last;    /* commands; first is that of what it goes on from */
    int64_t end;            /* the command that writes over it; 0: none, as none can be first */
    size_t bytes, at;
    int arena;
    tern_buffer other; /* the block's in the plan, or where it was recorded: the one it has not */
} tern_slot;

struct tern_plan {
    tern_slot *slots; /* in the order of first commands */
    int64_t n, n_parts;
    tern_block *arenas;
    int n_arenas, n_taken;
    size_t bytes; /* of all arenas: the peak */
    size_t after; /* what the recording has reserved with it */
    bool keeps;   /* values have both places */
    bool is_planned;
};

/* Whether a kernel is one of an elementwise row. */
bool tern_is_row(const tern_kernel_ref *kernel);
static inline bool tern_is_row_command(const tern_command *command)
{
    return command->kind == TERN_COMMAND_KERNEL && tern_is_row(command->what.launch.kernel->ref);
}

#endif
