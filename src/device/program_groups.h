/* program_groups.h -- kernels that are wanted together, of program_groups.def: for drivers that
 * make machine code only when a kernel is first launched, in one program; for others, built ahead
 * by other threads (builds.c). */
#ifndef TERN_DEVICE_PROGRAM_GROUPS_H
#define TERN_DEVICE_PROGRAM_GROUPS_H
#include <stdbool.h>

typedef struct tern_program_group_row {
    const char *group, *file, *kernel;
    bool opens;  /* its group is wanted when it is */
    bool shares; /* it is in the group's one program, where there is such */
} tern_program_group_row;

/* Ended by one without names; a group's rows stand together, and those of a file in it need not. */
extern const tern_program_group_row tern_program_groups[];
/* The row of a kernel, without its type; NULL: it is in no group. */
const tern_program_group_row *tern_program_group_of(const char *file, const char *kernel);

#endif
