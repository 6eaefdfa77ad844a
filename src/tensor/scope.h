/* scope.h -- scopes, which release new tensors, and the scope of a module's call. */
#ifndef TERN_TENSOR_SCOPE_H
#define TERN_TENSOR_SCOPE_H
#include "base/error.h"
#include <tern/tensor.h>

/* Gives a new tensor to the innermost scope and returns it. x NULL: returns NULL. If the scope
 * cannot be extended, x is released and the result is NULL. */
TERN_PRIVATE tern_tensor *tern_scoped(tern_tensor *x);
/* Reserves memory, so that the next n calls of tern_scoped succeed. */
tern_status tern_scope_reserve(int n);

/* The scope of a module's call. Its end releases the tensors that forward made, except the k
 * results out, which the outer scope then owns; a result may be NULL. It does not flush devices.
 * `module` is the kind of the module, for messages. If no more scopes can be nested, the call opens
 * none, and the outer scope owns everything. */
TERN_PRIVATE tern_scope_block tern_call_scope_enter(const char *module);
TERN_PRIVATE void tern_call_scope_leave(tern_scope_block *block, tern_tensor *const *out, int k);
/* Ends the scope of one call in a chain of calls, each of which reads the result of the call
 * before. Returns `result` with a new reference, which the chain owns, or NULL if result is NULL
 * (after an error). Releases the chain's reference on `before`, the result of the call before, or
 * NULL. */
tern_tensor *tern_call_scope_next(tern_scope_block *block, tern_tensor *result,
                                  tern_tensor *before);

#endif
