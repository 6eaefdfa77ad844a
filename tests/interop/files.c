/* files.c -- write FOLDER: files for Python to look at; read FOLDER: what Python has written there. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tern/tern.h>
#include <unistd.h>

static int failures;

static const char *at(const char *folder, const char *name)
{
    static char text[4][4096];
    static int next;
    char *path = text[next++ % 4];
    snprintf(path, sizeof text[0], "%s/%s", folder, name);
    return path;
}

static void check(bool holds, const char *what)
{
    if (!holds)
        printf("FAIL %s: %s\n", what, tern_last_error());
    failures += !holds;
    tern_clear_error();
}

static void write_files(const char *folder)
{
    tern_tensor *x = tern_view(tern_arange(0, 6, 1, TERN_F64, NULL), TERN_SHAPE(2, 3));
    check(tern_npy_save(x, at(folder, "tern.npy")) == TERN_OK, "npy");
    tern_state_dict *dict = tern_state_dict_new();
    tern_state_dict_set(dict, "a", tern_arange(0, 7, 1, TERN_I64, NULL));
    tern_state_dict_set(dict, "b/c", tern_ones(TERN_SHAPE(2, 2), TERN_F16, NULL));
    tern_state_dict_set(dict, "e", tern_ones(TERN_SHAPE(0, 3), TERN_F32, NULL));
    check(tern_npz_save(dict, at(folder, "tern.npz"), NULL) == TERN_OK, "npz");
    check(tern_npz_save(dict, at(folder, "tern_packed.npz"),
                        &(tern_npz_options){.compressed = true}) == TERN_OK,
          "npz, packed");
    tern_state_dict_free(dict);
    dict = tern_state_dict_new();
    tern_state_dict_set(dict, "w", tern_to_dtype(x, TERN_F32));
    tern_state_dict_set(dict, "b", tern_ones(TERN_SHAPE(3), TERN_BOOL, NULL));
    tern_state_dict_set(dict, "a \"name\"\n\xc3\xa9", tern_arange(0, 7, 1, TERN_I32, NULL));
    tern_state_dict_set(dict, "half", tern_to_dtype(x, TERN_F16));
    tern_state_dict_set(dict, "double", x);
    tern_state_dict_set(dict, "byte", tern_to_dtype(x, TERN_U8));
    tern_state_dict_set(dict, "long", tern_to_dtype(x, TERN_I64));
    tern_state_dict_set(dict, "scalar", tern_sum(x));
    tern_state_dict_set_metadata(dict, "format", "pt");
    check(tern_save(dict, at(folder, "tern_numpy.safetensors"), NULL) == TERN_OK, "safetensors");
    tern_state_dict_free(dict);
    int64_t step = 3;
    tern_module *m = tern_nn_linear(4, 3, NULL);
    tern_snapshot *s = tern_snapshot_new();
    tern_snapshot_add_module(s, "model", m);
    tern_snapshot_add_int(s, "step", &step);
    check(tern_snapshot_save(s, at(folder, "snapshot"), &(tern_snapshot_options){.step = step}) ==
              TERN_OK,
          "snapshot");
    tern_snapshot_free(s);
    tern_nn_free(m);
}

/* The dict in a file; NULL, and said, where Python lacked what writes it. */
static tern_state_dict *load(const char *path)
{
    if (access(path, F_OK) != 0) {
        printf("SKIP: there is no %s\n", path);
        return NULL;
    }
    tern_state_dict *dict = tern_load(path, NULL);
    check(dict != NULL, path);
    return dict;
}

/* Whether a tensor is there, of that dtype, with that sum of i x[i]. */
static void look(const tern_state_dict *dict, const char *name, tern_dtype dtype, double sum)
{
    tern_tensor *x = tern_state_dict_get(dict, name);
    check(x && tern_dtype_of(x) == dtype, name);
    if (!x)
        return;
    x = tern_reshape(tern_to_dtype(x, TERN_F64), TERN_SHAPE(-1));
    tern_tensor *i = tern_arange(0, (double)tern_numel(x), 1, TERN_F64, NULL);
    check(tern_item(tern_sum(tern_mul(x, i))) == sum, name);
}

static void read_numpy(const char *path)
{
    tern_state_dict *dict = load(path);
    if (!dict)
        return;
    look(dict, "a", TERN_I32, 55);
    look(dict, "big", TERN_F64, 5);
    look(dict, "turned", TERN_F32, 55);
    look(dict, "yes", TERN_BOOL, 0);
    check(tern_item(tern_state_dict_get(dict, "one")) == 7, "one");
    tern_state_dict_free(dict);
}

static void read_torch(const char *folder)
{
    tern_state_dict *dict = load(at(folder, "torch.pt"));
    if (!dict)
        return;
    look(dict, "0.weight", TERN_F32, 55);
    look(dict, "1.num_batches_tracked", TERN_I64, 0);
    check(tern_state_dict_count(dict) == 7, "torch.pt");
    tern_module *m = tern_nn_sequential(tern_nn_linear(3, 2, NULL), tern_nn_batch_norm1d(2, NULL));
    check(tern_nn_load(m, at(folder, "torch.pt"), NULL) == TERN_OK, "a model of torch.pt");
    tern_nn_free(m);
    tern_state_dict_free(dict);
    dict = load(at(folder, "torch_all.pth"));
    look(dict, "turned", TERN_F32,
         0 + 1 * 4 + 2 * 8 + 3 * 1 + 4 * 5 + 5 * 9 + 6 * 2 + 7 * 6 + 8 * 10 + 9 * 3 + 10 * 7 +
             11 * 11);
    look(dict, "row", TERN_F32, 5 + 12 + 21);
    look(dict, "half", TERN_F16, 506);
    look(dict, "bf", TERN_BF16, 506);
    look(dict, "param", TERN_F32, 506);
    check(tern_state_dict_get(dict, "optimizer.state.0.exp_avg") != NULL, "an optimizer's state");
    check(!strcmp(tern_state_dict_metadata(dict, "epoch"), "3"), "epoch");
    check(!strcmp(tern_state_dict_metadata(dict, "loss"), "0.25"), "loss");
    tern_state_dict_free(dict);
    check(!tern_load(at(folder, "torch_module.pt"), NULL) &&
              strstr(tern_last_error(), "state_dict()"),
          "a module is refused by name");
    check(!tern_load(at(folder, "torch_old.pt"), NULL) && strstr(tern_last_error(), "before 1.6"),
          "the old form is refused by name");
}

int main(int argc, char **argv)
{
    if (argc < 3)
        return 1;
    TERN_SCOPE {
        if (strcmp(argv[1], "write") == 0) {
            write_files(argv[2]);
        } else {
            read_numpy(at(argv[2], "numpy.npz"));
            read_numpy(at(argv[2], "numpy_packed.npz"));
            tern_state_dict *dict = load(at(argv[2], "python.safetensors"));
            if (dict)
                look(dict, "w", TERN_F32, 55);
            tern_state_dict_free(dict);
            read_torch(argv[2]);
        }
    }
    return failures;
}
