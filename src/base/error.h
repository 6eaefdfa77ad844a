/* error.h -- recording errors inside the library, in addition to tern_fail. */
#ifndef TERN_BASE_ERROR_H
#define TERN_BASE_ERROR_H
#include "base/thread.h"
#include <tern/error.h>

/* Marks functions that libtern exports only for libtern_onnx (a version in cmake/exports.map). */
#define TERN_PRIVATE TERN_API

/* Returns a failed status to the caller. */
#define TERN_TRY(call)                                                                             \
    do {                                                                                           \
        tern_status try_status_ = (call);                                                          \
        if (try_status_ != TERN_OK)                                                                \
            return try_status_;                                                                    \
    } while (0)

/* The recorded error may be older than a call, so the call's success cannot be read from it. If the
 * results of a call do not show whether it failed (gradients may be NULL, numbers NaN):
 *
 *     uint64_t failures = tern_failures();
 *     ...
 *     return tern_failed_since(failures);
 *
 * The first returns the number of this thread's failures (thread.h). The second returns the status
 * of a failure after that number (of the recorded one if possible), or TERN_OK if there was none or
 * it was cleared. */
TERN_PRIVATE uint64_t tern_failures(void);
TERN_PRIVATE tern_status tern_failed_since(uint64_t failures);

/* Return the status and the message of the recorded error. The public functions of this name mark
 * the error as read by the program (TERN_ERRORS_PRINT), these do not: in files of the library the
 * public names are macros for these. */
TERN_PRIVATE tern_status tern_recorded_status(void);
TERN_PRIVATE const char *tern_recorded_error(void);
#define tern_last_status() tern_recorded_status()
#define tern_last_error()  tern_recorded_error()

/* Returns the status for a NULL handle: that of the recorded error if there is one, because an
 * earlier failure returned the NULL; else records TERN_ERR_ARGUMENT for function and argument. */
TERN_PRIVATE tern_status tern_fail_argument_null(const char *function, const char *argument);

/* Stands at the beginning of a public function that calls other public functions: errors in the
 * rest of the block name this function instead. If such functions are nested, errors name the
 * outermost. A function of one operation does not need it (tern_call_name). */
#define TERN_NAMED_IN_ERRORS TERN_NAMED_AS(__func__)
#define TERN_NAMED_AS(function)                                                                    \
    const char *outer_name __attribute__((cleanup(tern_name_leave))) = tern_name_enter(function)
/* Errors in the rest of the block name the function that fails: for calls of the program's code,
 * and for mistakes of other libraries. */
#define TERN_UNNAMED_IN_ERRORS                                                                     \
    const char *outer_name __attribute__((cleanup(tern_name_leave))) = tern_name_hide()
/* Both return the name that was set before, for tern_name_leave. */
TERN_PRIVATE const char *tern_name_enter(const char *function);
const char *tern_name_hide(void);
TERN_PRIVATE void tern_name_leave(const char *const *outer);

/* Between tern_error_hold_begin and tern_error_hold_end, errors of this thread are recorded apart
 * from the error recorded before, and no handler is called: for calls of the program's code whose
 * failure is not the program's error (yet). */
typedef struct tern_error_hold {
    struct tern_error_record *before; /* the record before; NULL: it was empty */
    bool held;                        /* this hold is inside another */
} tern_error_hold;
/* After TERN_ERR_MEMORY, errors are not held. */
TERN_PRIVATE tern_status tern_error_hold_begin(tern_error_hold *hold);
/* Returns the status of the first failure since begin, TERN_OK if there was none, and writes its
 * message, of at most `bytes` bytes. The earlier record is restored. */
TERN_PRIVATE tern_status tern_error_hold_end(tern_error_hold *hold, char *message, size_t bytes);

/* Returns TERN_ERR_ARGUMENT if value is not in 0..most, the values of an enum: "tern_pad: mode 9 is
 * none of tern_pad_mode". */
tern_status tern_check_enum(const char *function, const char *argument, int value, int most,
                            const char *type);

#endif
