/* forks.h -- whether the process was forked after the library was loaded. */
#ifndef TERN_BASE_FORKS_H
#define TERN_BASE_FORKS_H
#include <stdbool.h>

/* Returns whether this process is a forked child: device drivers do not survive a fork. */
bool tern_is_forked_child(void);
/* Returns the number of forks between the process that loaded the library and this one. */
int tern_forks(void);

#endif
