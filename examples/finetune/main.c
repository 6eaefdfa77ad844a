/* main.c -- a language model of the Hugging Face Hub learns to answer, with LoRA, on any device.
 *
 *   finetune MODEL DATA.jsonl OUT [DEVICE] [EPOCHS]
 *   finetune [DEVICE]
 *
 * Each line of the data is {"prompt": "...", "completion": "..."}. The loss is that of the answers alone; every tenth
 * line is held back to evaluate. The adapter goes to OUT, in PEFT's files. Without a model it makes a small one
 * (small.h) with random weights; what to expect of that: a loss well below the first, and an answer of the right words. */
#include "../progress.h"
#include "../small.h"
#include "../portable.h"
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LONGEST = 512, BATCH = 8, MOST = 100000 };

/* A prompt and its answer as tokens. */
typedef struct example {
    int64_t *ids;
    int64_t n, prompt;
} example;
typedef struct examples {
    example list[MOST];
    int64_t n;
} examples;

/* ---- data ---------------------------------------------------------------------------------- */

/* The tokens of a text behind the n that are there; how many there are then. */
static int64_t add_tokens(const tern_tokenizer *tokenizer, const char *text, bool start,
                          int64_t *ids, int64_t n)
{
    TERN_SCOPE {
        tern_tensor *x = tern_tokenizer_encode(
            tokenizer, text, &(tern_encode_options){.no_special_tokens = !start, .device = "cpu"});
        int64_t count = x ? tern_numel(x) : 0;
        count = count < LONGEST - n ? count : LONGEST - n;
        if (count > 0)
            memcpy(ids + n, tern_data(x), (size_t)count * sizeof *ids);
        n += count;
    }
    return n;
}

static tern_status add_line(examples *all, const tern_tokenizer *tokenizer, const char *line,
                            int64_t number)
{
    json_t *json = json_loads(line, 0, NULL);
    const char *prompt = json_string_value(json_object_get(json, "prompt"));
    const char *answer = json_string_value(json_object_get(json, "completion"));
    int64_t end = tern_tokenizer_special_id(tokenizer, TERN_TOKEN_EOS);
    example e = {.ids = malloc((LONGEST + 1) * sizeof *e.ids)};
    if (!prompt || !answer || !e.ids || all->n == MOST) {
        json_decref(json);
        free(e.ids);
        return tern_fail(TERN_ERR_IO,
                         "finetune: line %lld is no {\"prompt\": ..., \"completion\": ...}",
                         (long long)number);
    }
    e.prompt = add_tokens(tokenizer, prompt, true, e.ids, 0);
    e.n = add_tokens(tokenizer, answer, false, e.ids, e.prompt);
    if (end >= 0)
        e.ids[e.n++] = end;
    json_decref(json);
    all->list[all->n++] = e;
    return TERN_OK;
}

static tern_status read_data(examples *all, const tern_tokenizer *tokenizer, const char *path)
{
    FILE *file = fopen(path, "r");
    char *line = NULL;
    size_t room = 0;
    tern_status status = file ? TERN_OK : tern_fail(TERN_ERR_IO, "finetune: can't read %s", path);
    for (int64_t number = 1; file && status == TERN_OK && getline(&line, &room, file) > 0; number++)
        if (line[strspn(line, " \r\n")])
            status = add_line(all, tokenizer, line, number);
    free(line);
    if (file)
        fclose(file);
    return status;
}

/* Examples filled up to one length: ids, mask, and labels that are -100 where nothing is learned. */
static tern_model_inputs batch_of(const examples *all, const int64_t *order, int64_t n)
{
    int64_t length = 1;
    for (int64_t i = 0; i < n; i++)
        length = all->list[order[i]].n > length ? all->list[order[i]].n : length;
    int64_t *values = calloc(3 * (size_t)(n * length), sizeof *values);
    tern_tensor *x[3] = {NULL};
    for (int64_t i = 0; values && i < n; i++) {
        const example *e = &all->list[order[i]];
        for (int64_t k = 0; k < length; k++) {
            int64_t at = i * length + k;
            values[at] = k < e->n ? e->ids[k] : 0;
            values[n * length + at] = k < e->n;
            values[2 * n * length + at] = k < e->n && k >= e->prompt ? e->ids[k] : -100;
        }
    }
    for (int i = 0; values && i < 3; i++)
        x[i] = tern_from_data(values + i * n * length, TERN_SHAPE(n, length), TERN_I64, NULL);
    free(values);
    return (tern_model_inputs){.input_ids = x[0], .attention_mask = x[1], .labels = x[2]};
}

/* ---- training ------------------------------------------------------------------------------ */

/* Every tenth is held back. */
static int64_t choose(const examples *all, bool held, int64_t *order)
{
    int64_t n = 0;
    for (int64_t i = 0; i < all->n; i++)
        if ((i % 10 == 9) == held)
            order[n++] = i;
    return n;
}

static double evaluate(tern_module *model, const examples *all, const int64_t *order, int64_t n)
{
    double sum = 0;
    tern_nn_eval(model);
    for (int64_t i = 0; i < n; i += BATCH)
        TERN_NO_GRAD
            TERN_SCOPE {
                int64_t count = n - i < BATCH ? n - i : BATCH;
                tern_model_inputs in = batch_of(all, order + i, count);
                sum += tern_item(tern_models_loss(model, &in)) * (double)count;
            }
    return n ? sum / (double)n : 0;
}

static double train_epoch(tern_module *model, tern_optimizer *optimizer, const examples *all,
                          int64_t *order, int64_t n, tern_report *report)
{
    static int64_t step;
    double sum = 0;
    tern_nn_train(model, true);
    for (int64_t i = n; i-- > 1;) { /* shuffled */
        int64_t k = rand() % (i + 1), swap = order[i];
        order[i] = order[k];
        order[k] = swap;
    }
    for (int64_t i = 0; i < n && tern_last_status() == TERN_OK; i += BATCH)
        TERN_SCOPE {
            int64_t count = n - i < BATCH ? n - i : BATCH;
            tern_model_inputs in = batch_of(all, order + i, count);
            tern_tensor *loss = tern_models_loss(model, &in);
            tern_optim_zero_grad(optimizer);
            tern_backward(loss);
            tern_nn_clip_grad_norm_(model, 1.0);
            tern_optim_step(optimizer);
            sum += tern_item(loss) * (double)count;
            tern_report_value(report, "loss", ++step, tern_item(loss));
            tern_report_step(report, step, count);
        }
    return n ? sum / (double)n : 0;
}

/* The part of the examples whose answer the model gives word for word, token by token the likeliest. */
static double right_answers(tern_module *model, const examples *all, const int64_t *order,
                            int64_t n)
{
    int64_t right = 0;
    tern_nn_eval(model);
    for (int64_t i = 0; i < n && tern_last_status() == TERN_OK; i++)
        TERN_SCOPE {
            const example *e = &all->list[order[i]];
            const int64_t wanted = e->n - e->prompt;
            tern_tensor *prompt = tern_from_data(e->ids, TERN_SHAPE(1, e->prompt), TERN_I64, NULL);
            tern_tensor *ids = tern_models_generate(
                model, prompt, &(tern_generate_options){.max_new_tokens = wanted});
            int64_t given[LONGEST + 1];
            if (ids && tern_size(ids, 1) == e->n &&
                tern_copy_to_host(ids, given, (size_t)e->n * sizeof *given) == TERN_OK)
                right += memcmp(given, e->ids, (size_t)e->n * sizeof *given) == 0;
        }
    return n ? (double)right / (double)n : 0;
}

/* What the model answers to the prompt of an example. */
static void answer(tern_module *model, const tern_tokenizer *tokenizer, const example *e)
{
    TERN_SCOPE {
        tern_tensor *prompt = tern_from_data(e->ids, TERN_SHAPE(1, e->prompt), TERN_I64, NULL);
        tern_tensor *ids =
            tern_models_generate(model, prompt, &(tern_generate_options){.max_new_tokens = 48});
        char *text = tern_tokenizer_decode(tokenizer, ids, true);
        printf("a sample: %s\n", text ? text : "");
        tern_free_text(text);
    }
}

static void run(tern_module *model, const tern_tokenizer *tokenizer, const examples *all,
                const char *out, int epochs, double lr)
{
    static int64_t train[MOST], held[MOST];
    int64_t n = choose(all, false, train), n_held = choose(all, true, held);
    tern_models_gradient_checkpointing(model, true);
    tern_lora_add(model, &(tern_lora_options){.r = 8, .alpha = 16, .dropout = 0.05});
    tern_optimizer *optimizer = tern_optim_adamw(model, lr, NULL);
    printf("%lld examples, %lld to evaluate, %lld parameters\n", (long long)n, (long long)n_held,
           (long long)tern_nn_numel(model));
    tern_report *report = progress_begin("examples", epochs * ((n + BATCH - 1) / BATCH));
    double before = n_held ? evaluate(model, all, held, n_held) : 0;
    double right = right_answers(model, all, held, n_held);
    for (int epoch = 1; epoch <= epochs && tern_last_status() == TERN_OK; epoch++) {
        train_epoch(model, optimizer, all, train, n, report);
        if (n_held)
            tern_report_value(report, "held_back", epoch, evaluate(model, all, held, n_held));
    }
    if (n_held)
        tern_report_compare(report, "held_back", before, "before the training");
    tern_report_close(report);
    tern_nn_eval(model);
    printf("answers that are right: %.3f; before the training: %.3f\n",
           right_answers(model, all, held, n_held), right);
    if (all->n)
        answer(model, tokenizer, &all->list[n_held ? held[0] : 0]);
    tern_lora_save(model, out);
    tern_optim_free(optimizer);
}

int main(int argc, char **argv)
{
    static examples all;
    const char *own[] = {"small-llama", "small-llama/chat.jsonl", "small-llama/adapter",
                         argc > 1 ? argv[1] : "auto", "10"};
    const char *const *in = argc > 2 ? (const char *const *)argv + 1 : own;
    if (argc == 3) {
        fprintf(stderr,
                "usage: finetune MODEL DATA.jsonl OUT [DEVICE] [EPOCHS], or finetune [DEVICE]\n");
        return 1;
    }
    int n = argc > 2 ? argc - 1 : 5;
    tern_set_default_device(n > 3 ? in[3] : "auto");
    if (in == own && tern_last_status() == TERN_OK)
        small_model("llama");
    tern_manual_seed(0);
    bool good = tern_last_status() == TERN_OK;
    tern_module *model = good ? tern_models_from_pretrained(in[0], NULL) : NULL;
    tern_tokenizer *tokenizer = model ? tern_tokenizer_from_pretrained(in[0]) : NULL;
    if (tokenizer && read_data(&all, tokenizer, in[1]) == TERN_OK)
        run(model, tokenizer, &all, in[2], n > 4 ? atoi(in[4]) : 3, in == own ? 2e-2 : 1e-3);
    for (int64_t i = 0; i < all.n; i++)
        free(all.list[i].ids);
    tern_tokenizer_free(tokenizer);
    tern_nn_free(model);
    if (tern_last_status() != TERN_OK)
        fprintf(stderr, "finetune: %s\n", tern_last_error());
    return tern_last_status() != TERN_OK;
}
