/* main.c -- a language model of the Hugging Face Hub goes on from a prompt, word by word as it comes.
 *
 *   generate MODEL PROMPT [DEVICE] [TOKENS] [ADAPTER]
 *   generate [DEVICE]
 *
 * ADAPTER is a directory of PEFT's, as examples/finetune writes it. What it wrote is told as nats per token, beside those of guessing
 * among all tokens. Without a model it makes a small one (small.h): what that writes is nonsense, no better than guessing. */
#include "../progress.h"
#include "../small.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

typedef struct writer {
    tern_decode_stream *stream;
    tern_report *report;
    int64_t written;
} writer;

static bool show(tern_tensor *ids, void *user)
{
    writer *w = user;
    const char *text = tern_decode_stream_step(w->stream, tern_item_int(ids));
    if (text)
        fputs(text, stdout);
    fflush(stdout);
    w->written++;
    return text != NULL;
}

/* The mean of -log p of the tokens, given those before. */
static double surprise(tern_module *model, tern_tensor *ids)
{
    TERN_NO_GRAD_HERE;
    return tern_item(tern_models_loss(
        model, &(tern_model_inputs){.input_ids = ids, .labels = ids, .logits_to_keep = -1}));
}

static void go_on(tern_module *model, const tern_tokenizer *tokenizer, const char *prompt,
                  int64_t tokens)
{
    writer w = {.stream = tern_decode_stream_new(tokenizer, true),
                .report = progress_begin("tokens", tokens)};
    printf("%s", prompt);
    TERN_SCOPE {
        tern_tensor *ids = tern_tokenizer_encode(tokenizer, prompt, NULL);
        tern_tensor *all = tern_models_generate(model, ids,
                                                &(tern_generate_options){.max_new_tokens = tokens,
                                                                         .do_sample = true,
                                                                         .temperature = 0.8,
                                                                         .top_p = 0.95,
                                                                         .on_token = show,
                                                                         .user = &w});
        printf("\n"); /* the text is the progress; its rate comes behind it */
        for (int64_t i = 1; i <= w.written; i++)
            tern_report_step(w.report, i, 1);
        if (all) {
            tern_report_value(w.report, "nats", w.written, surprise(model, all));
            tern_report_compare(w.report, "nats", log((double)tern_tokenizer_vocab_size(tokenizer)),
                                "guessing");
        }
    }
    tern_report_close(w.report);
    tern_decode_stream_free(w.stream);
}

int main(int argc, char **argv)
{
    const char *own[] = {"small-llama", "the sun is", argc > 1 ? argv[1] : "auto"};
    const char *const *in = argc > 2 ? (const char *const *)argv + 1 : own;
    int n = argc > 2 ? argc - 1 : 3;
    tern_set_default_device(n > 2 ? in[2] : "auto");
    if (in == own && tern_last_status() == TERN_OK)
        small_model("llama");
    tern_manual_seed(0);
    bool good = tern_last_status() == TERN_OK;
    tern_module *model = good ? tern_models_from_pretrained(in[0], NULL) : NULL;
    tern_tokenizer *tokenizer = model ? tern_tokenizer_from_pretrained(in[0]) : NULL;
    if (model && n > 4)
        tern_lora_merge(tern_lora_load(model, in[4], false));
    if (tokenizer && tern_last_status() == TERN_OK)
        go_on(model, tokenizer, in[1], n > 3 ? atoi(in[3]) : 64);
    tern_tokenizer_free(tokenizer);
    tern_nn_free(model);
    if (tern_last_status() != TERN_OK)
        fprintf(stderr, "generate: %s\n", tern_last_error());
    return tern_last_status() != TERN_OK;
}
