/* torch_steps.c -- tern's side, in C, of the training steps of bench/torch_device.py.
 *
 *   torch_steps FOLDER DEVICE lr [lora]
 *
 * FOLDER holds a model as transformers or timm save it, and the inputs of tern_models_call by their
 * names in inputs.safetensors. The optimizer is AdamW, for images SGD with momentum 0.9; with lora
 * adapters of rank 8 on q_proj and v_proj are trained. Prints the loss of the first step, then
 * answers each line on stdin, a number of steps, with the seconds that one of them took, of the wall
 * and of the process. */
#include "clock.h"
#include <stdlib.h>
#include <tern/models.h>
#include <tern/tern.h>

typedef struct training {
    tern_module *model;
    tern_optimizer *optimizer;
    tern_model_inputs in;
} training;

static double processor_seconds(void)
{
    return (double)clock() / CLOCKS_PER_SEC;
}

static bool open_training(training *t, char **args)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/inputs.safetensors", args[1]);
    tern_state_dict *inputs = tern_load(path, NULL);
    t->model = tern_models_from_pretrained(args[1], &(tern_pretrained_options){.device = args[2]});
    if (!inputs || !t->model)
        return false;
    tern_nn_train(t->model, true);
    t->in.input_ids = tern_keep(tern_to(tern_state_dict_get(inputs, "input_ids"), args[2]));
    t->in.pixel_values = tern_keep(tern_to(tern_state_dict_get(inputs, "pixel_values"), args[2]));
    t->in.labels = tern_keep(tern_to(tern_state_dict_get(inputs, "labels"), args[2]));
    tern_state_dict_free(inputs);
    tern_clear_error(); /* one of them is not there */
    const char *const targets[] = {"q_proj", "v_proj", NULL};
    if (args[4])
        tern_lora_add(t->model, &(tern_lora_options){.r = 8, .target_modules = targets});
    const double lr = atof(args[3]);
    t->optimizer = t->in.pixel_values
                       ? tern_optim_sgd(t->model, lr, &(tern_sgd_options){.momentum = 0.9})
                       : tern_optim_adamw(t->model, lr, NULL);
    return t->optimizer != NULL && t->in.labels != NULL;
}

static double step(training *t, bool reads)
{
    double value = 0;
    TERN_SCOPE {
        tern_optim_zero_grad(t->optimizer);
        tern_tensor *loss = tern_models_loss(t->model, &t->in);
        tern_backward(loss);
        tern_optim_step(t->optimizer);
        value = reads ? tern_item(loss) : 0;
    }
    return value;
}

int main(int argc, char **argv)
{
    training t = {0};
    char line[64];
    char *args[5] = {argv[0]};
    for (int i = 1; i < argc && i < 5; i++)
        args[i] = argv[i];
    if (argc < 4 || !open_training(&t, args)) {
        fprintf(stderr, "torch_steps: %s\n",
                argc < 4 ? "FOLDER DEVICE lr [lora] are missing" : tern_last_error());
        return 1;
    }
    printf("%.9g\n", step(&t, true));
    fflush(stdout);
    while (fgets(line, sizeof line, stdin) && tern_last_status() == TERN_OK) {
        const int n = atoi(line) > 0 ? atoi(line) : 1;
        const double wall = clock_seconds(), processor = processor_seconds();
        for (int i = 0; i < n; i++)
            step(&t, false);
        tern_synchronize(args[2]);
        printf("%.9g %.9g\n", (clock_seconds() - wall) / n, (processor_seconds() - processor) / n);
        fflush(stdout);
    }
    if (tern_last_status() != TERN_OK)
        fprintf(stderr, "torch_steps: %s\n", tern_last_error());
    tern_optim_free(t.optimizer);
    tern_nn_free(t.model);
    tern_release(t.in.input_ids);
    tern_release(t.in.pixel_values);
    tern_release(t.in.labels);
    return tern_last_status() == TERN_OK ? 0 : 1;
}
