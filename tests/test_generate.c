/* test_generate.c -- what language models write, beside transformers' generate: greedy, padded, sampled, by beams,
 * with caches of all kinds. */
#include "models.h"
#include <stdio.h>
#include <stdlib.h>
#include <tern/graph.h>

static const char *const names[] = {"llama", "qwen3", "gpt2"};
enum { NAMES = sizeof names / sizeof *names };

static void assert_ids(tern_tensor *a, tern_tensor *b)
{
    if (!a)
        print_error("%s\n", tern_last_error());
    assert_non_null(a);
    assert_same(a, b);
}

/* ---- greedy ---------------------------------------------------------------------------------- */

static void greedy_texts_are_transformers(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    for (int i = 0; i < NAMES; i++)
        TERN_SCOPE {
            tern_module *m = models_load(models_path(names[i], NULL), device);
            tern_state_dict *r = models_reference(names[i], "reference.safetensors", device);
            tern_tensor *prompt = models_get(r, "generate.prompt");
            tern_generate_options o = {.no_eos = true};
            assert_ids(tern_models_generate(m, prompt, &o), models_get(r, "generated"));
            o.no_cache = true;
            assert_ids(tern_models_generate(m, prompt, &o), models_get(r, "generated"));
            o = (tern_generate_options){.no_eos = true,
                                        .attention_mask = models_get(r, "padded.attention_mask")};
            assert_ids(tern_models_generate(m, models_get(r, "padded.input_ids"), &o),
                       models_get(r, "padded.generated"));
            o.no_cache = true;
            assert_ids(tern_models_generate(m, models_get(r, "padded.input_ids"), &o),
                       models_get(r, "padded.generated"));
            assert_ids(tern_models_generate(tern_nn_train(m, true), prompt,
                                            &(tern_generate_options){.no_eos = true}),
                       models_get(r, "generated"));
            assert_true(tern_nn_is_training(m));
            tern_state_dict_free(r);
            tern_nn_free(m);
        }
}

/* Of features, behind an encoder that runs once. */
static void transcripts_are_transformers(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    TERN_SCOPE {
        tern_module *m = models_load(models_path("whisper", NULL), device);
        tern_state_dict *r = models_reference("whisper", "reference.safetensors", device);
        tern_tensor *x = tern_narrow(models_get(r, "input.input_features"), 0, 0, 1);
        tern_generate_options o = {.no_eos = true};
        assert_ids(tern_models_generate(m, x, &o), models_get(r, "generated"));
        o.no_cache = true;
        assert_ids(tern_models_generate(m, x, &o), models_get(r, "generated"));
        o = (tern_generate_options){.no_eos = true, .num_beams = 2, .max_new_tokens = 8};
        tern_tensor *beams = tern_models_generate(m, x, &o);
        o.no_cache = true;
        assert_ids(tern_models_generate(m, x, &o), beams);
        tern_state_dict_free(r);
        tern_nn_free(m);
    }
}

/* Llama's weights as Mistral's, whose queries see 6 keys. */
static tern_module *windowed(const char *device)
{
    char *folder = models_folder("llama"), *text = models_text(models_path("llama", "config.json"));
    char *changed = calloc(1, strlen(text) + 64);
    const char *class = strstr(text, "\"LlamaForCausalLM\""), *type = strstr(text, "\"llama\"");
    const char *bias = strstr(text, "\"attention_bias\""), *tie = strstr(text, "\"tie_word");
    snprintf(changed, strlen(text) + 64,
             "%.*s\"MistralForCausalLM\"%.*s\"mistral\"%.*s\"sliding_window\": 6, %s",
             (int)(class - text), text, (int)(type - class - 18), class + 18,
             (int)(bias - type - 7), type + 7, tie);
    models_write(folder, "config.json", changed);
    tern_module *m = models_load(folder, device);
    free(changed);
    free(text);
    models_remove(folder);
    return m;
}

/* What transformers wrote with that window. */
static const int64_t by_window[] = {
#include "golden/windowed.def"
};

static void sliding_caches_give_what_whole_passes_give(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    TERN_SCOPE {
        tern_module *m = windowed(device);
        tern_state_dict *r = models_reference("llama", "reference.safetensors", device);
        tern_tensor *prompt = models_get(r, "padded.input_ids");
        tern_generate_options o = {.no_eos = true,
                                   .attention_mask = models_get(r, "padded.attention_mask")};
        tern_tensor *ids = tern_models_generate(m, prompt, &o);
        assert_ids(ids, tern_from_data(by_window, TERN_SHAPE(2, 32), TERN_I64, device));
        o.no_cache = true;
        assert_ids(tern_models_generate(m, prompt, &o), ids);
        tern_state_dict_free(r);
        tern_nn_free(m);
    }
}

/* ---- caches by hand -------------------------------------------------------------------------- */

/* The prompt in two parts, then token by token: logits of the last place of each call. */
static void logits_with_a_cache(tern_module *m, tern_kv_cache *cache, tern_tensor *ids,
                                tern_tensor *expected)
{
    static const int64_t ends[] = {5, 9, 10, 11, 12, 20};
    for (int64_t i = 0, from = 0; i < 6; from = ends[i++]) {
        tern_model_inputs in = {.input_ids = tern_narrow(ids, 1, from, ends[i] - from),
                                .cache = cache};
        tern_model_outputs out;
        assert_ok(tern_models_call(m, &in, &out));
        assert_int_equal(tern_kv_cache_length(cache), ends[i]);
        assert_near(out.logits, tern_narrow(expected, 1, from, ends[i] - from), 1e-5, 1e-6);
    }
}

static void caches_go_on_where_they_were(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    for (int i = 0; i <= NAMES; i++)
        TERN_SCOPE {
            TERN_NO_GRAD_HERE;
            tern_module *m =
                i < NAMES ? models_load(models_path(names[i], NULL), device) : windowed(device);
            tern_tensor *ids = tern_to_dtype(
                test_uniform(device, TERN_F32, TERN_SHAPE(2, 20), 3, 300, 4), TERN_I64);
            tern_model_inputs in = {.input_ids = ids};
            tern_model_outputs out;
            assert_ok(tern_models_call(m, &in, &out));
            tern_kv_cache *caches[] = {tern_models_cache(m, 0), tern_models_cache(m, 40),
                                       tern_models_static_cache(m, 24)};
            for (int k = 0; k < 3; k++) {
                logits_with_a_cache(m, caches[k], ids, out.logits);
                if (k == 2) {
                    in.cache = caches[k];
                    assert_int_not_equal(tern_models_call(m, &in, &out), TERN_OK);
                    assert_error(TERN_ERR_STATE, "24 places has 20, and 20 come");
                }
                tern_kv_cache_free(caches[k]);
            }
            tern_nn_free(m);
        }
}

/* A step of greedy decoding: the token of ids (1, 1) becomes the next one. */
static tern_status decode(tern_module *m, tern_kv_cache *cache, tern_tensor *token)
{
    tern_model_inputs in = {.input_ids = token, .cache = cache};
    tern_model_outputs out;
    TERN_SCOPE_HERE;
    if (tern_models_call(m, &in, &out) != TERN_OK)
        return tern_last_status();
    tern_tensor *next = tern_argmax_dim(out.logits, 2, false);
    return next && tern_copy_(token, next) ? TERN_OK : tern_last_status();
}

static void recorded_steps_write_the_same(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    for (int i = 0; i <= NAMES; i++)
        TERN_SCOPE {
            TERN_NO_GRAD_HERE;
            tern_module *m =
                i < NAMES ? models_load(models_path(names[i], NULL), device) : windowed(device);
            tern_state_dict *r =
                models_reference(names[i % NAMES], "reference.safetensors", device);
            tern_tensor *prompt = models_get(r, "generate.prompt");
            tern_tensor *expected = tern_models_generate(
                m, prompt, &(tern_generate_options){.no_eos = true, .max_new_tokens = 12});
            tern_kv_cache *cache = tern_models_static_cache(m, 32);
            tern_model_inputs in = {.input_ids = prompt, .cache = cache, .logits_to_keep = 1};
            tern_model_outputs out;
            assert_ok(tern_models_call(m, &in, &out));
            tern_tensor *token = tern_clone(tern_argmax_dim(out.logits, 2, false));
            assert_ok(decode(m, cache, token));
            tern_graph *graph = tern_graph_new(device);
            TERN_CAPTURE (graph)
                assert_ok(decode(m, cache, token));
            int64_t at = tern_size(prompt, 1) + 1;
            for (int step = 0; step < 10; step++) {
                tern_tensor *wanted = tern_narrow(expected, 1, at + step, 1);
                assert_true(tern_item_int(token) == tern_item_int(wanted));
                assert_ok(tern_graph_replay(graph));
            }
            tern_graph_free(graph);
            tern_kv_cache_free(cache);
            tern_state_dict_free(r);
            tern_nn_free(m);
        }
}

/* ---- samples --------------------------------------------------------------------------------- */

static void logits_are_processed_as_by_transformers(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    for (int i = 0; i < NAMES; i++)
        TERN_SCOPE {
            tern_state_dict *r = models_reference(names[i], "reference.safetensors", device);
            tern_tensor *ids = tern_narrow(models_get(r, "input.input_ids"), 0, 0, 1);
            tern_tensor *x = models_get(r, "sample.logits");
            tern_generate_options o = {.repetition_penalty = 1.3};
            assert_near(tern_models_process_logits(ids, x, &o), models_get(r, "sample.penalised"),
                        1e-6, 0);
            o = (tern_generate_options){.repetition_penalty = 1.3,
                                        .do_sample = true,
                                        .temperature = 0.8,
                                        .top_k = 12,
                                        .top_p = 0.9};
            tern_tensor *p = tern_softmax(tern_models_process_logits(ids, x, &o), 1);
            tern_tensor *wanted = models_get(r, "sample.probs");
            assert_near(p, wanted, 0, 1e-5);
            assert_same(tern_eq(p, 0), tern_eq(wanted, 0));
            o = (tern_generate_options){.do_sample = true, .top_k = -1, .min_p = 0.1};
            p = tern_softmax(tern_models_process_logits(ids, x, &o), 1);
            tern_tensor *all = tern_softmax(x, 1);
            tern_tensor *low = tern_lt(all, tern_mul(tern_max(all), 0.1));
            assert_same(tern_eq(p, 0), low);
            tern_state_dict_free(r);
        }
}

static void samples_are_of_what_is_likely(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    TERN_SCOPE {
        tern_module *m = models_load(models_path("llama", NULL), device);
        tern_state_dict *r = models_reference("llama", "reference.safetensors", device);
        tern_tensor *prompt = models_get(r, "generate.prompt");
        tern_generate_options o = {.no_eos = true, .do_sample = true, .top_k = 1};
        assert_ids(tern_models_generate(m, prompt, &o), models_get(r, "generated"));
        o.top_k = 0;
        tern_manual_seed(3);
        tern_tensor *a = tern_models_generate(m, prompt, &o);
        tern_tensor *b = tern_models_generate(m, prompt, &o);
        tern_manual_seed(3);
        assert_ids(tern_models_generate(m, prompt, &o), a);
        assert_false(tern_equal(a, b));
        tern_state_dict_free(r);
        tern_nn_free(m);
    }
}

/* ---- ends ------------------------------------------------------------------------------------ */

typedef struct told {
    int calls, most;
    int64_t last;
} told;

static bool on_token(tern_tensor *ids, void *user)
{
    told *t = user;
    t->last = tern_item_int(tern_select(ids, 0, 0));
    return ++t->calls < t->most;
}

static void texts_end_where_they_are_told_to(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    TERN_SCOPE {
        tern_module *m = models_load(models_path("gpt2", NULL), device);
        tern_state_dict *r = models_reference("gpt2", "reference.safetensors", device);
        tern_tensor *prompt = models_get(r, "padded.input_ids");
        tern_tensor *expected = models_get(r, "padded.generated");
        tern_generate_options o = {.attention_mask = models_get(r, "padded.attention_mask"),
                                   .pad_token_id = TERN_SOME(2)};
        int64_t t = tern_size(prompt, 1), *ids = calloc(64, sizeof *ids);
        assert_ok(tern_copy_to_host(expected, ids, 64 * sizeof *ids));
        int64_t end = ids[t + 3]; /* of the first row */
        o.eos_token_id = TERN_SOME(end);
        tern_tensor *y = tern_models_generate(m, prompt, &o);
        int64_t n = tern_size(y, 1), *got = calloc(64, sizeof *got);
        assert_ok(tern_copy_to_host(y, got, (size_t)(2 * n) * sizeof *got));
        for (int row = 0; row < 2; row++) {
            bool done = false;
            for (int64_t i = t; i < n; i++) {
                assert_int_equal(got[row * n + i], done ? 2 : ids[row * 32 + i]);
                done = done || got[row * n + i] == end;
            }
        }
        /* As a stop sequence of two. */
        tern_tensor *stop = tern_from_data(ids + t + 4, TERN_SHAPE(2), TERN_I64, "cpu");
        int64_t first = t + 1;
        while (ids[first - 1] != ids[t + 4] || ids[first] != ids[t + 5])
            first++;
        o = (tern_generate_options){.no_eos = true, .stop_sequences = &stop, .n_stop = 1};
        y = tern_models_generate(m, tern_narrow(prompt, 0, 0, 1), &o);
        assert_ids(y, tern_narrow(tern_narrow(expected, 0, 0, 1), 1, 0, first + 1));
        told heard = {.most = 3};
        o = (tern_generate_options){.no_eos = true, .on_token = on_token, .user = &heard};
        y = tern_models_generate(m, tern_narrow(prompt, 0, 0, 1), &o);
        assert_shape(y, 1, t + 3);
        assert_int_equal(heard.calls, 3);
        assert_int_equal(heard.last, ids[t + 2]);
        free(got);
        free(ids);
        tern_state_dict_free(r);
        tern_nn_free(m);
    }
}

/* ---- beams ----------------------------------------------------------------------------------- */

/* What transformers wrote of padded.input_ids, 12 tokens; 2 is pad. */
static const struct {
    const char *name;
    tern_generate_options o;
    int64_t ids[24];
} beams[] = {
#include "golden/beams.def"
};

static void beams_are_transformers(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    for (size_t i = 0; i < sizeof beams / sizeof *beams; i++)
        TERN_SCOPE {
            tern_module *m = models_load(models_path(beams[i].name, NULL), device);
            tern_state_dict *r = models_reference(beams[i].name, "reference.safetensors", device);
            tern_generate_options o = beams[i].o;
            o.attention_mask = models_get(r, "padded.attention_mask");
            o.max_new_tokens = 12;
            o.pad_token_id = TERN_SOME(2);
            o.no_eos = !o.eos_token_id.set;
            tern_tensor *y = tern_models_generate(m, models_get(r, "padded.input_ids"), &o);
            assert_non_null(y);
            int64_t n = tern_size(y, 1) - 12, got[24] = {0};
            assert_true(n > 0 && n <= 12);
            assert_ok(
                tern_copy_to_host(tern_narrow(y, 1, 12, n), got, (size_t)(2 * n) * sizeof *got));
            for (int64_t k = 0; k < 24; k++)
                if (k % 12 < n ? got[k / 12 * n + k % 12] != beams[i].ids[k] : beams[i].ids[k] != 2)
                    fail_msg("%s, case %zu: token %lld of row %lld is %lld, not %lld",
                             beams[i].name, i, (long long)(k % 12), (long long)(k / 12),
                             (long long)(k % 12 < n ? got[k / 12 * n + k % 12] : -1),
                             (long long)beams[i].ids[k]);
            tern_state_dict_free(r);
            tern_nn_free(m);
        }
}

static void mistakes_are_told(void **state)
{
    (void)state;
    TERN_SCOPE {
        tern_module *m = models_load(models_path("llama", NULL), "cpu");
        tern_module *bert = models_load(models_path("bert", NULL), "cpu");
        tern_tensor *ids = tern_ones(TERN_SHAPE(1, 3), TERN_I64, "cpu");
        assert_null(tern_models_generate(bert, ids, NULL));
        assert_error(TERN_ERR_ARGUMENT, "writes no text");
        assert_null(tern_models_generate(m, ids, &(tern_generate_options){.temperature = -1}));
        assert_error(TERN_ERR_ARGUMENT, "temperature -1 and repetition_penalty 1 must be above 0");
        assert_null(tern_models_generate(m, tern_select(ids, 0, 0), NULL));
        assert_error(TERN_ERR_SHAPE, "(N, T)");
        tern_kv_cache *cache = tern_models_cache(m, 0);
        tern_model_outputs out;
        tern_model_inputs in = {.input_ids = ids, .cache = cache};
        assert_int_not_equal(tern_models_call(m, &in, &out), TERN_OK);
        assert_error(TERN_ERR_STATE, "no gradients");
        tern_kv_cache_free(cache);
        tern_nn_free(bert);
        tern_nn_free(m);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(greedy_texts_are_transformers),
        TEST(transcripts_are_transformers),
        TEST(sliding_caches_give_what_whole_passes_give),
        TEST(caches_go_on_where_they_were),
        TEST(recorded_steps_write_the_same),
        TEST(logits_are_processed_as_by_transformers),
        TEST(samples_are_of_what_is_likely),
        TEST(texts_end_where_they_are_told_to),
        TEST(beams_are_transformers),
        TEST(mistakes_are_told),
    };
    return models_main(tests, sizeof tests / sizeof *tests);
}
