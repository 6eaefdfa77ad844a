/* nn/init.h -- initial values, in place, without recording; return x. (torch.nn.init) */
#ifndef TERN_NN_INIT_H
#define TERN_NN_INIT_H
#include <tern/nn.h>

TERN_BEGIN_DECLS

/* Uniform numbers of [low, high). */
TERN_API tern_tensor *tern_nn_init_uniform_(tern_tensor *x, double low, double high);
/* Normal numbers. */
TERN_API tern_tensor *tern_nn_init_normal_(tern_tensor *x, double mean, double std);
/* value everywhere. */
TERN_API tern_tensor *tern_nn_init_constant_(tern_tensor *x, double value);
/* Zeros. */
TERN_API tern_tensor *tern_nn_init_zeros_(tern_tensor *x);
/* Ones. */
TERN_API tern_tensor *tern_nn_init_ones_(tern_tensor *x);
/* Normal numbers between a and b (PyTorch: mean 0, std 1, a -2, b 2), by the inverse of their
 * distribution. */
TERN_API tern_tensor *tern_nn_init_trunc_normal_(tern_tensor *x, double mean, double std, double a,
                                                 double b);

/* ---- TERN_SKIP_INIT { ... } ---------------------------------------------------------------------
 * Modules made inside have parameters with room and no values, which something is to be loaded into
 * (torch.nn.utils.skip_init): the functions of this header leave x as it is on this thread. Memory
 * of the cpu that was never written is not taken yet. */
typedef struct tern_skip_init_block {
    int active;
    bool saved;
} tern_skip_init_block;
/* Opens the block of TERN_SKIP_INIT, for other languages. */
TERN_API tern_skip_init_block tern_skip_init_enter(void);
/* Closes the block, and restores what was set before it. */
TERN_API void tern_skip_init_leave(tern_skip_init_block *block);
#define TERN_SKIP_INIT                                                                             \
    TERN_BLOCK_(tern_skip_init_block, tern_skip_init_enter(), tern_skip_init_leave)
#define TERN_SKIP_INIT_HERE                                                                        \
    TERN_HERE_(tern_skip_init_block, tern_skip_init_enter(), tern_skip_init_leave)

/* ---- by the number of inputs and outputs --------------------------------------------------------
 * x is (out, in, *kernel); fewer than two dims are TERN_ERR_SHAPE. */
TERN_API tern_status tern_nn_init_calculate_fan_in_and_fan_out(const tern_tensor *x, double *fan_in,
                                                               double *fan_out);
typedef enum tern_nonlinearity {
    TERN_NONLINEARITY_LEAKY_RELU = 0,
    TERN_NONLINEARITY_LINEAR, /* and all convolutions */
    TERN_NONLINEARITY_SIGMOID,
    TERN_NONLINEARITY_TANH,
    TERN_NONLINEARITY_RELU,
    TERN_NONLINEARITY_SELU
} tern_nonlinearity;
/* What keeps the spread of numbers through it; param is the slope of a leaky ReLU: 0 is the default
 * 0.01, TERN_ZERO is 0. NaN and TERN_ERR_ARGUMENT for a value that is none of these. */
TERN_API double tern_nn_init_calculate_gain(tern_nonlinearity nonlinearity, double param);
/* Uniform, by Glorot & Bengio 2010; gain 1 is PyTorch's default. */
TERN_API tern_tensor *tern_nn_init_xavier_uniform_(tern_tensor *x, double gain);
/* Normal numbers, by the same rule. */
TERN_API tern_tensor *tern_nn_init_xavier_normal_(tern_tensor *x, double gain);
/* Uniform, by He et al. 2015, fan_in; a is the negative slope of the leaky ReLU after it. */
TERN_API tern_tensor *tern_nn_init_kaiming_uniform_(tern_tensor *x, double a);
/* Normal numbers, by the same rule. */
TERN_API tern_tensor *tern_nn_init_kaiming_normal_(tern_tensor *x, double a);

typedef enum tern_fan_mode {
    TERN_FAN_IN = 0, /* keep the spread of numbers going forward */
    TERN_FAN_OUT     /* that of gradients going back */
} tern_fan_mode;
typedef struct tern_init_kaiming_options {
    double a; /* the slope of a leaky ReLU */
    tern_fan_mode mode;
    tern_nonlinearity nonlinearity;
    uint64_t reserved[4];
} tern_init_kaiming_options;
/* Returns the default options, as TERN_DEFAULTS takes them. */
TERN_API tern_init_kaiming_options tern_init_kaiming_defaults(void);
/* tern_nn_init_kaiming_uniform_ with PyTorch's other arguments; NULL: defaults. */
TERN_API tern_tensor *tern_nn_init_kaiming_uniform_with_(tern_tensor *x,
                                                         const tern_init_kaiming_options *options);
/* tern_nn_init_kaiming_normal_, likewise. */
TERN_API tern_tensor *tern_nn_init_kaiming_normal_with_(tern_tensor *x,
                                                        const tern_init_kaiming_options *options);

/* ---- of a structure ---------------------------------------------------------------------- */
/* The identity, as far as (n, m) goes. */
TERN_API tern_tensor *tern_nn_init_eye_(tern_tensor *x);
/* A convolution's weight (out, in, *kernel) of one to three kernel dims that passes its input on,
 * in each of the groups (PyTorch: 1) that divide out. */
TERN_API tern_tensor *tern_nn_init_dirac_(tern_tensor *x, int64_t groups);
/* As (n, the rest): rows of length gain (PyTorch: 1) at right angles to each other, or columns
 * where there are more rows (Saxe et al. 2013). By Gram and Schmidt's method, on x's device. */
TERN_API tern_tensor *tern_nn_init_orthogonal_(tern_tensor *x, double gain);
/* (n, m): normal numbers with std (PyTorch: 0.01), but ceil(sparsity n) of each column, at random
 * places, are zero (Martens 2010). */
TERN_API tern_tensor *tern_nn_init_sparse_(tern_tensor *x, double sparsity, double std);

TERN_END_DECLS
#endif
