/* test_load_map.c -- tern_load with mmap: the tensors lie in the file's pages, and are the program's own. */
#include "support.h"
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static char path[] = "load-map-XXXXXX";

static tern_state_dict *dict_of(double first)
{
    tern_state_dict *dict = tern_state_dict_new();
    tern_state_dict_set(dict, "a",
                        tern_full(TERN_SHAPE(100, 7), TERN_SCALAR(first), TERN_F32, "cpu"));
    tern_state_dict_set(dict, "half",
                        tern_to_dtype(tern_arange(0, 9, 1, TERN_F32, "cpu"), TERN_BF16));
    tern_state_dict_set(dict, "long", tern_arange(0, 5, 1, TERN_I64, "cpu"));
    tern_state_dict_set(dict, "mask", tern_gt(tern_arange(0, 3, 1, TERN_I64, "cpu"), 1));
    tern_state_dict_set(dict, "none", tern_zeros(TERN_SHAPE(0, 3), TERN_F32, "cpu"));
    return dict;
}

static void write_file(double first)
{
    tern_state_dict *dict = dict_of(first);
    assert_ok(tern_save(dict, path, NULL));
    tern_state_dict_free(dict);
}

/* How many maps of the file there are in the process; Windows does not list them. */
static void assert_maps(int expected)
{
#ifdef _WIN32
    (void)expected;
#else
    char line[1000];
    int n = 0;
    FILE *file = fopen("/proc/self/maps", "r");
    while (file && fgets(line, sizeof line, file))
        n += strstr(line, path + sizeof "load-map-" - 1) != NULL;
    if (file)
        fclose(file);
    assert_int_equal(n, expected);
#endif
}

static tern_state_dict *load(const char *device)
{
    return tern_load(path, &(tern_load_options){.map_location = device, .mmap = true});
}

static void elements_are_the_files(void **state)
{
    (void)state;
    write_file(2);
    tern_state_dict *wanted = dict_of(2), *got = load("cpu");
    assert_non_null(got);
    assert_maps(1);
    for (int i = 0; i < tern_state_dict_count(wanted); i++) {
        const char *name = tern_state_dict_key_at(wanted, i);
        assert_same(tern_state_dict_get(got, name), tern_state_dict_get(wanted, name));
    }
    tern_state_dict_free(wanted);
    tern_state_dict_free(got);
    assert_maps(0);
}

/* What is written stays in memory, and a tensor outlives the dict. */
static void writes_are_private(void **state)
{
    (void)state;
    write_file(2);
    tern_state_dict *one = load("cpu"), *two = load("cpu");
    tern_tensor *a = tern_keep(tern_state_dict_get(one, "a"));
    tern_mul_(a, 3);
    assert_close(tern_state_dict_get(two, "a"), tern_full_like(a, TERN_SCALAR(2)), .abs = 0);
    tern_state_dict_free(one);
    tern_state_dict_free(two);
    assert_maps(1);
    assert_close(a, tern_full_like(a, TERN_SCALAR(6)), .abs = 0);
    tern_tensor *again = tern_state_dict_get(two = load("cpu"), "a");
    assert_close(again, tern_full_like(a, TERN_SCALAR(2)), .abs = 0);
    tern_state_dict_free(two);
    tern_release(a);
    assert_maps(0);
}

/* A file that is saved over is another one: what is mapped stays. */
static void saved_over_it_stays(void **state)
{
    (void)state;
    write_file(2);
    tern_state_dict *dict = load("cpu");
#ifdef _WIN32 /* which replaces no such file */
    tern_state_dict *other = dict_of(5);
    assert_int_equal(tern_save(other, path, NULL), TERN_ERR_IO);
    assert_error(TERN_ERR_IO, "mapped (.mmap of tern_load)");
    tern_state_dict_free(other);
    tern_state_dict_free(dict);
    write_file(5); /* but when it is let go */
    dict = load("cpu");
    tern_tensor *new = tern_state_dict_get(dict, "a");
    assert_close(new, tern_full_like(new, TERN_SCALAR(5)), .abs = 0);
    tern_state_dict_free(dict);
#else
    write_file(5);
    tern_tensor *a = tern_state_dict_get(dict, "a");
    assert_close(a, tern_full_like(a, TERN_SCALAR(2)), .abs = 0);
    assert_ok(tern_save(dict, path, NULL)); /* also by itself */
    assert_close(a, tern_full_like(a, TERN_SCALAR(2)), .abs = 0);
    tern_state_dict_free(dict);
    dict = load("cpu");
    assert_same(tern_state_dict_get(dict, "long"), tern_arange(0, 5, 1, TERN_I64, "cpu"));
    tern_state_dict_free(dict);
#endif
}

/* Data at odd places, and of other kinds of files, is read. */
static void what_can_not_be_mapped_is_read(void **state)
{
    (void)state;
    static const char header[] = "{\"x\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}}";
    static const float numbers[] = {1.5f, -2};
    FILE *file = fopen(path, "wb");
    uint64_t n = sizeof header - 1;
    assert_true(n % 4 != 0); /* else the header ought to be another */
    fwrite(&n, 1, 8, file);
    fwrite(header, 1, n, file);
    fwrite(numbers, 1, sizeof numbers, file);
    fclose(file);
    tern_state_dict *dict = load("cpu");
    assert_non_null(dict);
    assert_maps(0);
    assert_values(tern_state_dict_get(dict, "x"), 1.5, -2);
    tern_state_dict_free(dict);
    assert_ok(tern_npy_save(tern_arange(0, 4, 1, TERN_F32, "cpu"), path));
    dict = load("cpu");
    assert_non_null(dict);
    tern_state_dict_free(dict);
    FOR_EACH_DEVICE(device)
    {
        write_file(2);
        dict = load(device);
        tern_tensor *a = tern_state_dict_get(dict, "a");
        assert_string_equal(tern_device(a), device);
        assert_close(a, tern_full_like(a, TERN_SCALAR(2)), .abs = 0);
        tern_state_dict_free(dict);
    }
}

static const struct CMUnitTest tests[] = {
    TEST(elements_are_the_files),
    TEST(writes_are_private),
    TEST(saved_over_it_stays),
    TEST(what_can_not_be_mapped_is_read),
};

int main(void)
{
    int fd = mkstemp(path);
    if (fd < 0)
        return 1;
    close(fd);
    int failures = test_main(tests, sizeof tests / sizeof *tests);
    unlink(path);
    return failures;
}
