/* main.c -- a pretrained encoder (BERT, RoBERTa, DistilBERT, ModernBERT) learns to tell texts apart, on any device.
 *
 *   classify MODEL DATA.tsv OUT [DEVICE] [EPOCHS]
 *   classify [DEVICE]
 *
 * Each line of the data is a class, a tab, and a text. Every tenth line is held back to evaluate. The model goes to OUT, as transformers
 * reads it. Without a model it makes a small one (small.h), which begins with random weights. What to expect of that: all of
 * those held back are told right after some passes. */
#include "../progress.h"
#include "../small.h"
#include "../portable.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BATCH = 16, MOST = 200000, CLASSES = 256, SHOWN = 10 }; /* SHOWN: classes of a matrix */

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

/* The share of the texts whose class is right. With confusion (may be NULL), each answer is counted there. */
static double evaluate(tern_module *model, const tern_tokenizer *tokenizer, const texts *all,
                       const int *order, int n, tern_metric *confusion)
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
                    tern_models_call(model, &in, &out) == TERN_OK) {
                    right += tern_item(
                        tern_sum(tern_eq(tern_argmax_dim(out.logits, 1, false), in.labels)));
                    if (confusion)
                        tern_metric_update(confusion, out.logits, in.labels);
                }
            }
    return n ? right / n : 0;
}

static double train_epoch(tern_module *model, const tern_tokenizer *tokenizer,
                          tern_optimizer *optimizer, const texts *all, int *order, int n,
                          tern_report *report)
{
    static int64_t step;
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
                tern_report_value(report, "loss", ++step, tern_item(loss));
                tern_report_step(report, step, count);
            }
        }
    return n ? sum / n : 0;
}

/* The confusion matrix of those held back: a row for each class, a column for each answer. */
static void show_confusion(const char *when, tern_metric *confusion, const texts *all)
{
    TERN_SCOPE {
        tern_tensor *counts = tern_metric_compute(confusion);
        printf("confusion matrix %s:\n%10s", when, "");
        for (int k = 0; k < all->classes; k++)
            printf(" %8.8s", all->name[k]);
        for (int i = 0; i < all->classes; i++) {
            printf("\n%10.10s", all->name[i]);
            for (int k = 0; k < all->classes; k++)
                printf(" %8lld",
                       (long long)tern_item_int(tern_select(tern_select(counts, 0, i), 0, k)));
        }
        printf("\n");
    }
    tern_metric_reset(confusion);
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

/* The share of the class that is most of those held back: what saying always the same comes to. */
static double most_frequent(const texts *all, const int *order, int n)
{
    int count[CLASSES] = {0}, most = 0;
    for (int i = 0; i < n; i++) {
        int c = ++count[all->label[order[i]]];
        most = c > most ? c : most;
    }
    return n ? (double)most / n : 0;
}

static void run(tern_module *model, const tern_tokenizer *tokenizer, const texts *all,
                const char *out, int epochs, double lr)
{
    static int train[MOST], held[MOST];
    int n = choose(all, false, train), n_held = choose(all, true, held);
    tern_optimizer *optimizer = tern_optim_adamw(model, lr, NULL);
    printf("%d texts of %d classes, %d to evaluate, %lld parameters\n", n, all->classes, n_held,
           (long long)tern_nn_numel(model));
    tern_report *report = progress_begin("texts", (int64_t)epochs * ((n + BATCH - 1) / BATCH));
    tern_metric *confusion =
        n_held > 0 && all->classes > 1 && all->classes <= SHOWN
            ? tern_metrics_confusion_matrix(TERN_TASK_MULTICLASS, all->classes, NULL)
            : NULL;
    printf("before the training: accuracy %.3f of those held back\n",
           evaluate(model, tokenizer, all, held, n_held, confusion));
    if (confusion)
        show_confusion("before the training", confusion, all);
    for (int epoch = 1; epoch <= epochs && tern_last_status() == TERN_OK; epoch++) {
        tern_optim_set_lr(optimizer, lr * (epochs - epoch + 1) / epochs);
        double loss = train_epoch(model, tokenizer, optimizer, all, train, n, report);
        double right =
            evaluate(model, tokenizer, all, held, n_held, epoch == epochs ? confusion : NULL);
        progress_say("epoch %d: loss %.4f, accuracy %.3f, of those held back %.3f", epoch, loss,
                     evaluate(model, tokenizer, all, train, n, NULL), right);
        tern_report_value(report, "held_back", (int64_t)epoch * ((n + BATCH - 1) / BATCH), right);
    }
    tern_report_compare(report, "held_back", most_frequent(all, held, n_held),
                        "always the most frequent class");
    tern_report_close(report);
    if (confusion)
        show_confusion("after the training", confusion, all);
    if (all->n)
        show(model, tokenizer, all, n_held ? held[0] : 0);
    tern_models_save_pretrained(model, out, NULL);
    tern_metric_free(confusion);
    tern_optim_free(optimizer);
}

int main(int argc, char **argv)
{
    static texts all;
    const char *own[] = {"small-bert", "small-bert/texts.tsv", "small-bert/told",
                         argc > 1 ? argv[1] : "auto", "5"};
    const char *const *in = argc > 2 ? (const char *const *)argv + 1 : own;
    if (argc == 3) {
        fprintf(stderr,
                "usage: classify MODEL DATA.tsv OUT [DEVICE] [EPOCHS], or classify [DEVICE]\n");
        return 1;
    }
    int n = argc > 2 ? argc - 1 : 5;
    tern_set_default_device(n > 3 ? in[3] : "auto");
    if (in == own && tern_last_status() == TERN_OK)
        small_model("bert");
    tern_manual_seed(0);
    tern_module *model = NULL;
    tern_tokenizer *tokenizer =
        tern_last_status() == TERN_OK ? tern_tokenizer_from_pretrained(in[0]) : NULL;
    if (tokenizer && read_data(&all, in[1]) == TERN_OK)
        model = tern_models_from_pretrained(
            in[0], &(tern_pretrained_options){.dtype = TERN_F32, .num_labels = all.classes});
    if (model)
        run(model, tokenizer, &all, in[2], n > 4 ? atoi(in[4]) : 3, in == own ? 1e-3 : 5e-5);
    free_data(&all);
    tern_tokenizer_free(tokenizer);
    tern_nn_free(model);
    if (tern_last_status() != TERN_OK)
        fprintf(stderr, "classify: %s\n", tern_last_error());
    return tern_last_status() != TERN_OK;
}
