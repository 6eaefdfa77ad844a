/* nn/activation.h -- activation functions as modules; ops/activation.h and ops/softmax.h have the
 * functions that they call. In options a number 0 is written TERN_ZERO. */
#ifndef TERN_NN_ACTIVATION_H
#define TERN_NN_ACTIVATION_H
#include <tern/nn.h>

TERN_BEGIN_DECLS

/* Makes an activation or dropout module work in place: tern_nn_inplace(tern_nn_relu()) is PyTorch's
 * ReLU(inplace=True). Its forward overwrites its input; if a gradient needs the overwritten
 * elements, backward fails. Returns m, and NULL for NULL. For a module without this option it
 * returns NULL with TERN_ERR_UNSUPPORTED, and does not free m. */
TERN_API tern_module *tern_nn_inplace(tern_module *m);

/* A module that computes max(x, 0). */
TERN_API tern_module *tern_nn_relu(void);
/* A module that computes min(max(x, 0), 6). */
TERN_API tern_module *tern_nn_relu6(void);
/* A module that computes 1 / (1 + exp(-x)). */
TERN_API tern_module *tern_nn_sigmoid(void);
/* A module that computes the hyperbolic tangent. */
TERN_API tern_module *tern_nn_tanh(void);
/* A module that computes x sigmoid(x), the sigmoid linear unit (swish). */
TERN_API tern_module *tern_nn_silu(void);
/* A module that computes x tanh(softplus(x)). */
TERN_API tern_module *tern_nn_mish(void);
/* A module that computes elu, scaled so that activations keep mean 0 and variance 1. */
TERN_API tern_module *tern_nn_selu(void);
/* A module that computes relu6(x + 3) / 6. */
TERN_API tern_module *tern_nn_hardsigmoid(void);
/* A module that computes x relu6(x + 3) / 6. */
TERN_API tern_module *tern_nn_hardswish(void);
/* A module that computes log(sigmoid(x)). */
TERN_API tern_module *tern_nn_log_sigmoid(void);
/* A module that computes x / (1 + |x|). */
TERN_API tern_module *tern_nn_softsign(void);
/* A module that computes x - tanh(x). */
TERN_API tern_module *tern_nn_tanhshrink(void);

/* A module that computes the softmax along dim. */
TERN_API tern_module *tern_nn_softmax(int dim);
/* A module that computes the softmax of -x along dim. */
TERN_API tern_module *tern_nn_softmin(int dim);
/* A module that computes the logarithm of the softmax along dim. */
TERN_API tern_module *tern_nn_log_softmax(int dim);
/* A module that computes the softmax over the channels of (N, C, H, W) or (C, H, W). */
TERN_API tern_module *tern_nn_softmax2d(void);
/* A module that calls tern_glu; PyTorch's default of dim is -1. */
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
/* A module that computes x times the distribution function of the standard normal distribution. */
TERN_API tern_module *tern_nn_gelu(const tern_gelu_options *options);

typedef struct tern_leaky_relu_options {
    double negative_slope; /* default 0.01 */
    bool inplace;
    uint64_t reserved[4];
} tern_leaky_relu_options;
/* Returns the default options, as TERN_DEFAULTS takes them. */
TERN_API tern_leaky_relu_options tern_leaky_relu_defaults(void);
/* A module that computes x where x is above 0, and negative_slope x elsewhere. */
TERN_API tern_module *tern_nn_leaky_relu(const tern_leaky_relu_options *options);

typedef struct tern_elu_options {
    double alpha; /* default 1 */
    bool inplace;
    uint64_t reserved[4];
} tern_elu_options;
/* Returns the default options, as TERN_DEFAULTS takes them. */
TERN_API tern_elu_options tern_elu_defaults(void);
/* A module that computes x where x is above 0, and alpha (exp(x) - 1) elsewhere. */
TERN_API tern_module *tern_nn_elu(const tern_elu_options *options);

typedef struct tern_celu_options {
    double alpha; /* default 1 */
    bool inplace;
    uint64_t reserved[4];
} tern_celu_options;
/* Returns the default options, as TERN_DEFAULTS takes them. */
TERN_API tern_celu_options tern_celu_defaults(void);
/* A module that computes x where x is above 0, and alpha (exp(x / alpha) - 1) elsewhere. */
TERN_API tern_module *tern_nn_celu(const tern_celu_options *options);

typedef struct tern_hardshrink_options {
    double lambd; /* default 0.5 */
    uint64_t reserved[4];
} tern_hardshrink_options;
/* Returns the default options, as TERN_DEFAULTS takes them. */
TERN_API tern_hardshrink_options tern_hardshrink_defaults(void);
/* A module that computes 0 where x is in -lambd..lambd, and x elsewhere. */
TERN_API tern_module *tern_nn_hardshrink(const tern_hardshrink_options *options);

typedef struct tern_softshrink_options {
    double lambd; /* default 0.5 */
    uint64_t reserved[4];
} tern_softshrink_options;
/* Returns the default options, as TERN_DEFAULTS takes them. */
TERN_API tern_softshrink_options tern_softshrink_defaults(void);
/* A module that moves x towards 0 by lambd; the result is 0 where x is in -lambd..lambd. */
TERN_API tern_module *tern_nn_softshrink(const tern_softshrink_options *options);

typedef struct tern_hardtanh_options {
    double min_val, max_val; /* default -1, 1 */
    bool inplace;
    uint64_t reserved[4];
} tern_hardtanh_options;
/* Returns the default options, as TERN_DEFAULTS takes them. */
TERN_API tern_hardtanh_options tern_hardtanh_defaults(void);
/* A module that limits x to min_val..max_val. */
TERN_API tern_module *tern_nn_hardtanh(const tern_hardtanh_options *options);

typedef struct tern_rrelu_options {
    double lower, upper; /* default 1/8, 1/3 */
    bool inplace;
    uint64_t reserved[4];
} tern_rrelu_options;
/* Returns the default options, as TERN_DEFAULTS takes them. */
TERN_API tern_rrelu_options tern_rrelu_defaults(void);
/* A module that computes tern_rrelu: slopes below 0 are random in training mode, and their mean in
 * evaluation mode. */
TERN_API tern_module *tern_nn_rrelu(const tern_rrelu_options *options);

typedef struct tern_softplus_options {
    double beta, threshold; /* default 1, 20 */
    uint64_t reserved[4];
} tern_softplus_options;
/* Returns the default options, as TERN_DEFAULTS takes them. */
TERN_API tern_softplus_options tern_softplus_defaults(void);
/* A module that computes log(1 + exp(beta x)) / beta, and x itself where beta x is above
 * threshold. */
TERN_API tern_module *tern_nn_softplus(const tern_softplus_options *options);

/* A module that computes value where x is at most threshold, and x elsewhere. */
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
/* A module that computes tern_prelu, a rectified linear unit whose slope below 0 is learned: the
 * parameter weight (num_parameters). */
TERN_API tern_module *tern_nn_prelu(const tern_prelu_options *options);

TERN_END_DECLS
#endif
