/* forks.h -- children of the process that loaded the library. */
#ifndef TERN_BASE_FORKS_H
#define TERN_BASE_FORKS_H
#include <stdbool.h>

/* True in a child of the process that loaded the library: device drivers do not survive a fork. */
bool tern_is_forked_child(void);
/* How many forks there are between the process that loaded the library and this one. */
int tern_forks(void);

#endif
