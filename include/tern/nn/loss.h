/* nn/loss.h -- losses as modules: their tensors move with tern_nn_to. Call them with tern_nn_loss.
 */
#ifndef TERN_NN_LOSS_H
#define TERN_NN_LOSS_H
#include <tern/nn.h>

TERN_BEGIN_DECLS

TERN_API tern_module *tern_nn_mse_loss(const tern_loss_options *options);
/* Keeps options->weight as the buffer "weight". */
TERN_API tern_module *tern_nn_cross_entropy_loss(const tern_cross_entropy_options *options);

TERN_END_DECLS
#endif
