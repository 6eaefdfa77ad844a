/* scope.h -- who releases a new tensor: the innermost scope; and the scope of a module's call. */
#ifndef TERN_TENSOR_SCOPE_H
#define TERN_TENSOR_SCOPE_H
#include "base/error.h"
#include <tern/tensor.h>

/* Give a new tensor to the innermost scope and return it; NULL passes. On
 * failure it is released. */
TERN_PRIVATE tern_tensor *tern_scoped(tern_tensor *x);
/* The next n of them find room. */
tern_status tern_scope_reserve(int n);

/* The scope of a module's call: the end of the call releases what forward made, except its k
 * results out, which go to the scope around (NULL is no result). It does not flush devices. module
 * is the module's kind, for messages. Where the limit of nested scopes is reached there is no
 * scope, and everything belongs to the scope around. */
TERN_PRIVATE tern_scope_block tern_call_scope_enter(const char *module);
TERN_PRIVATE void tern_call_scope_leave(tern_scope_block *block, tern_tensor *const *out, int k);
/* The same in a chain of calls, each of which reads the result of the one before: result, which may
 * be NULL after an error, outlives the scope by a reference of the chain's, which is returned; the
 * one on `before`, the result before, is released (NULL: there is none). */
tern_tensor *tern_call_scope_next(tern_scope_block *block, tern_tensor *result,
                                  tern_tensor *before);

#endif
