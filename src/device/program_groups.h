/* program_groups.h -- kernels that are wanted together, of program_groups.def: for drivers that
 * make machine code only when a kernel is first launched, in one program; for others, built ahead
 * by other threads (builds.c). */
#ifndef TERN_DEVICE_PROGRAM_GROUPS_H
#define TERN_DEVICE_PROGRAM_GROUPS_H
#include <stdbool.h>

enum { TERN_ON_CHUNKS = 1, TERN_ON_GROUPS = 2, TERN_ON_ALL = 3 };
typedef struct tern_program_group_row {
    const char *group, *file, *kernel;
    bool opens;       /* its group is wanted when it is */
    bool shares;      /* it is in the group's one program, where there is such */
    unsigned char on; /* devices */
} tern_program_group_row;

/* Ended by one without names; a group's rows stand together, and those of a file in it need not. */
extern const tern_program_group_row tern_program_groups[];
/* Whether devices with work-groups that share memory (place->grouped), or the others, have it. */
static inline bool tern_program_group_has(const tern_program_group_row *row, bool grouped)
{
    return (row->on & (grouped ? TERN_ON_GROUPS : TERN_ON_CHUNKS)) != 0;
}
/* The row of a kernel, without its type; NULL: it is in no group. */
const tern_program_group_row *tern_program_group_of(const char *file, const char *kernel);

#endif
