/* controller.c -- a C program with a loop of its own that lets a small network learn while it runs.
 *
 * A cart is to be held at a place against a wind that it can't see. The network learns, from what
 * happened, to tell the wind from where the cart was pushed; the loop stays the program's.
 *
 *   make && ./controller cpu
 *
 * What to expect: after 4,000 turns it drifts by less than a hundredth of what a cart does that nobody pushes. */
#include <math.h>
#include <stdio.h>
#include <tern/report.h>
#include <tern/tern.h>

enum { TURNS = 4000 };

typedef struct predictor {
    tern_module *net, *criterion;
    tern_optimizer *optimizer;
} predictor;

static predictor predictor_new(void)
{
    predictor p = {
        .net = tern_nn_sequential(tern_nn_linear(2, 16, NULL), tern_nn_tanh(),
                                  tern_nn_linear(16, 1, NULL)),
        .criterion = tern_nn_mse_loss(NULL),
    };
    p.optimizer = tern_optim_adam(p.net, 0.01, NULL);
    return p;
}

static void predictor_free(predictor *p)
{
    tern_optim_free(p->optimizer);
    tern_nn_free(p->criterion);
    tern_nn_free(p->net);
}

/* The wind expected at a time of day. */
static float predict(predictor *p, const float features[2])
{
    float wind = 0;
    TERN_NO_GRAD
        TERN_SCOPE {
            tern_tensor *x = tern_from_data(features, TERN_SHAPE(1, 2), TERN_F32, NULL);
            wind = (float)tern_item(tern_nn_forward(p->net, x));
        }
    return wind;
}

/* One step towards the wind that was felt. */
static void learn(predictor *p, const float features[2], float felt)
{
    TERN_SCOPE {
        tern_tensor *x = tern_from_data(features, TERN_SHAPE(1, 2), TERN_F32, NULL);
        tern_tensor *y = tern_from_data(&felt, TERN_SHAPE(1, 1), TERN_F32, NULL);
        tern_optim_zero_grad(p->optimizer);
        tern_backward(tern_nn_loss(p->criterion, tern_nn_forward(p->net, x), y));
        tern_optim_step(p->optimizer);
    }
}

int main(int argc, char **argv)
{
    if (tern_set_default_device(argc > 1 ? argv[1] : "cpu") != TERN_OK) {
        fprintf(stderr, "controller: %s\n", tern_last_error());
        return 1;
    }
    tern_manual_seed(0);
    predictor p = predictor_new();
    printf("on %s: %s\n", tern_default_device(), tern_device_name(NULL));
    tern_report *report =
        tern_report_new(NULL, &(tern_report_options){.steps = TURNS, .unit = "turns"});

    double drift = 0, unheld = 0;
    for (int tick = 1; tick <= TURNS; tick++) {
        double hour = 0.01 * tick;
        float features[2] = {(float)sin(hour), (float)cos(hour)};
        float wind = (float)(0.8 * sin(hour) * cos(hour) + 0.3);
        float push = -predict(&p, features);
        drift += fabs((double)(wind + push));
        unheld += fabs((double)wind);
        learn(&p, features, wind);
        if (tern_last_status() != TERN_OK) /* one check a turn */
            break;
        if (tick % 1000 == 0) {
            tern_report_value(report, "drift", tick, drift / 1000);
            drift = 0;
        }
        tern_report_step(report, tick, 1);
    }
    tern_report_compare(report, "drift", unheld / TURNS, "a cart that nobody pushes");
    tern_report_close(report);
    predictor_free(&p);
    if (tern_last_status() != TERN_OK) {
        fprintf(stderr, "controller: %s\n", tern_last_error());
        return 1;
    }
    return 0;
}
