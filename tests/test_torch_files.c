/* test_torch_files.c -- files as PyTorch has written them since its beginning: each kind of stream, tar, archive, object and
 * folder, compared with the tensors that PyTorch reads there.
 *
 * tests/golden/torch has a few of each (torch_files.py writes them); ../shared/cases/files/old_torch, where it is there, all. Beside NAME is
 * NAME.safetensors; expect.txt has a line a file, NAME, what is wanted, what PyTorch does, what the case is:
 *   same         the tensors of NAME.safetensors and no other
 *   refused [x]  an error that names one of the words x
 *   but [x]      an error that names the tensor x; without it the tensors of NAME.safetensors */
#include "support.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define OWN    TEST_FOLDER "/golden/torch"
#define SHARED TEST_FOLDER "/../../shared/cases/files/old_torch"

enum { MOST_NAMES = 64 };

/* All tensors of one are the other's, bit for bit. */
static void compare(const char *name, const tern_state_dict *got, const tern_state_dict *wanted)
{
    for (int i = 0; i < tern_state_dict_count(wanted); i++)
        TERN_SCOPE {
            const char *key = tern_state_dict_key_at(wanted, i);
            tern_tensor *x = tern_state_dict_get(got, key), *y = tern_state_dict_at(wanted, i);
            if (!x)
                fail_msg("%s: there is no %s", name, key);
            if (tern_dtype_of(x) != tern_dtype_of(y) || tern_dim(x) != tern_dim(y) ||
                tern_numel(x) != tern_numel(y))
                fail_msg("%s: %s is of another type or shape", name, key);
            for (int d = 0; d < tern_dim(x); d++)
                if (tern_size(x, d) != tern_size(y, d))
                    fail_msg("%s: %s is of another shape", name, key);
            x = tern_contiguous(tern_to(x, "cpu"));
            size_t n = (size_t)tern_numel(x) * tern_dtype_size(tern_dtype_of(x));
            if (n && memcmp(tern_data(x), tern_data(y), n) != 0)
                fail_msg("%s: %s has other elements", name, key);
        }
    if (tern_state_dict_count(got) != tern_state_dict_count(wanted))
        fail_msg("%s: %d tensors, %d are wanted", name, tern_state_dict_count(got),
                 tern_state_dict_count(wanted));
}

/* "refused [a or b]": whether the message has one of the words. */
static bool message_names(const char *want)
{
    char words[200];
    snprintf(words, sizeof words, "%s", strchr(want, '[') + 1);
    *strchr(words, ']') = '\0';
    for (char *at = words, *end; at; at = end) {
        end = strstr(at, " or ");
        if (end) {
            *end = '\0';
            end += strlen(" or ");
        }
        char quoted[210]; /* a tensor's name, which is no part of another word */
        snprintf(quoted, sizeof quoted, strlen(at) < 3 ? "`%s`" : "%s", at);
        if (strstr(tern_last_error(), quoted))
            return true;
    }
    return false;
}

static void check_refused(const char *name, const char *want, const char *path)
{
    tern_state_dict *dict = tern_load(path, NULL);
    if (dict || tern_last_status() == TERN_OK || !message_names(want))
        fail_msg("%s, %s: %s", name, want, dict ? "loaded" : tern_last_error());
    assert_true(tern_last_status() == TERN_ERR_IO || tern_last_status() == TERN_ERR_DTYPE);
    tern_clear_error();
}

/* Refuses the file as a whole and gives the tensors that can be read. */
static void check_but(const char *name, const char *want, const char *path,
                      const tern_state_dict *wanted)
{
    const char *only[MOST_NAMES];
    int n = tern_state_dict_count(wanted);
    assert_true(n < MOST_NAMES);
    check_refused(name, want, path);
    for (int i = 0; i < n; i++)
        only[i] = tern_state_dict_key_at(wanted, i);
    tern_state_dict *dict = tern_load(path, &(tern_load_options){.only = only, .n_only = n});
    if (!dict)
        fail_msg("%s: %s", name, tern_last_error());
    compare(name, dict, wanted);
    tern_state_dict_free(dict);
}

static void check_row(const char *root, const char *name, const char *want)
{
    char path[600], golden[700];
    snprintf(path, sizeof path, "%s/%s", root, name);
    snprintf(golden, sizeof golden, "%s.safetensors", path);
    tern_file *file = tern_safe_open(path);
    if (!file && test_no_library())
        return;
    tern_file_free(file);
    tern_clear_error();
    if (strncmp(want, "refused", 7) == 0) {
        check_refused(name, want, path);
        return;
    }
    tern_state_dict *wanted = tern_load(golden, NULL);
    assert_non_null(wanted);
    if (strncmp(want, "but", 3) == 0)
        check_but(name, want, path, wanted);
    else {
        tern_state_dict *dict = tern_load(path, NULL);
        if (!dict)
            fail_msg("%s: %s", name, tern_last_error());
        compare(name, dict, wanted);
        tern_state_dict_free(dict);
    }
    tern_state_dict_free(wanted);
}

/* How many rows there were; -1: there is no such folder. */
static int check_all(const char *root)
{
    char path[600], line[1000];
    int n = 0;
    snprintf(path, sizeof path, "%s/expect.txt", root);
    FILE *file = fopen(path, "r");
    if (!file)
        return -1;
    for (; fgets(line, sizeof line, file); n++) {
        char *name = strtok(line, "\t"), *want = strtok(NULL, "\t");
        assert_non_null(want);
        TERN_SCOPE
            check_row(root, name, want);
    }
    fclose(file);
    assert_int_equal(tern_live_tensors(), 0);
    return n;
}

static void every_kind_gives_the_tensors_of_pytorch(void **state)
{
    (void)state;
    assert_true(check_all(OWN) > 0);
}

static void every_shared_case_gives_the_tensors_of_pytorch(void **state)
{
    (void)state;
    int n = check_all(SHARED);
    if (n < 0)
        test_skipped(
            "there is no ../shared/cases/files/old_torch: only tests/golden/torch was read");
    assert_int_equal(access("ran_by_pickle", F_OK), -1);
}

/* Types that tern does not have are listed, by PyTorch's names or by those of safetensors. */
static void types_that_are_not_read_are_listed(void **state)
{
    (void)state;
    static const struct {
        const char *name, *type;
        int ndim;
        uint64_t bytes;
    } rows[] = {{"complex32", "complex32", 1, 8},
                {"e8m0", "F8_E8M0", 1, 3},
                {"e2m1", "float4_e2m1fn_x2", 2, 6},
                {"four", "?", 0, 0},
                {"two", "?", 0, 0},
                {"turned", "complex128", 2, 96},
                {"w", "F32", 1, 8}};
    tern_file *file = tern_safe_open(OWN "/dtypes.pt");
    if (!file && test_no_library())
        return;
    if (!file)
        fail_msg("%s", tern_last_error());
    assert_int_equal(tern_file_count(file), sizeof rows / sizeof *rows);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        assert_string_equal(tern_file_dtype_name(file, rows[i].name), rows[i].type);
        assert_int_equal(tern_file_shape(file, rows[i].name).ndim, rows[i].ndim);
        assert_int_equal(tern_file_nbytes(file, rows[i].name), rows[i].bytes);
    }
    assert_null(tern_file_get(file, "turned", "cpu"));
    assert_error(TERN_ERR_DTYPE, "`turned` is of type complex128");
    assert_null(tern_file_get(file, "four", "cpu"));
    assert_error(TERN_ERR_DTYPE, "`four` is quantized");
    tern_file_free(file);
}

/* The names of what was not understood are told, and numbers and texts beside tensors are metadata. Files are of SHARED unless
 * they say where they are. */
static void objects_of_other_programs_are_named(void **state)
{
    (void)state;
    static const struct {
        const char *file, *name, *key, *value;
    } rows[] = {{"beside_namespace.pt", "argparse.Namespace", "x.lr", "0.001"},
                {"beside_function.pt", "torch.nn.functional.relu", NULL, NULL},
                {"beside_system.pt", "posix.system", "x.0", "touch ran_by_pickle"},
                {"beside_numpy_scalar.pt", NULL, "x.best", "0.75"},
                {"beside_numpy_scalar.pt", NULL, "x.step", "7"},
                {"beside_omegaconf.pt", "omegaconf.dictconfig.DictConfig", "x._content.lr", "1"},
                {"beside_lightning.pt", "pytorch_lightning.utilities.parsing.AttributeDict",
                 "x.layers", "3"},
                {"beside_counter.pt", NULL, "x.3", "2"},
                {"module.pt", "torch.nn.modules.linear.Linear", "0.in_features", "3"},
                {OWN "/module.pt", "torch.nn.modules.linear.Linear", "model.0.in_features", "3"}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char path[600];
        snprintf(path, sizeof path, "%s%s", *rows[i].file == '/' ? "" : SHARED "/", rows[i].file);
        if (access(path, F_OK) != 0) {
            test_skipped("there is no ../shared/cases/files/old_torch/%s", rows[i].file);
            continue;
        }
        tern_file *file = tern_safe_open(path);
        if (!file && test_no_library())
            return;
        assert_non_null(file);
        const char *told = tern_file_metadata(file, "__opaque__");
        if (rows[i].name ? !told || !strstr(told, rows[i].name) : told != NULL)
            fail_msg("%s: %s is told", rows[i].file, told ? told : "nothing");
        if (rows[i].key) {
            const char *value = tern_file_metadata(file, rows[i].key);
            if (!value || strncmp(value, rows[i].value, strlen(rows[i].value)) != 0)
                fail_msg("%s: %s is %s", rows[i].file, rows[i].key, value ? value : "not there");
        }
        tern_file_free(file);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(every_kind_gives_the_tensors_of_pytorch),
        TEST(every_shared_case_gives_the_tensors_of_pytorch),
        TEST(types_that_are_not_read_are_listed),
        TEST(objects_of_other_programs_are_named),
    };
    return test_main(tests, sizeof tests / sizeof *tests);
}
