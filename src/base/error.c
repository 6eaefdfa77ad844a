/* error.c -- the first error of each thread, kept until it is cleared. */
#include "base/error.h"
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>

enum { MESSAGE_BYTES = 4096 };

static _Thread_local struct {
    tern_status status;
    bool told; /* the hook is at work: what fails in it is recorded, and not told to it */
    char message[MESSAGE_BYTES];
    /* Failures are numbered, whether they are recorded or not. */
    uint64_t failures;
    uint64_t recorded, newest; /* the one above, the last one since a clear; 0 for none */
    tern_status newest_status;
} last;

static pthread_mutex_t hook_lock = PTHREAD_MUTEX_INITIALIZER;
static struct {
    tern_error_hook call;
    void *user;
} hook;

static const char *const names[] = {"OK",     "ARGUMENT", "SHAPE", "DTYPE",       "DEVICE",
                                    "MEMORY", "STATE",    "IO",    "UNSUPPORTED", "DEVICE_LOST"};

const char *tern_status_name(tern_status status)
{
    return (unsigned)status < sizeof names / sizeof *names ? names[status] : "?";
}

tern_status tern_last_status(void)
{
    return last.status;
}

const char *tern_last_error(void)
{
    return last.status == TERN_OK ? "" : last.message;
}

void tern_clear_error(void)
{
    last.status = TERN_OK;
    last.message[0] = '\0';
    last.recorded = last.newest = 0;
}

uint64_t tern_failures(void)
{
    return last.failures;
}

tern_status tern_failed_since(uint64_t failures)
{
    if (last.newest <= failures)
        return TERN_OK;
    return last.recorded > failures ? last.status : last.newest_status;
}

void tern_on_error(tern_error_hook call, void *user)
{
    pthread_mutex_lock(&hook_lock);
    hook.call = call;
    hook.user = user;
    pthread_mutex_unlock(&hook_lock);
}

static void count(tern_status status)
{
    if (status == TERN_OK)
        return;
    last.newest = ++last.failures;
    last.newest_status = status;
}

static void record(tern_status status, const char *format, va_list args)
{
    count(status);
    if (last.status != TERN_OK)
        return; /* the first error is the cause, later ones its echo */
    last.status = status;
    last.recorded = last.newest;
    vsnprintf(last.message, sizeof last.message, format, args);
    pthread_mutex_lock(&hook_lock);
    tern_error_hook call = hook.call;
    void *user = hook.user;
    pthread_mutex_unlock(&hook_lock);
    if (!call || last.told)
        return;
    last.told = true;
    call(status, last.message, user);
    last.told = false;
}

tern_status tern_fail(tern_status status, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    record(status, format, args);
    va_end(args);
    return status;
}

void *tern_fail_null(tern_status status, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    record(status, format, args);
    va_end(args);
    return NULL;
}

tern_status tern_fail_argument_null(const char *function, const char *argument)
{
    if (last.status != TERN_OK) {
        count(last.status);
        return last.status;
    }
    return tern_fail(TERN_ERR_ARGUMENT, "%s: %s is NULL", function, argument);
}

tern_status tern_check_enum(const char *function, const char *argument, int value, int most,
                            const char *type)
{
    if (value >= 0 && value <= most)
        return TERN_OK;
    return tern_fail(TERN_ERR_ARGUMENT, "%s: %s %d is none of %s", function, argument, value, type);
}
