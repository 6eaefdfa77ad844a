/* error.c -- the first error of each thread, recorded until it is cleared, and error handlers. */
#include "base/error.h"
#include "base/lock.h"
#include "base/env.h"
#include "base/from_nn.h"
#include "base/text.h"
#include "base/thread_end.h"
#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static tern_mutex policy_lock = TERN_MUTEX_INIT;
typedef struct policy {
    tern_error_policy kind;
    tern_error_handler call;
    void *user;
} policy;
static policy current;

static const char *const names[] = {"OK",          "ARGUMENT",    "SHAPE", "DTYPE",
                                    "DEVICE",      "MEMORY",      "STATE", "IO",
                                    "UNSUPPORTED", "DEVICE_LOST", "PEER"};

const char *tern_status_name(tern_status status)
{
    return (unsigned)status < sizeof names / sizeof *names ? names[status] : "?";
}

tern_status tern_recorded_status(void)
{
    return tern_thread.error.first.status;
}

const char *tern_recorded_error(void)
{
    return tern_thread.error.first.status == TERN_OK ? "" : tern_thread.error.first.message;
}

#undef tern_last_status
tern_status tern_last_status(void)
{
    tern_thread.error.unread = false;
    return tern_recorded_status();
}

#undef tern_last_error
const char *tern_last_error(void)
{
    tern_thread.error.unread = false;
    return tern_recorded_error();
}

void tern_clear_error(void)
{
    tern_thread.error.unread = false;
    tern_thread.error.first.status = TERN_OK;
    tern_thread.error.first.message[0] = '\0';
    tern_thread.error.recorded = tern_thread.error.newest = 0;
}

uint64_t tern_failures(void)
{
    return tern_thread.failures;
}

tern_status tern_failed_since(uint64_t failures)
{
    if (tern_thread.error.newest <= failures)
        return TERN_OK;
    return tern_thread.error.recorded > failures ? tern_thread.error.first.status
                                                 : tern_thread.error.newest_status;
}

void tern_at(const char *file, int line)
{
    tern_thread.running.at.file = file;
    tern_thread.running.at.line = line;
}

tern_where_block tern_where_enter(const char *file, int line)
{
    tern_running *running = &tern_thread.running;
    tern_where_block before = {running->at.file, running->at.line};
    running->at.file = file;
    running->at.line = line;
    return before;
}

void tern_where_leave(tern_where_block *block)
{
    tern_at(block->file, block->line);
}

const char *tern_name_enter(const char *function)
{
    const char *outer = tern_thread.called;
    if (!outer)
        tern_thread.called = function;
    return outer;
}

const char *tern_name_hide(void)
{
    const char *outer = tern_thread.called;
    tern_thread.called = NULL;
    return outer;
}

void tern_name_leave(const char *const *outer)
{
    tern_thread.called = *outer;
}

/* ---- the description of a failure -------------------------------------------------------- */

/* Returns the length of "tern_add_" in "tern_add_: ..."; 0 if the message names no function. */
static size_t name_length(const char *message)
{
    size_t length = 0;
    while (isalnum((unsigned char)message[length]) || message[length] == '_')
        length++;
    return strncmp(message, "tern_", 5) == 0 && message[length] == ':' ? length : 0;
}

/* Replaces the name of the function that failed by the name of the function that the program
 * called, or puts that name before a message that names no function. */
static void name_called(char message[TERN_MESSAGE_BYTES])
{
    const char *const called = tern_thread.called;
    size_t before = name_length(message), all = strlen(message);
    size_t length = called ? strlen(called) : 0, colon = before == 0 ? 2 : 0;
    if (length == 0 || all - before + length + colon >= TERN_MESSAGE_BYTES)
        return;
    memmove(message + length + colon, message + before, all - before + 1);
    memcpy(message, called, length);
    memcpy(message + length, ": ", colon);
}

/* Sets r->operation: "add_" for "tern_add_: ..."; if the message names no function, the operation
 * that runs. */
static void name_operation(tern_failure *r)
{
    const char *op = tern_thread.running.backward;
    size_t length = op ? 0 : name_length(r->message);
    if (length > 0)
        snprintf(r->operation, sizeof r->operation, "%.*s", (int)length - 5, r->message + 5);
    else
        snprintf(r->operation, sizeof r->operation, "%s",
                 op                    ? op
                 : tern_thread.mode.op ? tern_thread.mode.op
                                       : "");
}

static void fill(tern_failure *r, tern_status status, const char *format, va_list args)
{
    const tern_running *running = &tern_thread.running;
    r->status = status;
    int n = vsnprintf(r->message, sizeof r->message, format, args);
    if (tern_thread.command && n > 0 && (size_t)n < sizeof r->message)
        snprintf(r->message + n, sizeof r->message - (size_t)n, " (%s%s%s)", tern_thread.command,
                 tern_thread.mode.op ? " of " : "", tern_thread.mode.op ? tern_thread.mode.op : "");
    tern_text_unsign_nan(r->message, r->message);
    name_called(r->message);
    name_operation(r);
    r->backward = running->backward != NULL;
    r->file = running->at.file;
    r->line = running->at.line;
    r->in_module = tern_module_path(&running->modules, r->module, r->module_type, TERN_NAME_BYTES);
}

static tern_error_info info_of(const tern_failure *r)
{
    return (tern_error_info){.status = r->status,
                             .message = r->message,
                             .operation = r->operation,
                             .module = r->in_module ? r->module : NULL,
                             .module_type = r->in_module ? r->module_type : NULL,
                             .file = r->file,
                             .line = r->line,
                             .backward = r->backward};
}

tern_status tern_get_error(tern_error_info *error)
{
    tern_thread.error.unread = false;
    if (error && tern_thread.error.first.status == TERN_OK)
        *error = (tern_error_info){.message = "", .operation = ""};
    else if (error)
        *error = info_of(&tern_thread.error.first);
    return tern_thread.error.first.status;
}

/* ---- handlers and policies --------------------------------------------------------------- */

static policy policy_now(void)
{
    tern_mutex_lock(&policy_lock);
    policy p = current;
    tern_mutex_unlock(&policy_lock);
    return p;
}

tern_status tern_set_error_policy(tern_error_policy kind, tern_error_handler handler, void *user)
{
    TERN_TRY(tern_check_enum("tern_set_error_policy", "policy", (int)kind, TERN_ERRORS_PRINT,
                             "tern_error_policy"));
    if (kind == TERN_ERRORS_CALL && !handler)
        return tern_fail_argument_null("tern_set_error_policy", "handler");
    tern_mutex_lock(&policy_lock);
    current = (policy){kind, handler, user};
    tern_mutex_unlock(&policy_lock);
    return TERN_OK;
}

static void print(const char *beginning, const tern_error_info *e)
{
    fprintf(stderr, "tern: %s: %s (%s)\n", beginning, e->message, tern_status_name(e->status));
    if (*e->operation)
        fprintf(stderr, "  operation: %s%s\n", e->operation, e->backward ? ", its backward" : "");
    if (e->module)
        fprintf(stderr, "  module: %s%s%s%s\n", e->module, *e->module ? " (" : "", e->module_type,
                *e->module ? ")" : "");
    if (e->file)
        fprintf(stderr, "  called at: %s:%d\n", e->file, e->line);
    fflush(stderr);
}

static bool prints(const policy *p)
{
    return p->kind == TERN_ERRORS_PRINT ||
           (p->kind == TERN_ERRORS_RECORD && !p->call && tern_env_prints());
}

static void print_unread(const char *beginning)
{
    if (!tern_thread.error.unread || tern_thread.error.first.status == TERN_OK)
        return;
    const policy p = policy_now();
    tern_error_info e = info_of(&tern_thread.error.first);
    tern_thread.error.unread = false;
    if (prints(&p))
        print(beginning, &e);
}

static void end_thread(void)
{
    print_unread("a thread ends with an error that nobody asked for");
}

/* Prints the unread error of the thread that ends the process. */
__attribute__((destructor)) static void end_process(void)
{
    print_unread("the program ends with an error that nobody asked for");
}

static void report(const policy *p, const tern_failure *r)
{
    tern_error_info e = info_of(r);
    if (p->call && !tern_thread.error.handled) {
        TERN_UNNAMED_IN_ERRORS;
        tern_thread.error.handled = true;
        p->call(&e, p->user);
        tern_thread.error.handled = false;
        tern_thread.error.unread = false;
    }
    if (p->kind != TERN_ERRORS_ABORT)
        return;
    print("error", &e);
    abort();
}

/* Called when an error was recorded: prints the error if the policy says so. */
static void announce(const policy *p, const tern_failure *r)
{
    tern_thread.error.unread = true;
    if (!prints(p))
        return;
    tern_error_info e = info_of(r);
    print("error", &e);
    tern_at_thread_end(&tern_thread.error_end, end_thread);
}

static void count(tern_status status)
{
    if (status == TERN_OK)
        return;
    tern_thread.error.newest = ++tern_thread.failures;
    tern_thread.error.newest_status = status;
}

/* Records an error. The first one is the cause and is kept; later ones follow from it. */
static void note(tern_status status, const char *format, va_list args)
{
    count(status);
    const bool held = tern_thread.error.held;
    policy p = held ? (policy){TERN_ERRORS_RECORD, NULL, NULL} : policy_now();
    bool first = tern_thread.error.first.status == TERN_OK;
    if (!first && (p.kind == TERN_ERRORS_RECORD || p.kind == TERN_ERRORS_PRINT))
        return;
    tern_failure r; /* a copy, because a handler may clear the recorded error */
    fill(&r, status, format, args);
    if (first) {
        tern_thread.error.first = r;
        tern_thread.error.recorded = tern_thread.error.newest;
        if (!held)
            announce(&p, &r);
    }
    report(&p, &r);
}

tern_status tern_fail(tern_status status, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    note(status, format, args);
    va_end(args);
    return status;
}

void *tern_fail_null(tern_status status, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    note(status, format, args);
    va_end(args);
    return NULL;
}

tern_status tern_fail_argument_null(const char *function, const char *argument)
{
    if (tern_thread.error.first.status != TERN_OK) {
        count(tern_thread.error.first.status);
        return tern_thread.error.first.status;
    }
    return tern_fail(TERN_ERR_ARGUMENT, "%s: %s is NULL", function, argument);
}

/* ---- held errors ------------------------------------------------------------------------- */

tern_status tern_error_hold_begin(tern_error_hold *hold)
{
    *hold = (tern_error_hold){.before = NULL, .held = tern_thread.error.held};
    if (tern_thread.error.newest) {
        hold->before = malloc(sizeof tern_thread.error); /* must succeed when all else fails */
        if (!hold->before)
            return TERN_ERR_MEMORY;
        memcpy(hold->before, &tern_thread.error, sizeof tern_thread.error);
        tern_clear_error();
    }
    tern_thread.error.held = true;
    return TERN_OK;
}

tern_status tern_error_hold_end(tern_error_hold *hold, char *message, size_t bytes)
{
    tern_status status = tern_thread.error.first.status;
    if (bytes)
        snprintf(message, bytes, "%s", tern_last_error());
    if (tern_thread.error.newest)
        tern_clear_error();
    if (hold->before)
        memcpy(&tern_thread.error, hold->before, sizeof tern_thread.error);
    free(hold->before);
    tern_thread.error.held = hold->held;
    return status;
}

tern_status tern_check_enum(const char *function, const char *argument, int value, int most,
                            const char *type)
{
    if (value >= 0 && value <= most)
        return TERN_OK;
    return tern_fail(TERN_ERR_ARGUMENT, "%s: %s %d is none of %s", function, argument, value, type);
}
