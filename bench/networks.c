/* networks.c -- the models, as models.py has them. */
#include "networks.h"
#include <stdlib.h>

tern_module *mlp(void)
{
    return tern_nn_sequential(tern_nn_linear(784, 128, NULL), tern_nn_relu(),
                              tern_nn_linear(128, 64, NULL), tern_nn_relu(),
                              tern_nn_linear(64, 10, NULL));
}

static tern_tensor *lstm_forward(tern_module *self, tern_tensor *ids)
{
    tern_tensor *x = tern_nn_forward(tern_nn_child(self, "embedding"), ids);
    x = tern_nn_forward(tern_nn_child(self, "lstm"), x);
    return tern_flatten(tern_nn_forward(tern_nn_child(self, "head"), x), 0, 1);
}

tern_module *char_lstm(void)
{
    tern_module *self = tern_nn_module("CharLSTM", lstm_forward, NULL);
    tern_nn_add(self, "embedding", tern_nn_embedding(65, 128, NULL));
    tern_nn_add(self, "lstm", tern_nn_lstm(128, 128, &(tern_rnn_options){.batch_first = true}));
    tern_nn_add(self, "head", tern_nn_linear(128, 65, NULL));
    return self;
}

tern_module *lenet(void)
{
    return tern_nn_sequential(
        tern_nn_conv2d(1, 6, TERN_DIMS(5), &(tern_conv_options){.padding = TERN_DIMS(2)}),
        tern_nn_relu(), tern_nn_max_pool2d(TERN_DIMS(2), NULL),
        tern_nn_conv2d(6, 16, TERN_DIMS(5), NULL), tern_nn_relu(),
        tern_nn_max_pool2d(TERN_DIMS(2), NULL), tern_nn_flatten(), tern_nn_linear(400, 120, NULL),
        tern_nn_relu(), tern_nn_linear(120, 84, NULL), tern_nn_relu(),
        tern_nn_linear(84, 10, NULL));
}

static tern_tensor *residual_forward(tern_module *self, tern_tensor *x)
{
    tern_tensor *y = tern_nn_forward(tern_nn_child(self, "conv1"), x);
    y = tern_relu(tern_nn_forward(tern_nn_child(self, "norm1"), y));
    y = tern_nn_forward(tern_nn_child(self, "norm2"),
                        tern_nn_forward(tern_nn_child(self, "conv2"), y));
    return tern_relu(tern_add(y, tern_nn_forward(tern_nn_child(self, "shortcut"), x)));
}

static tern_module *conv(int64_t in, int64_t out, int64_t size, int64_t stride)
{
    return tern_nn_conv2d(in, out, TERN_DIMS(size),
                          &(tern_conv_options){.stride = TERN_DIMS(stride),
                                               .padding = TERN_DIMS(size / 2),
                                               .no_bias = true});
}

/* What is added to a block's result: its input, of that result's shape. */
static tern_module *shortcut(int64_t in, int64_t out, int64_t stride)
{
    if (stride == 1 && in == out)
        return tern_nn_identity();
    return tern_nn_sequential(conv(in, out, 1, stride), tern_nn_batch_norm2d(out, NULL));
}

static tern_module *residual(int64_t in, int64_t out, int64_t stride)
{
    tern_module *m = tern_nn_module("Residual", residual_forward, NULL);
    tern_nn_add(m, "conv1", conv(in, out, 3, stride));
    tern_nn_add(m, "norm1", tern_nn_batch_norm2d(out, NULL));
    tern_nn_add(m, "conv2", conv(out, out, 3, 1));
    tern_nn_add(m, "norm2", tern_nn_batch_norm2d(out, NULL));
    tern_nn_add(m, "shortcut", shortcut(in, out, stride));
    return m;
}

tern_module *resnet(void)
{
    return tern_nn_sequential(conv(3, 16, 3, 1), tern_nn_batch_norm2d(16, NULL), tern_nn_relu(),
                              residual(16, 16, 1), residual(16, 32, 2), residual(32, 64, 2),
                              tern_nn_adaptive_avg_pool2d(TERN_DIMS(1)), tern_nn_flatten(),
                              tern_nn_linear(64, 10, NULL));
}

/* ---- ResNet-50 (He et al. 2015), the stride in the 3 x 3 convolution as torchvision has it --- */

static tern_tensor *bottleneck_forward(tern_module *self, tern_tensor *x)
{
    static const char *const names[3][2] = {
        {"conv1", "norm1"}, {"conv2", "norm2"}, {"conv3", "norm3"}};
    tern_tensor *y = x;
    for (int i = 0; i < 3; i++) {
        y = tern_nn_forward(tern_nn_child(self, names[i][0]), y);
        y = tern_nn_forward(tern_nn_child(self, names[i][1]), y);
        if (i < 2)
            y = tern_relu(y);
    }
    return tern_relu(tern_add(y, tern_nn_forward(tern_nn_child(self, "shortcut"), x)));
}

static tern_module *bottleneck(int64_t in, int64_t width, int64_t stride)
{
    int64_t out = 4 * width;
    tern_module *m = tern_nn_module("Bottleneck", bottleneck_forward, NULL);
    tern_nn_add(m, "conv1", conv(in, width, 1, 1));
    tern_nn_add(m, "norm1", tern_nn_batch_norm2d(width, NULL));
    tern_nn_add(m, "conv2", conv(width, width, 3, stride));
    tern_nn_add(m, "norm2", tern_nn_batch_norm2d(width, NULL));
    tern_nn_add(m, "conv3", conv(width, out, 1, 1));
    tern_nn_add(m, "norm3", tern_nn_batch_norm2d(out, NULL));
    tern_nn_add(m, "shortcut", shortcut(in, out, stride));
    return m;
}

tern_module *bottlenecks(int64_t width, const char *blocks, int64_t classes)
{
    tern_max_pool_options pool = {.stride = TERN_DIMS(2), .padding = TERN_DIMS(1)};
    tern_module *parts[64] = {conv(3, width, 7, 2), tern_nn_batch_norm2d(width, NULL),
                              tern_nn_relu(), tern_nn_max_pool2d(TERN_DIMS(3), &pool)};
    int n = 4;
    int64_t in = width;
    for (int stage = 0; *blocks; stage++, width *= 2) {
        char *end;
        long count = strtol(blocks, &end, 10);
        for (long i = 0; i < count && n < 60; i++, in = 4 * width)
            parts[n++] = bottleneck(in, width, stage > 0 && i == 0 ? 2 : 1);
        blocks = *end ? end + 1 : end;
    }
    parts[n++] = tern_nn_adaptive_avg_pool2d(TERN_DIMS(1));
    parts[n++] = tern_nn_flatten();
    parts[n++] = tern_nn_linear(in, classes, NULL);
    return tern_nn_sequential_of(parts, n);
}
