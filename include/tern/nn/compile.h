/* nn/compile.h -- compiling the kernels of a model before its first step. */
#ifndef TERN_NN_COMPILE_H
#define TERN_NN_COMPILE_H
#include <tern/nn.h>

TERN_BEGIN_DECLS

typedef struct tern_compile_ahead_options {
    const tern_dtype *dtypes; /* the dtypes of the n inputs; NULL: the default dtype */
    bool no_backward;         /* compile the forward only */
    uint64_t reserved[4];
} tern_compile_ahead_options;
/* Returns the default options, as TERN_DEFAULTS takes them. */
TERN_API tern_compile_ahead_options tern_compile_ahead_defaults(void);

/* Compiles the kernels that m needs for n inputs of these shapes, on the device of its parameters
 * and with all cores: those of its forward in its current mode, of backward from its first result,
 * and of the usual optimizers. The forward and backward functions are called, and so are the
 * module's hooks, but their commands are only listed and not executed: parameters, gradients,
 * buffers and random numbers do not change. The memory that a step needs is allocated meanwhile. On
 * the cpu the function does nothing. A forward that reads values on the host cannot be listed: the
 * function returns that error after compiling what came before. PoCL generates the machine code of
 * a kernel at its first launch, and that work remains. In PyTorch one runs the model once on inputs
 * of zeros. */
TERN_API tern_status tern_compile_ahead(tern_module *m, const tern_shape *shapes, int n,
                                        const tern_compile_ahead_options *options);

TERN_END_DECLS
#endif
