/* error.h -- how a call says that it failed. */
#ifndef TERN_ERROR_H
#define TERN_ERROR_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#if defined(_WIN32)
#define TERN_API
#define TERN_LIKE_PRINTF
#else
#define TERN_API         __attribute__((visibility("default")))
#define TERN_LIKE_PRINTF __attribute__((format(printf, 2, 3)))
#endif

/* g++ warns of each field that an initialiser with names leaves out, which is what options are for;
 * other compilers do not. */
#if defined(__cplusplus) && defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wmissing-field-initializers"
#endif

#ifdef __cplusplus
#define TERN_BEGIN_DECLS extern "C" {
#define TERN_END_DECLS   }
#else
#define TERN_BEGIN_DECLS
#define TERN_END_DECLS
#endif

TERN_BEGIN_DECLS

/* Status codes, grouped by who is at fault. Values never change. */
typedef enum tern_status {
    TERN_OK = 0,
    TERN_ERR_ARGUMENT = 1,    /* the caller: a value, a NULL or an index is not valid */
    TERN_ERR_SHAPE = 2,       /* the caller: shapes do not fit */
    TERN_ERR_DTYPE = 3,       /* the caller: element types do not fit */
    TERN_ERR_DEVICE = 4,      /* no such device, devices are mixed, or its driver refused */
    TERN_ERR_MEMORY = 5,      /* the host or a device has no memory left */
    TERN_ERR_STATE = 6,       /* the caller: not now (freed graph, changed saved tensor, ...) */
    TERN_ERR_IO = 7,          /* a file could not be read or written, or is malformed */
    TERN_ERR_UNSUPPORTED = 8, /* this device or build cannot do it */
    TERN_ERR_DEVICE_LOST = 9  /* the device died; only a new process can use it again */
} tern_status;

/* The name of a status without its prefix ("SHAPE"); "?" for an unknown value. Never NULL. */
TERN_API const char *tern_status_name(tern_status status);

/* The status of the first error on this thread since tern_clear_error(); TERN_OK if none. */
TERN_API tern_status tern_last_status(void);

/* The message of that error, "" if none. Valid until the thread's next tern_clear_error(). */
TERN_API const char *tern_last_error(void);

/* Forget the recorded error of this thread. */
TERN_API void tern_clear_error(void);

typedef void (*tern_error_hook)(tern_status status, const char *message, void *user);

/* Call hook for each error that is recorded (the first since a clear), on the thread that failed;
 * NULL removes it. One hook per process. */
TERN_API void tern_on_error(tern_error_hook hook, void *user);

/* Told of what is odd but right. kind is a word: "broadcast" (a loss whose input and target are of
 * different shapes). text begins with the function's name. */
typedef void (*tern_warning_handler)(const char *kind, const char *text, void *user);

/* Call handler for each warning, on the thread that gives it, once for each place (the function and
 * the reason); a new handler hears of all places again. NULL removes it. Without one warnings go to
 * stderr if TERN_WARN is set in the environment (and not 0), else nowhere. One handler per process.
 * A warning is no error: nothing is recorded. PyTorch: warnings.warn, warnings.showwarning. */
TERN_API void tern_on_warning(tern_warning_handler handler, void *user);

/* For what is built upon tern, such as bindings and operations of one's own: record an error on
 * this thread, unless one is recorded already, and return status. format is printf's; by custom the
 * message starts with the function's name: "tern_matmul: ...". */
TERN_API tern_status tern_fail(tern_status status, const char *format, ...) TERN_LIKE_PRINTF;

/* The same for a function that returns a pointer: records and gives NULL. */
TERN_API void *tern_fail_null(tern_status status, const char *format, ...) TERN_LIKE_PRINTF;

TERN_END_DECLS
#endif
