/* debug.h -- the debug mode, which checks for mistakes that take time to find. */
#ifndef TERN_BASE_DEBUG_H
#define TERN_BASE_DEBUG_H
#include <tern/debug.h>

/* The value of tern_is_debug(), where a call is too slow. It changes only between calls. */
extern bool tern_debugging;

#endif
