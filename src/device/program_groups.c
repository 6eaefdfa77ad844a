/* program_groups.c -- the rows of program_groups.def. */
#include "device/program_groups.h"
#include <string.h>

const tern_program_group_row tern_program_groups[] = {
#define X(GROUP, FILE, KERNEL, OPENS, SHARES, DEVICES)                                             \
    {#GROUP, #FILE, #KERNEL, OPENS, SHARES, TERN_ON_##DEVICES},
#include "device/program_groups.def"
#undef X
    {0}};

const tern_program_group_row *tern_program_group_of(const char *file, const char *kernel)
{
    for (const tern_program_group_row *row = tern_program_groups; row->group; row++)
        if (strcmp(row->kernel, kernel) == 0 && strcmp(row->file, file) == 0)
            return row;
    return NULL;
}
