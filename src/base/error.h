/* error.h -- recording errors inside the library, beside tern_fail. */
#ifndef TERN_BASE_ERROR_H
#define TERN_BASE_ERROR_H
#include "base/thread.h"
#include <tern/error.h>

/* What libtern shows to libtern_onnx alone, under a version of its own (cmake/exports.map). */
#define TERN_PRIVATE TERN_API

/* Pass a failed status on to the caller. */
#define TERN_TRY(call)                                                                             \
    do {                                                                                           \
        tern_status try_status_ = (call);                                                          \
        if (try_status_ != TERN_OK)                                                                \
            return try_status_;                                                                    \
    } while (0)

/* The recorded error may be older than the call that looks at it, so nobody takes success from
 * there. Where results do not say whether what was called failed (gradients may be NULL, numbers
 * NaN):
 *
 *     uint64_t failures = tern_failures();
 *     ...
 *     return tern_failed_since(failures);
 *
 * Failures of this thread so far (thread.h); the status of one since there were that many (the
 * recorded one, where that is one of them), TERN_OK where there was none, or it was cleared. */
TERN_PRIVATE uint64_t tern_failures(void);
TERN_PRIVATE tern_status tern_failed_since(uint64_t failures);

/* The status and the message of the recorded error. The program's questions for them count as
 * having read the error (TERN_ERRORS_PRINT), the library's own do not: in files of the library
 * the public names stand for these. */
TERN_PRIVATE tern_status tern_recorded_status(void);
TERN_PRIVATE const char *tern_recorded_error(void);
#define tern_last_status() tern_recorded_status()
#define tern_last_error()  tern_recorded_error()

/* The status to return for a NULL handle: the recorded error if there is one (NULL in, NULL out),
 * else a new TERN_ERR_ARGUMENT that names the function and the argument. */
TERN_PRIVATE tern_status tern_fail_argument_null(const char *function, const char *argument);

/* At the beginning of a public function that is made of others: errors in the rest of it name
 * it, and not the functions that it calls. Of several the outermost is named. Functions of one
 * operation do not need it (tern_call_name). */
#define TERN_NAMED_IN_ERRORS TERN_NAMED_AS(__func__)
#define TERN_NAMED_AS(function)                                                                    \
    const char *outer_name __attribute__((cleanup(tern_name_leave))) = tern_name_enter(function)
/* Errors in the rest of the block name the function that fails: around code of the program's,
 * and for mistakes of others. */
#define TERN_UNNAMED_IN_ERRORS                                                                     \
    const char *outer_name __attribute__((cleanup(tern_name_leave))) = tern_name_hide()
/* Both return the name there was, for tern_name_leave. */
TERN_PRIVATE const char *tern_name_enter(const char *function);
const char *tern_name_hide(void);
TERN_PRIVATE void tern_name_leave(const char *const *outer);

/* From tern_error_hold_begin to tern_error_hold_end what fails on this thread is recorded apart
 * from what was recorded before, and reported to nobody: for code of the program's whose failure is
 * not, or not yet, the program's. */
typedef struct tern_error_hold {
    struct tern_error_record *before; /* NULL: nothing was recorded */
    bool held;                        /* within another */
} tern_error_hold;
/* TERN_ERR_MEMORY: nothing has begun. */
TERN_PRIVATE tern_status tern_error_hold_begin(tern_error_hold *hold);
/* The status of the first failure since, TERN_OK without one, and its message in that many bytes;
 * the record is what it was. */
TERN_PRIVATE tern_status tern_error_hold_end(tern_error_hold *hold, char *message, size_t bytes);

/* TERN_ERR_ARGUMENT for a value that is not one of an enum whose values are 0..most: "tern_pad:
 * mode 9 is none of tern_pad_mode". */
tern_status tern_check_enum(const char *function, const char *argument, int value, int most,
                            const char *type);

#endif
