/* networks.h -- the models of the comparison. */
#ifndef BENCH_NETWORKS_H
#define BENCH_NETWORKS_H
#include <tern/tern.h>

/* 784 inputs, 128 and 64 with ReLU, 10 outputs. */
tern_module *mlp(void);
/* Characters (N, T) of 65 -> logits (N T, 65), by an LSTM of 128. */
tern_module *char_lstm(void);
/* LeNet-5 with ReLU, for (N, 1, 28, 28). */
tern_module *lenet(void);
/* A stem and three residual blocks of 16, 32 and 64 channels, for (N, 3, 32, 32). */
tern_module *resnet(void);
/* ResNet of bottleneck blocks for (N, 3, H, W): width 64, blocks "3-4-6-3" and 1000 classes are
 * ResNet-50. */
tern_module *bottlenecks(int64_t width, const char *blocks, int64_t classes);

#endif
