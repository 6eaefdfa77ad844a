/* test_save.c -- files are there as a whole or not at all: what is replaced, what is refused, several
 * files with an index; a module's tensors in files. */
#include "support.h"
#include "folder.h"
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>

static tern_state_dict *dict_of(const char *name, double value)
{
    tern_state_dict *dict = tern_state_dict_new();
    TERN_SCOPE
        assert_ok(tern_state_dict_set(
            dict, name, tern_full(TERN_SHAPE(5, 7), tern_scalar_real(value), TERN_F32, "cpu")));
    return dict;
}

static void save_value(const char *path, double value)
{
    tern_state_dict *dict = dict_of("x", value);
    assert_ok(tern_save(dict, path, NULL));
    tern_state_dict_free(dict);
}

static double value_in(const char *path)
{
    tern_state_dict *dict = tern_load(path, NULL);
    assert_non_null(dict);
    double value = tern_item(tern_max(tern_state_dict_get(dict, "x")));
    tern_state_dict_free(dict);
    return value;
}

static const char *fresh_folder(const char *name)
{
    const char *path = in_folder(name);
    assert_int_equal(mkdir(path, 0777), 0);
    return path;
}

/* ---- what is replaced ------------------------------------------------------------------------ */

static void a_new_file_takes_the_place_of_the_old(void **state)
{
    (void)state;
    fresh_folder("replace");
    const char *path = in_folder("replace/x.safetensors");
    TERN_SCOPE {
        save_value(path, 1);
        assert_int_equal(chmod(path, 0640), 0);
        save_value(path, 2);
        assert_true(value_in(path) == 2);
    }
    struct stat facts;
    assert_int_equal(stat(path, &facts), 0);
    assert_int_equal(facts.st_mode & 0777, 0640);
    assert_int_equal(count_files(in_folder("replace")), 1);
}

static void a_new_file_has_the_mode_of_the_umask(void **state)
{
    (void)state;
    struct stat facts;
    mode_t old = umask(027);
    save_value(in_folder("mode.safetensors"), 1);
    umask(old);
    assert_int_equal(stat(in_folder("mode.safetensors"), &facts), 0);
    assert_int_equal(facts.st_mode & 0777, 0640);
}

static void a_link_is_followed(void **state)
{
    (void)state;
    fresh_folder("links");
    fresh_folder("links/other");
    save_value(in_folder("links/other/real.safetensors"), 1);
    assert_int_equal(symlink("other/middle", in_folder("links/x.safetensors")), 0);
    assert_int_equal(symlink("real.safetensors", in_folder("links/other/middle")), 0);
    TERN_SCOPE {
        save_value(in_folder("links/x.safetensors"), 2);
        assert_true(value_in(in_folder("links/other/real.safetensors")) == 2);
    }
    struct stat facts;
    assert_int_equal(lstat(in_folder("links/x.safetensors"), &facts), 0);
    assert_true(S_ISLNK(facts.st_mode));
    /* One that leads nowhere: the file comes to be where it leads. */
    assert_int_equal(symlink("new.safetensors", in_folder("links/dangling")), 0);
    save_value(in_folder("links/dangling"), 3);
    assert_int_equal(access(in_folder("links/new.safetensors"), F_OK), 0);
    /* And a circle is refused. */
    assert_int_equal(symlink("b", in_folder("links/a")), 0);
    assert_int_equal(symlink("a", in_folder("links/b")), 0);
    tern_state_dict *dict = dict_of("x", 1);
    assert_int_equal(tern_save(dict, in_folder("links/a"), NULL), TERN_ERR_IO);
    assert_error(TERN_ERR_IO, strerror(ELOOP));
    tern_state_dict_free(dict);
}

static void only_regular_files_are_replaced(void **state)
{
    (void)state;
    tern_state_dict *dict = dict_of("x", 1);
    struct stat facts;
    fresh_folder("kinds");
    assert_int_equal(mkfifo(in_folder("kinds/pipe"), 0600), 0);
    fresh_folder("kinds/folder");
    assert_int_equal(tern_save(dict, in_folder("kinds/pipe"), NULL), TERN_ERR_IO);
    assert_error(TERN_ERR_IO, "is no regular file and is not replaced");
    assert_int_equal(tern_save(dict, in_folder("kinds/folder"), NULL), TERN_ERR_IO);
    assert_error(TERN_ERR_IO, "is a folder and is not replaced");
    assert_int_equal(tern_save(dict, in_folder("kinds/folder/"), NULL), TERN_ERR_IO);
    assert_error(TERN_ERR_IO, "is no name of a file");
    assert_int_equal(tern_save(dict, in_folder("kinds/absent/x"), NULL), TERN_ERR_IO);
    assert_error(TERN_ERR_IO, "the folder: No such file or directory");
    assert_int_equal(tern_save(dict, in_folder("kinds/x.pt"), NULL), TERN_ERR_UNSUPPORTED);
    assert_error(TERN_ERR_UNSUPPORTED, ".pt files are not written");
    assert_int_equal(stat(in_folder("kinds/pipe"), &facts), 0);
    assert_true(S_ISFIFO(facts.st_mode));
    assert_int_equal(count_files(in_folder("kinds")), 2);
    tern_state_dict_free(dict);
}

static void names_of_other_formats_are_refused(void **state)
{
    static const char *const names[][2] = {
        {"x.pt", ".pt files are not written, safetensors are"},
        {"x.PT", ".pt files are not written, safetensors are"},
        {"x.Pth", ".pth files"},
        {"x.bin", ".bin files"},
        {"x.ckpt", ".ckpt files"},
        {"x.gguf", ".gguf files"},
        {"x.h5", ".h5 files"},
        {"x.hdf5", ".hdf5 files"},
        {"x.pkl", ".pkl files"},
        {"x.npz", ".npz files are not written but by tern_npz_save, safetensors are"},
        {"x.NPY", ".npy files are not written but by tern_npy_save, safetensors are"},
        {"x.onnx", ".onnx files are not written but by tern_onnx_export, safetensors are"},
    };
    static const char *const fine[] = {"x.safetensors", "x", "npz", "x.npz.safetensors", "x.pt1"};
    (void)state;
    tern_state_dict *dict = dict_of("x", 1);
    fresh_folder("names");
    fresh_folder("names/of.npz");
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char path[64];
        snprintf(path, sizeof path, "names/%s", names[i][0]);
        assert_int_equal(tern_save(dict, in_folder(path), NULL), TERN_ERR_UNSUPPORTED);
        assert_error(TERN_ERR_UNSUPPORTED, names[i][1]);
    }
    assert_int_equal(count_files(in_folder("names")), 1);
    assert_ok(tern_save(dict, in_folder("names/of.npz/x"), NULL));
    for (size_t i = 0; i < sizeof fine / sizeof *fine; i++) {
        char path[64];
        snprintf(path, sizeof path, "names/%s", fine[i]);
        assert_ok(tern_save(dict, in_folder(path), NULL));
    }
    tern_state_dict_free(dict);
}

static void nothing_is_saved_while_an_error_is_recorded(void **state)
{
    (void)state;
    tern_state_dict *dict = dict_of("x", 1);
    tern_fail(TERN_ERR_SHAPE, "an error of the program's");
    assert_int_equal(tern_save(dict, in_folder("error.safetensors"), NULL), TERN_ERR_SHAPE);
    assert_error(TERN_ERR_SHAPE, "of the program's");
    assert_int_equal(access(in_folder("error.safetensors"), F_OK), -1);
    tern_state_dict_free(dict);
}

/* ---- the end of the process at any moment ---------------------------------------------------- */

static void save_for_ever(const char *path)
{
    tern_state_dict *dict = tern_state_dict_new();
    tern_state_dict_set(dict, "x", tern_ones(TERN_SHAPE(1 << 20), TERN_F32, "cpu"));
    for (int i = 0;; i++)
        tern_save(dict, path, NULL);
}

static void a_kill_leaves_the_old_file_or_the_new(void **state)
{
    (void)state;
    int times = getenv("TERN_TEST_ALL") ? 1000 : 20;
    fresh_folder("kills");
    char path[4400];
    snprintf(path, sizeof path, "%s", in_folder("kills/x.safetensors"));
    write_file(in_folder("kills/the user's own"), "text", 4);
    save_value(path, 1);
    for (int i = 0; i < times; i++) {
        pid_t child = fork();
        if (child == 0) {
            save_for_ever(path);
            _exit(1);
        }
        usleep((useconds_t)(1000 + (i * 7919) % 30000));
        assert_int_equal(kill(child, SIGKILL), 0);
        assert_int_equal(waitpid(child, NULL, 0), child);
        TERN_SCOPE
            assert_true(value_in(path) == 1);
    }
    /* One that was killed in the middle of the two last calls is cleared away by the next save. */
    save_value(path, 1);
    assert_int_equal(count_files(in_folder("kills")), 2);
}

static void what_a_killed_process_left_goes(void **state)
{
    (void)state;
    char name[300];
    fresh_folder("left");
    pid_t child = fork();
    if (child == 0)
        _exit(0);
    assert_int_equal(waitpid(child, NULL, 0), child);
    static const char *const stay[] = {".x.safetensors.1.tmp",    ".x.safetensors.tmp",
                                       ".y.safetensors.1.2.tmp",  "x.safetensors.1.2.tmp",
                                       ".x.safetensors.1.2.tmp2", ".x.safetensors.-1.2.tmp"};
    for (int i = 0; i < 6; i++) {
        snprintf(name, sizeof name, "left/%s", stay[i]);
        write_file(in_folder(name), "", 0);
    }
    snprintf(name, sizeof name, "left/.x.safetensors.%ld.3.tmp", (long)child);
    write_file(in_folder(name), "", 0);
    save_value(in_folder("left/x.safetensors"), 1);
    assert_int_equal(access(in_folder(name), F_OK), -1);
    assert_int_equal(count_files(in_folder("left")), 7);
}

/* ---- several files --------------------------------------------------------------------------- */

static tern_state_dict *three_tensors(double value)
{
    tern_state_dict *dict = tern_state_dict_new();
    TERN_SCOPE {
        tern_tensor *x = tern_full(TERN_SHAPE(10), tern_scalar_real(value), TERN_F32, "cpu");
        tern_state_dict_set(dict, "a", x);
        tern_state_dict_set(dict, "b", tern_cat((tern_tensor *[]){x, x, x}, 3, 0));
        tern_state_dict_set(dict, "c", x);
        tern_state_dict_set(dict, "x", x);
    }
    tern_state_dict_set_metadata(dict, "format", "pt");
    return dict;
}

static void several_files_are_one_model(void **state)
{
    (void)state;
    tern_state_dict *dict = three_tensors(1);
    tern_save_options options = {.max_shard_size = 80};
    assert_ok(tern_save(dict, in_folder("parts"), &options));
    write_file(in_folder("parts/config.json"), "{}", 2);
    /* a | b, which is too large | c x */
    assert_int_equal(count_files(in_folder("parts")), 5);
    assert_int_equal(access(in_folder("parts/model-00003-of-00003.safetensors"), F_OK), 0);
    TERN_SCOPE {
        tern_state_dict *back = tern_load(in_folder("parts/model.safetensors.index.json"), NULL);
        assert_non_null(back);
        assert_int_equal(tern_state_dict_count(back), 4);
        assert_same(tern_state_dict_get(back, "b"), tern_state_dict_get(dict, "b"));
        assert_string_equal(tern_state_dict_metadata(back, "format"), "pt");
        tern_state_dict_free(back);
        /* Again, and in one file: what the old index named goes, the user's file stays. */
        tern_state_dict_free(dict);
        dict = three_tensors(2);
        assert_ok(tern_save(dict, in_folder("parts"), &options));
        assert_true(value_in(in_folder("parts")) == 2);
        assert_int_equal(count_files(in_folder("parts")), 5);
        options.max_shard_size = 1 << 20;
        assert_ok(tern_save(dict, in_folder("parts"), &options));
        assert_true(value_in(in_folder("parts")) == 2);
        assert_int_equal(count_files(in_folder("parts")), 3);
        /* By a name of its own. */
        options.max_shard_size = 80;
        assert_ok(tern_save(dict, in_folder("parts/other.safetensors"), &options));
        assert_true(value_in(in_folder("parts/other.safetensors.index.json")) == 2);
        assert_int_equal(count_files(in_folder("parts")), 7);
    }
    tern_state_dict_free(dict);
}

/* Of an old index that ends too early nothing is removed. */
static void a_broken_index_removes_nothing(void **state)
{
    (void)state;
    static const char text[] = "{\"weight_map\": {\"a\": \"kept.safetensors\", \"b\": ";
    tern_state_dict *dict = three_tensors(1);
    fresh_folder("broken");
    write_file(in_folder("broken/kept.safetensors"), "x", 1);
    write_file(in_folder("broken/model.safetensors.index.json"), text, sizeof text - 1);
    assert_ok(
        tern_save(dict, in_folder("broken"), &(tern_save_options){.max_shard_size = 1 << 20}));
    assert_int_equal(access(in_folder("broken/kept.safetensors"), F_OK), 0);
    tern_state_dict_free(dict);
}

static const struct {
    const char *text, *says;
    bool accepted;
} indices[] = {
    {"{\"weight_map\":{\"x\":\"x.safetensors\"}}", NULL, true},
    {" {\"metadata\":{\"total_size\":1.5,\"n\":[[{}]]},\"weight_map\":{\"x\":\"x.safetensors\"},"
     "\"more\":null}",
     NULL, true},
    {"{\"weight_map\":{\"x\":\"../indices/x.safetensors\"}}", "no plain name", false},
    {"{\"weight_map\":{\"x\":\"/etc/passwd\"}}", "no plain name", false},
    {"{\"weight_map\":{\"x\":\".hidden\"}}", "no plain name", false},
    {"{\"weight_map\":{\"x\":\"\"}}", "no plain name", false},
    {"{\"weight_map\":{\"x\":7}}", "no text", false},
    {"{\"weight_map\":{\"y\":\"x.safetensors\"}}", "there is no tensor `y`", false},
    {"{\"weight_map\":{\"x\":\"absent.safetensors\"}}", "absent.safetensors", false},
    {"{\"weight_map\":{\"x\":\"x.safetensors\",\"x\":\"x.safetensors\"}}", "twice", false},
    {"{\"weight_map\":{},\"weight_map\":{}}", "twice", false},
    {"{\"weight_map\":[]}", "invalid JSON", false},
    {"{\"weights\":{}}", "no weight_map", false},
    {"{\"weight_map\":{\"x\":\"x.safetensors\"}", "invalid JSON", false},
    {"{", "invalid JSON", false},
    {"{\"weight_map\":{\"x\":\"pipe.safetensors\"}}", "no regular file", false},
    {"{\"weight_map\":{\"x\":\"m.safetensors.index.json\"}}", "no plain name", false},
};

static void an_index_is_not_trusted(void **state)
{
    (void)state;
    fresh_folder("indices");
    save_value(in_folder("indices/x.safetensors"), 1);
    assert_int_equal(mkfifo(in_folder("indices/pipe.safetensors"), 0600), 0);
    for (size_t i = 0; i < sizeof indices / sizeof *indices; i++) {
        const char *path = in_folder("indices/m.safetensors.index.json");
        write_file(path, indices[i].text, strlen(indices[i].text));
        tern_state_dict *dict = tern_load(path, NULL);
        if (!dict != !indices[i].accepted)
            fail_msg("%s: %s", indices[i].text, tern_last_error());
        if (!dict)
            assert_error(TERN_ERR_IO, indices[i].says);
        tern_state_dict_free(dict);
    }
}

/* ---- modules --------------------------------------------------------------------------------- */

static tern_module *network(void)
{
    return tern_nn_sequential(tern_nn_linear(6, 16, NULL), tern_nn_batch_norm1d(16, NULL),
                              tern_nn_relu(), tern_nn_linear(16, 3, NULL));
}

static void a_module_is_saved_and_loaded(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    TERN_SCOPE {
        tern_module *a = tern_nn_to(network(), device), *b = tern_nn_to(network(), device);
        assert_ok(tern_nn_save(a, in_folder("model.safetensors"), NULL));
        assert_ok(tern_nn_load(b, in_folder("model.safetensors"), NULL));
        tern_tensor *x = tern_randn(TERN_SHAPE(4, 6), TERN_F32, device);
        assert_same(tern_nn_forward(tern_nn_eval(a), x), tern_nn_forward(tern_nn_eval(b), x));
        tern_nn_free(a), tern_nn_free(b);
    }
}

static void note_name(const char *key, void *text)
{
    snprintf((char *)text + strlen(text), 500 - strlen(text), "%s ", key);
}

static void another_module_is_refused_whole(void **state)
{
    (void)state;
    TERN_SCOPE {
        tern_module *a = network(), *b = tern_nn_sequential(tern_nn_linear(6, 16, NULL));
        tern_module *c = tern_nn_sequential(tern_nn_linear(6, 4, NULL));
        char missing[500] = "", unexpected[500] = "";
        tern_tensor *before = tern_clone(tern_detach(tern_nn_parameter(b, "0.weight")));
        assert_ok(tern_nn_save(a, in_folder("a.safetensors"), NULL));
        assert_int_equal(tern_nn_load(b, in_folder("a.safetensors"), NULL), TERN_ERR_STATE);
        assert_error(TERN_ERR_STATE,
                     "tern_nn_load: Error(s) in loading state_dict for Sequential:\n\t"
                     "Unexpected key(s) in state_dict: ");
        assert_same(before, tern_detach(tern_nn_parameter(b, "0.weight")));
        assert_int_equal(tern_nn_load(c, in_folder("a.safetensors"),
                                      &(tern_load_state_dict_options){.no_strict = true}),
                         TERN_ERR_STATE);
        assert_error(TERN_ERR_STATE,
                     "size mismatch for 0.weight: copying a param with shape "
                     "torch.Size([16, 6]) from checkpoint, the shape in current model "
                     "is torch.Size([4, 6]).");
        assert_ok(tern_nn_load(b, in_folder("a.safetensors"),
                               &(tern_load_state_dict_options){.no_strict = true,
                                                               .unexpected = note_name,
                                                               .user = unexpected}));
        assert_non_null(strstr(unexpected, "1.running_mean "));
        assert_ok(tern_nn_save(b, in_folder("b.safetensors"), NULL));
        assert_ok(tern_nn_load(a, in_folder("b.safetensors"),
                               &(tern_load_state_dict_options){
                                   .no_strict = true, .missing = note_name, .user = missing}));
        assert_non_null(strstr(missing, "3.bias "));
        tern_nn_free(a), tern_nn_free(b), tern_nn_free(c);
    }
}

static void names_are_taken_by_prefix_and_renamed(void **state)
{
    (void)state;
    TERN_SCOPE {
        tern_module *a = tern_nn_sequential(network()), *b = network();
        tern_module *c = tern_nn_sequential(tern_nn_linear(6, 16, NULL));
        assert_ok(tern_nn_save(a, in_folder("prefix.safetensors"), NULL));
        assert_ok(tern_nn_load(b, in_folder("prefix.safetensors"),
                               &(tern_load_state_dict_options){.prefix = "0."}));
        assert_same(tern_nn_parameter(a, "0.3.weight"), tern_nn_parameter(b, "3.weight"));
        const tern_key_rename renames[] = {{"0.3.", "9."}, {"0.0.", "0."}};
        assert_ok(tern_nn_load(c, in_folder("prefix.safetensors"),
                               &(tern_load_state_dict_options){
                                   .renames = renames, .n_renames = 2, .no_strict = true}));
        assert_same(tern_nn_parameter(a, "0.0.weight"), tern_nn_parameter(c, "0.weight"));
        const tern_key_rename same[] = {{"0.0.", "0."}, {"0.3.", "0."}};
        assert_int_equal(
            tern_nn_load(c, in_folder("prefix.safetensors"),
                         &(tern_load_state_dict_options){.renames = same, .n_renames = 2}),
            TERN_ERR_ARGUMENT);
        assert_error(TERN_ERR_ARGUMENT, "are both renamed to \"0.");
        tern_nn_free(a), tern_nn_free(b), tern_nn_free(c);
    }
}

/* One name of a tied weight is written, the others in the metadata; they are not missing then. */
static void a_tied_weight_is_written_once(void **state)
{
    (void)state;
    TERN_SCOPE {
        tern_module *m[2];
        for (int i = 0; i < 2; i++) {
            m[i] = tern_nn_sequential(tern_nn_linear(4, 4, NULL), tern_nn_linear(4, 4, NULL));
            tern_nn_set_parameter(m[i], "1.weight", tern_nn_parameter(m[i], "0.weight"));
        }
        assert_ok(tern_nn_save(m[0], in_folder("tied.safetensors"), NULL));
        tern_file *file = tern_safe_open(in_folder("tied.safetensors"));
        assert_int_equal(tern_file_count(file), 3);
        assert_false(tern_file_has(file, "1.weight"));
        assert_string_equal(tern_file_metadata(file, "1.weight"), "0.weight");
        assert_string_equal(tern_file_metadata(file, "format"), "pt");
        tern_file_free(file);
        assert_ok(tern_nn_load(m[1], in_folder("tied.safetensors"), NULL));
        assert_same(tern_nn_parameter(m[0], "0.weight"), tern_nn_parameter(m[1], "1.weight"));
        tern_module *loose =
            tern_nn_sequential(tern_nn_linear(4, 4, NULL), tern_nn_linear(4, 4, NULL));
        assert_int_equal(tern_nn_load(loose, in_folder("tied.safetensors"), NULL), TERN_ERR_STATE);
        assert_error(TERN_ERR_STATE, "Missing key(s) in state_dict: \"1.weight\"");
        tern_nn_free(loose), tern_nn_free(m[0]), tern_nn_free(m[1]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_new_file_takes_the_place_of_the_old),
        TEST(a_new_file_has_the_mode_of_the_umask),
        TEST(a_link_is_followed),
        TEST(only_regular_files_are_replaced),
        TEST(names_of_other_formats_are_refused),
        TEST(nothing_is_saved_while_an_error_is_recorded),
        TEST(a_kill_leaves_the_old_file_or_the_new),
        TEST(what_a_killed_process_left_goes),
        TEST(several_files_are_one_model),
        TEST(a_broken_index_removes_nothing),
        TEST(an_index_is_not_trusted),
        TEST(a_module_is_saved_and_loaded),
        TEST(another_module_is_refused_whole),
        TEST(names_are_taken_by_prefix_and_renamed),
        TEST(a_tied_weight_is_written_once),
    };
    return folder_main(tests, sizeof tests / sizeof *tests);
}
