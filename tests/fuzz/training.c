/* training.c -- rows of training.def. */
#include "objects.h"

static int few(int64_t n)
{
    return n > 6 ? 6 : (int)(n < INT32_MIN ? INT32_MIN : n);
}

/* ---- optimizers --------------------------------------------------------------------------- */

typedef struct closure {
    tern_optimizer *optimizer;
    tern_module *module;
    tern_tensor *input;
} closure;

static tern_tensor *evaluate(void *user)
{
    closure *c = user;
    tern_optim_zero_grad(c->optimizer);
    tern_tensor *loss = tern_sum(tern_nn_forward(c->module, c->input));
    return tern_backward(loss) == TERN_OK ? loss : NULL;
}

static int step_closure(const names_argument *a)
{
    double loss;
    closure c = {FUZZ_OBJECT(optimizers, N(0)), fuzz_module(N(1)), T(2)};
    return DONE(tern_optim_step_closure(c.optimizer, evaluate, &c, &loss));
}

static tern_status set_state(const char *path, tern_tensor *x, void *user)
{
    return tern_optim_set_state(user, path, x);
}

/* ---- schedulers --------------------------------------------------------------------------- */

static double *fuzz_lambda(double factor)
{
    static double factors[16];
    static int next;
    factors[next % 16] = factor;
    return &factors[next++ % 16];
}

static double lambda(int64_t epoch, int group, void *user)
{
    return *(double *)user * (double)(epoch + group);
}

/* Those are the callee's now. */
static int take_schedulers(const names_argument *a, tern_lr_scheduler **list)
{
    int n = a->count < FUZZ_LIST ? a->count : FUZZ_LIST;
    for (int i = 0; i < n; i++)
        list[i] = FUZZ_OBJECT(schedulers, a->ints[i]);
    for (int i = 0; i < n; i++)
        if ((uint64_t)a->ints[i] < FUZZ_OBJECTS)
            fuzz_held.schedulers[a->ints[i]] = NULL;
    return n;
}

static int sequential(const names_argument *a)
{
    tern_lr_scheduler *list[FUZZ_LIST];
    int64_t milestones[FUZZ_LIST] = {0};
    int n = take_schedulers(&a[2], list);
    for (int i = 0; i < a[3].count && i < FUZZ_LIST; i++)
        milestones[i] = a[3].ints[i];
    return fuzz_put_scheduler(
        N(0), tern_lr_scheduler_sequential_lr(FUZZ_OBJECT(optimizers, N(1)), list, n, milestones));
}

static int chained(const names_argument *a)
{
    tern_lr_scheduler *list[FUZZ_LIST];
    int n = take_schedulers(&a[1], list);
    return fuzz_put_scheduler(N(0), tern_lr_scheduler_chained_scheduler(list, n));
}

/* ---- the others --------------------------------------------------------------------------- */

/* An object instead of the one in a slot. */
#define PUT(kind, free, i, make)                                                                   \
    do {                                                                                           \
        void *made_ = make;                                                                        \
        if (!made_)                                                                                \
            return -1;                                                                             \
        free(fuzz_held.kind[(uint64_t)(i) % FUZZ_OBJECTS]);                                        \
        fuzz_held.kind[(uint64_t)(i) % FUZZ_OBJECTS] = made_;                                      \
        return 0;                                                                                  \
    } while (0)

static int put_scaler(const names_argument *a)
{
    tern_grad_scaler_options options = {.init_scale = R(1),
                                        .growth_factor = R(2),
                                        .backoff_factor = R(3),
                                        .growth_interval = N(4),
                                        .disabled = B(5)};
    PUT(scalers, tern_amp_free, N(0), tern_amp_grad_scaler(&options));
}

static int put_average(const names_argument *a)
{
    tern_averaged_model_options options = {.decay = R(2), .equal = B(3), .use_buffers = B(4)};
    PUT(averages, tern_swa_free, N(0), tern_swa_averaged_model(fuzz_module(N(1)), &options));
}

static int put_graph(const names_argument *a)
{
    PUT(graphs, tern_graph_free, N(0), tern_graph_new("cpu"));
}

typedef struct batches {
    tern_tensor *x;
    int64_t left;
} batches;

static tern_tensor *next_batch(void *user)
{
    batches *b = user;
    return b->left > 0 ? (b->left--, b->x) : NULL;
}

static int update_bn(const names_argument *a)
{
    batches b = {T(1), N(2) < 5 ? N(2) : 5};
    return DONE(tern_swa_update_bn(fuzz_module(N(0)), next_batch, &b));
}

/* ---- autocast ----------------------------------------------------------------------------- */

static tern_autocast_block blocks[8];
static int block_count;

static int enter_autocast(const names_argument *a)
{
    if (block_count == 8)
        return DONE(tern_fail(TERN_ERR_ARGUMENT, "fuzz: so many blocks"));
    blocks[block_count++] = tern_autocast_block_enter(TEXT(2), DTYPE(0), B(1));
    return DONE(tern_last_status());
}

int fuzz_leave_autocast(void)
{
    if (block_count > 0)
        tern_autocast_block_leave(&blocks[--block_count]);
    return 0;
}

void fuzz_leave(void)
{
    tern_clear_error();
    for (int i = 0; i < FUZZ_OBJECTS && tern_is_capturing(); i++)
        if (fuzz_held.graphs[i]) {
            tern_graph_capture_end(fuzz_held.graphs[i]);
            tern_clear_error();
        }
    while (block_count > 0)
        fuzz_leave_autocast();
}

#define TABLE  fuzz_training_rows
#define FAMILY "training.def"
#include "names/expand.h"
