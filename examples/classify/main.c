/* main.c -- a pretrained encoder (BERT, RoBERTa, DistilBERT, ModernBERT) learns to tell texts apart, on any device.
 *
 *   classify MODEL DATA.tsv OUT [DEVICE] [EPOCHS]
 *
 * Each line of the data is a class, a tab, and a text. Every tenth line is held back to evaluate. The model goes to OUT, as transformers
 * reads it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tern/models.h>
#include <tern/tern.h>

enum { BATCH = 16, MOST = 200000, CLASSES = 256 };

typedef struct texts {
    char *text[MOST], *name[CLASSES];
    int64_t label[MOST];
    int n, classes;
} texts;

/* ---- data ---------------------------------------------------------------------------------- */

static int class_of(texts *all, const char *name, size_t n)
{
    for (int i = 0; i < all->classes; i++)
        if (strlen(all->name[i]) == n && strncmp(all->name[i], name, n) == 0)
            return i;
    if (all->classes == CLASSES || !(all->name[all->classes] = strndup(name, n)))
        return -1;
    return all->classes++;
}

static tern_status read_data(texts *all, const char *path)
{
    FILE *file = fopen(path, "r");
    char *line = NULL;
    size_t room = 0;
    tern_status status = file ? TERN_OK : tern_fail(TERN_ERR_IO, "classify: can't read %s", path);
    while (file && status == TERN_OK && getline(&line, &room, file) > 0) {
        line[strcspn(line, "\r\n")] = 0;
        char *tab = strchr(line, '\t');
        int label = tab && all->n < MOST ? class_of(all, line, (size_t)(tab - line)) : -1;
        if (label < 0 || !(all->text[all->n] = strdup(tab + 1)))
            status = tern_fail(TERN_ERR_IO,
                               "classify: line %d is no class, tab and text, or one too many",
                               all->n + 1);
        else
            all->label[all->n++] = label;
    }
    free(line);
    if (file)
        fclose(file);
    return status;
}

static void free_data(texts *all)
{
    for (int i = 0; i < all->n; i++)
        free(all->text[i]);
    for (int i = 0; i < all->classes; i++)
        free(all->name[i]);
}

/* Every tenth is held back. */
static int choose(const texts *all, bool held, int *order)
{
    int n = 0;
    for (int i = 0; i < all->n; i++)
        if ((i % 10 == 9) == held)
            order[n++] = i;
    return n;
}

static tern_status batch_of(const tern_tokenizer *tokenizer, const texts *all, const int *order,
                            int n, tern_model_inputs *in)
{
    const char *some[BATCH];
    int64_t labels[BATCH];
    tern_encoding e;
    for (int i = 0; i < n; i++) {
        some[i] = all->text[order[i]];
        labels[i] = all->label[order[i]];
    }
    tern_encode_options o = {.max_length = 128};
    tern_status status = tern_tokenizer_call(tokenizer, some, NULL, n, &o, &e);
    *in = (tern_model_inputs){.input_ids = e.input_ids,
                              .attention_mask = e.attention_mask,
                              .labels = tern_from_data(labels, TERN_SHAPE(n), TERN_I64, NULL)};
    return status;
}

/* ---- training ------------------------------------------------------------------------------ */

static double evaluate(tern_module *model, const tern_tokenizer *tokenizer, const texts *all,
                       const int *order, int n)
{
    double right = 0;
    tern_nn_eval(model);
    for (int i = 0; i < n && tern_last_status() == TERN_OK; i += BATCH)
        TERN_NO_GRAD
            TERN_SCOPE {
                int count = n - i < BATCH ? n - i : BATCH;
                tern_model_inputs in;
                tern_model_outputs out;
                if (batch_of(tokenizer, all, order + i, count, &in) == TERN_OK &&
                    tern_models_call(model, &in, &out) == TERN_OK)
                    right += tern_item(
                        tern_sum(tern_eq(tern_argmax_dim(out.logits, 1, false), in.labels)));
            }
    return n ? right / n : 0;
}

static double train_epoch(tern_module *model, const tern_tokenizer *tokenizer,
                          tern_optimizer *optimizer, const texts *all, int *order, int n)
{
    double sum = 0;
    tern_nn_train(model, true);
    for (int i = n; i-- > 1;) { /* shuffled */
        int k = rand() % (i + 1), swap = order[i];
        order[i] = order[k];
        order[k] = swap;
    }
    for (int i = 0; i < n && tern_last_status() == TERN_OK; i += BATCH)
        TERN_SCOPE {
            int count = n - i < BATCH ? n - i : BATCH;
            tern_model_inputs in;
            if (batch_of(tokenizer, all, order + i, count, &in) == TERN_OK) {
                tern_tensor *loss = tern_models_loss(model, &in);
                tern_optim_zero_grad(optimizer);
                tern_backward(loss);
                tern_nn_clip_grad_norm_(model, 1.0);
                tern_optim_step(optimizer);
                sum += tern_item(loss) * count;
                if (i / BATCH % 20 == 0)
                    printf("  %d of %d, loss %.4f\n", i, n, tern_item(loss));
            }
        }
    return n ? sum / n : 0;
}

/* What the model makes of one text. */
static void show(tern_module *model, const tern_tokenizer *tokenizer, const texts *all, int i)
{
    TERN_NO_GRAD
        TERN_SCOPE {
            tern_model_inputs in;
            tern_model_outputs out;
            if (batch_of(tokenizer, all, &i, 1, &in) == TERN_OK &&
                tern_models_call(model, &in, &out) == TERN_OK) {
                tern_tensor *p = tern_softmax(out.logits, 1);
                int64_t best = tern_item_int(tern_argmax(p));
                printf("a sample: %s\n    %s, %.0f%%\n", all->text[i], all->name[best],
                       100 * tern_item(tern_max(p)));
            }
        }
}

static void run(tern_module *model, const tern_tokenizer *tokenizer, const texts *all,
                const char *out, int epochs)
{
    static int train[MOST], held[MOST];
    int n = choose(all, false, train), n_held = choose(all, true, held);
    double lr = 5e-5;
    tern_optimizer *optimizer = tern_optim_adamw(model, lr, NULL);
    printf("%d texts of %d classes, %d to evaluate, %lld parameters\n", n, all->classes, n_held,
           (long long)tern_nn_numel(model));
    for (int epoch = 1; epoch <= epochs && tern_last_status() == TERN_OK; epoch++) {
        tern_optim_set_lr(optimizer, lr * (epochs - epoch + 1) / epochs);
        double loss = train_epoch(model, tokenizer, optimizer, all, train, n);
        printf("epoch %d: loss %.4f, accuracy %.3f, of those held back %.3f\n", epoch, loss,
               evaluate(model, tokenizer, all, train, n),
               evaluate(model, tokenizer, all, held, n_held));
    }
    if (all->n)
        show(model, tokenizer, all, n_held ? held[0] : 0);
    tern_models_save_pretrained(model, out, NULL);
    tern_optim_free(optimizer);
}

int main(int argc, char **argv)
{
    static texts all;
    if (argc < 4) {
        fprintf(stderr, "usage: classify MODEL DATA.tsv OUT [DEVICE] [EPOCHS]\n");
        return 1;
    }
    tern_set_default_device(argc > 4 ? argv[4] : "auto");
    tern_manual_seed(0);
    tern_module *model = NULL;
    tern_tokenizer *tokenizer = tern_tokenizer_from_pretrained(argv[1]);
    if (tokenizer && read_data(&all, argv[2]) == TERN_OK)
        model = tern_models_from_pretrained(
            argv[1], &(tern_pretrained_options){.dtype = TERN_F32, .num_labels = all.classes});
    if (model)
        run(model, tokenizer, &all, argv[3], argc > 5 ? atoi(argv[5]) : 3);
    free_data(&all);
    tern_tokenizer_free(tokenizer);
    tern_nn_free(model);
    if (tern_last_status() != TERN_OK)
        fprintf(stderr, "classify: %s\n", tern_last_error());
    return tern_last_status() != TERN_OK;
}
