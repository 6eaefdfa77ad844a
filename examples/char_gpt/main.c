/* main.c -- trains a small GPT to write text like the one it was given, character by character.
 *
 *   char_gpt [--data ~/tern] [--device opencl:0] [--steps 500]
 *
 * Without --data the text is short stories that it makes up (stories.h). With --snapshots FOLDER it saves itself on the way,
 * and the same command goes on where it was stopped. Its validation loss is compared with that of a table of pairs of
 * characters. What to expect of the defaults: below that table after 100 steps, below a third of its loss and whole sentences at
 * the end. */
#include "report.h"
#include "settings.h"
#include "text.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- training ---------------------------------------------------------------------------- */

typedef struct trainer {
    const settings *s;
    const text *t;
    tern_module *gpt;
    tern_optimizer *optimizer;
    tern_loader *loader; /* windows of the training text, in another order each time round */
    tern_snapshot *snapshot;
    tern_tensor *losses, *validations; /* what the report has, as tensors */
    int64_t *x, *y;                    /* a batch on the host */
    uint64_t random;
} trainer;

/* Window i of the training text, and the same one character further on. */
static tern_status window(tern_dataset *self, int64_t i, tern_tensor **item)
{
    const trainer *r = tern_dataset_data(self);
    const int length = r->s->model.context;
    for (int k = 0; k < 2; k++) {
        item[k] = tern_empty(TERN_SHAPE(length), TERN_I64, NULL);
        int64_t *ids = item[k] ? tern_data(item[k]) : NULL;
        for (int j = 0; ids && j < length; j++)
            ids[j] = r->t->train.ids[i + j + k];
    }
    return TERN_OK;
}

static tern_loader *loader_of(trainer *r)
{
    int64_t n = (int64_t)r->t->train.n - r->s->model.context;
    tern_dataset *windows = tern_data_dataset("windows", n, 2, window, r);
    tern_loader *loader =
        tern_data_loader(windows, &(tern_loader_options){.batch_size = r->s->batch,
                                                         .shuffle = true,
                                                         .seed = r->s->seed,
                                                         .num_workers = 1,
                                                         .device = tern_default_device()});
    tern_dataset_free(windows);
    return loader;
}

static tern_tensor *loss_of(trainer *r, tern_tensor *x, tern_tensor *y)
{
    return tern_cross_entropy(tern_nn_forward(r->gpt, x), tern_reshape(y, TERN_SHAPE(-1)), NULL);
}

static tern_tensor *loss_of_batch(trainer *r, int n)
{
    int64_t length = r->s->model.context;
    tern_tensor *x = tern_from_data(r->x, TERN_SHAPE(n, length), TERN_I64, NULL);
    tern_tensor *y = tern_from_data(r->y, TERN_SHAPE(n, length), TERN_I64, NULL);
    return loss_of(r, x, y);
}

/* Linear warmup over a twentieth of the steps, then half a cosine down to a tenth. */
static double learning_rate(const settings *s, int step)
{
    double warmup = fmax(1, 0.05 * s->steps);
    if (step < warmup)
        return s->lr * (step + 1) / warmup;
    double done = (step - warmup) / fmax(1, s->steps - warmup);
    return s->lr * (0.55 + 0.45 * cos(3.14159265358979 * done));
}

static double train_step(trainer *r, int step, const tern_batch *batch)
{
    tern_optim_set_lr(r->optimizer, learning_rate(r->s, step));
    tern_optim_zero_grad(r->optimizer);
    tern_tensor *loss = loss_of(r, batch->tensors[0], batch->tensors[1]);
    tern_backward(loss);
    tern_nn_clip_grad_norm_(r->gpt, 1.0);
    tern_optim_step(r->optimizer);
    return tern_item(loss);
}

static double validation_loss(trainer *r, text_windows w)
{
    double sum = 0;
    tern_nn_eval(r->gpt);
    for (int first = 0, n; first < w.count; first += n) {
        n = w.count - first < r->s->batch ? w.count - first : r->s->batch;
        text_windows_read(r->t, w, first, n, r->x, r->y);
        TERN_NO_GRAD
            TERN_SCOPE
                sum += n * tern_item(loss_of_batch(r, n));
    }
    tern_nn_train(r->gpt, true);
    return sum / w.count;
}

/* All that a training is made of; the numbers of the report lie in the program's own memory. */
static void go_on(trainer *r, report *log)
{
    TERN_SCOPE_HERE;
    const char *folder = r->s->snapshots;
    tern_snapshot *s = r->snapshot = tern_snapshot_new();
    tern_snapshot_add_module(s, "model", r->gpt);
    tern_snapshot_add_optimizer(s, "optimizer", r->optimizer);
    tern_snapshot_add_loader(s, "loader", r->loader);
    tern_snapshot_add_int(s, "steps", &log->n_loss);
    tern_snapshot_add_int(s, "validations", &log->n_validation);
    r->losses = tern_keep(tern_from_blob(log->loss, TERN_SHAPE(r->s->steps), TERN_F64, NULL));
    r->validations =
        tern_keep(tern_from_blob(log->validation, TERN_SHAPE(REPORT_POINTS, 2), TERN_F64, NULL));
    tern_snapshot_add_tensor(s, "loss", r->losses);
    tern_snapshot_add_tensor(s, "validation", r->validations);
    if (folder && tern_snapshot_latest(folder) && tern_snapshot_load(s, folder) == TERN_OK)
        report_go_on(log);
}

static void save(trainer *r, int step)
{
    if (r->s->snapshots && (step % r->s->every == 0 || step == r->s->steps))
        tern_snapshot_save(
            r->snapshot, r->s->snapshots,
            &(tern_snapshot_options){.step = step, .keep_last = 2, .background = true});
}

/* Validates before, five times on the way and at the end. */
static bool train(trainer *r, text_windows w, report *log)
{
    const settings *s = r->s;
    go_on(r, log);
    if (!log->n_validation)
        report_validation(log, validation_loss(r, w));
    int step = (int)log->n_loss;
    while (step < s->steps && tern_last_status() == TERN_OK)
        TERN_EACH_BATCH(batch, r->loader)
        {
            double loss = train_step(r, step, &batch);
            if (tern_last_status() != TERN_OK)
                break;
            report_step(log, loss);
            if (++step == s->steps ||
                (s->steps >= 60 && step % (s->steps / 6) == 0 && s->steps - step >= s->steps / 12))
                report_validation(log, validation_loss(r, w));
            save(r, step);
            if (step == s->steps)
                break;
        }
    if (tern_last_status() == TERN_OK)
        tern_snapshot_wait(r->snapshot);
    return tern_last_status() == TERN_OK;
}

/* ---- writing ----------------------------------------------------------------------------- */

/* Draw an id with the probabilities softmax(logits / temperature). */
static int draw(const float *logits, int n, uint64_t *random)
{
    const double temperature = 0.8;
    double largest = logits[0], sum = 0;
    for (int i = 1; i < n; i++)
        largest = fmax(largest, logits[i]);
    for (int i = 0; i < n; i++)
        sum += exp((logits[i] - largest) / temperature);
    double left = sum * text_random(random);
    for (int i = 0; i < n; i++) {
        left -= exp((logits[i] - largest) / temperature);
        if (left < 0)
            return i;
    }
    return n - 1;
}

static void write_sample(trainer *r)
{
    int context = r->s->model.context, vocabulary = r->t->vocabulary, length = 1;
    float logits[256];
    int64_t *ids = r->x;
    ids[0] = r->t->id_of['\n'] >= 0 ? r->t->id_of['\n'] : 0;
    printf("\na sample of %d characters:\n", r->s->sample);
    for (int i = 0; i < r->s->sample; i++) {
        TERN_NO_GRAD
            TERN_SCOPE {
                tern_tensor *x = tern_from_data(ids, TERN_SHAPE(1, length), TERN_I64, NULL);
                tern_tensor *last = tern_select(tern_nn_forward(r->gpt, x), 0, -1);
                tern_copy_to_host(last, logits, sizeof *logits * (size_t)vocabulary);
            }
        if (tern_last_status() != TERN_OK)
            break;
        int id = draw(logits, vocabulary, &r->random);
        putchar(r->t->byte_of[id]);
        if (length == context)
            memmove(ids, ids + 1, sizeof *ids * (size_t)--length);
        ids[length++] = id;
    }
    puts("\n");
}

/* ---- all together ------------------------------------------------------------------------ */

static bool run(trainer *r)
{
    const settings *s = r->s;
    const text *t = r->t;
    text_windows w = text_validation_windows(t, s->model.context, s->batch, 512);
    if (w.count == 0 || t->train.n <= (size_t)s->model.context + 1) {
        fprintf(stderr, "char_gpt: the text is too short for --context %d\n", s->model.context);
        return false;
    }
    report log;
    if (!report_begin(&log, s->steps, s->batch * s->model.context, text_bigram_loss(t, w)))
        return false;
    bool fine = train(r, w, &log);
    tern_snapshot_free(r->snapshot);
    tern_release(r->losses);
    tern_release(r->validations);
    report_end(&log);
    tern_memory_stats memory;
    if (fine && tern_memory_get_stats(NULL, &memory) == TERN_OK) {
        printf("tensors: %.1f MiB now, %.1f MiB at most\n", (double)memory.allocated / 0x1p20,
               (double)memory.allocated_peak / 0x1p20);
        write_sample(r);
    }
    return fine;
}

int main(int argc, char **argv)
{
    settings s;
    int status = settings_read(&s, argc, argv);
    if (status)
        return status - 1;
    text t;
    if (!text_load(&t, s.data))
        return 1;
    s.model.vocabulary = t.vocabulary;
    printf("text: %zu characters in %d files to train, %zu in %d to validate; %d different\n",
           t.train.n, t.train.files, t.valid.n, t.valid.files, t.vocabulary);

    trainer r = {.s = &s, .t = &t, .random = s.seed};
    bool fine = tern_set_default_device(s.device) == TERN_OK;
    if (fine) {
        tern_manual_seed(s.seed);
        r.gpt = gpt_new(&s.model);
        fine = r.gpt && gpt_init(r.gpt) == TERN_OK;
    }
    if (fine) {
        r.optimizer = tern_optim_adamw(r.gpt, s.lr, NULL);
        r.x = calloc((size_t)s.batch * (size_t)s.model.context, sizeof *r.x);
        r.y = calloc((size_t)s.batch * (size_t)s.model.context, sizeof *r.y);
        printf("model: %lld parameters\n", (long long)tern_nn_numel(r.gpt));
        r.loader = loader_of(&r);
        fine = r.x && r.y && r.loader && run(&r);
    }
    if (tern_last_status() != TERN_OK)
        fprintf(stderr, "char_gpt: %s\n", tern_last_error());
    free(r.x);
    free(r.y);
    tern_loader_free(r.loader);
    tern_optim_free(r.optimizer);
    tern_nn_free(r.gpt);
    text_free(&t);
    return fine ? 0 : 1;
}
