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
    TERN_ERR_DEVICE_LOST = 9, /* the device died; only a new process can use it again */
    TERN_ERR_PEER = 10        /* another process died, does not answer, or does something else */
} tern_status;

/* The name of a status without its prefix ("SHAPE"); "?" for an unknown value. Never NULL. */
TERN_API const char *tern_status_name(tern_status status);

/* The status of the first error on this thread since tern_clear_error(); TERN_OK if none. */
TERN_API tern_status tern_last_status(void);

/* The message of that error, "" if none. Valid until the thread's next tern_clear_error(). */
TERN_API const char *tern_last_error(void);

/* Forget the recorded error of this thread. */
TERN_API void tern_clear_error(void);

/* All that is known of an error. Texts live as long as the recorded error does, those that a
 * handler is given until it returns. */
typedef struct tern_error_info {
    tern_status status;
    const char *message;
    const char
        *operation; /* what failed: "linear", "add_"; in backward, whose gradient; "": unknown */
    const char *module; /* path of the innermost module that ran, from the outermost one that was
                            * called: "blocks.0.mlp.2"; "" for that one itself, NULL for none. What
                            * is not below it has its type in front: "Linear", "Sequential.0". In
                            * backward: the module of the forward, if it is still there. */
    const char *module_type; /* "Linear"; NULL for none */
    const char *file;        /* where the program called into tern, the innermost call where own */
    int line;                /* code runs in another: with tern/where.h. Else NULL and 0 */
    bool backward;           /* while gradients were computed */
    uint64_t reserved[5];
} tern_error_info;

/* Fill *error with the recorded error of this thread, all zeros and "" without one. Returns its
 * status. NULL is fine. */
TERN_API tern_status tern_get_error(tern_error_info *error);

/* What is done about errors beside recording the first since a clear. */
typedef enum tern_error_policy {
    TERN_ERRORS_RECORD = 0, /* the handler, if any, hears of each error that is recorded */
    TERN_ERRORS_CALL = 1,   /* the handler hears of every failure, also after the first */
    TERN_ERRORS_ABORT = 2,  /* every failure is reported (to the handler, if any), printed to stderr
                               with all that is known of it, and stops the program by abort() */
    TERN_ERRORS_PRINT = 3 /* each error that is recorded is printed to stderr; and once more at the
                             end of its thread or of the process, if the program never asked for it
                             (tern_last_status, tern_last_error, tern_get_error) or cleared it */
} tern_error_policy;

/* Called on the thread that failed. What fails in a handler is recorded, and not reported. */
typedef void (*tern_error_handler)(const tern_error_info *error, void *user);

/* For the process; at first TERN_ERRORS_RECORD without a handler. With TERN_WARN=1 or TERN_DEBUG=1
 * in the environment (and not TERN_WARN=0) that prints as TERN_ERRORS_PRINT does where there is no
 * handler; without, errors that nobody asks for are silent. A NULL that is only passed on by a call
 * (NULL in, NULL out) is no failure of its own. TERN_ERR_ARGUMENT for another policy, and for
 * TERN_ERRORS_CALL without a handler. */
TERN_API tern_status tern_set_error_policy(tern_error_policy policy, tern_error_handler handler,
                                           void *user);

/* Calls of this thread are made at that line of the program from now on, which errors and warnings
 * name; NULL: it is not known. file must live as long as the process. For other languages. */
TERN_API void tern_at(const char *file, int line);
typedef struct tern_where_block {
    const char *file;
    int line;
} tern_where_block;
/* The same until tern_where_leave: what tern/where.h puts around each call, with __FILE__ and
 * __LINE__. */
TERN_API tern_where_block tern_where_enter(const char *file, int line);
/* Goes back to what was before. */
TERN_API void tern_where_leave(tern_where_block *block);

/* Called with what is odd but right. kind is a word:
 *
 *   broadcast   a loss whose input and target are of different shapes
 *   reduction   kl_div's mean, which is not the divergence
 *   order       a scheduler's step before the optimizer's first
 *   dropout     between the layers of a network of one layer
 *   slow        a product, convolution or attention that takes a slower way: a library that is not
 *               there, shapes that the fast one does not take
 *   environment a variable TERN_... that tern does not know, or a value of one that it does not
 *               take
 *   cache       compiled programs that can't be kept, or are not to be trusted
 *
 * text begins with the function's name, and ends with "(file:line)" where tern/where.h records
 * that. A handler notes it and returns: the device may be in the middle of something. */
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
