/* watch.h -- what readers of files take and open: the memory of the process and the paths that it opens, by functions of libc's names
 * that stand before them. Not with sanitizers, which have their own. */
#ifndef TERN_FUZZ_WATCH_H
#define TERN_FUZZ_WATCH_H
#include <stdbool.h>
#include <stddef.h>

/* From now on memory is counted. */
void watch_memory(void);
/* The most bytes that there were since, beyond those that there were then; 0 where they are not counted. */
size_t watch_most(void);
/* Paths are looked at from now on: one outside of folder, other than the library's that load at first use, ends the process. */
void watch_folder(const char *folder);

#endif
