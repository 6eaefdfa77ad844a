/* debug.h -- a mode that looks for mistakes of the program, at the price of time and memory. */
#ifndef TERN_DEBUG_H
#define TERN_DEBUG_H
#include <tern/error.h>

TERN_BEGIN_DECLS

/* Turn the debug mode on or off, for the whole process; TERN_DEBUG=1 in the environment turns it on
 * from the start, and sends warnings to stderr unless TERN_WARN says otherwise. Call it before the
 * first tensor, while no other thread uses tern. In it
 *
 * - the handle of a tensor, module, optimizer, scheduler or gradient scaler that is gone is known
 *   for ever: a use of it, a second free too, is TERN_ERR_STATE. The message names the use, the
 *   operation that made the tensor ("mul") or the kind of the module ("Linear"), and what ended it:
 *   the scope, by the line where it was opened if tern/where.h records that, else by number and
 *   depth; the module whose forward function made the tensor and returned; the parent that a module
 *   was freed with.
 * - each result is looked at: the first NaN that an operation makes of inputs without one is a
 *   warning of kind "nan" that names the operation and the module (tern_on_warning; where nobody
 *   listens nobody looks). Infinities are not, nor NaN that came in.
 * - each launch is waited for, so that an error of a device belongs to the call that caused it; it
 *   names the kernel and the operation.
 * - 10,000 tensors in the root scope of a thread, outside of all blocks, are a warning of kind
 *   "scope".
 *
 * The memory of handles is never used again: some 0.5 KB for each tensor that is made.
 *
 * Without the mode a handle of a tensor that is gone is known, by the same error with less detail,
 * until 4,000 more tensors went; from then on as long as its memory is not that of another tensor,
 * which it seldom is, as that is used again in turn. Modules and the like are known until 256 more
 * of their kind were freed. Questions that record no error for NULL (tern_shape_of, tern_dtype_of,
 * tern_device, tern_is_leaf, ...) record none here either, and answer what it was. */
TERN_API void tern_set_debug(bool on);
/* Whether it is on. */
TERN_API bool tern_is_debug(void);

TERN_END_DECLS
#endif
