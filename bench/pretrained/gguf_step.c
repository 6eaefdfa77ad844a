/* gguf_step.c -- the memory of a LoRA step over a GGUF in Q4_K, as blocks or as float32.
 *
 *   gguf_step make FILE              a Llama of 120 million weights: 12 layers of 768, 2,304 inside, 36,864 tokens, tied; random blocks
 *   gguf_step blocks|f32 FILE N      three steps of AdamW with a row of N tokens, adapters of rank 8 on q_proj and v_proj
 *
 * Prints what the allocator has in use and had at most while the model was made and in the steps, and VmHWM. */
#include "../clock.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tern/models.h>
#include <tern/tern.h>

enum { LAYERS = 12, WIDTH = 768, INSIDE = 2304, TOKENS = 36864, ELEMENTS = 256, BYTES = 144 };

/* ---- the file -------------------------------------------------------------------------------- */

static void put(FILE *file, uint64_t x, int bytes)
{
    for (int i = 0; i < bytes; i++)
        putc((int)(x >> 8 * i & 0xff), file);
}

static void put_text(FILE *file, const char *text)
{
    put(file, strlen(text), 8);
    fputs(text, file);
}

static void put_key(FILE *file, const char *key, int kind, uint64_t x)
{
    put_text(file, key);
    put(file, (uint64_t)kind, 4);
    put(file, x, 4);
}

static const struct {
    const char *name;
    int columns, rows; /* 0: a vector of ones */
} tensors[] = {
    {"token_embd", WIDTH, TOKENS}, {"output_norm", WIDTH, 0},  {"attn_norm", WIDTH, 0},
    {"attn_q", WIDTH, WIDTH},      {"attn_k", WIDTH, WIDTH},   {"attn_v", WIDTH, WIDTH},
    {"attn_output", WIDTH, WIDTH}, {"ffn_norm", WIDTH, 0},     {"ffn_gate", WIDTH, INSIDE},
    {"ffn_up", WIDTH, INSIDE},     {"ffn_down", INSIDE, WIDTH}};
enum { OUTSIDE = 2, ALL = sizeof tensors / sizeof *tensors, INSIDE_EACH = ALL - OUTSIDE };

static uint64_t bytes_of(int k)
{
    const uint64_t rows = (uint64_t)tensors[k].rows, columns = (uint64_t)tensors[k].columns;
    return rows ? rows * columns / ELEMENTS * BYTES : 4 * columns;
}

static void put_record(FILE *file, int k, int layer, uint64_t *at)
{
    char name[64], block[32] = "";
    if (k >= OUTSIDE)
        snprintf(block, sizeof block, "blk.%d.", layer);
    snprintf(name, sizeof name, "%s%s.weight", block, tensors[k].name);
    put_text(file, name);
    put(file, tensors[k].rows ? 2 : 1, 4);
    put(file, (uint64_t)tensors[k].columns, 8);
    if (tensors[k].rows)
        put(file, (uint64_t)tensors[k].rows, 8);
    put(file, tensors[k].rows ? 12 : 0, 4); /* Q4_K, F32 */
    put(file, *at, 8);
    *at += bytes_of(k); /* of which all are multiples of 32 */
}

static void put_data(FILE *file, int k)
{
    for (uint64_t i = 0; i < bytes_of(k); i += tensors[k].rows ? BYTES : 4) {
        unsigned char block[BYTES] = {0, 0x0c, 0, 0x0c}; /* two scales of 2.4e-4 */
        for (int b = 4; b < BYTES && tensors[k].rows; b++)
            block[b] = (unsigned char)(rand() >> 7);
        if (tensors[k].rows)
            fwrite(block, 1, BYTES, file);
        else
            put(file, 0x3f800000, 4);
    }
}

static int make(const char *path)
{
    FILE *file = fopen(path, "wb");
    uint64_t at = 0;
    if (!file)
        return perror(path), 1;
    fputs("GGUF", file);
    put(file, 3, 4);
    put(file, OUTSIDE + LAYERS * INSIDE_EACH, 8);
    put(file, 9, 8);
    put_text(file, "general.architecture");
    put(file, 8, 4);
    put_text(file, "llama");
    put_key(file, "llama.block_count", 4, LAYERS);
    put_key(file, "llama.embedding_length", 4, WIDTH);
    put_key(file, "llama.feed_forward_length", 4, INSIDE);
    put_key(file, "llama.context_length", 4, 2048);
    put_key(file, "llama.attention.head_count", 4, WIDTH / 64);
    put_key(file, "llama.attention.layer_norm_rms_epsilon", 6, 0x3727c5ac); /* 1e-5 */
    put_key(file, "llama.vocab_size", 4, TOKENS);
    put_text(file, "tokenizer.ggml.model"); /* llama.cpp wants to hear of it */
    put(file, 8, 4);
    put_text(file, "none");
    for (int k = 0; k < OUTSIDE; k++)
        put_record(file, k, 0, &at);
    for (int i = 0; i < LAYERS * INSIDE_EACH; i++)
        put_record(file, OUTSIDE + i % INSIDE_EACH, i / INSIDE_EACH, &at);
    while (ftell(file) % 32)
        putc(0, file);
    for (int k = 0; k < OUTSIDE; k++)
        put_data(file, k);
    for (int i = 0; i < LAYERS * INSIDE_EACH; i++)
        put_data(file, OUTSIDE + i % INSIDE_EACH);
    return fclose(file) ? perror(path), 1 : 0;
}

/* ---- the step -------------------------------------------------------------------------------- */

static void print_memory(const char *what)
{
    tern_memory_stats stats;
    tern_memory_get_stats("cpu", &stats);
    printf("%-14s %4.0f MB in use, %4.0f MB at most; VmHWM %4.0f MB\n", what,
           (double)stats.allocated * 1e-6, (double)stats.allocated_peak * 1e-6,
           clock_own_peak_memory() * 1.048576);
}

static int step(const char *path, tern_dtype dtype, int64_t n)
{
    tern_manual_seed(0);
    tern_module *m = tern_models_from_pretrained(
        path, &(tern_pretrained_options){.device = "cpu", .dtype = dtype});
    print_memory("the model");
    tern_reset_peak_memory_stats("cpu");
    tern_optimizer *optimizer =
        m && tern_lora_add(m, NULL) ? tern_optim_adamw(m, 1e-3, NULL) : NULL;
    for (int i = 0; i < 3 && optimizer; i++)
        TERN_SCOPE {
            tern_tensor *ids = tern_randint(0, TOKENS, TERN_SHAPE(1, n), TERN_I64, "cpu");
            tern_optim_zero_grad(optimizer);
            tern_backward(
                tern_models_loss(m, &(tern_model_inputs){.input_ids = ids, .labels = ids}));
            tern_optim_step(optimizer);
        }
    print_memory("three steps");
    tern_optim_free(optimizer);
    tern_nn_free(m);
    return tern_last_status() == TERN_OK ? 0 : (puts(tern_last_error()), 1);
}

int main(int argc, char **argv)
{
    if (argc == 3 && strcmp(argv[1], "make") == 0)
        return make(argv[2]);
    if (argc == 4 && strcmp(argv[1], "blocks") == 0)
        return step(argv[2], TERN_DTYPE_DEFAULT, atol(argv[3]));
    if (argc == 4 && strcmp(argv[1], "f32") == 0)
        return step(argv[2], TERN_F32, atol(argv[3]));
    fprintf(stderr, "gguf_step make FILE | gguf_step blocks|f32 FILE N\n");
    return 2;
}
