/* trial.c -- a small network that learns to tell two spirals apart. */
#include "trial.h"
#include <math.h>
#include <pthread.h>

enum { POINTS = 480, HELD_OUT = 160 };

static uint64_t mix(uint64_t z)
{
    z += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

/* Number k of those that belong to a trial, between 0 and 1. */
static double draw(uint64_t seed, int trial, int k)
{
    return (double)(mix(mix(seed) + mix((uint64_t)trial * 16 + (uint64_t)k)) >> 11) * 0x1p-53;
}

trial_settings trial_draw(uint64_t seed, int i)
{
    return (trial_settings){
        .lr = pow(10, -4 + 3.5 * draw(seed, i, 0)),
        .weight_decay = pow(10, -5 + 4 * draw(seed, i, 1)),
        .width = 8 << (int)(3 * draw(seed, i, 2)),
        .layers = 1 + (int)(3 * draw(seed, i, 3)),
        .batch_size = 16 << (int)(3 * draw(seed, i, 4)),
    };
}

tern_status trial_data_open(trial_data *d)
{
    static float points[POINTS][2];
    static int64_t classes[POINTS];
    for (int i = 0; i < POINTS; i++) {
        const double along = 0.1 + 0.9 * draw(1, i, 0), noise = 0.05;
        classes[i] = i % 2;
        const double angle = along * 9 + 3.14159265358979 * (double)classes[i];
        points[i][0] = (float)(along * cos(angle) + noise * (draw(1, i, 1) - 0.5));
        points[i][1] = (float)(along * sin(angle) + noise * (draw(1, i, 2) - 0.5));
    }
    const int trained = POINTS - HELD_OUT;
    TERN_SCOPE {
        tern_tensor *x = tern_from_data(&points[0][0], TERN_SHAPE(POINTS, 2), TERN_F32, "cpu");
        tern_tensor *y = tern_from_data(classes, TERN_SHAPE(POINTS), TERN_I64, "cpu");
        d->train =
            tern_data_tensor_dataset(tern_narrow(x, 0, 0, trained), tern_narrow(y, 0, 0, trained));
        d->x = tern_keep(tern_clone(tern_narrow(x, 0, trained, HELD_OUT)));
        d->y = tern_keep(tern_clone(tern_narrow(y, 0, trained, HELD_OUT)));
    }
    return tern_last_status();
}

void trial_data_close(trial_data *d)
{
    tern_dataset_free(d->train);
    tern_release(d->x);
    tern_release(d->y);
}

/* The seed is the process's: one thread at a time draws first weights. */
static tern_module *network(const trial_settings *s, int number)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    pthread_mutex_lock(&lock);
    tern_manual_seed(1000 + (uint64_t)number);
    tern_module *m = tern_nn_sequential(tern_nn_linear(2, s->width, NULL), tern_nn_tanh());
    for (int i = 1; i < s->layers; i++) {
        tern_nn_append(m, tern_nn_linear(s->width, s->width, NULL));
        tern_nn_append(m, tern_nn_tanh());
    }
    tern_nn_append(m, tern_nn_linear(s->width, 2, NULL));
    pthread_mutex_unlock(&lock);
    return m;
}

static void train_epoch(tern_module *m, tern_optimizer *optimizer, tern_loader *loader)
{
    TERN_EACH_BATCH(batch, loader)
    {
        tern_optim_zero_grad(optimizer);
        tern_tensor *answer = tern_nn_forward(m, batch.tensors[0]);
        tern_backward(tern_cross_entropy(answer, batch.tensors[1], NULL));
        tern_optim_step(optimizer);
    }
}

static void evaluate(tern_module *m, const trial_data *d, double *loss, double *accuracy)
{
    TERN_SCOPE {
        TERN_NO_GRAD {
            tern_tensor *x = tern_to(d->x, tern_default_device());
            tern_tensor *y = tern_to(d->y, tern_default_device());
            tern_tensor *answer = tern_nn_forward(m, x);
            *loss = tern_item(tern_cross_entropy(answer, y, NULL));
            tern_tensor *right = tern_eq(tern_argmax_dim(answer, 1, false), y);
            *accuracy = tern_item(tern_mean(tern_to_dtype(right, TERN_F32)));
        }
    }
}

tern_status trial_train(const trial_data *d, const trial_settings *s, int number, int epochs,
                        const char *folder, double *loss, double *accuracy)
{
    int64_t done = 0;
    tern_module *m = network(s, number);
    tern_optimizer *optimizer =
        tern_optim_adamw(m, s->lr, &(tern_adamw_options){.weight_decay = s->weight_decay});
    tern_loader *loader =
        tern_data_loader(d->train, &(tern_loader_options){.batch_size = s->batch_size,
                                                          .shuffle = true,
                                                          .seed = (uint64_t)number + 1,
                                                          .device = tern_default_device()});
    tern_snapshot *snapshot = tern_snapshot_new();
    tern_snapshot_add_module(snapshot, "model", m);
    tern_snapshot_add_optimizer(snapshot, "optimizer", optimizer);
    tern_snapshot_add_loader(snapshot, "loader", loader);
    tern_snapshot_add_int(snapshot, "epochs", &done);
    if (tern_snapshot_latest(folder))
        tern_snapshot_load(snapshot, folder);
    for (; done < epochs && tern_last_status() == TERN_OK; done++)
        train_epoch(m, optimizer, loader);
    evaluate(m, d, loss, accuracy);
    if (!isfinite(*loss)) /* of a learning rate that is too large */
        *loss = 1e9;
    tern_snapshot_save(snapshot, folder, &(tern_snapshot_options){.step = done, .keep_last = 1});
    tern_snapshot_free(snapshot);
    tern_loader_free(loader);
    tern_optim_free(optimizer);
    tern_nn_free(m);
    return tern_last_status();
}
