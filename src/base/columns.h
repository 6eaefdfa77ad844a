/* columns.h -- lines that are written over and over on a terminal: no longer than its window is
 * now, or each that wraps stays. */
#ifndef TERN_BASE_COLUMNS_H
#define TERN_BASE_COLUMNS_H
#include <stdio.h>
#include <string.h>

/* How many bytes of a text of UTF-8 stand in so many columns. */
static inline int tern_columns_cut(const char *text, int columns)
{
    int n = 0;
    for (; text[n]; n++)
        if ((text[n] & 0xc0) != 0x80 && columns-- == 0)
            break;
    return n;
}

#endif
