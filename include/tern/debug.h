/* debug.h -- a mode that finds mistakes of the program, at the cost of time and memory. */
#ifndef TERN_DEBUG_H
#define TERN_DEBUG_H
#include <tern/error.h>

TERN_BEGIN_DECLS

/* Turns the debug mode on or off, for the whole process. TERN_DEBUG=1 in the environment turns it
 * on from the start, and sends warnings to stderr unless TERN_WARN says otherwise. Call this before
 * the first tensor is created, while no other thread uses tern. In this mode
 *
 * - every use of a tensor, module, optimizer, scheduler or gradient scaler that was freed is
 *   TERN_ERR_STATE, even a second free. The message names the call, the operation that made the
 *   tensor ("mul") or the type of the module ("Linear"), and what freed it: the scope (by the line
 *   where it was opened if tern/where.h records that, else by number and depth), the module whose
 *   forward function made the tensor and returned, or the parent with which a module was freed.
 * - every result is checked: the first NaN that an operation returns for inputs without one is a
 *   warning of kind "nan" that names the operation and the module. Without a handler
 *   (tern_on_warning) or output of warnings nothing is checked. Infinities, and NaN in the inputs,
 *   give no warning.
 * - every launch is waited for, so that an error of a device is reported by the call that caused
 *   it, with the kernel and the operation.
 * - 10,000 tensors in the root scope of a thread, outside of all blocks, are a warning of kind
 *   "scope".
 *
 * The memory of handles is never reused, which takes about 0.5 KB for each tensor that is created.
 *
 * Without the mode, a use of a freed tensor is the same error with less detail until 4,000 more
 * tensors have been freed; after that, it is found as long as the memory of the handle is not
 * reused. Modules and the others are recognised until 256 more of their kind have been freed.
 * Functions that record no error for NULL (tern_shape_of, tern_dtype_of, tern_device, tern_is_leaf,
 * ...) record none for a freed tensor either, and return the values from before. */
TERN_API void tern_set_debug(bool on);
/* Returns whether the debug mode is on. */
TERN_API bool tern_is_debug(void);

TERN_END_DECLS
#endif
