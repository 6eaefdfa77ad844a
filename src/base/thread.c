/* thread.c -- the state of each thread. */
#include "base/thread.h"

#ifndef tern_thread
_Thread_local tern_thread_state tern_thread;
#endif
