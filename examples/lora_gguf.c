/* lora_gguf.c -- LoRA on a quantized model in a GGUF file: its matrices stay blocks of 8 bits, adapters
 * around them learn, and the adapter is written as llama.cpp reads it.
 *
 *   lora_gguf [DEVICE] [MODEL.gguf]
 *
 * Without a model it makes a small one with random weights (small.h) and writes it as a GGUF. What it
 * learns is to count: token k follows token k - 1. Evaluated are starts that it did not train on; the
 * reference is the model before the training. */
#include "progress.h"
#include "small.h"
#include <stdio.h>

enum { ROWS = 8, LENGTH = 12, STARTS = 40, STEPS = 600 };

/* Rows of tokens that count up, from starts that are drawn (train) or from every fourth (test). */
static tern_tensor *counting(bool train)
{
    tern_tensor *start = tern_mul(tern_arange(0, STARTS / 4, 1, TERN_I64, NULL), 4);
    if (train) /* 4 k + 1, 2 or 3 */
        start = tern_add(tern_mul(tern_randint(0, STARTS / 4, TERN_SHAPE(ROWS), TERN_I64, NULL), 4),
                         tern_randint(1, 4, TERN_SHAPE(ROWS), TERN_I64, NULL));
    tern_tensor *more = tern_arange(0, LENGTH, 1, TERN_I64, NULL);
    return tern_add(tern_unsqueeze(start, 1), more); /* (rows, LENGTH) */
}

static tern_tensor *loss_of(tern_module *model, bool train)
{
    tern_tensor *ids = counting(train);
    return tern_models_loss(model, &(tern_model_inputs){.input_ids = ids, .labels = ids});
}

static double evaluate(tern_module *model)
{
    double loss = 0;
    tern_nn_eval(model);
    TERN_NO_GRAD
        TERN_SCOPE
            loss = tern_item(loss_of(model, false));
    return loss;
}

static void train(tern_module *model)
{
    tern_report *report = progress_begin("rows", STEPS);
    double before = evaluate(model);
    static const char *const layers[] = {"all-linear", NULL}; /* all but the head */
    tern_lora_add(model, &(tern_lora_options){.r = 16, .alpha = 32, .target_modules = layers});
    tern_optimizer *optimizer = tern_optim_adamw(model, 5e-3, NULL);
    tern_nn_train(model, true);
    for (int step = 1; step <= STEPS && tern_last_status() == TERN_OK; step++)
        TERN_SCOPE {
            tern_optim_zero_grad(optimizer);
            tern_tensor *loss = loss_of(model, true);
            tern_backward(loss);
            tern_optim_step(optimizer);
            tern_report_value(report, "loss", step, tern_item(loss));
            tern_report_step(report, step, ROWS);
        }
    tern_report_value(report, "held_back", STEPS, evaluate(model));
    tern_report_compare(report, "held_back", before, "before the training");
    tern_report_close(report);
    tern_optim_free(optimizer);
}

/* The adapter's file upon a fresh model gives the same loss. */
static void read_back(const char *path, const char *adapter, double loss)
{
    tern_module *model = tern_models_from_pretrained(path, NULL);
    tern_lora_load(model, adapter, false);
    double again = model ? evaluate(model) : 0;
    printf("the adapter's file upon a fresh model: %s\n",
           again == loss ? "the same loss" : "ANOTHER LOSS");
    tern_nn_free(model);
}

int main(int argc, char **argv)
{
    const char *path = argc > 2 ? argv[2] : "small-llama/model.gguf", *adapter = "adapter.gguf";
    tern_set_default_device(argc > 1 ? argv[1] : "auto");
    tern_manual_seed(0);
    if (argc < 3 && tern_last_status() == TERN_OK && small_model("llama") == TERN_OK) {
        tern_module *whole = tern_models_from_pretrained("small-llama", NULL);
        tern_models_save_pretrained(whole, path, &(tern_save_options){.type = "q8_0"});
        tern_nn_free(whole);
    }
    tern_module *model =
        tern_last_status() == TERN_OK ? tern_models_from_pretrained(path, NULL) : NULL;
    if (model) {
        tern_module *first = tern_nn_child(model, "model.layers.0.self_attn.q_proj");
        printf("%s: a layer of it is %s\n", path, tern_nn_name(first));
        train(model);
        tern_lora_save(model, adapter);
        read_back(path, adapter, evaluate(model));
    }
    tern_nn_free(model);
    if (tern_last_status() != TERN_OK)
        fprintf(stderr, "lora_gguf: %s\n", tern_last_error());
    return tern_last_status() != TERN_OK;
}
