#include "tensor/tensor.h"
#include <tern/ops.h>
tern_tensor *tern_hook_sum_to(tern_tensor *x, const tern_shape *shape){ (void)shape; return x; }
