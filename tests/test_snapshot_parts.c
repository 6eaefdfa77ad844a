/* test_snapshot_parts.c -- snapshots that several ranks saved, as one process reads them: parts along any dims, and notes and files
 * that do not fit (tests/dist/parts.c saves them); whole snapshots given in place of a model; snapshots that lack a part of the
 * training. */
#include "support.h"
#include "folder.h"
#include "heard.h"

/* A model with a weight of (3, 4), 0 to 11, in two files that are cut as the rows say. */
typedef struct way {
    const char *note, *count;
    tern_shape part[2];
    int dim;           /* that the files are cut along */
    const char *error; /* NULL: it fits */
} way;

#define ROWS    {{2, {2, 4}}, {2, {1, 4}}}, 0
#define COLUMNS {{2, {3, 2}}, {2, {3, 2}}}, 1

static const way ways[] = {
    {"3x4 0/2@1", "2", ROWS, NULL},
    {"3x4 1/2@1", "2", COLUMNS, NULL},
    {"3x4 1/2@1 0/1@2", "2", COLUMNS, NULL},
    {"3x4 0/1@1 1/2@1", "2", COLUMNS, NULL},
    {"3x4 1/2@1", "2", ROWS, "does not have the part"},
    {"6x4 0/2@1", "2", ROWS, "does not have the part"},
    {"3x4 0/3@1", "2", ROWS, "does not have the part"},
    {"3x4 0/4@1", "2", {{2, {1, 4}}, {2, {1, 4}}}, 0, "don't have all parts"},
    {"3x4 0/2@2", "2", ROWS, "don't have all parts"},
    {"3x4 0/2@1", "3", ROWS, "00001-of-00003"},
    {"3x4 0/2@1", "0", ROWS, "0 shards"},
    {"3x4 0/2@1", "9999999", ROWS, "9999999 shards"},
    {"", "2", ROWS, "has parts \"\""},
    {"3x4", "2", ROWS, "has parts"},
    {"3x 0/2@1", "2", ROWS, "has parts"},
    {"x4 0/2@1", "2", ROWS, "has parts"},
    {"-3x4 0/2@1", "2", ROWS, "has parts"},
    {"3x4 2/2@1", "2", ROWS, "has parts"},
    {"3x4 -1/2@1", "2", ROWS, "has parts"},
    {"3x4 0/0@1", "2", ROWS, "has parts"},
    {"3x4 0/2@0", "2", ROWS, "has parts"},
    {"3x4 0/2@1 1", "2", ROWS, "has parts"},
    {"3x4 0/2@1 1/1@2 1/1@2", "2", ROWS, NULL},
    {"3x4 0/2@1 1/1@2 1/1@2 1/1@2", "2", ROWS, "has parts"},
    {"3x4 0/2@1 1;1@2", "2", ROWS, "has parts"},
    {"3x4 0/2@1 -1:1@2", "2", ROWS, "has parts"},
    {"1x1x1x1x1x1x1x1x1x1x1x1x1 0/2@1", "2", ROWS, "has parts"},
    {"99999999999999999999x99999999999999999999 0/2@1", "2", ROWS, "does not have the part"},
};

static void write_files(const way *w, tern_tensor *whole, tern_state_dict *index)
{
    int64_t at = 0;
    assert_ok(tern_state_dict_set_metadata(index, "shards.folder", "step-2.shards"));
    assert_ok(tern_state_dict_set_metadata(index, "shards.count", w->count));
    assert_ok(tern_state_dict_set_metadata(index, "shards.part.model.weight", w->note));
    assert_ok(tern_save(index, in_folder("step-2.safetensors"), NULL));
    for (int i = 0; i < 2; i++) {
        char name[64];
        const int64_t n = w->part[i].dims[w->dim];
        tern_state_dict *dict = tern_state_dict_new();
        snprintf(name, sizeof name, "step-2.shards/0000%d-of-00002.safetensors", i + 1);
        assert_ok(tern_state_dict_set(dict, "model.weight", tern_narrow(whole, w->dim, at, n)));
        assert_ok(tern_save(dict, in_folder(name), NULL));
        tern_state_dict_free(dict);
        at += n;
    }
}

static void parts_are_put_together_or_refused(void **state)
{
    (void)state;
    tern_module *m = tern_nn_linear(4, 3, &(tern_linear_options){.no_bias = true});
    tern_snapshot *s = tern_snapshot_new();
    assert_ok(tern_snapshot_add_module(s, "model", m));
    assert_ok(tern_snapshot_save(s, folder, &(tern_snapshot_options){.step = 1}));
    mkdir(in_folder("step-2.shards"), 0777);
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++)
        TERN_SCOPE {
            tern_tensor *weight = tern_nn_parameter(m, "weight");
            tern_tensor *whole =
                tern_reshape(tern_arange(0, 12, 1, TERN_F32, "cpu"), TERN_SHAPE(3, 4));
            tern_state_dict *index = tern_load(in_folder("step-1.safetensors"), NULL);
            assert_ok(tern_state_dict_remove(index, "model.weight"));
            write_files(&ways[i], whole, index);
            TERN_NO_GRAD
                tern_fill_(weight, TERN_SCALAR(-1));
            tern_snapshot_load(s, in_folder("step-2.safetensors"));
            if (ways[i].error && !strstr(tern_last_error(), ways[i].error))
                fail_msg("\"%s\": %s", ways[i].note, tern_last_error());
            if (ways[i].error)
                assert_error(TERN_ERR_IO, ways[i].error);
            assert_ok(tern_last_status());
            if (ways[i].error)
                whole = tern_full(TERN_SHAPE(3, 4), TERN_SCALAR(-1), TERN_F32, "cpu");
            assert_true(tern_equal(tern_detach(weight), whole));
            tern_state_dict_free(index);
        }
    tern_snapshot_free(s);
    tern_nn_free(m);
}

/* A whole snapshot, or a model within another one, in place of a model: the message says which prefix would do, and it does. */
static void the_prefix_that_would_do_is_named(void **state)
{
    (void)state;
    static const char *const prefixes[] = {"model.", "module.model.", "ema_model.", "0."};
    TERN_SCOPE {
        tern_module *m = tern_nn_sequential(tern_nn_linear(2, 3, NULL), tern_nn_linear(3, 2, NULL)),
                    *n = tern_nn_copy(m);
        for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes; i++) {
            tern_state_dict *dict = tern_nn_state_dict(m), *all = tern_state_dict_new();
            char name[100], says[100];
            assert_ok(tern_state_dict_set(all, "optimizer.0.weight",
                                          tern_zeros(TERN_SHAPE(3, 2), TERN_F32, "cpu")));
            for (int k = 0; k < tern_state_dict_count(dict); k++) {
                snprintf(name, sizeof name, "%s%s", prefixes[i], tern_state_dict_key_at(dict, k));
                assert_ok(tern_state_dict_set(all, name, tern_state_dict_at(dict, k)));
            }
            assert_ok(tern_save(all, in_folder("all.safetensors"), NULL));
            snprintf(says, sizeof says, "under the prefix \"%s\"", prefixes[i]);
            assert_int_equal(tern_nn_load(n, in_folder("all.safetensors"), NULL), TERN_ERR_STATE);
            assert_error(TERN_ERR_STATE, says);
            assert_int_equal(tern_nn_load_state_dict(n, all, NULL), TERN_ERR_STATE);
            assert_error(TERN_ERR_STATE, says);
            tern_load_state_dict_options o = {.prefix = "modle."};
            assert_int_equal(tern_nn_load(n, in_folder("all.safetensors"), &o), TERN_ERR_STATE);
            assert_error(TERN_ERR_STATE, "names begin with ");
            o.prefix = prefixes[i];
            assert_ok(tern_nn_load(n, in_folder("all.safetensors"), &o));
            assert_same(tern_nn_parameter(m, "1.weight"), tern_nn_parameter(n, "1.weight"));
            tern_state_dict_free(dict), tern_state_dict_free(all);
        }
        tern_snapshot *s = tern_snapshot_new();
        tern_optimizer *optimizer = tern_optim_adam(m, 0.1, NULL);
        tern_snapshot_add_module(s, "net", m);
        tern_snapshot_add_optimizer(s, "optimizer", optimizer);
        assert_ok(tern_snapshot_save(s, in_folder("runs"), &(tern_snapshot_options){.step = 3}));
        tern_snapshot_free(s);
        tern_optim_free(optimizer);
        assert_int_equal(tern_nn_load(n, in_folder("runs/step-3.safetensors"), NULL),
                         TERN_ERR_STATE);
        assert_error(TERN_ERR_STATE, "under the prefix \"net.\"");
        tern_nn_free(m), tern_nn_free(n);
    }
}

/* A snapshot of a training whose loader shuffles, without that loader: its order comes once more. */
static void a_loader_that_is_not_in_the_snapshot_is_told(void **state)
{
    (void)state;
    heard h = {0};
    TERN_SCOPE {
        tern_tensor *x = tern_arange(0, 8, 1, TERN_I64, "cpu");
        tern_module *model = tern_nn_linear(2, 2, NULL);
        tern_optimizer *optimizer = tern_optim_sgd(model, 0.1, NULL);
        /* As it is wrong; then four ways in which it is right. */
        for (int kind = 0; kind < 5; kind++) {
            tern_dataset *data = tern_data_tensor_dataset(x);
            tern_loader *loader = tern_data_loader(
                data, &(tern_loader_options){.batch_size = 4, .shuffle = kind != 1, .seed = 5});
            tern_snapshot *s = tern_snapshot_new();
            if (kind != 2)
                assert_ok(tern_snapshot_add_optimizer(s, "optimizer", optimizer));
            else
                assert_ok(tern_snapshot_add_module(s, "model", model));
            if (kind == 3)
                assert_ok(tern_snapshot_add_loader(s, "loader", loader));
            assert_ok(tern_snapshot_save(s, in_folder("told"), NULL));
            if (kind != 4)
                assert_ok(tern_snapshot_load(s, in_folder("told")));
            tern_on_warning(hear, &h); /* which tells of each place again */
            h.count = 0;
            for (int epoch = 0; epoch < 2; epoch++)
                TERN_EACH_BATCH(batch, loader)
                {
                }
            assert_int_equal(h.count, kind == 0);
            if (kind == 0)
                assert_true(strcmp(h.kind, "order") == 0 &&
                            strstr(h.text, "tern_snapshot_add_loader"));
            tern_snapshot_free(s);
            tern_loader_free(loader);
            tern_dataset_free(data);
        }
        tern_on_warning(NULL, NULL);
        tern_optim_free(optimizer);
        tern_nn_free(model);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {TEST(parts_are_put_together_or_refused),
                                       TEST(the_prefix_that_would_do_is_named),
                                       TEST(a_loader_that_is_not_in_the_snapshot_is_told)};
    return folder_main(tests, sizeof tests / sizeof *tests);
}
