/* test_gguf.c -- GGUF files: every block type, bit for bit, beside what the gguf package reads; parts; metadata; files that lie. */
#include "support.h"
#include "folder.h"
#include "gguf_file.h"
#include "gguf_hostile.h"
#include <sys/resource.h>

#define GOLDEN TEST_FOLDER "/golden/gguf/"
#define SHARED TEST_FOLDER "/../../shared/"

/* ---- blocks ---------------------------------------------------------------------------------- */

/* Every tensor of one file is that of the other, which has it as numbers. */
static void compare(const char *path, const char *with, const char *device, bool mapped)
{
    tern_load_options o = {.map_location = device, .mmap = mapped};
    tern_state_dict *a = tern_load(path, &o), *b = tern_load(with, NULL);
    if (!a)
        print_error("%s\n", tern_last_error());
    assert_non_null(a);
    assert_non_null(b);
    assert_int_equal(tern_state_dict_count(a), tern_state_dict_count(b));
    for (int i = 0; i < tern_state_dict_count(a); i++) {
        const char *name = tern_state_dict_key_at(a, i);
        tern_tensor *x = tern_state_dict_at(a, i), *y = tern_state_dict_get(b, name);
        assert_non_null(y);
        if (tern_dtype_of(x) == TERN_BF16) /* the other file has it in float32 */
            x = tern_to_dtype(x, tern_dtype_of(y));
        else if (tern_dtype_of(x) == TERN_F16)
            y = tern_to_dtype(y, TERN_F16);
        test_same(x, y, name, __FILE__, __LINE__);
    }
    tern_state_dict_free(a);
    tern_state_dict_free(b);
}

static void every_type_is_what_the_package_reads(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    TERN_SCOPE {
        for (int mapped = 0; mapped < 2; mapped++)
            compare(GOLDEN "blocks.gguf", GOLDEN "blocks.safetensors", device, mapped);
        if (access(SHARED "models/gguf/blocks/blocks.gguf", R_OK) == 0)
            compare(SHARED "models/gguf/blocks/blocks.gguf",
                    SHARED "models/gguf/blocks/blocks.safetensors", device, false);
        else
            printf("SKIP: ../shared/models/gguf/blocks is not there\n");
    }
}

static void signs_of_zeros_are_those_of_the_package(void **state)
{
    (void)state;
    TERN_SCOPE {
        tern_state_dict *a = tern_load(GOLDEN "blocks.gguf", NULL);
        tern_state_dict *b = tern_load(GOLDEN "blocks.safetensors", NULL);
        for (int i = 0; i < tern_state_dict_count(b); i++) {
            tern_tensor *y = tern_state_dict_at(b, i);
            tern_tensor *x = tern_state_dict_get(a, tern_state_dict_key_at(b, i));
            size_t n = (size_t)tern_numel(y) * tern_dtype_size(tern_dtype_of(y));
            assert_memory_equal(tern_data(x), tern_data(y), n);
        }
        tern_state_dict_free(a);
        tern_state_dict_free(b);
    }
}

static void rows_are_read_alone(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    TERN_SCOPE {
        tern_file *file = tern_safe_open(GOLDEN "blocks.gguf");
        for (int i = 0; i < tern_file_count(file); i++) {
            const char *name = tern_file_name_at(file, i);
            tern_tensor *x = tern_file_get(file, name, device);
            assert_same(tern_file_get_slice(file, name, 1, 2, device), tern_narrow(x, 0, 1, 1));
        }
        tern_file_free(file);
    }
}

/* Rows of a vector begin and end inside of blocks. */
static void parts_of_a_vector_of_blocks_are_its_elements(void **state)
{
    (void)state;
    static gguf_bytes b;
    static const int64_t parts[][2] = {{0, 1},   {1, 3},   {0, 32}, {31, 33},
                                       {32, 64}, {33, 96}, {5, 5}};
    gguf_head(&b, 1, 0);
    gguf_record(&b, "v", 1, (uint64_t[]){96}, 8, 0);
    gguf_data(&b, 128);
    write_file(in_folder("vector.gguf"), b.bytes, b.n);
    FOR_EACH_DEVICE(device)
    TERN_SCOPE {
        tern_file *file = tern_safe_open(in_folder("vector.gguf"));
        assert_non_null(file);
        tern_tensor *x = tern_file_get(file, "v", device);
        for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
            const int64_t from = parts[i][0], to = parts[i][1];
            assert_same(tern_file_get_slice(file, "v", from, to, device),
                        tern_narrow(x, 0, from, to - from));
        }
        tern_file_free(file);
    }
}

/* ---- what is said of a file ---------------------------------------------------------------------- */

static void types_and_metadata_are_as_the_file_has_them(void **state)
{
    (void)state;
    tern_file *file = tern_safe_open(GOLDEN "blocks.gguf");
    assert_non_null(file);
    assert_string_equal(tern_file_dtype_name(file, "q4_k"), "Q4_K");
    assert_int_equal(tern_file_dtype(file, "q4_k"), TERN_F32);
    assert_string_equal(tern_file_dtype_name(file, "float16"), "F16");
    assert_int_equal(tern_file_dtype(file, "int8"), TERN_I8);
    tern_shape shape = tern_file_shape(file, "float64");
    assert_int_equal(shape.ndim, 3);
    assert_int_equal(shape.dims[0], 2);
    assert_int_equal(shape.dims[2], 5);
    assert_string_equal(tern_file_metadata(file, "general.architecture"), "llama");
    assert_string_equal(tern_file_metadata(file, "numbers"), "[1, -2, 3]");
    assert_string_equal(tern_file_metadata(file, "texts"), "array of 2 text");
    assert_string_equal(tern_file_metadata(file, "flag"), "true");
    assert_string_equal(tern_file_metadata(file, "real"), "0.25");
    tern_file_free(file);
}

static void an_index_says_what_its_shards_say(void **state)
{
    (void)state;
    static const char index[] = "{\"weight_map\": {\"q\": \"sample.gguf\"}}";
    gguf_write_sample(in_folder("sample.gguf"));
    write_file(in_folder("sample.json"), index, strlen(index));
    TERN_SCOPE {
        tern_file *shard = tern_safe_open(in_folder("sample.gguf"));
        tern_file *file = tern_safe_open(in_folder("sample.json"));
        assert_non_null(file);
        assert_string_equal(tern_file_dtype_name(file, "q"), "Q8_0");
        assert_int_equal(tern_file_dtype(file, "q"), TERN_F32);
        assert_int_equal(tern_file_nbytes(file, "q"), tern_file_nbytes(shard, "q"));
        assert_int_equal(tern_file_shape(file, "q").dims[1], 32);
        assert_same(tern_file_get(file, "q", "cpu"), tern_file_get(shard, "q", "cpu"));
        assert_same(tern_file_get_slice(file, "q", 3, 5, "cpu"),
                    tern_file_get_slice(shard, "q", 3, 5, "cpu"));
        tern_file_free(file);
        tern_file_free(shard);
    }
}

/* ---- parts ----------------------------------------------------------------------------------- */

static void copy(const char *from, const char *to)
{
    size_t n;
    char *bytes = read_file(from, &n);
    write_file(to, bytes, n);
    free(bytes);
}

static const char *part_name(int i)
{
    static char names[4][64];
    snprintf(names[i - 1], sizeof names[0], "llama_bias-%05d-of-00004.gguf", i);
    return names[i - 1];
}

static void any_part_opens_them_all(void **state)
{
    (void)state;
    char path[512];
    int count = 0;
    for (int i = 1; i <= 4; i++)
        TERN_SCOPE {
            snprintf(path, sizeof path, GOLDEN "%s", part_name(i));
            tern_state_dict *dict = tern_load(path, NULL);
            assert_non_null(dict);
            count = count ? count : tern_state_dict_count(dict);
            assert_true(count > 12);
            assert_int_equal(tern_state_dict_count(dict), count);
            assert_string_equal(tern_state_dict_metadata(dict, "general.architecture"), "llama");
            tern_state_dict_free(dict);
        }
}

static void parts_that_do_not_fit_are_errors(void **state)
{
    (void)state;
    char from[512];
    for (int i = 1; i <= 4; i++) {
        snprintf(from, sizeof from, GOLDEN "%s", part_name(i));
        copy(from, in_folder(part_name(i)));
    }
    assert_int_equal(unlink(in_folder(part_name(3))), 0);
    assert_null(tern_safe_open(in_folder(part_name(1))));
    assert_error(TERN_ERR_IO, part_name(3));
    copy(in_folder(part_name(2)), in_folder(part_name(3)));
    assert_null(tern_safe_open(in_folder(part_name(2))));
    assert_error(TERN_ERR_IO, "`split.no` is 1, and 2 is expected");
    /* What is no part, under the name of one. */
    copy(GOLDEN "blocks.gguf", in_folder("b-00001-of-00002.gguf"));
    copy(GOLDEN "blocks.gguf", in_folder("b-00002-of-00002.gguf"));
    assert_null(tern_safe_open(in_folder("b-00001-of-00002.gguf")));
    assert_error(TERN_ERR_IO, "`split.no` is not there");
}

static void a_tensor_in_two_parts_is_an_error(void **state)
{
    (void)state;
    for (uint64_t i = 0; i < 2; i++) {
        static gguf_bytes b;
        gguf_head(&b, 1, 3);
        gguf_pair(&b, "split.no", 2, i, 2);
        gguf_pair(&b, "split.count", 2, 2, 2);
        gguf_pair(&b, "split.tensors.count", 5, 2, 4);
        gguf_record(&b, "twice", 1, (uint64_t[]){8}, 0, 0);
        gguf_data(&b, 32);
        write_file(in_folder(i ? "t-00002-of-00002.gguf" : "t-00001-of-00002.gguf"), b.bytes, b.n);
    }
    assert_null(tern_safe_open(in_folder("t-00002-of-00002.gguf")));
    assert_error(TERN_ERR_IO, "`twice` is in a part before");
}

/* ---- files that lie -------------------------------------------------------------------------- */

static void what_is_wrong_is_named(void **state)
{
    (void)state;
    static gguf_bytes b;
    static const struct {
        const char *name, *message;
        int ndim;
        uint64_t dims[2];
        uint32_t type;
        uint64_t offset;
        size_t data;
    } rows[] = {
        {"cut", "`cut` has 256 bytes at offset 0, and the data 255", 2, {32, 2}, 0, 0, 255},
        {"row", "`row` has rows of 33 elements, and Q4_0 has blocks of 32", 2, {33, 2}, 2, 0, 64},
        {"wraps", "`wraps`", 2, {UINT64_C(1) << 33, UINT64_C(1) << 33}, 0, 0, 64},
        {"removed", "Q4_2 (4), which was taken out", 2, {32, 2}, 4, 0, 64},
        {"odd", "`odd` is at offset 4", 1, {8}, 0, 4, 64},
        {"hole", "`hole` is at offset 32 of the data, and 0", 1, {8}, 0, 32, 64},
        {"more", "the tensors end at 32 of 64 bytes of data", 1, {8}, 0, 0, 64},
        {"type", "type 99, which is not known", 1, {8}, 99, 0, 32},
        {"\xc3(", "is no UTF-8", 1, {8}, 0, 0, 32},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        gguf_head(&b, 1, 1);
        gguf_pair_text(&b, "general.architecture", "llama");
        gguf_record(&b, rows[i].name, rows[i].ndim, rows[i].dims, rows[i].type, rows[i].offset);
        gguf_data(&b, rows[i].data);
        write_file(in_folder("lies.gguf"), b.bytes, b.n);
        assert_null(tern_load(in_folder("lies.gguf"), NULL));
        assert_error(TERN_ERR_IO, rows[i].message);
        assert_null(tern_safe_open(in_folder("lies.gguf")));
        assert_error(TERN_ERR_IO, "lies.gguf");
    }
}

static void types_without_a_decoder_leave_the_rest(void **state)
{
    (void)state;
    static gguf_bytes b;
    gguf_head(&b, 2, 0);
    gguf_record(&b, "q", 1, (uint64_t[]){256}, 16, 0);
    gguf_record(&b, "x", 1, (uint64_t[]){8}, 0, 96);
    gguf_data(&b, 128);
    write_file(in_folder("some.gguf"), b.bytes, b.n);
    assert_null(tern_load(in_folder("some.gguf"), NULL));
    assert_error(TERN_ERR_DTYPE, "`q` is of type IQ2_XXS");
    const char *only[] = {"x"};
    tern_state_dict *dict =
        tern_load(in_folder("some.gguf"), &(tern_load_options){.only = only, .n_only = 1});
    assert_non_null(dict);
    assert_int_equal(tern_state_dict_count(dict), 1);
    tern_state_dict_free(dict);
}

/* A hostile file, opened and loaded; in a child whose memory for data ends at twice the file and 16 MiB more than there is. */
static void try_hostile(const char *path, const char *verdict, const char *names)
{
    struct stat about;
    struct rlimit limit;
    char line[256];
    unsigned long now = 0;
    FILE *status = fopen("/proc/self/status", "r");
    while (status && fgets(line, sizeof line, status))
        sscanf(line, "VmData: %lu", &now);
    fclose(status);
    assert_int_equal(stat(path, &about), 0);
    assert_int_equal(getrlimit(RLIMIT_DATA, &limit), 0);
    limit.rlim_cur = (rlim_t)now * 1024 + 2 * (rlim_t)about.st_size + (16 << 20);
#ifndef __SANITIZE_ADDRESS__ /* which takes memory of its own for each block */
    assert_int_equal(setrlimit(RLIMIT_DATA, &limit), 0);
#endif
    tern_file *file = tern_safe_open(path);
    if (strcmp(verdict, "reject") == 0) {
        if (file)
            fail_msg("%s was opened", path);
        assert_non_null(strstr(tern_last_error(), path));
        assert_error(TERN_ERR_IO, names);
        assert_null(tern_load(path, NULL));
        assert_error(TERN_ERR_IO, names);
        return;
    }
    if (!file)
        fail_msg("%s: %s", path, tern_last_error());
    for (int i = 0; i < tern_file_count(file); i++)
        assert_non_null(tern_file_dtype_name(file, tern_file_name_at(file, i)));
    tern_file_free(file);
    tern_state_dict *dict = tern_load(path, NULL);
    if (strcmp(verdict, "refuse") == 0) {
        assert_null(dict);
        assert_error(TERN_ERR_DTYPE, names);
    } else if (!dict)
        fail_msg("%s: %s", path, tern_last_error());
    tern_state_dict_free(dict);
}

static void hostile_files_have_their_verdicts(void **state)
{
    (void)state;
    char line[1024], path[5000];
    FILE *rows = gguf_hostile_rows(in_folder("hostile"));
    int count = 0;
    for (; fgets(line, sizeof line, rows); count++) {
        char *id = strtok(line, "\t"), *verdict = strtok(NULL, "\t"), *names = strtok(NULL, "\t");
        snprintf(path, sizeof path, "%s/%s.gguf", in_folder("hostile"), id);
        names = strcmp(names, "-") == 0 ? "" : names;
        IN_CHILD
        try_hostile(path, verdict, names);
    }
    fclose(rows);
    assert_true(count > 100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(every_type_is_what_the_package_reads),
        TEST(signs_of_zeros_are_those_of_the_package),
        TEST(rows_are_read_alone),
        TEST(parts_of_a_vector_of_blocks_are_its_elements),
        TEST(types_and_metadata_are_as_the_file_has_them),
        TEST(an_index_says_what_its_shards_say),
        TEST(any_part_opens_them_all),
        TEST(parts_that_do_not_fit_are_errors),
        TEST(a_tensor_in_two_parts_is_an_error),
        TEST(what_is_wrong_is_named),
        TEST(types_without_a_decoder_leave_the_rest),
        TEST(hostile_files_have_their_verdicts),
    };
    return folder_main(tests, sizeof tests / sizeof *tests);
}
