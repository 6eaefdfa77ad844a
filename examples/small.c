/* small.c -- makes a small model: a tokenizer learned of its texts, and random weights. */
#include "small.h"
#include "portable.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { TEXTS = 160, LONGEST = 64 };

/* Numbers of <pad>, </s>, <s>, <unk> are 0 to 3; %lld: how many tokens there are. */
static const struct kind {
    const char *name, *config;
} kinds[] = {
    {"bert", "{\"architectures\": [\"BertModel\"], \"model_type\": \"bert\", \"vocab_size\": %lld, "
             "\"hidden_size\": 64,"
             " \"intermediate_size\": 128, \"num_hidden_layers\": 2, \"num_attention_heads\": 4, "
             "\"max_position_embeddings\": 64,"
             " \"type_vocab_size\": 2, \"hidden_act\": \"gelu\", \"hidden_dropout_prob\": 0, "
             "\"attention_probs_dropout_prob\": 0,"
             " \"initializer_range\": 0.1, \"pad_token_id\": 0}\n"},
    {"llama", "{\"architectures\": [\"LlamaForCausalLM\"], \"model_type\": \"llama\", "
              "\"vocab_size\": %lld, \"hidden_size\": 64,"
              " \"intermediate_size\": 128, \"num_hidden_layers\": 2, \"num_attention_heads\": 4, "
              "\"num_key_value_heads\": 2,"
              " \"max_position_embeddings\": 256, \"rms_norm_eps\": 1e-5, \"hidden_act\": "
              "\"silu\", \"tie_word_embeddings\": false,"
              " \"initializer_range\": 0.1, \"pad_token_id\": 0, \"eos_token_id\": 1, "
              "\"bos_token_id\": 2}\n"},
};

/* ---- texts --------------------------------------------------------------------------------- */

static const char *const nouns[2][5] = {{"sun", "sky", "breeze", "morning", "meadow"},
                                        {"storm", "fog", "hail", "night", "frost"}};
static const char *const words[2][4] = {{"warm", "bright", "gentle", "clear"},
                                        {"cold", "dark", "fierce", "grey"}};
static const char *const ends[4] = {"today", "again", "here", "now"};

/* Text i of all, in an order that mixes them: 2 classes of 5 nouns, of 4 words each, of 4 ends. */
typedef struct parts {
    int class, noun, word, end;
} parts;

static parts parts_of(int i)
{
    const int k = i * 77 % TEXTS;
    return (parts){k / 80, k / 16 % 5, k / 4 % 4, k % 4};
}

static void text_of(int i, char text[LONGEST])
{
    const parts p = parts_of(i);
    snprintf(text, LONGEST, "the %s is %s %s", nouns[p.class][p.noun], words[p.class][p.word],
             ends[p.end]);
}

static void write_texts(FILE *file)
{
    char text[LONGEST];
    for (int i = 0; i < TEXTS; i++) {
        text_of(i, text);
        fprintf(file, "%s\t%s\n", parts_of(i).class ? "foul" : "fair", text);
    }
}

static void write_few(FILE *file)
{
    char text[LONGEST];
    for (int i = 0; i < 12; i++) {
        text_of(i, text);
        fprintf(file, "%s\n", text);
    }
}

/* One word belongs to each noun. */
static void write_chat(FILE *file)
{
    for (int i = 0; i < TEXTS; i++) {
        const parts p = parts_of(i);
        fprintf(file, "{\"prompt\": \"the %s is\", \"completion\": \" %s today\"}\n",
                nouns[p.class][p.noun], words[p.class][p.noun % 4]);
    }
}

static void write_special(FILE *file)
{
    fputs("{\"pad_token\": \"<pad>\", \"eos_token\": \"</s>\", \"bos_token\": \"<s>\", "
          "\"unk_token\": \"<unk>\"}\n",
          file);
}

/* ---- the model ----------------------------------------------------------------------------- */

static tern_tokenizer *learn_tokens(void)
{
    static char text[TEXTS][LONGEST];
    static const char *const special[] = {"<pad>", "</s>", "<s>", "<unk>", NULL};
    const char *list[TEXTS];
    for (int i = 0; i < TEXTS; i++) {
        text_of(i, text[i]);
        list[i] = text[i];
    }
    return tern_tokenizer_train_bpe(
        list, TEXTS, &(tern_bpe_options){.vocab_size = 320, .special_tokens = special});
}

static tern_status write_file(const char *folder, const char *name, void (*write)(FILE *))
{
    char path[1024];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "wb");
    if (file)
        write(file);
    if (!file || ferror(file) | fclose(file))
        return tern_fail(TERN_ERR_IO, "small: %s: %s", path, strerror(errno));
    return TERN_OK;
}

static tern_status write_config(const char *folder, const struct kind *kind, long long tokens)
{
    char path[1024];
    snprintf(path, sizeof path, "%s/config.json", folder);
    FILE *file = fopen(path, "w");
    if (!file)
        return tern_fail(TERN_ERR_IO, "small: %s: %s", path, strerror(errno));
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
    fprintf(file, kind->config, tokens);
    return fclose(file) == 0 ? TERN_OK : tern_fail(TERN_ERR_IO, "small: %s is not written", path);
}

static tern_status make(const struct kind *kind, const char *folder)
{
    char path[1024];
    tern_tokenizer *tokenizer = learn_tokens();
    long long n = tern_tokenizer_vocab_size(tokenizer);
    snprintf(path, sizeof path, "%s/tokenizer.json", folder);
    if (n > 0 && tern_tokenizer_save(tokenizer, path) == TERN_OK &&
        write_config(folder, kind, n) == TERN_OK) {
        tern_manual_seed(0);
        tern_module *model =
            tern_models_from_config(folder, &(tern_pretrained_options){.device = "cpu"});
        if (model)
            tern_models_save_pretrained(model, folder, NULL);
        tern_nn_free(model);
    }
    tern_tokenizer_free(tokenizer);
    return tern_last_status();
}

tern_status small_model(const char *name)
{
    static const struct {
        const char *name;
        void (*write)(FILE *);
    } files[] = {{"texts.tsv", write_texts},
                 {"texts.txt", write_few},
                 {"chat.jsonl", write_chat},
                 {"tokenizer_config.json", write_special}};
    char folder[64];
    const struct kind *kind = kinds;
    while (strcmp(kind->name, name) != 0)
        kind++;
    snprintf(folder, sizeof folder, "small-%s", name);
    if (mkdir(folder, 0777) != 0 && errno != EEXIST)
        return tern_fail(TERN_ERR_IO, "small: %s: %s", folder, strerror(errno));
    tern_status status = TERN_OK;
    for (size_t i = 0; i < sizeof files / sizeof *files && status == TERN_OK; i++)
        status = write_file(folder, files[i].name, files[i].write);
    status = status == TERN_OK ? make(kind, folder) : status;
    if (status == TERN_OK)
        printf("a small model with random weights was made in %s\n", folder);
    return status;
}
