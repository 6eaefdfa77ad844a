/* nn/compile.h -- what a model needs of a device's compiler, before it is used. */
#ifndef TERN_NN_COMPILE_H
#define TERN_NN_COMPILE_H
#include <tern/nn.h>

TERN_BEGIN_DECLS

typedef struct tern_compile_ahead_options {
    const tern_dtype *dtypes; /* of the inputs, n; NULL: the default floating point type */
    bool no_backward;         /* the forward alone */
    uint64_t reserved[4];
} tern_compile_ahead_options;
/* Returns the default options, as TERN_DEFAULTS takes them. */
TERN_API tern_compile_ahead_options tern_compile_ahead_defaults(void);

/* Compile what m needs for n inputs of these shapes, on the device of its parameters, by all cores:
 * its forward, in the mode it is in, and backward from its first result, with the optimizers' usual
 * kernels. They are called, but what they give the device is only listed and does not run:
 * parameters, gradients, buffers and random numbers stay as they are. Their memory is taken
 * meanwhile. The hooks of modules are called. On cpu nothing is done. What reads values on the host
 * can't be listed: its error, and what came before it is compiled. PoCL makes the machine code of a
 * kernel when it is first launched, so its part of the work stays. PyTorch: running the model once
 * on inputs of zeros. */
TERN_API tern_status tern_compile_ahead(tern_module *m, const tern_shape *shapes, int n,
                                        const tern_compile_ahead_options *options);

TERN_END_DECLS
#endif
