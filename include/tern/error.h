/* error.h -- how a call says that it failed. */
#ifndef TERN_ERROR_H
#define TERN_ERROR_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#if defined(_WIN32)
#if defined(TERN_EXPORTS) /* where the library is built */
#define TERN_API __declspec(dllexport)
#else
#define TERN_API
#endif
#else
#define TERN_API __attribute__((visibility("default")))
#endif
/* A function whose argument number `at` is a format of C11's printf, for those from `first` on. */
#if defined(_WIN32) && defined(__GNUC__) && !defined(__clang__)
#define TERN_PRINTF_(at, first) __attribute__((format(gnu_printf, at, first)))
#elif defined(__GNUC__)
#define TERN_PRINTF_(at, first) __attribute__((format(printf, at, first)))
#else
#define TERN_PRINTF_(at, first)
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
    TERN_ERR_DEVICE = 4,      /* no such device, devices are mixed, or a driver refused */
    TERN_ERR_MEMORY = 5,      /* the host or a device has no memory left */
    TERN_ERR_STATE = 6,       /* the caller: the call came too late or too early (a freed graph) */
    TERN_ERR_IO = 7,          /* a file could not be read or written, or is malformed */
    TERN_ERR_UNSUPPORTED = 8, /* this device or build cannot do it */
    TERN_ERR_DEVICE_LOST = 9, /* the device died; only a new process can use it again */
    TERN_ERR_PEER = 10        /* another process died, does not answer, or does something else */
} tern_status;

/* Returns the name of a status without its prefix ("SHAPE"); "?" for an unknown value, never
 * NULL. */
TERN_API const char *tern_status_name(tern_status status);

/* Returns the status of the first error on this thread since tern_clear_error(); TERN_OK if there
 * was none. */
TERN_API tern_status tern_last_status(void);

/* Returns the message of that error; "" if there was none. The text is valid until the thread's
 * next tern_clear_error(). */
TERN_API const char *tern_last_error(void);

/* Forgets the recorded error of this thread. */
TERN_API void tern_clear_error(void);

/* All that is known of an error. The texts live as long as the error is recorded; those that a
 * handler is given live until the handler returns. */
typedef struct tern_error_info {
    tern_status status;
    const char *message;
    const char *operation; /* the operation that failed: "linear", "add_"; in backward the one whose
                            * gradient failed; "": not known */
    const char *module;    /* the path of the innermost module that ran, below the outermost one
                            * that was called: "blocks.0.mlp.2"; "" for the outermost one itself;
                            * NULL where none ran. A module that is not below the outermost one has
                            * its type in front: "Linear", "Sequential.0". In backward it is the
                            * module of the forward call, if that module still exists. */
    const char *module_type; /* "Linear"; NULL where no module ran */
    const char *file; /* where the program called tern, with tern/where.h; else NULL. Of calls
                       * within calls (the program's code runs in a call of tern) the innermost. */
    int line;         /* in that file; 0 where file is NULL */
    bool backward;    /* the error came while gradients were computed */
    uint64_t reserved[5];
} tern_error_info;

/* Fills *error with the recorded error of this thread, or with zeros and "" where none is recorded.
 * Returns the status of that error. error may be NULL. */
TERN_API tern_status tern_get_error(tern_error_info *error);

/* What happens to an error, beside that the first one since tern_clear_error() is recorded. */
typedef enum tern_error_policy {
    TERN_ERRORS_RECORD = 0, /* the handler, if there is one, is called for each recorded error */
    TERN_ERRORS_CALL = 1,   /* the handler is called for every error, also after the first */
    TERN_ERRORS_ABORT = 2,  /* the handler, if there is one, is called; the error is printed to
                               stderr with all that is known of it; abort() stops the program */
    TERN_ERRORS_PRINT = 3 /* each error that is recorded is printed to stderr; and once more at the
                             end of its thread or of the process, if the program never asked for it
                             (tern_last_status, tern_last_error, tern_get_error) or cleared it */
} tern_error_policy;

/* A handler is called on the thread that failed. An error inside of a handler is recorded, but not
 * reported to the handler. */
typedef void (*tern_error_handler)(const tern_error_info *error, void *user);

/* Sets what happens to errors, for the whole process. At first the policy is TERN_ERRORS_RECORD
 * without a handler. With TERN_WARN=1 or TERN_DEBUG=1 in the environment (and not TERN_WARN=0) that
 * policy prints errors as TERN_ERRORS_PRINT does, if there is no handler; otherwise errors that
 * nobody asks for are silent. A NULL that a call only passes on (NULL in, NULL out) is not an error
 * of its own. Errors: TERN_ERR_ARGUMENT for a value that is no policy, and for TERN_ERRORS_CALL
 * without a handler. */
TERN_API tern_status tern_set_error_policy(tern_error_policy policy, tern_error_handler handler,
                                           void *user);

/* Says that the calls of this thread come from that line of the program from now on; errors and
 * warnings name the line. NULL: the place is not known. file must live as long as the process.
 * Bindings of other languages call it. */
TERN_API void tern_at(const char *file, int line);
typedef struct tern_where_block {
    const char *file;
    int line;
} tern_where_block;
/* Does the same until tern_where_leave. tern/where.h puts the two around each call, with __FILE__
 * and __LINE__. Returns the place that was set before. */
TERN_API tern_where_block tern_where_enter(const char *file, int line);
/* Sets the place that was set before tern_where_enter. */
TERN_API void tern_where_leave(tern_where_block *block);

/* A handler of warnings is called where a call is right, but may not be what was meant. kind is one
 * of these words:
 *
 *   broadcast   a loss whose input and target are of different shapes
 *   reduction   kl_div's mean, which is not the divergence
 *   order       a scheduler's step before the optimizer's first
 *   dropout     between the layers of a network of one layer
 *   slow        a product, a convolution, attention or a recording that takes a slower way, because
 *               a library is missing, the fast way does not take the shapes, or a driver refuses it
 *   environment a variable TERN_... that tern does not know, or a value that a variable does not
 *               take
 *   cache       compiled programs that can't be kept, or are not to be trusted
 *
 * text begins with the function's name, and ends with "(file:line)" where tern/where.h records
 * the place. A handler should note the warning and return, because the device may be in the middle
 * of a command. */
typedef void (*tern_warning_handler)(const char *kind, const char *text, void *user);

/* Has handler called for each warning, on the thread that gives the warning, once for each place
 * (the function and the reason); a new handler is called for all places again. NULL removes the
 * handler. Without a handler warnings go to stderr if TERN_WARN is set in the environment (and not
 * 0), else nowhere. There is one handler per process. A warning is no error: nothing is recorded.
 * PyTorch: warnings.warn, warnings.showwarning. */
TERN_API void tern_on_warning(tern_warning_handler handler, void *user);

/* Records an error on this thread, unless one is recorded already, and returns status. Bindings and
 * operations that are built upon tern call it. format is printf's; by custom the message begins
 * with the function's name: "tern_matmul: ...". */
TERN_API tern_status tern_fail(tern_status status, const char *format, ...) TERN_PRINTF_(2, 3);

/* Does the same for a function that returns a pointer: records the error and returns NULL. */
TERN_API void *tern_fail_null(tern_status status, const char *format, ...) TERN_PRINTF_(2, 3);

TERN_END_DECLS
#endif
