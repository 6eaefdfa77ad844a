/* cold.c -- a process that trains for the first time, told as it goes.
 *
 *   cold DEVICE [STEPS]      STEPS of a char-GPT (4 layers of 128, 64 characters, batches of 16, AdamW); 0: one
 *                            kernel alone, of whatever else the driver does at its start
 *
 * Each line is one word, printed when that is done: device (open), kernel or model, step ... bench/cold reads the clock. */
#include "../examples/char_gpt/gpt.h"
#include <stdio.h>
#include <stdlib.h>

enum { VOCABULARY = 65, CONTEXT = 64, BATCH = 16 };

static void tell(const char *what)
{
    printf("%s\n", what);
    fflush(stdout);
}

static bool one_kernel(void)
{
    tern_tensor *x = tern_from_data((float[]){1, 2}, TERN_SHAPE(2), TERN_F32, NULL);
    bool right = tern_item(tern_narrow(tern_add(x, x), 0, 1, 1)) == 4;
    tell("kernel");
    return right;
}

static tern_tensor *characters(int salt)
{
    static int64_t ids[BATCH * CONTEXT];
    for (int i = 0; i < BATCH * CONTEXT; i++)
        ids[i] = (i * 7 + i / 5 + salt) % VOCABULARY;
    return tern_from_data(ids, TERN_SHAPE(BATCH, CONTEXT), TERN_I64, NULL);
}

static bool train(const char *device, int steps)
{
    tern_module *model = gpt_new(&(gpt_options){
        .vocabulary = VOCABULARY, .layers = 4, .width = 128, .heads = 4, .context = CONTEXT});
    tern_optimizer *optimizer = tern_optim_adamw(model, 1e-3, NULL);
    tern_tensor *x = characters(0), *y = tern_flatten(characters(1), 0, -1);
    tern_synchronize(device);
    tell("model");
    for (int i = 0; i < steps && tern_last_status() == TERN_OK; i++) {
        TERN_SCOPE {
            tern_tensor *loss = tern_cross_entropy(tern_nn_forward(model, x), y, NULL);
            tern_backward(loss);
            tern_optim_step(optimizer);
            tern_optim_zero_grad(optimizer);
            tern_item(loss);
            tern_synchronize(device);
        }
        tell("step");
    }
    tern_optim_free(optimizer);
    tern_nn_free(model);
    return tern_last_status() == TERN_OK;
}

int main(int n, char **words)
{
    if (n < 2)
        return 2;
    tern_set_default_device(words[1]);
    tern_synchronize(words[1]);
    tell("device");
    int steps = n > 2 ? atoi(words[2]) : 5;
    bool right = steps ? train(words[1], steps) : one_kernel();
    if (!right)
        fprintf(stderr, "cold: %s\n", tern_last_error());
    return right ? 0 : 1;
}
