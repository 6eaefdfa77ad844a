/* thread_end.h -- what a thread keeps for itself ends with it. */
#ifndef TERN_BASE_THREAD_END_H
#define TERN_BASE_THREAD_END_H
#include "base/thread.h"

/* Have run called when this thread ends, once; it may be asked for again after that. end is a field
 * of tern_thread. */
void tern_at_thread_end(tern_thread_end *end, void (*run)(void));

#endif
