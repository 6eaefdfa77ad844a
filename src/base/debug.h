/* debug.h -- whether mistakes are looked for that cost time to find. */
#ifndef TERN_BASE_DEBUG_H
#define TERN_BASE_DEBUG_H
#include <tern/debug.h>

/* tern_is_debug(), for where every nanosecond counts. Changes only between calls. */
extern bool tern_debugging;

#endif
