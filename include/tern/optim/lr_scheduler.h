/* optim/lr_scheduler.h -- learning rate schedules (torch.optim.lr_scheduler.X is
 * tern_lr_scheduler_x, in snake case).
 *
 * A scheduler sets the learning rates of all parameter groups when it is created and in each
 * tern_lr_scheduler_step. It computes the new rate from the current one (PyTorch's chainable form),
 * so that several schedulers of one optimizer multiply. It borrows the optimizer: a step after that
 * was freed is TERN_ERR_STATE. Groups that are added later are scheduled too if the new rate
 * depends only on the current one (step_lr to cosine_annealing_lr, and reduce_lr_on_plateau without
 * min_lrs); with other schedulers the next step is TERN_ERR_STATE. */
#ifndef TERN_OPTIM_LR_SCHEDULER_H
#define TERN_OPTIM_LR_SCHEDULER_H
#include <tern/optim.h>

TERN_BEGIN_DECLS

typedef struct tern_lr_scheduler tern_lr_scheduler;

/* Sets the learning rates for the next epoch, or the next step, depending on the unit that the
 * schedule was written for. Call it after the optimizer's step. While an error is recorded it does
 * nothing and returns that error. */
TERN_API tern_status tern_lr_scheduler_step(tern_lr_scheduler *scheduler);
/* Does the same for reduce_lr_on_plateau, which needs the metric that measures the model. */
TERN_API tern_status tern_lr_scheduler_step_metric(tern_lr_scheduler *scheduler, double metric);
/* Returns the rate that the scheduler last set for a group; NaN after an error. */
TERN_API double tern_lr_scheduler_get_last_lr(const tern_lr_scheduler *scheduler, int group);
/* Returns how many steps the scheduler has made. */
TERN_API int64_t tern_lr_scheduler_last_epoch(const tern_lr_scheduler *scheduler);
/* Frees the scheduler; NULL is fine. */
TERN_API void tern_lr_scheduler_free(tern_lr_scheduler *scheduler);

/* The state of a scheduler, without the rates and momenta, which belong to the state of the
 * optimizer. */
typedef struct tern_lr_scheduler_state {
    int64_t last_epoch;
    int64_t t_cur, t_i; /* cosine_annealing_warm_restarts; t_cur: swa_lr */
    double best;        /* reduce_lr_on_plateau */
    int64_t num_bad_epochs, cooldown_counter;
    uint64_t reserved[4];
} tern_lr_scheduler_state;
/* Writes the state into *state, to be saved in a checkpoint. */
TERN_API tern_status tern_lr_scheduler_get_state(const tern_lr_scheduler *scheduler,
                                                 tern_lr_scheduler_state *state);
/* Restores a state that tern_lr_scheduler_get_state wrote. */
TERN_API tern_status tern_lr_scheduler_set_state(tern_lr_scheduler *scheduler,
                                                 const tern_lr_scheduler_state *state);
/* Returns the i-th of the schedulers that a sequential_lr or chained_scheduler consists of,
 * borrowed; NULL, without an error, if there is none. */
TERN_API tern_lr_scheduler *tern_lr_scheduler_part(const tern_lr_scheduler *scheduler, int i);

/* ---- schedules ----------------------------------------------------------------------------------
 * All return NULL after TERN_ERR_ARGUMENT. PyTorch's default of gamma is 0.1 for step_lr and
 * multi_step_lr. */
/* Multiplies the rate by gamma every step_size epochs. */
TERN_API tern_lr_scheduler *tern_lr_scheduler_step_lr(tern_optimizer *optimizer, int64_t step_size,
                                                      double gamma);
/* Multiplies the rate by gamma at each milestone; a milestone that is listed twice counts twice. */
TERN_API tern_lr_scheduler *tern_lr_scheduler_multi_step_lr(tern_optimizer *optimizer,
                                                            const int64_t *milestones, int n,
                                                            double gamma);
/* Multiplies the rate by gamma every epoch. */
TERN_API tern_lr_scheduler *tern_lr_scheduler_exponential_lr(tern_optimizer *optimizer,
                                                             double gamma);
/* Multiplies the rate by factor for the first total_iters epochs (PyTorch's defaults: 1/3, 5). */
TERN_API tern_lr_scheduler *tern_lr_scheduler_constant_lr(tern_optimizer *optimizer, double factor,
                                                          int64_t total_iters);
/* Multiplies the rate by a factor that changes linearly from start_factor to end_factor in
 * total_iters epochs (PyTorch's defaults: 1/3, 1, 5). It can be the warm-up before another schedule
 * in sequential_lr. */
TERN_API tern_lr_scheduler *tern_lr_scheduler_linear_lr(tern_optimizer *optimizer,
                                                        double start_factor, double end_factor,
                                                        int64_t total_iters);
/* Multiplies the first rate by (1 - epoch / total_iters)^power (PyTorch's defaults: 5, 1). */
TERN_API tern_lr_scheduler *tern_lr_scheduler_polynomial_lr(tern_optimizer *optimizer,
                                                            int64_t total_iters, double power);
/* Lowers the rate to eta_min along half a cosine of t_max epochs, and raises it again in the next
 * t_max (Loshchilov & Hutter 2017). */
TERN_API tern_lr_scheduler *tern_lr_scheduler_cosine_annealing_lr(tern_optimizer *optimizer,
                                                                  int64_t t_max, double eta_min);
/* Does the same, but returns to the first rate at once after t_0 epochs, then after t_0 t_mult
 * more, and so on (PyTorch's default: t_mult 1). */
TERN_API tern_lr_scheduler *tern_lr_scheduler_cosine_annealing_warm_restarts(
    tern_optimizer *optimizer, int64_t t_0, int64_t t_mult, double eta_min);
/* A function that returns a factor for an epoch (for scale_fn: for a cycle or a step) and a
 * group. */
typedef double (*tern_lr_lambda)(int64_t epoch, int group, void *user);
/* Sets the rate to the first rate times lambda(epoch). */
TERN_API tern_lr_scheduler *tern_lr_scheduler_lambda_lr(tern_optimizer *optimizer,
                                                        tern_lr_lambda lambda, void *user);
/* Multiplies the rate by lambda(epoch) every epoch. */
TERN_API tern_lr_scheduler *tern_lr_scheduler_multiplicative_lr(tern_optimizer *optimizer,
                                                                tern_lr_lambda lambda, void *user);

typedef enum tern_anneal_strategy {
    TERN_ANNEAL_COS = 0, /* half a cosine */
    TERN_ANNEAL_LINEAR
} tern_anneal_strategy;
typedef struct tern_swa_lr_options {
    tern_optional_int anneal_epochs; /* default 10; 0 means in one step */
    tern_anneal_strategy anneal_strategy;
    const double *swa_lrs; /* one for each group, instead of the argument */
    uint64_t reserved[4];
} tern_swa_lr_options;
/* Returns the default options, as TERN_DEFAULTS takes them. */
TERN_API tern_swa_lr_options tern_swa_lr_defaults(void);
/* Moves the rate to swa_lr in anneal_epochs and keeps it there, while weights are averaged
 * (torch.optim.swa_utils.SWALR; tern_swa_averaged_model averages them). */
TERN_API tern_lr_scheduler *tern_lr_scheduler_swa_lr(tern_optimizer *optimizer, double swa_lr,
                                                     const tern_swa_lr_options *options);

/* ---- cycles, in which the momentum (or beta1) moves opposite to the rate --------------------- */
typedef enum tern_cyclic_mode {
    TERN_CYCLIC_TRIANGULAR = 0,
    TERN_CYCLIC_TRIANGULAR2, /* the amplitude is halved after each cycle */
    TERN_CYCLIC_EXP_RANGE    /* the amplitude is multiplied by gamma^step */
} tern_cyclic_mode;
typedef enum tern_scale_mode {
    TERN_SCALE_CYCLE = 0, /* scale_fn gets the number of the cycle, from 1 on */
    TERN_SCALE_ITERATIONS /* scale_fn gets the number of the step, from 0 on */
} tern_scale_mode;

typedef struct tern_cyclic_lr_options {
    int64_t step_size_up;   /* default 2000 */
    int64_t step_size_down; /* default (and -1): step_size_up */
    tern_cyclic_mode mode;
    double gamma;            /* default 1 */
    tern_lr_lambda scale_fn; /* the amplitude is multiplied by its result, in place of mode and
                              * gamma; NULL: none */
    tern_scale_mode scale_mode;
    void *user; /* the last argument of scale_fn */
    bool no_cycle_momentum;
    double base_momentum;             /* default 0.8; TERN_ZERO for 0 */
    double max_momentum;              /* default 0.9; TERN_ZERO for 0 */
    const double *base_lrs, *max_lrs; /* one for each group, in place of the arguments */
    uint64_t reserved[4];
} tern_cyclic_lr_options;
/* Returns the default options, as TERN_DEFAULTS takes them. */
TERN_API tern_cyclic_lr_options tern_cyclic_lr_defaults(void);
/* Moves the rate from base_lr to max_lr and back (Smith 2017), one step for each batch. */
TERN_API tern_lr_scheduler *tern_lr_scheduler_cyclic_lr(tern_optimizer *optimizer, double base_lr,
                                                        double max_lr,
                                                        const tern_cyclic_lr_options *options);

typedef struct tern_one_cycle_lr_options {
    double pct_start; /* default 0.3; TERN_ZERO for 0 */
    tern_anneal_strategy anneal_strategy;
    bool no_cycle_momentum;
    double base_momentum;    /* default 0.85; TERN_ZERO for 0 */
    double max_momentum;     /* default 0.95; TERN_ZERO for 0 */
    double div_factor;       /* default 25: the first rate is max_lr / div_factor */
    double final_div_factor; /* default 1e4: the last rate is the first one / final_div_factor */
    bool three_phase;
    const double *max_lrs;           /* one for each group, instead of the argument */
    int64_t epochs, steps_per_epoch; /* if total_steps is 0, it is their product */
    uint64_t reserved[4];
} tern_one_cycle_lr_options;
/* Returns the default options, as TERN_DEFAULTS takes them. */
TERN_API tern_one_cycle_lr_options tern_one_cycle_lr_defaults(void);
/* Moves the rate up to max_lr and then down to a very small rate, once, in total_steps steps (Smith
 * & Topin 2018), one step for each batch. Errors: TERN_ERR_STATE for a step after the last;
 * TERN_ERR_ARGUMENT if total_steps is 0 and not both epochs and steps_per_epoch are given. */
TERN_API tern_lr_scheduler *tern_lr_scheduler_one_cycle_lr(
    tern_optimizer *optimizer, double max_lr, int64_t total_steps,
    const tern_one_cycle_lr_options *options);

/* ---- depending on a metric ------------------------------------------------------------------- */
typedef enum tern_plateau_mode {
    TERN_PLATEAU_MIN = 0, /* smaller metrics are better */
    TERN_PLATEAU_MAX
} tern_plateau_mode;
typedef enum tern_threshold_mode {
    TERN_THRESHOLD_REL = 0, /* relative to the best metric */
    TERN_THRESHOLD_ABS      /* an absolute difference */
} tern_threshold_mode;
typedef struct tern_reduce_lr_on_plateau_options {
    tern_plateau_mode mode;
    double factor;              /* default 0.1; < 1 */
    tern_optional_int patience; /* default 10: epochs without progress before the rate is reduced */
    double threshold;           /* default 1e-4, TERN_ZERO for 0: smaller changes are no progress */
    tern_threshold_mode threshold_mode;
    int64_t cooldown; /* epochs after a reduction that are not counted */
    double min_lr;
    double eps;            /* default 1e-8, TERN_ZERO for 0: smaller reductions are not made */
    const double *min_lrs; /* one for each group, in place of min_lr */
    uint64_t reserved[4];
} tern_reduce_lr_on_plateau_options;
/* Returns the default options, as TERN_DEFAULTS takes them. */
TERN_API tern_reduce_lr_on_plateau_options tern_reduce_lr_on_plateau_defaults(void);
/* Multiplies the rate by factor when the metric of tern_lr_scheduler_step_metric has made no
 * progress for more than `patience` epochs. */
TERN_API tern_lr_scheduler *tern_lr_scheduler_reduce_lr_on_plateau(
    tern_optimizer *optimizer, const tern_reduce_lr_on_plateau_options *options);

/* ---- several schedulers of one optimizer: the result owns them, and frees them if it fails --- */
/* Steps schedulers[0] until epoch milestones[0], then schedulers[1] until milestones[1], and so on.
 * There are n - 1 milestones. */
TERN_API tern_lr_scheduler *tern_lr_scheduler_sequential_lr(tern_optimizer *optimizer,
                                                            tern_lr_scheduler *const *schedulers,
                                                            int n, const int64_t *milestones);
/* Steps all of the schedulers in each step. */
TERN_API tern_lr_scheduler *tern_lr_scheduler_chained_scheduler(
    tern_lr_scheduler *const *schedulers, int n);

TERN_END_DECLS
#endif
