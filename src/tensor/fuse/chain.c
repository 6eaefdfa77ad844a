/* chain.c -- which stages of a chain are one operation: a product, an activation and a product. */
#include "tensor/fuse/chain.h"
#include "tensor/fuse/fuse.h"

int tern_fuse_chain(tern_stage *stages, int n, tern_tensor **x, tern_tensor **y)
{
    if (n < 3 || !stages[0].kind->with_epilogue || !stages[1].kind->is_epilogue ||
        stages[2].kind != stages[0].kind || !tern_may_fuse((*x)->storage->place))
        return 0;
    stages[0].parameters(&stages[0]);
    stages[2].parameters(&stages[2]);
    const uint64_t failures = tern_failures();
    *y = stages[0].kind->with_epilogue(x, stages);
    return *y || tern_failed_since(failures) != TERN_OK ? 3 : 0;
}
