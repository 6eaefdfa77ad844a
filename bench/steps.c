/* steps.c -- tern's side of the comparison: training steps of a model that the other side wrote.
 *
 *   steps MODEL STEM DEVICE [replay]      MODEL: add, a to f, gpt2 or resnet50; STEM of the bundle
 *                                         with weights, data and the model's options; replay: of a
 *                                         recorded step
 *   steps name DEVICE                     what the driver calls the device
 *
 * Prints "losses ..." of the first steps, then answers lines on stdin: "time SECONDS" with seconds
 * for one step, "memory" with the peak in MiB. bench/run speaks this with both sides. */
#include "../examples/char_gpt/gpt.h"
#include "bundle.h"
#include "clock.h"
#include "networks.h"
#include <stdlib.h>
#include <string.h>

enum { FIRST_STEPS = 5 };

typedef struct task {
    const char *device;
    tern_module *model;
    tern_tensor *(*loss)(tern_tensor *output, tern_tensor *y);
    tern_optimizer *optimizer;
    tern_scaler *scaler; /* of gradients, for f16; else NULL */
    tern_dtype half;     /* of mixed precision; TERN_DTYPE_DEFAULT: none */
    double clip;         /* the largest norm of the gradients; 0: any */
    tern_tensor *x, *y;
    tern_graph *graph;     /* NULL: steps are not replayed */
    tern_tensor *recorded; /* the loss of the graph */
} task;

static tern_module *linear(const bundle *b)
{
    (void)b;
    return tern_nn_linear(10, 1, NULL);
}

static tern_module *layers(const bundle *b)
{
    (void)b;
    return mlp();
}

static tern_module *lstm(const bundle *b)
{
    (void)b;
    return char_lstm();
}

static tern_module *convolutions(const bundle *b)
{
    (void)b;
    return lenet();
}

static tern_module *residuals(const bundle *b)
{
    (void)b;
    return resnet();
}

static tern_module *resnet50(const bundle *b)
{
    return bottlenecks((int64_t)bundle_number(b, "width"), bundle_option(b, "blocks"),
                       (int64_t)bundle_number(b, "classes"));
}

static tern_module *gpt(const bundle *b)
{
    return gpt_new(&(gpt_options){.vocabulary = (int)bundle_number(b, "vocabulary"),
                                  .layers = (int)bundle_number(b, "layers"),
                                  .width = (int)bundle_number(b, "width"),
                                  .heads = (int)bundle_number(b, "heads"),
                                  .context = (int)bundle_number(b, "context"),
                                  .tied = bundle_number(b, "tied") != 0});
}

static tern_tensor *squared_error(tern_tensor *output, tern_tensor *y)
{
    return tern_mse_loss(output, y, NULL);
}

static tern_tensor *cross_entropy(tern_tensor *output, tern_tensor *y)
{
    return tern_cross_entropy(output, y, NULL);
}

static tern_optimizer *sgd(tern_module *model, double lr)
{
    return tern_optim_sgd(model, lr, NULL);
}

static tern_optimizer *momentum(tern_module *model, double lr)
{
    return tern_optim_sgd(model, lr, &(tern_sgd_options){.momentum = 0.9});
}

static tern_optimizer *adam(tern_module *model, double lr)
{
    return tern_optim_adam(model, lr, NULL);
}

static tern_optimizer *adamw(tern_module *model, double lr)
{
    return tern_optim_adamw(model, lr, NULL);
}

static const struct {
    const char *name;
    tern_module *(*model)(const bundle *b);
    tern_optimizer *(*optimizer)(tern_module *model, double lr);
    tern_tensor *(*loss)(tern_tensor *output, tern_tensor *y);
    bool channels_last; /* model and data, as the peer's */
} kinds[] = {
    {"a", linear, sgd, squared_error, false},
    {"b", layers, sgd, cross_entropy, false},
    {"c", convolutions, adam, cross_entropy, false},
    {"d", residuals, momentum, cross_entropy, false},
    {"e", gpt, adamw, cross_entropy, false},
    {"f", lstm, adam, cross_entropy, false},
    {"gpt2", gpt, adamw, cross_entropy, false},
    {"resnet50", resnet50, momentum, cross_entropy, true},
};

/* Mixed precision, as the options want it. */
static bool task_mix(task *t, const bundle *b)
{
    const char *dtype = bundle_option(b, "dtype");
    t->clip = bundle_number(b, "clip");
    t->half = strcmp(dtype, "f16") == 0    ? TERN_F16
              : strcmp(dtype, "bf16") == 0 ? TERN_BF16
                                           : TERN_DTYPE_DEFAULT;
    if (t->half == TERN_F16)
        t->scaler = tern_amp_grad_scaler(NULL);
    return tern_last_status() == TERN_OK;
}

/* The model and its optimizer, weights and data. "add" has data only. */
static bool task_open(task *t, const char *name, const bundle *b)
{
    tern_tensor *x = bundle_tensor(b, "x");
    t->y = tern_keep(bundle_tensor(b, "y"));
    if (strcmp(name, "add") == 0) {
        t->x = tern_keep(x);
        return t->x && t->y;
    }
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (strcmp(kinds[i].name, name) == 0) {
            tern_memory_format format =
                kinds[i].channels_last ? TERN_CHANNELS_LAST : TERN_CONTIGUOUS_FORMAT;
            t->model = tern_nn_to_memory_format(kinds[i].model(b), format);
            t->x = tern_keep(kinds[i].channels_last ? tern_to_memory_format(x, format) : x);
            t->loss = kinds[i].loss;
            if (t->model)
                t->optimizer = kinds[i].optimizer(t->model, bundle_number(b, "lr"));
        }
    return t->optimizer && t->x && t->y && task_mix(t, b) && bundle_load(b, t->model);
}

static void task_close(task *t)
{
    tern_graph_free(t->graph);
    tern_release(t->recorded);
    tern_amp_free(t->scaler);
    tern_optim_free(t->optimizer);
    tern_nn_free(t->model);
    tern_release(t->x);
    tern_release(t->y);
}

static tern_tensor *loss_of(task *t)
{
    return t->loss(tern_nn_forward(t->model, t->x), t->y);
}

static tern_tensor *mixed_loss(task *t)
{
    tern_tensor *loss = NULL;
    TERN_AUTOCAST (NULL, t->half)
        loss = loss_of(t);
    return loss;
}

static void update(task *t)
{
    if (t->clip > 0) {
        if (t->scaler)
            tern_amp_unscale_(t->scaler, t->optimizer);
        tern_nn_clip_grad_norm_(t->model, t->clip);
    }
    if (!t->scaler) {
        tern_optim_step(t->optimizer);
        return;
    }
    tern_amp_step(t->scaler, t->optimizer);
    tern_amp_update(t->scaler);
}

static tern_tensor *train_step(task *t)
{
    tern_optim_zero_grad(t->optimizer);
    tern_tensor *loss = t->half == TERN_DTYPE_DEFAULT ? loss_of(t) : mixed_loss(t);
    tern_backward(t->scaler ? tern_amp_scale(t->scaler, loss) : loss);
    update(t);
    return loss;
}

/* One step recorded; its replays are the steps then. */
static void record_step(task *t)
{
    t->graph = tern_graph_new(t->device);
    TERN_CAPTURE (t->graph) {
        TERN_SCOPE
            t->recorded = tern_keep(train_step(t));
    }
}

static tern_tensor *any_step(task *t)
{
    if (!t->graph)
        return train_step(t);
    tern_graph_replay(t->graph);
    return t->recorded;
}

static void repeat_replays(void *user, long n)
{
    task *t = user;
    for (long i = 0; i < n; i++)
        tern_graph_replay(t->graph);
    tern_synchronize(t->device);
}

static void repeat_steps(void *user, long n)
{
    task *t = user;
    for (long i = 0; i < n; i++)
        TERN_SCOPE
            train_step(t);
    tern_synchronize(t->device);
}

static void repeat_add(void *user, long n)
{
    task *t = user;
    TERN_NO_GRAD
        for (long i = 0; i < n; i++)
            TERN_SCOPE
                tern_add(t->x, t->y);
    tern_synchronize(t->device);
}

static void print_losses(task *t)
{
    fputs("losses", stdout);
    for (int i = 0; i < FIRST_STEPS; i++)
        TERN_SCOPE
            printf(" %.7g", tern_item(t->model ? any_step(t) : tern_add(t->x, t->y)));
    putchar('\n');
    fflush(stdout);
}

/* In MiB: of the device where it is a GPU, as PyTorch counts there, else of this process. */
static double peak_memory(const char *device)
{
    tern_device_info info;
    tern_memory_stats stats;
    if (tern_device_get_info(device, &info) == TERN_OK && info.type == TERN_DEVICE_GPU &&
        tern_memory_get_stats(device, &stats) == TERN_OK)
        return (double)stats.allocated_peak / (1024 * 1024);
    return clock_peak_memory();
}

static void serve(task *t)
{
    void (*repeat)(void *, long) = t->graph ? repeat_replays : t->model ? repeat_steps : repeat_add;
    char line[64];
    while (tern_last_status() == TERN_OK && fgets(line, sizeof line, stdin)) {
        if (strncmp(line, "time ", 5) == 0)
            printf("%.9g\n", clock_turn(repeat, t, strtod(line + 5, NULL)));
        else
            printf("%.1f\n", peak_memory(t->device));
        fflush(stdout);
    }
}

int main(int argc, char **argv)
{
    if (argc == 3 && strcmp(argv[1], "name") == 0) {
        const char *name = tern_device_name(argv[2]);
        puts(name ? name : tern_last_error());
        return name ? 0 : 1;
    }
    bool replay = argc == 5 && strcmp(argv[4], "replay") == 0;
    if (argc != 4 && !replay) {
        fputs("Usage: steps MODEL STEM DEVICE [replay]\n", stderr);
        return 2;
    }
    task t = {.device = argv[3]};
    bundle *b = bundle_read(argv[2]);
    if (b && tern_set_default_device(t.device) == TERN_OK && task_open(&t, argv[1], b)) {
        bundle_free(b);
        b = NULL;
        tern_scope_clear();
        if (replay)
            record_step(&t);
        print_losses(&t);
        serve(&t);
    }
    bundle_free(b);
    task_close(&t);
    if (tern_last_status() != TERN_OK) {
        fprintf(stderr, "steps: %s\n", tern_last_error());
        return 1;
    }
    return 0;
}
