/* nn/activation.h -- activations as modules; ops/activation.h and ops/softmax.h say what
 * they compute. Numbers in options take TERN_ZERO for 0. */
#ifndef TERN_NN_ACTIVATION_H
#define TERN_NN_ACTIVATION_H
#include <tern/nn.h>

TERN_BEGIN_DECLS

/* The option inplace of an activation or dropout, tern_nn_inplace(tern_nn_relu()) for PyTorch's
 * ReLU(inplace=True): forward writes into what it is given, which autograd refuses where a gradient
 * needs what was there. Returns m, also NULL; NULL and TERN_ERR_UNSUPPORTED for a module without
 * the option (m is not freed). */
TERN_API tern_module *tern_nn_inplace(tern_module *m);

/* max(x, 0). */
TERN_API tern_module *tern_nn_relu(void);
/* min(max(x, 0), 6). */
TERN_API tern_module *tern_nn_relu6(void);
/* 1 / (1 + exp(-x)). */
TERN_API tern_module *tern_nn_sigmoid(void);
/* The hyperbolic tangent. */
TERN_API tern_module *tern_nn_tanh(void);
/* x sigmoid(x). */
TERN_API tern_module *tern_nn_silu(void);
/* x tanh(softplus(x)). */
TERN_API tern_module *tern_nn_mish(void);
/* elu, scaled so that mean 0 and variance 1 stay. */
TERN_API tern_module *tern_nn_selu(void);
/* relu6(x + 3) / 6. */
TERN_API tern_module *tern_nn_hardsigmoid(void);
/* x relu6(x + 3) / 6. */
TERN_API tern_module *tern_nn_hardswish(void);
/* log(sigmoid(x)). */
TERN_API tern_module *tern_nn_log_sigmoid(void);
/* x / (1 + |x|). */
TERN_API tern_module *tern_nn_softsign(void);
/* x - tanh(x). */
TERN_API tern_module *tern_nn_tanhshrink(void);

/* Along dim. softmin: the softmax of -x. softmax2d: over the channels of (N, C,
 * H, W) or (C, H, W). */
TERN_API tern_module *tern_nn_softmax(int dim);
/* The softmax of -x. */
TERN_API tern_module *tern_nn_softmin(int dim);
/* Its logarithm. */
TERN_API tern_module *tern_nn_log_softmax(int dim);
/* Over the channels of (N, C, H, W) or (C, H, W). */
TERN_API tern_module *tern_nn_softmax2d(void);
/* PyTorch's default for dim is -1. */
TERN_API tern_module *tern_nn_glu(int dim);

typedef enum tern_approximate {
    TERN_APPROXIMATE_NONE = 0,
    TERN_APPROXIMATE_TANH /* tern_gelu_tanh */
} tern_approximate;
typedef struct tern_gelu_options {
    tern_approximate approximate;
    uint64_t reserved[4];
} tern_gelu_options;
/* Returns the default options, as TERN_DEFAULTS takes them. */
TERN_API tern_gelu_options tern_gelu_defaults(void);
/* x times the normal distribution function. */
TERN_API tern_module *tern_nn_gelu(const tern_gelu_options *options);

typedef struct tern_leaky_relu_options {
    double negative_slope; /* default 0.01 */
    bool inplace;
    uint64_t reserved[4];
} tern_leaky_relu_options;
/* Returns the default options, as TERN_DEFAULTS takes them. */
TERN_API tern_leaky_relu_options tern_leaky_relu_defaults(void);
/* x, or negative_slope x below 0. */
TERN_API tern_module *tern_nn_leaky_relu(const tern_leaky_relu_options *options);

typedef struct tern_elu_options {
    double alpha; /* default 1 */
    bool inplace;
    uint64_t reserved[4];
} tern_elu_options;
/* Returns the default options, as TERN_DEFAULTS takes them. */
TERN_API tern_elu_options tern_elu_defaults(void);
/* x, or alpha (exp(x) - 1) below 0. */
TERN_API tern_module *tern_nn_elu(const tern_elu_options *options);

typedef struct tern_celu_options {
    double alpha; /* default 1 */
    bool inplace;
    uint64_t reserved[4];
} tern_celu_options;
/* Returns the default options, as TERN_DEFAULTS takes them. */
TERN_API tern_celu_options tern_celu_defaults(void);
/* x, or alpha (exp(x / alpha) - 1) below 0. */
TERN_API tern_module *tern_nn_celu(const tern_celu_options *options);

typedef struct tern_hardshrink_options {
    double lambd; /* default 0.5 */
    uint64_t reserved[4];
} tern_hardshrink_options;
/* Returns the default options, as TERN_DEFAULTS takes them. */
TERN_API tern_hardshrink_options tern_hardshrink_defaults(void);
/* 0 within -lambd..lambd, else x. */
TERN_API tern_module *tern_nn_hardshrink(const tern_hardshrink_options *options);

typedef struct tern_softshrink_options {
    double lambd; /* default 0.5 */
    uint64_t reserved[4];
} tern_softshrink_options;
/* Returns the default options, as TERN_DEFAULTS takes them. */
TERN_API tern_softshrink_options tern_softshrink_defaults(void);
/* x moved by lambd towards 0, 0 within -lambd..lambd. */
TERN_API tern_module *tern_nn_softshrink(const tern_softshrink_options *options);

typedef struct tern_hardtanh_options {
    double min_val, max_val; /* default -1, 1 */
    bool inplace;
    uint64_t reserved[4];
} tern_hardtanh_options;
/* Returns the default options, as TERN_DEFAULTS takes them. */
TERN_API tern_hardtanh_options tern_hardtanh_defaults(void);
/* x between min_val and max_val. */
TERN_API tern_module *tern_nn_hardtanh(const tern_hardtanh_options *options);

typedef struct tern_rrelu_options {
    double lower, upper; /* default 1/8, 1/3 */
    bool inplace;
    uint64_t reserved[4];
} tern_rrelu_options;
/* Returns the default options, as TERN_DEFAULTS takes them. */
TERN_API tern_rrelu_options tern_rrelu_defaults(void);
/* Random slopes in training, their mean in evaluation. */
TERN_API tern_module *tern_nn_rrelu(const tern_rrelu_options *options);

typedef struct tern_softplus_options {
    double beta, threshold; /* default 1, 20 */
    uint64_t reserved[4];
} tern_softplus_options;
/* Returns the default options, as TERN_DEFAULTS takes them. */
TERN_API tern_softplus_options tern_softplus_defaults(void);
/* log(1 + exp(beta x)) / beta, x itself where beta x > threshold. */
TERN_API tern_module *tern_nn_softplus(const tern_softplus_options *options);

/* x where it is above threshold, else value. */
TERN_API tern_module *tern_nn_threshold(double threshold, double value);

typedef struct tern_prelu_options {
    int64_t num_parameters; /* 1 (default), or the number of channels */
    double init;            /* default 0.25 */
    tern_dtype dtype;
    const char *device;
    uint64_t reserved[4];
} tern_prelu_options;
/* Returns the default options, as TERN_DEFAULTS takes them. */
TERN_API tern_prelu_options tern_prelu_defaults(void);
/* Parameter weight (num_parameters). */
TERN_API tern_module *tern_nn_prelu(const tern_prelu_options *options);

TERN_END_DECLS
#endif
