/* test_models_bin.c -- pretrained models and adapters whose weights are files of torch.save: pytorch_model.bin, its shards and
 * their index, adapter_model.bin. The files are written here, of the reference models' tensors. */
#include "models.h"
#include "archive.h"
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* ---- torch.save of tensors of float32 ---------------------------------------------------------- */

typedef struct writer {
    archive pickle; /* its bytes alone */
    archive data;   /* likewise */
} writer;

static void put_number(archive *a, uint64_t value)
{
    unsigned char bytes[5] = "J";
    archive_number(bytes + 1, value, 4);
    archive_put(a, bytes, sizeof bytes);
}

static void put_text(archive *a, const char *text)
{
    unsigned char bytes[5] = "X";
    archive_number(bytes + 1, strlen(text), 4);
    archive_put(a, bytes, sizeof bytes);
    archive_put(a, text, strlen(text));
}

#define PUT(A, TEXT) archive_put(A, TEXT, sizeof(TEXT) - 1)

/* name: _rebuild_tensor_v2(a part of the one storage), and its elements. */
static void put_tensor(writer *w, const char *name, tern_tensor *x, uint64_t elements)
{
    archive *p = &w->pickle;
    put_text(p, name);
    PUT(p, "ctorch._utils\n_rebuild_tensor_v2\n((");
    put_text(p, "storage");
    PUT(p, "ctorch\nFloatStorage\n");
    put_text(p, "0");
    put_text(p, "cpu");
    put_number(p, elements);
    PUT(p, "tQ");
    put_number(p, w->data.size / sizeof(float));
    PUT(p, "(");
    for (int d = 0; d < tern_dim(x); d++)
        put_number(p, (uint64_t)tern_size(x, d));
    PUT(p, "t(");
    uint64_t stride = (uint64_t)tern_numel(x);
    for (int d = 0; d < tern_dim(x); d++)
        put_number(p, stride /= (uint64_t)tern_size(x, d));
    PUT(p, "t\x89"
           "ccollections\nOrderedDict\n)RtR");
    archive_put(&w->data, tern_data(x), (size_t)tern_numel(x) * sizeof(float));
}

/* Tensors first, first + by, ... of dict, as torch.save writes them. */
static void save_bin(const tern_state_dict *dict, int first, int by, const char *path)
{
    writer w = {0};
    archive a = {0};
    uint64_t elements = 0;
    for (int i = first; i < tern_state_dict_count(dict); i += by)
        elements += (uint64_t)tern_numel(tern_state_dict_at(dict, i));
    PUT(&w.pickle, "\x80\2}(");
    for (int i = first; i < tern_state_dict_count(dict); i += by)
        TERN_SCOPE
            put_tensor(&w, tern_state_dict_key_at(dict, i),
                       tern_contiguous(tern_to_dtype(tern_state_dict_at(dict, i), TERN_F32)),
                       elements);
    PUT(&w.pickle, "u.");
    archive_add(&a, (archive_member){.name = "pytorch_model/data.pkl",
                                     .data = w.pickle.bytes,
                                     .size = w.pickle.size});
    archive_add(&a, (archive_member){
                        .name = "pytorch_model/data/0", .data = w.data.bytes, .size = w.data.size});
    archive_end(&a, 0);
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(a.bytes, 1, a.size, file), a.size);
    fclose(file);
    free(w.pickle.bytes), free(w.data.bytes), free(a.bytes);
}

/* ---- comparisons ------------------------------------------------------------------------------- */

static void assert_same_state(tern_module *m, tern_module *n)
{
    tern_state_dict *a = tern_nn_state_dict(m), *b = tern_nn_state_dict(n);
    assert_int_equal(tern_state_dict_count(a), tern_state_dict_count(b));
    for (int i = 0; i < tern_state_dict_count(a); i++)
        assert_near(tern_state_dict_at(b, i), tern_state_dict_at(a, i), 0, 0);
    tern_state_dict_free(a), tern_state_dict_free(b);
}

static char *folder_of(const char *name)
{
    char *folder = models_folder(NULL), *text = models_text(models_path(name, "config.json"));
    models_write(folder, "config.json", text);
    free(text);
    return folder;
}

/* ---- models ------------------------------------------------------------------------------------ */

static void a_model_in_bin_is_the_same_model(void **state)
{
    static const char *const names[] = {"llama", "gpt2", "bert"};
    (void)state;
    for (int i = 0; i < 3; i++)
        TERN_SCOPE {
            char *folder = folder_of(names[i]), path[1024];
            tern_module *m = models_load(models_path(names[i], NULL), "cpu");
            tern_state_dict *dict = models_read(models_path(names[i], NULL), "cpu");
            snprintf(path, sizeof path, "%s/pytorch_model.bin", folder);
            save_bin(dict, 0, 1, path);
            tern_module *n = tern_models_from_pretrained(
                folder, &(tern_pretrained_options){.dtype = TERN_F32, .device = "cpu"});
            if (n || !test_no_library()) {
                if (!n)
                    fail_msg("%s", tern_last_error());
                assert_same_state(m, n);
            }
            tern_nn_free(n), tern_nn_free(m);
            tern_state_dict_free(dict);
            models_remove(folder);
        }
}

static void shards_in_bin_are_one_model(void **state)
{
    (void)state;
    TERN_SCOPE {
        enum { SHARDS = 3 };
        char *folder = folder_of("llama"), path[1024];
        static char index[1 << 15];
        tern_module *m = models_load(models_path("llama", NULL), "cpu");
        tern_state_dict *dict = models_read(models_path("llama", NULL), "cpu");
        size_t used = (size_t)snprintf(index, sizeof index, "{\"weight_map\":{");
        for (int k = 0; k < SHARDS; k++) {
            snprintf(path, sizeof path, "%s/pytorch_model-%05d-of-%05d.bin", folder, k + 1, SHARDS);
            save_bin(dict, k, SHARDS, path);
        }
        for (int i = 0; i < tern_state_dict_count(dict); i++)
            used += (size_t)snprintf(index + used, sizeof index - used,
                                     "%s\"%s\":\"pytorch_model-%05d-of-%05d.bin\"", i ? "," : "",
                                     tern_state_dict_key_at(dict, i), i % SHARDS + 1, SHARDS);
        snprintf(index + used, sizeof index - used, "}}");
        models_write(folder, "pytorch_model.bin.index.json", index);
        tern_module *n = tern_models_from_pretrained(
            folder, &(tern_pretrained_options){.dtype = TERN_F32, .device = "cpu"});
        if (n || !test_no_library()) {
            if (!n)
                fail_msg("%s", tern_last_error());
            assert_same_state(m, n);
        }
        tern_nn_free(n), tern_nn_free(m);
        tern_state_dict_free(dict);
        models_remove(folder);
    }
}

static void an_adapter_in_bin_is_the_same_adapter(void **state)
{
    (void)state;
    TERN_SCOPE {
        char *folder = models_folder(NULL), path[1024];
        char *text = models_text(models_path("llama", "lora/adapter_config.json"));
        tern_module *m = models_load(models_path("llama", NULL), "cpu"),
                    *n = models_load(models_path("llama", NULL), "cpu");
        tern_state_dict *dict =
            models_read(models_path("llama", "lora/adapter_model.safetensors"), "cpu");
        models_write(folder, "adapter_config.json", text);
        assert_null(tern_lora_load(n, folder, false));
        assert_error(TERN_ERR_IO, "neither adapter_model.safetensors nor adapter_model.bin");
        snprintf(path, sizeof path, "%s/adapter_model.bin", folder);
        save_bin(dict, 0, 1, path);
        assert_non_null(tern_lora_load(m, models_path("llama", "lora"), false));
        if (tern_lora_load(n, folder, false))
            assert_same_state(m, n);
        else if (!test_no_library())
            fail_msg("%s", tern_last_error());
        tern_nn_free(n), tern_nn_free(m);
        tern_state_dict_free(dict);
        free(text);
        models_remove(folder);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_model_in_bin_is_the_same_model),
        TEST(shards_in_bin_are_one_model),
        TEST(an_adapter_in_bin_is_the_same_adapter),
    };
    return models_main(tests, sizeof tests / sizeof *tests);
}
