/* test_initialize.c -- models of a config.json alone: their random weights are those of transformers' _init_weights. */
#include "support.h"
#include "folder.h"
#include <math.h>
#include <string.h>
#include <tern/models/pretrained.h>

#define LLAMA                                                                                      \
    "{\"architectures\": [\"LlamaForCausalLM\"], \"model_type\": \"llama\", \"vocab_size\": 200, " \
    "\"hidden_size\": 48, \"intermediate_size\": 96, \"num_hidden_layers\": 2, "                   \
    "\"num_attention_heads\": 4, \"rms_norm_eps\": 1e-5, \"hidden_act\": \"silu\", "

/* Deviations of weights: of all, and of those whose path ends in `other`. */
static const struct {
    const char *config;
    double std, other_std;
    const char *other;
    int64_t padding; /* a row of zeros of the table of tokens, -1: none */
    const char *table;
} rows[] = {
    {LLAMA "\"tie_word_embeddings\": false, \"pad_token_id\": 7}", 0.02, 0, NULL, 7,
     "model.embed_tokens.weight"},
    {LLAMA "\"tie_word_embeddings\": true, \"initializer_range\": 0.3, \"pad_token_id\": 7}", 0.3,
     0, NULL, 7, "model.embed_tokens.weight"},
    {"{\"architectures\": [\"GPT2LMHeadModel\"], \"model_type\": \"gpt2\", \"vocab_size\": 200, "
     "\"n_embd\": 48, \"n_layer\": 8, \"n_head\": 4, \"n_positions\": 64, \"initializer_range\": "
     "0.04}",
     0.04, 0.01, ".c_proj.weight", -1, NULL},
    {"{\"architectures\": [\"BertModel\"], \"model_type\": \"bert\", \"vocab_size\": 200, "
     "\"hidden_size\": 48, \"intermediate_size\": 96, \"num_hidden_layers\": 2, "
     "\"num_attention_heads\": 4, \"max_position_embeddings\": 64, \"type_vocab_size\": 2, "
     "\"hidden_act\": \"gelu\", \"initializer_range\": 0.1, \"pad_token_id\": 0}",
     0.1, 0, NULL, 0, "embeddings.word_embeddings.weight"},
    {"{\"architectures\": [\"WhisperForConditionalGeneration\"], \"model_type\": \"whisper\", "
     "\"vocab_size\": 100, \"d_model\": 32, \"encoder_layers\": 1, \"encoder_attention_heads\": 4, "
     "\"encoder_ffn_dim\": 64, \"decoder_layers\": 1, \"decoder_attention_heads\": 4, "
     "\"decoder_ffn_dim\": 64, \"max_source_positions\": 40, \"max_target_positions\": 48, "
     "\"num_mel_bins\": 16, \"activation_function\": \"gelu\", \"init_std\": 0.05}",
     0.05, 1 / 1.4142135623730951, "encoder.embed_positions.weight", -1,
     NULL}, /* sines and cosines */
};

static bool ends_in(const char *path, const char *end)
{
    size_t n = strlen(path), length = end ? strlen(end) : n + 1;
    return n >= length && strcmp(path + n - length, end) == 0;
}

/* Matrices and tables have the deviation, of n numbers within 6 of its own; biases are 0. */
static tern_status look(const char *path, tern_tensor *x, void *user)
{
    const size_t i = *(const size_t *)user;
    const double n = (double)tern_numel(x);
    if (ends_in(path, ".bias"))
        assert_true(tern_item(tern_max(tern_abs(x))) == 0);
    if (tern_dim(x) < 2)
        return TERN_OK;
    double std = sqrt(tern_item(tern_mean(tern_mul(x, x))));
    double wanted = ends_in(path, rows[i].other) ? rows[i].other_std : rows[i].std;
    if (rows[i].table && strcmp(path, rows[i].table) == 0) {
        const double all = (double)tern_size(x, 0);
        wanted *= sqrt((all - 1) / all);
        assert_true(tern_item(tern_max(tern_abs(tern_select(x, 0, rows[i].padding)))) == 0);
        assert_true(tern_item(tern_max(tern_abs(tern_select(x, 0, rows[i].padding + 1)))) > 0);
    }
    if (fabs(std - wanted) > 6 * wanted / sqrt(2 * n))
        fail_msg("row %zu, %s: deviation %g, not %g", i, path, std, wanted);
    return TERN_OK;
}

static void weights_are_drawn_as_transformers_draws_them(void **state)
{
    (void)state;
    tern_manual_seed(5);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        TERN_SCOPE {
            write_file(in_folder("config.json"), rows[i].config, strlen(rows[i].config));
            tern_module *m = tern_models_from_config(folder, NULL);
            assert_non_null(m);
            TERN_NO_GRAD
                assert_ok(tern_nn_each_parameter(m, look, &i));
            tern_nn_free(m);
        }
}

/* What a model has not learned yet is as likely as all else. */
static void the_first_loss_is_that_of_chance(void **state)
{
    (void)state;
    write_file(in_folder("config.json"), rows[0].config, strlen(rows[0].config));
    TERN_SCOPE {
        tern_manual_seed(6);
        tern_module *m = tern_models_from_config(folder, NULL);
        tern_tensor *ids = tern_randint(0, 200, TERN_SHAPE(4, 32), TERN_I64, NULL);
        tern_model_outputs out;
        assert_ok(tern_models_call(m, &(tern_model_inputs){.input_ids = ids, .labels = ids}, &out));
        assert_true(fabs(tern_item(out.loss) - log(200)) < 0.1);
        tern_nn_free(m);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {TEST(weights_are_drawn_as_transformers_draws_them),
                                       TEST(the_first_loss_is_that_of_chance)};
    return folder_main(tests, sizeof tests / sizeof *tests);
}
