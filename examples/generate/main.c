/* main.c -- a language model of the Hugging Face Hub goes on from a prompt, word by word as it comes.
 *
 *   generate MODEL PROMPT [DEVICE] [TOKENS] [ADAPTER]
 *
 * ADAPTER is a directory of PEFT's, as examples/finetune writes it. */
#include <stdio.h>
#include <stdlib.h>
#include <tern/models.h>
#include <tern/tern.h>
#include <time.h>

static bool show(tern_tensor *ids, void *stream)
{
    const char *text = tern_decode_stream_step(stream, tern_item_int(ids));
    if (text)
        fputs(text, stdout);
    fflush(stdout);
    return text != NULL;
}

static void go_on(tern_module *model, const tern_tokenizer *tokenizer, const char *prompt,
                  int64_t tokens)
{
    tern_decode_stream *stream = tern_decode_stream_new(tokenizer, true);
    TERN_SCOPE {
        tern_tensor *ids = tern_tokenizer_encode(tokenizer, prompt, NULL);
        struct timespec a, b;
        printf("on %s: %s\n%s", tern_default_device(), tern_device_name(NULL), prompt);
        clock_gettime(CLOCK_MONOTONIC, &a);
        tern_tensor *all = tern_models_generate(model, ids,
                                                &(tern_generate_options){.max_new_tokens = tokens,
                                                                         .do_sample = true,
                                                                         .temperature = 0.8,
                                                                         .top_p = 0.95,
                                                                         .on_token = show,
                                                                         .user = stream});
        clock_gettime(CLOCK_MONOTONIC, &b);
        double seconds = (double)(b.tv_sec - a.tv_sec) + 1e-9 * (double)(b.tv_nsec - a.tv_nsec);
        int64_t made = all ? tern_numel(all) - tern_numel(ids) : 0;
        printf("\n%lld tokens in %.2f s, %.1f tokens/s\n", (long long)made, seconds,
               (double)made / seconds);
    }
    tern_decode_stream_free(stream);
}

int main(int argc, char **argv)
{
    if (argc < 3) {
        fprintf(stderr, "usage: generate MODEL PROMPT [DEVICE] [TOKENS] [ADAPTER]\n");
        return 1;
    }
    tern_set_default_device(argc > 3 ? argv[3] : "auto");
    tern_manual_seed(0);
    tern_module *model = tern_models_from_pretrained(argv[1], NULL);
    tern_tokenizer *tokenizer = tern_tokenizer_from_pretrained(argv[1]);
    if (model && argc > 5)
        tern_lora_merge(tern_lora_load(model, argv[5], false));
    if (model && tokenizer && tern_last_status() == TERN_OK)
        go_on(model, tokenizer, argv[2], argc > 4 ? atoi(argv[4]) : 64);
    tern_tokenizer_free(tokenizer);
    tern_nn_free(model);
    if (tern_last_status() != TERN_OK)
        fprintf(stderr, "generate: %s\n", tern_last_error());
    return tern_last_status() != TERN_OK;
}
