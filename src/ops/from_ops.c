/* from_ops.c -- registers with tensor/ the operations that tensors and autograd call. */
#include "ops/copy/copy.h"
#include "ops/elementwise/elementwise.h"
#include "ops/reduce/reduction.h"
#include "ops/view/as_strided.h"
#include "tensor/from_ops.h"
#include <tern/ops/copy.h>
#include <tern/ops/create.h>
#include <tern/ops/elementwise.h>

/* Priority 101 runs this function before the constructors of programs, which may use tensors. In a
 * static library the linker takes this object together with tensor/from_ops.c
 * (cmake/library.cmake). */
__attribute__((constructor(101))) static void register_functions(void)
{
    static const tern_ops_functions functions = {.copy = tern_copy_elements,
                                                 .add = tern_add,
                                                 .add_ = tern_add_,
                                                 .sum_to = tern_sum_to,
                                                 .relu_dx = tern_relu_dx,
                                                 .ordered = tern_ordered,
                                                 .has_nan = tern_has_nan,
                                                 .as_strided = &tern_as_strided_op,
                                                 .to = tern_to,
                                                 .to_dtype = tern_to_dtype,
                                                 .to_memory_format = tern_to_memory_format,
                                                 .contiguous = tern_contiguous,
                                                 .clone = tern_clone,
                                                 .fill_ = tern_fill_,
                                                 .new_empty = tern_new_empty,
                                                 .ones_like = tern_ones_like};
    tern_from_ops = &functions;
}
