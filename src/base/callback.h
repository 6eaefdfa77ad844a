/* callback.h -- calls of the program's code from functions of the library. */
#ifndef TERN_BASE_CALLBACK_H
#define TERN_BASE_CALLBACK_H
#include "base/error.h"

/* The state before the call. */
typedef struct tern_callback {
    tern_running running;
    uint64_t failures;
    const char *called;
} tern_callback;

static inline tern_callback tern_callback_begin(void)
{
    tern_callback now;
    tern_running_copy(&now.running, &tern_thread.running);
    now.failures = tern_thread.failures;
    now.called = tern_name_hide();
    return now;
}

/* Returns whether the call failed without recording an error. */
static inline bool tern_callback_silent(const tern_callback *before, tern_status status)
{
    return status != TERN_OK && tern_failed_since(before->failures) == TERN_OK;
}
static inline tern_status tern_callback_end(const tern_callback *before, tern_status status)
{
    tern_running_copy(&tern_thread.running, &before->running);
    tern_name_leave(&before->called);
    return status;
}
/* Ends the call: errors name the calling function of tern again. Returns the call's status; if the
 * call failed without recording an error, records one with the given message. */
#define TERN_CALLBACK_END(before, status, ...)                                                     \
    tern_callback_end(                                                                             \
        before, tern_callback_silent(before, status) ? tern_fail(status, __VA_ARGS__) : (status))

#endif
