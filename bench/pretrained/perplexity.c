/* perplexity.c -- what 8 and 4 bits cost: a small Llama learns a text (bench_perplexity TEXT CONFIG [STEPS]; CONFIG a config.json of 2,048
 * tokens, tied), and its perplexity on the last tenth of the text is printed as it was trained, in bfloat16, and for layers and heads of each
 * type. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <tern/models.h>
#include <tern/tern.h>

enum { VOCAB = 2048, ROWS = 8, LENGTH = 128 };

static char *read_text(const char *path)
{
    FILE *f = fopen(path, "r");
    size_t room = 16 << 20;
    char *text = f ? calloc(room, 1) : NULL;
    size_t n = text ? fread(text, 1, room - 1, f) : 0;
    if (f)
        fclose(f);
    return n ? text : NULL;
}

static void train(tern_module *m, tern_tensor *ids, int64_t steps)
{
    const int64_t n = tern_size(ids, 1);
    tern_optimizer *optimizer = tern_optim_adamw(m, 2e-3, NULL);
    for (int64_t i = 0; i < steps; i++)
        TERN_SCOPE {
            tern_tensor *rows[ROWS];
            tern_optim_set_lr(optimizer, 2e-3 * (1 - (double)i / (double)steps));
            for (int r = 0; r < ROWS; r++)
                rows[r] = tern_narrow(ids, 1, (i * ROWS + r) * 7919 % (n - LENGTH), LENGTH);
            tern_tensor *x = tern_cat(rows, ROWS, 0);
            tern_tensor *loss =
                tern_models_loss(m, &(tern_model_inputs){.input_ids = x, .labels = x});
            tern_optim_zero_grad(optimizer);
            tern_backward(loss);
            tern_optim_step(optimizer);
            if (i % 50 == 0)
                fprintf(stderr, "step %lld: %.3f\n", (long long)i, tern_item(loss));
        }
    tern_optim_free(optimizer);
    tern_nn_eval(m);
}

static double perplexity(tern_module *m, tern_tensor *ids)
{
    const int64_t pieces = tern_size(ids, 1) / LENGTH;
    double sum = 0;
    TERN_NO_GRAD
        for (int64_t i = 0; i < pieces; i++)
            TERN_SCOPE {
                tern_tensor *x = tern_narrow(ids, 1, i * LENGTH, LENGTH);
                sum += tern_item(
                    tern_models_loss(m, &(tern_model_inputs){.input_ids = x, .labels = x}));
            }
    return exp(sum / (double)pieces);
}

int main(int argc, char **argv)
{
    static const char *const names[] = {"bf16", "int8", "nf4", "int4"};
    static const int kinds[][2] = {{0, 0}, {1, 0}, {1, 1}, {3, 0}, {3, 1},
                                   {3, 3}, {2, 0}, {2, 1}, {2, 2}};
    char *text = argc > 2 ? read_text(argv[1]) : NULL;
    tern_set_error_policy(TERN_ERRORS_ABORT, NULL, NULL);
    if (!text)
        return 2;
    tern_tokenizer *tokenizer = tern_tokenizer_train_bpe((const char *const[]){text}, 1,
                                                         &(tern_bpe_options){.vocab_size = VOCAB});
    TERN_SCOPE {
        tern_tensor *ids = tern_tokenizer_encode(tokenizer, text, NULL);
        const int64_t n = tern_size(ids, 1), first = n - n / 10;
        tern_tensor *rest = tern_narrow(ids, 1, first, n - first);
        tern_manual_seed(1);
        tern_module *m =
            tern_models_from_config(argv[2], &(tern_pretrained_options){.dtype = TERN_F32});
        TERN_NO_GRAD /* as transformers begins; those of an embedding are far from logits */
            tern_normal_(tern_nn_parameter(m, "model.embed_tokens.weight"), 0, 0.02);
        train(m, tern_narrow(ids, 1, 0, first), argc > 3 ? atoll(argv[3]) : 600);
        printf("%-24s %.3f\n", "f32", perplexity(m, rest));
        for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
            tern_module *q = tern_nn_to_dtype(tern_nn_copy(m), TERN_BF16);
            const tern_quantization type = kinds[i][0], head = kinds[i][1];
            if (type)
                tern_quantize_with_(q, type, &(tern_quantize_options){.head = head});
            printf("layers %-4s head %-4s    %.3f\n", names[type], names[head],
                   perplexity(q, rest));
            tern_nn_free(q);
        }
        tern_nn_free(m);
    }
    tern_tokenizer_free(tokenizer);
    free(text);
    return 0;
}
