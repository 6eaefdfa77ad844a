/* columns.h -- lines that are written repeatedly on a terminal. A line must not be longer than the
 * window, because a wrapped line cannot be overwritten. */
#ifndef TERN_BASE_COLUMNS_H
#define TERN_BASE_COLUMNS_H
#include <stdio.h>
#include <string.h>

/* Returns how many bytes of a UTF-8 text fit in so many columns. */
static inline int tern_columns_cut(const char *text, int columns)
{
    int n = 0;
    for (; text[n]; n++)
        if ((text[n] & 0xc0) != 0x80 && columns-- == 0)
            break;
    return n;
}

#endif
