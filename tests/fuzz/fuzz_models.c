/* fuzz_models.c -- the readers of tokenizer.json, config.json, GGUF and WAV files given any bytes (bytes.h): a tokenizer, a model or
 * samples, or an error. An input that begins with a brace is a tokenizer.json, one that begins with RIFF sound, with GGUF a model and
 * its tokenizer, with a line feed a SentencePiece model; behind a T the rest is a file of a tokenizer of any kind, and a tiktoken file;
 * with any other byte in front, the rest is a config.json. */
#define _GNU_SOURCE /* memfd_create */
#include "bytes.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <tern/models.h>
#include <unistd.h>

static void wrong(const char *what)
{
    fprintf(stderr, "fuzz_models: %s\n", what);
    abort();
}

static void check(bool result)
{
    if (result != (tern_last_status() == TERN_OK))
        wrong(result ? "a result and an error" : "neither a result nor an error");
    tern_clear_error();
}

/* ---- an input ------------------------------------------------------------------------------ */

static void use_tokenizer(tern_tokenizer *t)
{
    static const char *const texts[] = {"", "the king  was\n12 caf\xc3\xa9",
                                        "\xe4\xb8\x96\xe7\x95\x8c [MASK]<s>'ll"};
    for (int i = 0; i < 3; i++)
        TERN_SCOPE {
            tern_encoding e;
            tern_status status = tern_tokenizer_call(
                t, &texts[i], i == 2 ? &texts[1] : NULL, 1,
                &(tern_encode_options){.max_length = 8 * i, .device = "cpu"}, &e);
            check(status == TERN_OK);
            char *text = status == TERN_OK ? tern_tokenizer_decode(t, e.input_ids, i > 0) : NULL;
            if (status == TERN_OK)
                check(text != NULL);
            tern_free_text(text);
        }
    if (tern_tokenizer_vocab_size(t) < 0)
        wrong("a negative number of tokens");
}

static void use_file(tern_tokenizer *t)
{
    check(t != NULL);
    if (t)
        use_tokenizer(t);
    tern_tokenizer_free(t);
}

static void use_gguf(const char *path)
{
    tern_module *m = tern_models_from_pretrained(path, &(tern_pretrained_options){.device = "cpu"});
    check(m != NULL);
    tern_nn_free(m);
    tern_tokenizer *t = tern_tokenizer_from_file(path);
    check(t != NULL);
    if (t)
        use_tokenizer(t);
    tern_tokenizer_free(t);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    char path[64];
    int64_t live = tern_live_tensors();
    bool sound = size > 3 && memcmp(bytes, "RIFF", 4) == 0;
    bool gguf = size > 3 && memcmp(bytes, "GGUF", 4) == 0;
    bool pieces = size && bytes[0] == '\n', any = size && bytes[0] == 'T';
    bool config = size && bytes[0] != '{' && !sound && !gguf && !pieces;
    int fd = memfd_create("input", MFD_CLOEXEC);
    if (fd < 0 || write(fd, bytes + config, size - config) != (ssize_t)(size - config))
        wrong("no file in memory");
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    if (sound)
        check(tern_audio_load(path, NULL) != NULL);
    else if (gguf)
        use_gguf(path);
    else if (any) {
        use_file(tern_tokenizer_from_tiktoken(
            path, &(tern_tiktoken_options){.pattern = "\\p{L}+|\\s|[^\\p{L}\\s]+"}));
        use_file(tern_tokenizer_from_file(path));
    } else if (config) {
        tern_module *m = tern_models_from_config(path, &(tern_pretrained_options){.device = "cpu"});
        check(m != NULL);
        tern_nn_free(m);
    } else {
        use_file(tern_tokenizer_from_file(path));
    }
    close(fd);
    tern_scope_clear();
    if (tern_live_tensors() != live)
        wrong("a tensor is left");
    return 0;
}

/* JSON, and the names of a tokenizer's parts. */
const char *const fuzz_words[] = {"0",
                                  "-1",
                                  "4294967296",
                                  "1e300",
                                  "null",
                                  "{}",
                                  "[]",
                                  "\"\"",
                                  "\"a\"",
                                  "true",
                                  ",",
                                  "\\u0000",
                                  "\\ud83d\\ude00",
                                  "(a|b)*",
                                  "\\\\p{Han}+",
                                  "[^",
                                  "(?!",
                                  "{1,9}",
                                  "\"NFKC\"",
                                  "\"Metaspace\"",
                                  "\"ByteLevel\"",
                                  "\"Sequence\"",
                                  "\"Strip\"",
                                  "\"Replace\"",
                                  "\"Split\"",
                                  "\"BertProcessing\"",
                                  "\"WordPiece\"",
                                  "\"Unigram\"",
                                  "\"WordLevel\"",
                                  "\"BPE\"",
                                  "16384",
                                  "\"CTC\"",
                                  "\"Fuse\"",
                                  NULL};
