/* columns.h -- lines that are written over and over on a terminal: no longer than its window is
 * now, or each that wraps stays. */
#ifndef TERN_BASE_COLUMNS_H
#define TERN_BASE_COLUMNS_H
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>

/* Of the window of a terminal; 80 where it does not say. */
static inline int tern_columns(FILE *terminal)
{
    struct winsize size = {0};
    return ioctl(fileno(terminal), TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

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
