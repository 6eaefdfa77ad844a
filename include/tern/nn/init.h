/* nn/init.h -- initial values, in place, without recording; return x. (torch.nn.init) */
#ifndef TERN_NN_INIT_H
#define TERN_NN_INIT_H
#include <tern/nn.h>

TERN_BEGIN_DECLS

TERN_API tern_tensor *tern_nn_init_uniform_(tern_tensor *x, double low, double high);
TERN_API tern_tensor *tern_nn_init_normal_(tern_tensor *x, double mean, double std);
TERN_API tern_tensor *tern_nn_init_constant_(tern_tensor *x, double value);
TERN_API tern_tensor *tern_nn_init_zeros_(tern_tensor *x);
TERN_API tern_tensor *tern_nn_init_ones_(tern_tensor *x);
/* Glorot & Bengio 2010; gain 1 is PyTorch's default. */
TERN_API tern_tensor *tern_nn_init_xavier_uniform_(tern_tensor *x, double gain);
TERN_API tern_tensor *tern_nn_init_xavier_normal_(tern_tensor *x, double gain);
/* He et al. 2015, fan_in; a is the negative slope of the leaky ReLU after it. */
TERN_API tern_tensor *tern_nn_init_kaiming_uniform_(tern_tensor *x, double a);
TERN_API tern_tensor *tern_nn_init_kaiming_normal_(tern_tensor *x, double a);

TERN_END_DECLS
#endif
