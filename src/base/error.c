/* error.c -- the first error of each thread, kept until it is cleared. */
#include "base/error.h"
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>

enum { MESSAGE_BYTES = 4096 };

static _Thread_local struct {
    tern_status status;
    char message[MESSAGE_BYTES];
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
}

void tern_on_error(tern_error_hook call, void *user)
{
    pthread_mutex_lock(&hook_lock);
    hook.call = call;
    hook.user = user;
    pthread_mutex_unlock(&hook_lock);
}

static void record(tern_status status, const char *format, va_list args)
{
    if (last.status != TERN_OK)
        return; /* the first error is the cause, later ones its echo */
    last.status = status;
    vsnprintf(last.message, sizeof last.message, format, args);
    pthread_mutex_lock(&hook_lock);
    tern_error_hook call = hook.call;
    void *user = hook.user;
    pthread_mutex_unlock(&hook_lock);
    if (call)
        call(status, last.message, user);
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
    if (last.status != TERN_OK)
        return last.status;
    return tern_fail(TERN_ERR_ARGUMENT, "%s: %s is NULL", function, argument);
}

tern_status tern_check_enum(const char *function, const char *argument, int value, int most,
                            const char *type)
{
    if (value >= 0 && value <= most)
        return TERN_OK;
    return tern_fail(TERN_ERR_ARGUMENT, "%s: %s %d is none of %s", function, argument, value, type);
}
