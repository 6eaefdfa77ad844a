/* autocast.h -- how mixed precision reaches the door: amp/ fills in a hook while a block is open.
 */
#ifndef TERN_TENSOR_AUTOCAST_H
#define TERN_TENSOR_AUTOCAST_H
#include <tern/tensor.h>

/* Replaces inputs of the operation named op by casts of them. */
typedef tern_status (*tern_autocast_hook)(const char *op, tern_tensor **in, int n);

enum { TERN_AUTOCAST_KINDS = 4 };

/* Of a thread. A walk back and the kernels' own code run with hook NULL; a checkpoint computes
 * again with a copy of what was in force. */
typedef struct tern_autocast_state {
    tern_autocast_hook hook; /* NULL: nothing is cast */
    struct {
        const char *device; /* a canonical string of the kind */
        tern_dtype dtype;   /* TERN_DTYPE_DEFAULT: not cast there */
    } mode[TERN_AUTOCAST_KINDS];
} tern_autocast_state;
extern _Thread_local tern_autocast_state tern_autocast;

#endif
