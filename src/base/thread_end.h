/* thread_end.h -- frees what a thread keeps when the thread ends. */
#ifndef TERN_BASE_THREAD_END_H
#define TERN_BASE_THREAD_END_H
#include "base/thread.h"

/* Registers run, which is called once when this thread ends; end is a field of tern_thread. Does
 * nothing if end is registered already; after the call it can be registered again. */
void tern_at_thread_end(tern_thread_end *end, void (*run)(void));

#endif
