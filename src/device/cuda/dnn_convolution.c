/* dnn_convolution.c -- a convolution and its gradients as graphs for cuDNN, forward with the bias
 * in the same kernel:
 *
 *   sum = x * weight,  y = sum + bias;   dx from dy and weight;   dweight from x and dy */
#include "device/cuda/convolution.h"
#include <string.h>

const tern_cuda_conv_type tern_cuda_conv_types[] = {
    [TERN_F32] = {CUDNN_DATA_FLOAT, CUDNN_DATA_FLOAT, true},
    [TERN_F64] = {CUDNN_DATA_DOUBLE, CUDNN_DATA_DOUBLE, true},
    [TERN_F16] = {CUDNN_DATA_HALF, CUDNN_DATA_FLOAT, true},
    [TERN_BF16] = {CUDNN_DATA_BFLOAT16, CUDNN_DATA_FLOAT, true}};

/* Ids of the tensors in a run, in the order of the caller's tensors. SUM is never in memory. */
enum { X = 1, WEIGHT, Y, BIAS, SUM };

static cudnnBackendDescriptor_t describe(tern_dnn_graph *g, const tern_cuda_conv_key *k, int id)
{
    static const int64_t ones[3] = {1, 1, 1};
    const tern_conv_shape *s = &k->shape;
    const int64_t *const spatial[] = {
        [X] = s->in, [WEIGHT] = s->window, [Y] = s->out, [BIAS] = ones, [SUM] = s->out};
    const int64_t
        from[] = {[X] = s->n, [WEIGHT] = s->o, [Y] = s->n, [BIAS] = 1, [SUM] = s->n},
        to[] = {[X] = s->c, [WEIGHT] = s->c / s->groups, [Y] = s->o, [BIAS] = s->o, [SUM] = s->o};
    int n = tern_cuda_conv_dims(s);
    tern_dnn_tensor t = {.type = id == SUM ? CUDNN_DATA_FLOAT : tern_cuda_conv_types[k->dtype].type,
                         .id = id,
                         .ndim = n + 2,
                         .dims = {from[id], to[id]},
                         .is_virtual = id == SUM};
    for (int d = 0; d < n; d++)
        t.dims[2 + d] = spatial[id][3 - n + d];
    int64_t stride = 1;
    for (int i = n + 1, d; i >= 0; i--, stride *= t.dims[d]) {
        d = k->channels_last ? tern_channels_last_dim(i, n + 2) : i;
        t.strides[d] = stride;
    }
    return tern_dnn_tensor_new(g, &t);
}

void tern_dnn_convolution(tern_dnn_graph *g, const tern_cuda_conv_key *k)
{
    const tern_conv_shape *s = &k->shape;
    cudnnBackendDescriptor_t x = describe(g, k, X), w = describe(g, k, WEIGHT),
                             y = describe(g, k, Y), sum = k->bias ? describe(g, k, SUM) : y;
    cudnnBackendDescriptor_t operands[][4] = {[TERN_CONV_Y] = {x, w, NULL, sum},
                                              [TERN_CONV_X] = {y, w, NULL, x},
                                              [TERN_CONV_WEIGHT] = {x, y, NULL, w}};
    tern_dnn_window window = {.n = tern_cuda_conv_dims(s)};
    tern_dnn_operation o = {.kind = (tern_dnn_kind)(TERN_DNN_CONVOLUTION + k->pass),
                            .mode = CUDNN_CROSS_CORRELATION,
                            .precision = CUDNN_DATA_FLOAT,
                            .window = &window};
    for (int64_t d = 0; d < window.n; d++) {
        int64_t of = 3 - window.n + d;
        window.padding[d] = s->padding[of];
        window.stride[d] = s->stride[of];
        window.dilation[d] = s->dilation[of];
    }
    memcpy(o.operands, operands[k->pass], sizeof o.operands);
    tern_dnn_add(g, &o);
    if (k->bias)
        tern_dnn_add(g, &(tern_dnn_operation){.kind = TERN_DNN_POINTWISE,
                                              .mode = CUDNN_POINTWISE_ADD,
                                              .precision = CUDNN_DATA_FLOAT,
                                              .operands = {sum, describe(g, k, BIAS), NULL, y}});
    tern_dnn_make_plan(g);
}
