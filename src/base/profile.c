/* profile.c -- whether a profiler runs, and the functions that profile/ registered. */
#include "base/profile.h"

bool tern_profiling;
const tern_profiler_functions *_Atomic tern_from_profiler;
