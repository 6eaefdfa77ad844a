/* step_training.h -- a small training whose steps record themselves. */
#ifndef TERN_TESTS_STEP_TRAINING_H
#define TERN_TESTS_STEP_TRAINING_H
#include "support.h"

typedef struct training {
    tern_module *model;
    tern_optimizer *optimizer;
    tern_lr_scheduler *schedule;
    tern_scaler *scaler;
    int64_t variant;
    bool early; /* the schedule steps before the optimizer */
    int calls;  /* of the function */
} training;

static tern_module *dropout_net(void)
{
    return tern_nn_sequential(tern_nn_linear(6, 16, NULL), tern_nn_relu(),
                              tern_nn_dropout(&(tern_dropout_options){.p = 0.3}),
                              tern_nn_linear(16, 3, NULL));
}

static void open_training(training *t, const char *device)
{
    tern_manual_seed(3);
    *t = (training){.model = NULL};
    TERN_DEVICE (device)
        t->model = dropout_net();
    t->optimizer = tern_optim_adamw(t->model, 0.02, NULL);
    t->schedule = tern_lr_scheduler_exponential_lr(t->optimizer, 0.9);
    t->scaler = tern_amp_grad_scaler(NULL);
    assert_no_error();
}

static void close_training(training *t)
{
    tern_amp_free(t->scaler);
    tern_lr_scheduler_free(t->schedule);
    tern_optim_free(t->optimizer);
    tern_nn_free(t->model);
}

/* A batch of that many rows, of the same numbers for the same i. */
static void batch(const char *device, int64_t rows, int i, tern_tensor *in[2])
{
    in[0] = test_uniform(device, TERN_F32, TERN_SHAPE(rows, 6), -1, 1, (uint64_t)i + 1);
    in[1] = tern_to_dtype(
        test_uniform(device, TERN_F32, TERN_SHAPE(rows), 0, 2.99, (uint64_t)i + 9), TERN_I64);
}

#endif
