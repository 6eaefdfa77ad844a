/* optim/algorithms.h -- the optimizers besides SGD, Adam and AdamW. Each can be created for all
 * parameters of a module, or (_of) for a list of leaf tensors. Parameters of float16 and bfloat16
 * have their states in float32. https://pytorch.org/docs/stable/optim.html */
#ifndef TERN_OPTIM_ALGORITHMS_H
#define TERN_OPTIM_ALGORITHMS_H
#include <tern/optim.h>

TERN_BEGIN_DECLS

/* Adamax: Adam with the infinity norm of the gradients (Kingma & Ba 2015, section 7.1). PyTorch's
 * default of lr is 2e-3. */
typedef struct tern_adamax_options {
    double beta1, beta2; /* default 0.9, 0.999; TERN_ZERO for 0 */
    double eps;          /* default 1e-8 */
    double weight_decay;
    bool maximize;
    uint64_t reserved[4];
} tern_adamax_options;
/* Returns the default options, as TERN_DEFAULTS takes them. */
TERN_API tern_adamax_options tern_adamax_defaults(void);
/* Makes an Adamax optimizer of all parameters of module. */
TERN_API tern_optimizer *tern_optim_adamax(tern_module *module, double lr,
                                           const tern_adamax_options *options);
/* Makes an Adamax optimizer of a list of leaf tensors. */
TERN_API tern_optimizer *tern_optim_adamax_of(tern_tensor *const *parameters, int n, double lr,
                                              const tern_adamax_options *options);

/* NAdam: Adam with Nesterov momentum (Dozat 2016). PyTorch's default of lr is 2e-3. */
typedef struct tern_nadam_options {
    double beta1, beta2; /* default 0.9, 0.999; TERN_ZERO for 0 */
    double eps;          /* default 1e-8 */
    double weight_decay;
    double momentum_decay; /* default 4e-3; TERN_ZERO for 0 */
    bool decoupled_weight_decay, maximize;
    uint64_t reserved[4];
} tern_nadam_options;
/* Returns the default options, as TERN_DEFAULTS takes them. */
TERN_API tern_nadam_options tern_nadam_defaults(void);
/* Makes an NAdam optimizer of all parameters of module. */
TERN_API tern_optimizer *tern_optim_nadam(tern_module *module, double lr,
                                          const tern_nadam_options *options);
/* Makes an NAdam optimizer of a list of leaf tensors. */
TERN_API tern_optimizer *tern_optim_nadam_of(tern_tensor *const *parameters, int n, double lr,
                                             const tern_nadam_options *options);

/* RAdam: rectified Adam (Liu et al. 2020). PyTorch's default of lr is 1e-3. */
typedef struct tern_radam_options {
    double beta1, beta2; /* default 0.9, 0.999; TERN_ZERO for 0 */
    double eps;          /* default 1e-8 */
    double weight_decay;
    bool decoupled_weight_decay, maximize;
    uint64_t reserved[4];
} tern_radam_options;
/* Returns the default options, as TERN_DEFAULTS takes them. */
TERN_API tern_radam_options tern_radam_defaults(void);
/* Makes an RAdam optimizer of all parameters of module. */
TERN_API tern_optimizer *tern_optim_radam(tern_module *module, double lr,
                                          const tern_radam_options *options);
/* Makes an RAdam optimizer of a list of leaf tensors. */
TERN_API tern_optimizer *tern_optim_radam_of(tern_tensor *const *parameters, int n, double lr,
                                             const tern_radam_options *options);

/* RMSprop (Tieleman & Hinton 2012; centered: Graves 2013). PyTorch's default of lr is 1e-2. */
typedef struct tern_rmsprop_options {
    double alpha; /* default 0.99; TERN_ZERO for 0 */
    double eps;   /* default 1e-8 */
    double weight_decay, momentum;
    bool centered, maximize;
    uint64_t reserved[4];
} tern_rmsprop_options;
/* Returns the default options, as TERN_DEFAULTS takes them. */
TERN_API tern_rmsprop_options tern_rmsprop_defaults(void);
/* Makes an RMSprop optimizer of all parameters of module. */
TERN_API tern_optimizer *tern_optim_rmsprop(tern_module *module, double lr,
                                            const tern_rmsprop_options *options);
/* Makes an RMSprop optimizer of a list of leaf tensors. */
TERN_API tern_optimizer *tern_optim_rmsprop_of(tern_tensor *const *parameters, int n, double lr,
                                               const tern_rmsprop_options *options);

/* Adagrad (Duchi, Hazan, Singer 2011). PyTorch's default of lr is 1e-2. */
typedef struct tern_adagrad_options {
    double lr_decay, weight_decay, initial_accumulator_value;
    double eps; /* default 1e-10 */
    bool maximize;
    uint64_t reserved[4];
} tern_adagrad_options;
/* Returns the default options, as TERN_DEFAULTS takes them. */
TERN_API tern_adagrad_options tern_adagrad_defaults(void);
/* Makes an Adagrad optimizer of all parameters of module. */
TERN_API tern_optimizer *tern_optim_adagrad(tern_module *module, double lr,
                                            const tern_adagrad_options *options);
/* Makes an Adagrad optimizer of a list of leaf tensors. */
TERN_API tern_optimizer *tern_optim_adagrad_of(tern_tensor *const *parameters, int n, double lr,
                                               const tern_adagrad_options *options);

/* Adadelta (Zeiler 2012). PyTorch's default of lr is 1. */
typedef struct tern_adadelta_options {
    double rho; /* default 0.9; TERN_ZERO for 0 */
    double eps; /* default 1e-6 */
    double weight_decay;
    bool maximize;
    uint64_t reserved[4];
} tern_adadelta_options;
/* Returns the default options, as TERN_DEFAULTS takes them. */
TERN_API tern_adadelta_options tern_adadelta_defaults(void);
/* Makes an Adadelta optimizer of all parameters of module. */
TERN_API tern_optimizer *tern_optim_adadelta(tern_module *module, double lr,
                                             const tern_adadelta_options *options);
/* Makes an Adadelta optimizer of a list of leaf tensors. */
TERN_API tern_optimizer *tern_optim_adadelta_of(tern_tensor *const *parameters, int n, double lr,
                                                const tern_adadelta_options *options);

/* Rprop, which uses the signs of full-batch gradients (Riedmiller & Braun 1993). PyTorch's default
 * of lr, the first step size, is 1e-2. */
typedef struct tern_rprop_options {
    double etaminus, etaplus; /* default 0.5, 1.2: the factors of the step size when the sign
                               * changes, and when it does not */
    double step_size_min, step_size_max; /* default 1e-6, 50 */
    bool maximize;
    uint64_t reserved[4];
} tern_rprop_options;
/* Returns the default options, as TERN_DEFAULTS takes them. */
TERN_API tern_rprop_options tern_rprop_defaults(void);
/* Makes an Rprop optimizer of all parameters of module. */
TERN_API tern_optimizer *tern_optim_rprop(tern_module *module, double lr,
                                          const tern_rprop_options *options);
/* Makes an Rprop optimizer of a list of leaf tensors. */
TERN_API tern_optimizer *tern_optim_rprop_of(tern_tensor *const *parameters, int n, double lr,
                                             const tern_rprop_options *options);

/* Averaged SGD (Polyak & Juditsky 1992); the average is the state "ax". PyTorch's default of lr is
 * 1e-2. A change of lr takes effect at the next step. */
typedef struct tern_asgd_options {
    double lambd; /* default 1e-4 */
    double alpha; /* default 0.75 */
    double t0;    /* default 1e6: the step at which averaging starts */
    double weight_decay;
    bool maximize;
    uint64_t reserved[4];
} tern_asgd_options;
/* Returns the default options, as TERN_DEFAULTS takes them. */
TERN_API tern_asgd_options tern_asgd_defaults(void);
/* Makes an ASGD optimizer of all parameters of module. */
TERN_API tern_optimizer *tern_optim_asgd(tern_module *module, double lr,
                                         const tern_asgd_options *options);
/* Makes an ASGD optimizer of a list of leaf tensors. */
TERN_API tern_optimizer *tern_optim_asgd_of(tern_tensor *const *parameters, int n, double lr,
                                            const tern_asgd_options *options);

/* LAMB, for large batches (You et al. 2020, algorithm 2): Adam's direction plus weight_decay times
 * the parameter, scaled to the norm of the parameter. */
typedef struct tern_lamb_options {
    double beta1, beta2; /* default 0.9, 0.999; TERN_ZERO for 0 */
    double eps;          /* default 1e-6 */
    double weight_decay;
    bool maximize;
    uint64_t reserved[4];
} tern_lamb_options;
/* Returns the default options, as TERN_DEFAULTS takes them. */
TERN_API tern_lamb_options tern_lamb_defaults(void);
/* Makes a LAMB optimizer of all parameters of module. */
TERN_API tern_optimizer *tern_optim_lamb(tern_module *module, double lr,
                                         const tern_lamb_options *options);
/* Makes a LAMB optimizer of a list of leaf tensors. */
TERN_API tern_optimizer *tern_optim_lamb_of(tern_tensor *const *parameters, int n, double lr,
                                            const tern_lamb_options *options);

typedef enum tern_muon_adjust {
    TERN_MUON_ORIGINAL = 0,   /* the step is lr sqrt(max(1, rows / columns)) */
    TERN_MUON_MATCH_RMS_ADAMW /* 0.2 lr sqrt(max(rows, columns)): as large as AdamW's */
} tern_muon_adjust;

/* Muon: momentum whose singular values are all brought close to one (Jordan et al. 2024). It takes
 * parameters of two dims only; give all others to AdamW. PyTorch's default of lr is 1e-3. The
 * iteration is computed in float32, where PyTorch uses bfloat16. */
typedef struct tern_muon_options {
    double weight_decay; /* default 0.1; TERN_ZERO for 0 */
    double momentum;     /* default 0.95 */
    bool no_nesterov;
    double ns_a, ns_b, ns_c; /* default 3.4445, -4.775, 2.0315 */
    double eps;              /* default 1e-7 */
    int ns_steps;            /* default 5 */
    tern_muon_adjust adjust_lr;
    uint64_t reserved[4];
} tern_muon_options;
/* Returns the default options, as TERN_DEFAULTS takes them. */
TERN_API tern_muon_options tern_muon_defaults(void);
/* Makes a Muon optimizer of all parameters of module. */
TERN_API tern_optimizer *tern_optim_muon(tern_module *module, double lr,
                                         const tern_muon_options *options);
/* Makes a Muon optimizer of a list of leaf tensors. */
TERN_API tern_optimizer *tern_optim_muon_of(tern_tensor *const *parameters, int n, double lr,
                                            const tern_muon_options *options);

typedef enum tern_line_search_fn {
    TERN_LINE_SEARCH_NONE = 0,    /* each step has the size lr */
    TERN_LINE_SEARCH_STRONG_WOLFE /* Nocedal & Wright 2006, algorithms 3.5 and 3.6 */
} tern_line_search_fn;
/* L-BFGS (Nocedal & Wright 2006). It is stepped by tern_optim_step_closure only. All parameters are
 * on one device and in one group. The host reads products and losses from the device. PyTorch's
 * default of lr is 1. */
typedef struct tern_lbfgs_options {
    int max_iter; /* default 20: iterations in one step */
    int max_eval; /* default (and -1) 1.25 max_iter: evaluations in one step; a line search makes
                   * at least one */
    int history_size;        /* default 100 */
    double tolerance_grad;   /* default 1e-7; TERN_ZERO for 0 */
    double tolerance_change; /* default 1e-9; TERN_ZERO for 0 */
    tern_line_search_fn line_search_fn;
    bool maximize;
    uint64_t reserved[4];
} tern_lbfgs_options;
/* Returns the default options, as TERN_DEFAULTS takes them. */
TERN_API tern_lbfgs_options tern_lbfgs_defaults(void);
/* Makes an L-BFGS optimizer of all parameters of module. */
TERN_API tern_optimizer *tern_optim_lbfgs(tern_module *module, double lr,
                                          const tern_lbfgs_options *options);
/* Makes an L-BFGS optimizer of a list of leaf tensors. */
TERN_API tern_optimizer *tern_optim_lbfgs_of(tern_tensor *const *parameters, int n, double lr,
                                             const tern_lbfgs_options *options);

/* ---- optimizers that a program defines ------------------------------------------------------- */
/* The functions of such an optimizer; data is the pointer that tern_optim_custom was given. name
 * ("my_lion"), which appears in errors, must live as long as the optimizer. */
typedef struct tern_optimizer_type {
    const char *name;
    /* Updates parameter i, x, with its gradient tern_grad(x). values are lr, beta1, beta2, eps and
     * weight_decay of its group, then amsgrad and maximize as 0 or 1. Called for each parameter
     * that has a gradient. */
    tern_status (*step)(void *data, int i, tern_tensor *x, const double *values);
    /* Visits the tensors of the state, whose paths are "state.<i>.<name>". */
    tern_status (*each_state)(void *data, tern_tensor_visit visit, void *user);
    /* Loads all tensors of dict whose paths begin with "state."; if apply is false, only checks
     * that it could, and changes nothing. */
    tern_status (*load_state)(void *data, tern_optimizer *optimizer, const tern_state_dict *dict,
                              bool apply);
    void (*free_data)(void *data);
} tern_optimizer_type;
/* Returns an optimizer of n leaf tensors whose steps are computed by the functions of type. It has
 * AdamW's options, and works with parameter groups, schedulers, gradient scalers and snapshots. It
 * owns data, except after an error, when the result is NULL. Its steps cannot be recorded in
 * graphs, nor its parameters sharded over ranks: both are TERN_ERR_UNSUPPORTED. */
TERN_API tern_optimizer *tern_optim_custom(const tern_optimizer_type *type, void *data,
                                           tern_tensor *const *parameters, int n, double lr,
                                           const tern_adamw_options *options);

TERN_END_DECLS
#endif
