/* strict.h -- what may not happen unasked within TERN_STRICT. */
#ifndef TERN_BASE_STRICT_H
#define TERN_BASE_STRICT_H
#include "base/error.h"

/* Within TERN_STRICT TERN_ERR_STATE: function would wait, or copy, unasked. */
tern_status tern_strict_refuse(const char *function, const char *what);
static inline tern_status tern_strict_check(const char *function, const char *what)
{
    return __builtin_expect(tern_thread.strict, 0) ? tern_strict_refuse(function, what) : TERN_OK;
}
/* A slow way is taken: counted, and an error where it may not be. */
void tern_count_fallback(const char *function);
uint64_t tern_fallbacks(void);

#endif
