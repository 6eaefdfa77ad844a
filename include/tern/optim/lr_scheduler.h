/* optim/lr_scheduler.h -- learning rates that follow the steps (torch.optim.lr_scheduler.X is
 * tern_lr_scheduler_x, in snake case).
 *
 * A scheduler sets the learning rates of all parameter groups when it is made and with each
 * tern_lr_scheduler_step, in PyTorch's chainable form: from the rate as it is, so that several on
 * one optimizer multiply. It borrows the optimizer: steps after that was freed are
 * TERN_ERR_STATE. Groups that are added
 * later follow the rules that go by the last rate alone (step_lr to cosine_annealing_lr, and
 * reduce_lr_on_plateau without min_lrs); a step of the others is TERN_ERR_STATE then. */
#ifndef TERN_OPTIM_LR_SCHEDULER_H
#define TERN_OPTIM_LR_SCHEDULER_H
#include <tern/optim.h>

TERN_BEGIN_DECLS

typedef struct tern_lr_scheduler tern_lr_scheduler;

/* After the optimizer's step: once an epoch, or once a step, as the numbers were meant. Refused
 * while an error is recorded. */
TERN_API tern_status tern_lr_scheduler_step(tern_lr_scheduler *scheduler);
/* The same for reduce_lr_on_plateau, which wants to know how good the model is. */
TERN_API tern_status tern_lr_scheduler_step_metric(tern_lr_scheduler *scheduler, double metric);
/* The rate that the scheduler gave a group last; NaN after an error. */
TERN_API double tern_lr_scheduler_get_last_lr(const tern_lr_scheduler *scheduler, int group);
/* How many steps it has made. */
TERN_API int64_t tern_lr_scheduler_last_epoch(const tern_lr_scheduler *scheduler);
/* Frees the scheduler; NULL is fine. */
TERN_API void tern_lr_scheduler_free(tern_lr_scheduler *scheduler);

/* Where a scheduler is; the optimizer's rates and momenta are its own state. */
typedef struct tern_lr_scheduler_state {
    int64_t last_epoch;
    int64_t t_cur, t_i; /* cosine_annealing_warm_restarts; t_cur: swa_lr */
    double best;        /* reduce_lr_on_plateau */
    int64_t num_bad_epochs, cooldown_counter;
    uint64_t reserved[4];
} tern_lr_scheduler_state;
/* Into *state. */
TERN_API tern_status tern_lr_scheduler_get_state(const tern_lr_scheduler *scheduler,
                                                 tern_lr_scheduler_state *state);
/* As tern_lr_scheduler_get_state gave it. */
TERN_API tern_status tern_lr_scheduler_set_state(tern_lr_scheduler *scheduler,
                                                 const tern_lr_scheduler_state *state);
/* The i-th of the schedulers that it is made of (sequential_lr, chained_scheduler), borrowed; NULL
 * where there is none, without an error. */
TERN_API tern_lr_scheduler *tern_lr_scheduler_part(const tern_lr_scheduler *scheduler, int i);

/* ---- one rule ------------------------------------------------------------------------------
 * All may fail with NULL after TERN_ERR_ARGUMENT. gamma: PyTorch's default is 0.1 for step_lr and
 * multi_step_lr. */
/* Times gamma every step_size epochs; at each milestone (a repeated one counts again). */
TERN_API tern_lr_scheduler *tern_lr_scheduler_step_lr(tern_optimizer *optimizer, int64_t step_size,
                                                      double gamma);
/* Times gamma at each milestone. */
TERN_API tern_lr_scheduler *tern_lr_scheduler_multi_step_lr(tern_optimizer *optimizer,
                                                            const int64_t *milestones, int n,
                                                            double gamma);
/* Times gamma every epoch. */
TERN_API tern_lr_scheduler *tern_lr_scheduler_exponential_lr(tern_optimizer *optimizer,
                                                             double gamma);
/* Times factor for the first total_iters epochs (PyTorch: 1/3, 5). */
TERN_API tern_lr_scheduler *tern_lr_scheduler_constant_lr(tern_optimizer *optimizer, double factor,
                                                          int64_t total_iters);
/* Times a factor that goes from start_factor to end_factor in total_iters epochs (PyTorch: 1/3, 1,
 * 5): a warm-up, before another one in sequential_lr. */
TERN_API tern_lr_scheduler *tern_lr_scheduler_linear_lr(tern_optimizer *optimizer,
                                                        double start_factor, double end_factor,
                                                        int64_t total_iters);
/* Times (1 - epoch / total_iters) to the power (PyTorch: 5, 1). */
TERN_API tern_lr_scheduler *tern_lr_scheduler_polynomial_lr(tern_optimizer *optimizer,
                                                            int64_t total_iters, double power);
/* Down to eta_min along half a cosine of t_max epochs, and up again (Loshchilov & Hutter 2017). */
TERN_API tern_lr_scheduler *tern_lr_scheduler_cosine_annealing_lr(tern_optimizer *optimizer,
                                                                  int64_t t_max, double eta_min);
/* The same, jumping up again after t_0 epochs, then t_0 t_mult, ... (PyTorch: t_mult 1). */
TERN_API tern_lr_scheduler *tern_lr_scheduler_cosine_annealing_warm_restarts(
    tern_optimizer *optimizer, int64_t t_0, int64_t t_mult, double eta_min);
/* Returns a factor for an epoch (for scale_fn: a cycle, or a step) and a group. */
typedef double (*tern_lr_lambda)(int64_t epoch, int group, void *user);
/* The first rate times lambda. */
TERN_API tern_lr_scheduler *tern_lr_scheduler_lambda_lr(tern_optimizer *optimizer,
                                                        tern_lr_lambda lambda, void *user);
/* The last rate times lambda. */
TERN_API tern_lr_scheduler *tern_lr_scheduler_multiplicative_lr(tern_optimizer *optimizer,
                                                                tern_lr_lambda lambda, void *user);

typedef enum tern_anneal_strategy {
    TERN_ANNEAL_COS = 0, /* half a cosine */
    TERN_ANNEAL_LINEAR
} tern_anneal_strategy;
typedef struct tern_swa_lr_options {
    tern_optional_int anneal_epochs; /* default 10; 0: at once */
    tern_anneal_strategy anneal_strategy;
    const double *swa_lrs; /* one for each group, instead of the argument */
    uint64_t reserved[4];
} tern_swa_lr_options;
/* Returns the default options, as TERN_DEFAULTS takes them. */
TERN_API tern_swa_lr_options tern_swa_lr_defaults(void);
/* To swa_lr in anneal_epochs, where it stays: while weights are averaged
 * (torch.optim.swa_utils.SWALR; tern_swa_averaged_model averages them). */
TERN_API tern_lr_scheduler *tern_lr_scheduler_swa_lr(tern_optimizer *optimizer, double swa_lr,
                                                     const tern_swa_lr_options *options);

/* ---- cycles, which move the momentum (or beta1) against the rate ----------------------------- */
typedef enum tern_cyclic_mode {
    TERN_CYCLIC_TRIANGULAR = 0,
    TERN_CYCLIC_TRIANGULAR2, /* each cycle half as high */
    TERN_CYCLIC_EXP_RANGE    /* times gamma^step */
} tern_cyclic_mode;
typedef enum tern_scale_mode {
    TERN_SCALE_CYCLE = 0, /* scale_fn is given the number of the cycle, from 1 on */
    TERN_SCALE_ITERATIONS /* of the step, from 0 on */
} tern_scale_mode;

typedef struct tern_cyclic_lr_options {
    int64_t step_size_up;   /* default 2000 */
    int64_t step_size_down; /* default step_size_up, which -1 is */
    tern_cyclic_mode mode;
    double gamma;            /* default 1 */
    tern_lr_lambda scale_fn; /* times what it returns, instead of mode and gamma; NULL: none */
    tern_scale_mode scale_mode;
    void *user; /* scale_fn's */
    bool no_cycle_momentum;
    double base_momentum;             /* default 0.8; TERN_ZERO for 0 */
    double max_momentum;              /* default 0.9; TERN_ZERO for 0 */
    const double *base_lrs, *max_lrs; /* one for each group, instead of the arguments */
    uint64_t reserved[4];
} tern_cyclic_lr_options;
/* Returns the default options, as TERN_DEFAULTS takes them. */
TERN_API tern_cyclic_lr_options tern_cyclic_lr_defaults(void);
/* Between base_lr and max_lr and back (Smith 2017); a step each batch. */
TERN_API tern_lr_scheduler *tern_lr_scheduler_cyclic_lr(tern_optimizer *optimizer, double base_lr,
                                                        double max_lr,
                                                        const tern_cyclic_lr_options *options);

typedef struct tern_one_cycle_lr_options {
    double pct_start; /* default 0.3; TERN_ZERO for 0 */
    tern_anneal_strategy anneal_strategy;
    bool no_cycle_momentum;
    double base_momentum;    /* default 0.85; TERN_ZERO for 0 */
    double max_momentum;     /* default 0.95; TERN_ZERO for 0 */
    double div_factor;       /* default 25: the first rate is max_lr over it */
    double final_div_factor; /* default 1e4: the last rate is the first one over it */
    bool three_phase;
    const double *max_lrs;           /* one for each group, instead of the argument */
    int64_t epochs, steps_per_epoch; /* where total_steps is 0, which is their product then */
    uint64_t reserved[4];
} tern_one_cycle_lr_options;
/* Returns the default options, as TERN_DEFAULTS takes them. */
TERN_API tern_one_cycle_lr_options tern_one_cycle_lr_defaults(void);
/* Up to max_lr and far down, once, in total_steps steps (Smith & Topin 2018); a step each batch.
 * One step too many is TERN_ERR_STATE. TERN_ERR_ARGUMENT where total_steps is 0 and epochs and
 * steps_per_epoch are not both given. */
TERN_API tern_lr_scheduler *tern_lr_scheduler_one_cycle_lr(
    tern_optimizer *optimizer, double max_lr, int64_t total_steps,
    const tern_one_cycle_lr_options *options);

/* ---- by what is measured ----------------------------------------------------------------- */
typedef enum tern_plateau_mode {
    TERN_PLATEAU_MIN = 0, /* smaller metrics are better */
    TERN_PLATEAU_MAX
} tern_plateau_mode;
typedef enum tern_threshold_mode {
    TERN_THRESHOLD_REL = 0, /* in relation to the best */
    TERN_THRESHOLD_ABS      /* as a difference */
} tern_threshold_mode;
typedef struct tern_reduce_lr_on_plateau_options {
    tern_plateau_mode mode;
    double factor;              /* default 0.1; < 1 */
    tern_optional_int patience; /* default 10: epochs without progress that are put up with */
    double threshold;           /* default 1e-4, TERN_ZERO for 0: what counts as progress */
    tern_threshold_mode threshold_mode;
    int64_t cooldown; /* epochs after a reduction that do not count */
    double min_lr;
    double eps;            /* default 1e-8, TERN_ZERO for 0: smaller reductions are left out */
    const double *min_lrs; /* one for each group, instead of min_lr */
    uint64_t reserved[4];
} tern_reduce_lr_on_plateau_options;
/* Returns the default options, as TERN_DEFAULTS takes them. */
TERN_API tern_reduce_lr_on_plateau_options tern_reduce_lr_on_plateau_defaults(void);
/* Times factor when tern_lr_scheduler_step_metric sees no progress for longer than patience. */
TERN_API tern_lr_scheduler *tern_lr_scheduler_reduce_lr_on_plateau(
    tern_optimizer *optimizer, const tern_reduce_lr_on_plateau_options *options);

/* ---- several: they own their schedulers, which are of one optimizer (also when this fails) --- */
/* schedulers[0] until epoch milestones[0], and so on; n - 1 milestones. */
TERN_API tern_lr_scheduler *tern_lr_scheduler_sequential_lr(tern_optimizer *optimizer,
                                                            tern_lr_scheduler *const *schedulers,
                                                            int n, const int64_t *milestones);
/* All of them in each step. */
TERN_API tern_lr_scheduler *tern_lr_scheduler_chained_scheduler(
    tern_lr_scheduler *const *schedulers, int n);

TERN_END_DECLS
#endif
