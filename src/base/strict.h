/* strict.h -- TERN_STRICT: blocks in which hidden waits, copies and fallbacks are errors. */
#ifndef TERN_BASE_STRICT_H
#define TERN_BASE_STRICT_H
#include "base/error.h"

/* Records TERN_ERR_STATE: function waits or copies unasked (`what`). _check: within TERN_STRICT. */
tern_status tern_strict_refuse(const char *function, const char *what);
static inline tern_status tern_strict_check(const char *function, const char *what)
{
    return __builtin_expect(tern_thread.strict, 0) ? tern_strict_refuse(function, what) : TERN_OK;
}
/* Counts a fallback to a slow algorithm; within TERN_STRICT it is an error. */
void tern_count_fallback(const char *function);
uint64_t tern_fallbacks(void);

#endif
