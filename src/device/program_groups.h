/* program_groups.h -- groups of kernels that are used together (program_groups.def). For drivers
 * that compile to machine code only when a kernel is first launched, a group is one program; for
 * other drivers background threads compile the group in advance (builds.c). */
#ifndef TERN_DEVICE_PROGRAM_GROUPS_H
#define TERN_DEVICE_PROGRAM_GROUPS_H
#include <stdbool.h>

enum { TERN_ON_CHUNKS = 1, TERN_ON_GROUPS = 2, TERN_ON_ALL = 3 };
typedef struct tern_program_group_row {
    const char *group, *file, *kernel;
    bool opens;       /* the use of this kernel shows that the whole group is needed */
    bool shares;      /* the kernel is in the group's one program, if there is one */
    unsigned char on; /* on which devices: TERN_ON_... */
} tern_program_group_row;

/* All rows; the last one has no names. The rows of a group are consecutive; those of one file in a
 * group need not be. */
extern const tern_program_group_row tern_program_groups[];
/* Returns whether the row is for devices with place->grouped, or for the others. */
static inline bool tern_program_group_has(const tern_program_group_row *row, bool grouped)
{
    return (row->on & (grouped ? TERN_ON_GROUPS : TERN_ON_CHUNKS)) != 0;
}
/* Returns the row of a kernel, whose name is without the dtype; NULL if it is in no group. */
const tern_program_group_row *tern_program_group_of(const char *file, const char *kernel);

#endif
