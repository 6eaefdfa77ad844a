/* fused.h -- what several modules are at once, where a device has that. */
#ifndef TERN_BASE_FUSED_H
#define TERN_BASE_FUSED_H
#include <tern/tensor.h>

typedef enum tern_activation_between {
    TERN_BETWEEN_RELU,
    TERN_BETWEEN_GELU_TANH,
    TERN_BETWEEN_GELU
} tern_activation_between;
/* linear(relu(linear(x, w1, b1)), w2, b2), or with gelu_tanh or gelu, that and its gradient within the products. NULL, without an error, where the device
 * has no such products, and while a profiler or somebody else looks at each of the three; with one, where it fails. Then *x may have become
 * what autocast casts it to. Defined in ops/. */
tern_tensor *tern_hook_linear_relu_linear(tern_tensor **x, tern_tensor *w1, tern_tensor *b1,
                                          tern_tensor *w2, tern_tensor *b2,
                                          tern_activation_between between);

#endif
