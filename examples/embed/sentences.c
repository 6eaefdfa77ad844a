/* sentences.c -- which sentences mean the same: embeddings of a BERT (all-MiniLM and its relatives), compared by their angles.
 *
 *   embed MODEL TEXTS.txt [DEVICE] [PAIRS.tsv]
 *   embed [DEVICE]
 *
 * For every line of TEXTS the most similar other one. PAIRS is lines of a score, a tab, a sentence, a tab, another one (as the
 * STS benchmark has them): the rank correlation of scores and angles. Without a model it makes a small one (small.h); what to expect of that: texts
 * that share words are the nearest, as even random weights see them. */
#include "../progress.h"
#include "../small.h"
#include "../portable.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BATCH = 32, MOST = 20000 };

typedef struct lines {
    char *text[MOST];
    int n;
} lines;

static tern_status add_line(lines *all, const char *text, size_t n)
{
    char *copy = all->n < MOST ? strndup(text, n) : NULL;
    if (!copy)
        return tern_fail(TERN_ERR_MEMORY, "embed: no room for line %d", all->n);
    all->text[all->n++] = copy;
    return TERN_OK;
}

static void free_lines(lines *all)
{
    for (int i = 0; i < all->n; i++)
        free(all->text[i]);
    all->n = 0;
}

/* ---- embeddings ---------------------------------------------------------------------------- */

/* (n, width) of length 1: the mean of the places that the mask shows. */
static tern_tensor *embed(tern_module *model, const tern_tokenizer *tokenizer,
                          const char *const *texts, int n)
{
    tern_encode_options o = {.max_length = 256};
    tern_encoding in;
    tern_model_outputs out;
    if (tern_tokenizer_call(tokenizer, texts, NULL, n, &o, &in) != TERN_OK)
        return NULL;
    tern_model_inputs given = {.input_ids = in.input_ids,
                               .attention_mask = in.attention_mask,
                               .token_type_ids = in.token_type_ids};
    if (tern_models_call(model, &given, &out) != TERN_OK)
        return NULL;
    tern_tensor *mask = tern_unsqueeze(tern_to_dtype(in.attention_mask, TERN_F32), -1);
    tern_tensor *sum = tern_sum_dim(tern_mul(out.last_hidden_state, mask), TERN_DIMS(1), false);
    return tern_normalize(tern_div(sum, tern_sum_dim(mask, TERN_DIMS(1), false)), 2, 1, 1e-12);
}

/* All of them, in batches. */
static tern_tensor *embed_all(tern_module *model, const tern_tokenizer *tokenizer, const lines *all)
{
    tern_tensor *parts[MOST / BATCH + 1];
    tern_report *report = progress_begin("texts", (all->n + BATCH - 1) / BATCH);
    int k = 0;
    for (int i = 0; i < all->n; i += BATCH) {
        int n = all->n - i < BATCH ? all->n - i : BATCH;
        TERN_SCOPE
            if ((parts[k] = embed(model, tokenizer, (const char *const *)all->text + i, n)))
                parts[k] = tern_escape(parts[k]);
        if (!parts[k++]) {
            tern_report_close(report);
            return NULL;
        }
        tern_report_step(report, k, n);
    }
    tern_report_close(report);
    return k ? tern_cat(parts, k, 0) : tern_fail_null(TERN_ERR_IO, "embed: there are no lines");
}

static void nearest(tern_module *model, const tern_tokenizer *tokenizer, const lines *all)
{
    tern_tensor *x = embed_all(model, tokenizer, all);
    tern_tensor *angles = x ? tern_matmul(x, tern_transpose(x, 0, 1)) : NULL;
    tern_values_indices best;
    if (!angles)
        return;
    tern_tensor *own = tern_eye(all->n, all->n, TERN_F32, NULL);
    if (tern_max_dim(tern_sub(angles, tern_mul(own, 3)), 1, false, &best) != TERN_OK)
        return;
    double *values = calloc((size_t)all->n, sizeof *values);
    int64_t *indices = calloc((size_t)all->n, sizeof *indices);
    size_t n = (size_t)all->n;
    if (values && indices &&
        tern_copy_to_host(tern_to_dtype(best.values, TERN_F64), values, n * sizeof *values) ==
            TERN_OK &&
        tern_copy_to_host(best.indices, indices, n * sizeof *indices) == TERN_OK)
        for (int i = 0; i < all->n; i++)
            printf("%s\n    %.3f %s\n", all->text[i], values[i], all->text[indices[i]]);
    printf("%.3f to the nearest on the average; to all: %.3f\n", tern_item(tern_mean(best.values)),
           tern_item(tern_mean(angles)));
    free(values);
    free(indices);
}

/* ---- evaluation ---------------------------------------------------------------------------- */

/* Places in the order of the values, from 0 on. */
static tern_tensor *ranks(tern_tensor *x)
{
    return tern_to_dtype(tern_argsort(tern_argsort(x, 0, false), 0, false), TERN_F64);
}

/* Spearman's: the correlation of ranks. */
static double correlation(tern_tensor *x, tern_tensor *y)
{
    tern_tensor *a = ranks(x), *b = ranks(y);
    a = tern_sub(a, tern_mean(a));
    b = tern_sub(b, tern_mean(b));
    return tern_item(
        tern_div(tern_sum(tern_mul(a, b)),
                 tern_sqrt(tern_mul(tern_sum(tern_mul(a, a)), tern_sum(tern_mul(b, b))))));
}

static tern_status read_lines(const char *path, lines *all, lines *others, double *scores)
{
    FILE *file = fopen(path, "r");
    char *line = NULL;
    size_t room = 0;
    tern_status status = file ? TERN_OK : tern_fail(TERN_ERR_IO, "embed: can't read %s", path);
    while (file && status == TERN_OK && getline(&line, &room, file) > 0) {
        size_t n = strcspn(line, "\r\n");
        line[n] = 0;
        char *first = others ? strchr(line, '\t') : line;
        char *second = others && first ? strchr(first + 1, '\t') : NULL;
        if (!n)
            continue;
        if (!others)
            status = add_line(all, line, n);
        else if (!second)
            status = tern_fail(TERN_ERR_IO, "embed: a line of %s has no two tabs", path);
        else {
            scores[all->n] = strtod(line, NULL);
            status = add_line(all, first + 1, (size_t)(second - first - 1));
            if (status == TERN_OK)
                status = add_line(others, second + 1, strlen(second + 1));
        }
    }
    free(line);
    if (file)
        fclose(file);
    return status;
}

static void evaluate(tern_module *model, const tern_tokenizer *tokenizer, const char *path)
{
    static lines first, second;
    static double scores[MOST + 1];
    if (read_lines(path, &first, &second, scores) == TERN_OK) {
        tern_tensor *a = embed_all(model, tokenizer, &first);
        tern_tensor *b = embed_all(model, tokenizer, &second);
        tern_tensor *angles = a && b ? tern_sum_dim(tern_mul(a, b), TERN_DIMS(1), false) : NULL;
        tern_tensor *said = tern_from_data(scores, TERN_SHAPE(first.n), TERN_F64, NULL);
        if (angles)
            printf("Spearman's correlation %.4f of %d pairs\n", correlation(angles, said), first.n);
    }
    free_lines(&first);
    free_lines(&second);
}

int main(int argc, char **argv)
{
    static lines all;
    const char *own[] = {"small-bert", "small-bert/texts.txt", argc > 1 ? argv[1] : "auto"};
    const char *const *in = argc > 2 ? (const char *const *)argv + 1 : own;
    int n = argc > 2 ? argc - 1 : 3;
    tern_set_default_device(n > 2 ? in[2] : "auto");
    if (in == own && tern_last_status() == TERN_OK)
        small_model("bert");
    bool good = tern_last_status() == TERN_OK;
    tern_module *model =
        good ? tern_models_from_pretrained(in[0], &(tern_pretrained_options){.dtype = TERN_F32})
             : NULL;
    tern_tokenizer *tokenizer = model ? tern_tokenizer_from_pretrained(in[0]) : NULL;
    if (tokenizer && read_lines(in[1], &all, NULL, NULL) == TERN_OK)
        TERN_NO_GRAD
            TERN_SCOPE {
                nearest(model, tokenizer, &all);
                if (n > 3 && tern_last_status() == TERN_OK)
                    evaluate(model, tokenizer, in[3]);
            }
    free_lines(&all);
    tern_tokenizer_free(tokenizer);
    tern_nn_free(model);
    if (tern_last_status() != TERN_OK)
        fprintf(stderr, "embed: %s\n", tern_last_error());
    return tern_last_status() != TERN_OK;
}
