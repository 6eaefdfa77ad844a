/* nn/activation.h -- activations as modules; see ops/elementwise.h for what
 * they compute. Numbers in options take TERN_ZERO for 0. */
#ifndef TERN_NN_ACTIVATION_H
#define TERN_NN_ACTIVATION_H
#include <tern/nn.h>

TERN_BEGIN_DECLS

TERN_API tern_module *tern_nn_relu(void);
TERN_API tern_module *tern_nn_sigmoid(void);
TERN_API tern_module *tern_nn_tanh(void);
TERN_API tern_module *tern_nn_silu(void);

/* Along dim. softmin: the softmax of -x. softmax2d: over the channels of (N, C, H, W) or (C, H, W).
 */
TERN_API tern_module *tern_nn_softmax(int dim);
TERN_API tern_module *tern_nn_softmin(int dim);
TERN_API tern_module *tern_nn_log_softmax(int dim);
TERN_API tern_module *tern_nn_softmax2d(void);

typedef struct tern_gelu_options {
    bool approximate_tanh;
    uint64_t reserved[4];
} tern_gelu_options;
TERN_API tern_module *tern_nn_gelu(const tern_gelu_options *options);

typedef struct tern_leaky_relu_options {
    double negative_slope; /* default 0.01 */
    uint64_t reserved[4];
} tern_leaky_relu_options;
TERN_API tern_module *tern_nn_leaky_relu(const tern_leaky_relu_options *options);

TERN_END_DECLS
#endif
