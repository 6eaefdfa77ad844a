/* fuzz_models.c -- the readers of tokenizer.json and config.json given any bytes: a tokenizer or a model, or an error.
 *
 *   fuzz_models [--seed S] [--runs N | --seconds T] FOLDER...
 *
 * An input that begins with a brace is a tokenizer.json; with any other byte in front, the rest is a config.json. Inputs
 * of a seed are the files of the folders with words and numbers changed. */
#define _GNU_SOURCE /* memfd_create */
#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <tern/models.h>
#include <time.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

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

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    char path[64];
    int64_t live = tern_live_tensors();
    bool config = size && bytes[0] != '{';
    int fd = memfd_create("input", MFD_CLOEXEC);
    if (fd < 0 || write(fd, bytes + config, size - config) != (ssize_t)(size - config))
        wrong("no file in memory");
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    if (config) {
        tern_module *m = tern_models_from_config(path, &(tern_pretrained_options){.device = "cpu"});
        check(m != NULL);
        tern_nn_free(m);
    } else {
        tern_tokenizer *t = tern_tokenizer_from_file(path);
        check(t != NULL);
        if (t)
            use_tokenizer(t);
        tern_tokenizer_free(t);
    }
    close(fd);
    tern_scope_clear();
    if (tern_live_tensors() != live)
        wrong("a tensor is left");
    return 0;
}

/* ---- a program of its own ------------------------------------------------------------------ */

#ifndef TERN_LIBFUZZER
enum { MOST = 1 << 16, FILES = 64 };

typedef struct input {
    uint8_t *bytes;
    size_t n;
} input;
static input list[FILES];
static int n_inputs;

static void add(const void *bytes, size_t n)
{
    if (n_inputs == FILES || n == 0)
        return;
    list[n_inputs].bytes = malloc(n);
    memcpy(list[n_inputs].bytes, bytes, n);
    list[n_inputs++].n = n;
}

static void add_folder(const char *folder)
{
    static char bytes[MOST];
    char path[1024];
    DIR *dir = opendir(folder);
    for (struct dirent *e; dir && (e = readdir(dir));) {
        snprintf(path, sizeof path, "%s/%s", folder, e->d_name);
        FILE *f = e->d_name[0] != '.' ? fopen(path, "rb") : NULL;
        if (f) {
            add(bytes, fread(bytes, 1, MOST, f));
            fclose(f);
        }
    }
    if (dir)
        closedir(dir);
}

static uint64_t next(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15u; /* splitmix64 */
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

static size_t put_in(uint8_t *bytes, size_t size, size_t at, size_t out, const char *word)
{
    size_t n = strlen(word);
    out = out < size - at ? out : size - at;
    memmove(bytes + at + n, bytes + at + out, size - at - out);
    memcpy(bytes + at, word, n);
    return size - out + n;
}

/* A word of JSON's in place of bytes, of another type's name, of a number, or a byte changed. */
static size_t change(uint8_t *bytes, size_t size, uint64_t *state)
{
    static const char *const words[] = {"0",
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
                                        "\"Fuse\""};
    const char *word = words[next(state) % (sizeof words / sizeof *words)];
    size_t at = next(state) % size, end = at;
    switch (next(state) % 6) {
    case 0:
        bytes[at] = (uint8_t)next(state);
        return size;
    case 1:
        return put_in(bytes, size, at, next(state) % 8, word);
    case 2:
        return put_in(bytes, size, at, next(state) % 64, "");
    default: /* a whole value, from a colon on */
        while (at > 0 && bytes[at] != ':')
            at--;
        for (end = ++at < size ? at : size; end < size && !strchr(",}]", bytes[end]); end++)
            ;
        return at < size ? put_in(bytes, size, at, end - at, word) : size;
    }
}

int main(int argc, char **argv)
{
    static const char *const configs[] = {
        "c{\"architectures\":[\"LlamaForCausalLM\"],\"model_type\":\"llama\",\"vocab_size\":32,"
        "\"hidden_size\":16,"
        "\"intermediate_size\":24,\"num_hidden_layers\":1,\"num_attention_heads\":4,\"num_key_"
        "value_heads\":2,"
        "\"max_position_embeddings\":32,\"rms_norm_eps\":1e-5,\"rope_theta\":500.0,\"rope_"
        "scaling\":{\"rope_type\":\"llama3\","
        "\"factor\":8.0,\"low_freq_factor\":1.0,\"high_freq_factor\":4.0,\"original_max_position_"
        "embeddings\":16},"
        "\"hidden_act\":\"silu\",\"tie_word_embeddings\":false,\"eos_token_id\":[1,2],\"torch_"
        "dtype\":\"bfloat16\"}",
        "c{\"architectures\":[\"BertForSequenceClassification\"],\"model_type\":\"bert\",\"vocab_"
        "size\":32,\"hidden_size\":16,"
        "\"num_hidden_layers\":1,\"num_attention_heads\":4,\"intermediate_size\":24,\"max_position_"
        "embeddings\":16,"
        "\"type_vocab_size\":2,\"hidden_act\":\"gelu\",\"id2label\":{\"0\":\"a\",\"1\":\"b\"}}",
        "c{\"architecture\":\"resnet18\",\"num_classes\":10,\"width\":4,\"pretrained_cfg\":{"
        "\"input_size\":[3,32,32],"
        "\"interpolation\":\"bilinear\",\"crop_pct\":1.0,\"mean\":[0.485,0.456,0.406],\"std\":[0."
        "229,0.224,0.225]}}"};
    static uint8_t bytes[2 * MOST];
    uint64_t seed = 1, runs = 0, tried = 0;
    time_t end = 0;
    for (int i = 0; i < 3; i++)
        add(configs[i], strlen(configs[i]));
    for (int i = 1; i < argc; i++)
        if (!strcmp(argv[i], "--seed") && i + 1 < argc)
            seed = strtoull(argv[++i], NULL, 10);
        else if (!strcmp(argv[i], "--runs") && i + 1 < argc)
            runs = strtoull(argv[++i], NULL, 10);
        else if (!strcmp(argv[i], "--seconds") && i + 1 < argc)
            end = time(NULL) + atoi(argv[++i]);
        else if (!strcmp(argv[i], "--catch") && i + 1 < argc)
            i++; /* what fails aborts */
        else
            add_folder(argv[i]);
    for (int i = 0; i < n_inputs; i++)
        LLVMFuzzerTestOneInput(list[i].bytes, list[i].n);
    for (uint64_t state = seed; tried < runs || time(NULL) < end; tried++) {
        const input *from = &list[next(&state) % (uint64_t)n_inputs];
        size_t size = from->n;
        memcpy(bytes, from->bytes, size);
        for (uint64_t k = next(&state) % 4 + 1; k > 0 && size; k--)
            size = change(bytes, size, &state);
        uint8_t *exact = malloc(size + 1); /* so that sanitizers see its end */
        LLVMFuzzerTestOneInput(memcpy(exact, bytes, size), size);
        free(exact);
    }
    printf("%" PRIu64 " files from %d, programs of seed %" PRIu64 "\n", tried, n_inputs, seed);
    for (int i = 0; i < n_inputs; i++)
        free(list[i].bytes);
    return 0;
}
#endif
