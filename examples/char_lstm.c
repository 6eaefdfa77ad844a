/* char_lstm.c -- trains an LSTM to write text like the one it was given, character by character.
 *
 *   char_lstm [--data PATH] [--device D] [--steps N] [--seed N]
 *
 * PATH is a text file or a folder of them; by default the text is short stories that it makes up (stories.h). Every device begins with
 * the same weights and sees the same batches. What to expect: below a table of pairs of characters after 50 steps, whole sentences at
 * the end. */
#include "char_gpt/text.h"
#include "common.h"
#include "progress.h"
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <tern/tern.h>

enum { WIDTH = 128, LAYERS = 2, BATCH = 32, LENGTH = 64, SAMPLE = 400 };

typedef struct settings {
    const char *data, *device;
    int steps;
    uint64_t seed;
} settings;

/* ---- the model: an embedding, an LSTM, and a linear layer that gives logits -------------- */

typedef struct model {
    tern_module *embedding, *lstm, *head;
} model;

/* ids (N, T) -> logits (N T, vocabulary). state is h and c, which go on from call to call where
 * they are not NULL. */
static tern_tensor *logits_of(const model *m, tern_tensor *ids, tern_tensor **state)
{
    tern_tensor *in[3] = {tern_nn_forward(m->embedding, ids)}, *out[3];
    if (state && state[0])
        memcpy(in + 1, state, 2 * sizeof *state);
    if (tern_nn_call(m->lstm, in, in[1] ? 3 : 1, out, 3) != TERN_OK)
        return NULL;
    if (state)
        memcpy(state, out + 1, 2 * sizeof *state);
    return tern_flatten(tern_nn_forward(m->head, out[0]), 0, 1);
}

/* One module with three children: its parameters are those of all of them. */
static tern_module *model_new(model *m, int vocabulary)
{
    tern_module *all = tern_nn_module("CharLSTM", NULL, NULL);
    m->embedding = tern_nn_add(all, "embedding", tern_nn_embedding(vocabulary, WIDTH, NULL));
    m->lstm = tern_nn_add(
        all, "lstm",
        tern_nn_lstm(WIDTH, WIDTH, &(tern_rnn_options){.num_layers = LAYERS, .batch_first = true}));
    m->head = tern_nn_add(all, "head", tern_nn_linear(WIDTH, vocabulary, NULL));
    if (m->embedding && m->lstm && m->head)
        return all;
    tern_nn_free(all);
    return NULL;
}

/* ---- training ---------------------------------------------------------------------------- */

static tern_tensor *loss_of(const model *m, const int64_t *x, const int64_t *y, int n)
{
    tern_tensor *ids = tern_from_data(x, TERN_SHAPE(n, LENGTH), TERN_I64, NULL);
    tern_tensor *wanted = tern_from_data(y, TERN_SHAPE(n * LENGTH), TERN_I64, NULL);
    return tern_cross_entropy(logits_of(m, ids, NULL), wanted, NULL);
}

static double validation_loss(const model *m, const text *t)
{
    static int64_t x[BATCH * LENGTH], y[BATCH * LENGTH];
    text_windows w = text_validation_windows(t, LENGTH, BATCH, 4 * BATCH);
    double sum = 0;
    for (int first = 0, n; first < w.count; first += n) {
        n = w.count - first < BATCH ? w.count - first : BATCH;
        text_windows_read(t, w, first, n, x, y);
        TERN_NO_GRAD
            TERN_SCOPE
                sum += n * tern_item(loss_of(m, x, y, n));
    }
    return w.count ? sum / w.count : NAN;
}

static void train(const model *m, tern_module *all, const text *t, const settings *s)
{
    static int64_t x[BATCH * LENGTH], y[BATCH * LENGTH];
    tern_optimizer *optimizer = tern_optim_adam(all, 3e-3, NULL);
    uint64_t random = s->seed;
    tern_report *report = progress_begin("characters", s->steps);
    for (int step = 1; step <= s->steps && tern_last_status() == TERN_OK; step++) {
        text_random_windows(&t->train, BATCH, LENGTH, &random, x, y);
        TERN_SCOPE {
            tern_optim_zero_grad(optimizer);
            tern_tensor *loss = loss_of(m, x, y, BATCH);
            tern_backward(loss);
            tern_nn_clip_grad_norm_(all, 1.0);
            tern_optim_step(optimizer);
            tern_report_value(report, "loss", step, tern_item(loss));
            if (step == 1 || step % 50 == 0 || step == s->steps)
                tern_report_value(report, "validation", step, validation_loss(m, t));
            tern_report_step(report, step, BATCH * LENGTH);
        }
    }
    text_windows w = text_validation_windows(t, LENGTH, BATCH, 4 * BATCH);
    tern_report_compare(report, "validation", text_bigram_loss(t, w), "a table of pairs");
    tern_report_close(report);
    tern_optim_free(optimizer);
}

/* ---- writing ----------------------------------------------------------------------------- */

/* Draw an id with the given probabilities. */
static int draw(const float *probability, int n, uint64_t *random)
{
    double left = text_random(random);
    for (int i = 0; i < n; i++)
        if ((left -= probability[i]) < 0)
            return i;
    return n - 1;
}

/* One character at a time: the state holds all that came before. */
static void write_sample(const model *m, const text *t, uint64_t seed)
{
    tern_tensor *state[2] = {NULL};
    float probability[256];
    int64_t id = t->id_of['\n'] >= 0 ? t->id_of['\n'] : 0;
    puts("\na sample:");
    for (int i = 0; i < SAMPLE; i++) {
        TERN_NO_GRAD
            TERN_SCOPE {
                tern_tensor *before[2] = {state[0], state[1]};
                tern_tensor *ids = tern_from_data(&id, TERN_SHAPE(1, 1), TERN_I64, NULL);
                tern_tensor *logits = logits_of(m, ids, state);
                tern_tensor *p = tern_softmax(tern_div_scalar(logits, TERN_SCALAR(0.7)), -1);
                tern_copy_to_host(p, probability, sizeof *probability * (size_t)t->vocabulary);
                for (int k = 0; k < 2; k++) {
                    tern_keep(state[k]);
                    tern_release(before[k]);
                }
            }
        if (tern_last_status() != TERN_OK)
            break;
        id = draw(probability, t->vocabulary, &seed);
        putchar(t->byte_of[id]);
    }
    puts("");
    for (int k = 0; k < 2; k++)
        tern_release(state[k]);
}

/* ---- all together ------------------------------------------------------------------------ */

int main(int argc, char **argv)
{
    settings s = {.steps = 400, .seed = 1};
    const option_row list[] = {{"data", .text = &s.data},
                               {"device", .text = &s.device},
                               {"steps", .number = &s.steps},
                               {"seed", .seed = &s.seed},
                               {NULL}};
    text t;
    model m;
    if (!read_options(argc, argv, list, NULL, 0)) {
        fputs("Usage: char_lstm [--data PATH] [--device D] [--steps N] [--seed N]\n", stderr);
        return 2;
    }
    if (!text_load(&t, s.data))
        return 1;
    if (t.train.n <= LENGTH + 1) {
        fprintf(stderr, "char_lstm: the text has %zu characters, too few\n", t.train.n);
        return 1;
    }
    tern_module *all = NULL;
    if (!s.device || tern_set_default_device(s.device) == TERN_OK) {
        tern_manual_seed(s.seed);
        all = model_new(&m, t.vocabulary);
    }
    if (all) {
        printf("%zu characters, %d different; %lld parameters\n", t.train.n, t.vocabulary,
               (long long)tern_nn_numel(all));
        train(&m, all, &t, &s);
        if (tern_last_status() == TERN_OK)
            write_sample(&m, &t, s.seed);
    }
    if (tern_last_status() != TERN_OK)
        fprintf(stderr, "char_lstm: %s\n", tern_last_error());
    tern_nn_free(all);
    text_free(&t);
    return all && tern_last_status() == TERN_OK ? 0 : 1;
}
