/* test_datasets.c -- data sets of files: IDX, CIFAR, tables, text, tokens; and hostile ones. */
#include "files.h"
#include <math.h>

static tern_dataset *csv(const char *content, const tern_csv_options *options)
{
    return tern_datasets_csv(test_text("t.csv", content), options);
}

/* ---- IDX --------------------------------------------------------------------------------- */

#define IDX(NAME, ...)                                                                             \
    test_file(NAME, (const unsigned char[]){__VA_ARGS__},                                          \
              sizeof((const unsigned char[]){__VA_ARGS__}))

static void idx_files_are_read(void **state)
{
    (void)state;
    TERN_SCOPE {
        tern_tensor *x =
            tern_read_idx(IDX("a", 0, 0, 0x08, 2, 0, 0, 0, 2, 0, 0, 0, 3, 1, 2, 3, 4, 5, 255));
        assert_shape(x, 2, 3);
        assert_values(x, 1, 2, 3, 4, 5, 255);
        x = tern_read_idx(IDX("a", 0, 0, 0x0c, 1, 0, 0, 0, 2, 0, 0, 1, 0, 255, 255, 255, 254));
        assert_values(x, 256, -2);
        x = tern_read_idx(IDX("a", 0, 0, 0x09, 1, 0, 0, 0, 2, 255, 127));
        assert_true(tern_dtype_of(x) == TERN_I8);
        assert_values(x, -1, 127);
        x = tern_read_idx(IDX("a", 0, 0, 0x0b, 1, 0, 0, 0, 2, 1, 0, 255, 254));
        assert_true(tern_dtype_of(x) == TERN_I16);
        assert_values(x, 256, -2);
        x = tern_read_idx(IDX("a", 0, 0, 0x0d, 1, 0, 0, 0, 1, 0x3f, 0xc0, 0, 0));
        assert_values(x, 1.5);
        x = tern_read_idx(IDX("a", 0, 0, 0x0e, 1, 0, 0, 0, 1, 0xc0, 4, 0, 0, 0, 0, 0, 0));
        assert_values(x, -2.5);
        x = tern_read_idx(IDX("a", 0, 0, 0x08, 2, 0, 0, 0, 0, 0, 0, 0, 3));
        assert_shape(x, 0, 3);
    }
}

static void mnist_is_found_in_its_folders(void **state)
{
    (void)state;
    test_make_folder("MNIST");
    test_make_folder("MNIST/raw");
    IDX("MNIST/raw/t10k-images-idx3-ubyte", 0, 0, 8, 3, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, 2, 9, 8, 7,
        6);
    IDX("MNIST/raw/t10k-labels-idx1-ubyte", 0, 0, 8, 1, 0, 0, 0, 2, 4, 5);
    TERN_SCOPE {
        tern_tensor *item[2];
        tern_dataset *d = tern_datasets_mnist(test_path(""), false);
        assert_non_null(d);
        assert_string_equal(tern_dataset_name(d), "MNIST");
        assert_int_equal(tern_dataset_classes(d), 6);
        assert_ok(tern_dataset_item(d, 1, item));
        assert_shape(item[0], 1, 1, 2);
        assert_values(item[0], 7, 6);
        assert_true(tern_item_int(item[1]) == 5 && tern_dtype_of(item[1]) == TERN_I64);
        tern_dataset_free(d);
        assert_null(tern_datasets_mnist(test_path(""), true));
        assert_error(TERN_ERR_IO, "Dataset not found: no train-images-idx3-ubyte");
        IDX("MNIST/raw/t10k-labels-idx1-ubyte", 0, 0, 8, 1, 0, 0, 0, 1, 4);
        assert_null(tern_datasets_mnist(test_path(""), false));
        assert_error(TERN_ERR_IO, "2 images and 1 labels");
        assert_null(tern_datasets_emnist(test_path(""), "numbers", true));
        assert_error(TERN_ERR_ARGUMENT, "split numbers is none of");
    }
}

/* 00 00 08 01 00000003 07 08 09 by gzip. */
static const unsigned char packed[] = {
    0x1f, 0x8b, 0x08, 0x00, 0x00, 0x00, 0x00, 0x00, 0x02, 0x03, 0x63, 0x60, 0xe0, 0x60, 0x64, 0x60,
    0x60, 0x60, 0x66, 0xe7, 0xe0, 0x04, 0x00, 0xad, 0x98, 0x0a, 0xba, 0x0b, 0x00, 0x00, 0x00};

static void gzip_is_known_by_its_bytes(void **state)
{
    (void)state;
    TERN_SCOPE {
        tern_tensor *x = tern_read_idx(test_file("not-gz", packed, sizeof packed));
        if (x || !test_no_library()) {
            assert_values(x, 7, 8, 9);
            for (size_t n = 2; n < sizeof packed; n++) { /* cut anywhere */
                assert_null(tern_read_idx(test_file("cut", packed, n)));
                assert_error(TERN_ERR_IO, "tern_read_idx: ");
            }
        }
    }
}

static void hostile_idx_files_are_refused(void **state)
{
    (void)state;
    const struct {
        unsigned char bytes[24];
        size_t n;
        const char *words;
    } rows[] = {
        {{0}, 0, "ends within its header: 0 of 4 bytes"},
        {{0, 0, 8}, 3, "ends within its header"},
        {{0, 1, 8, 1, 0, 0, 0, 0}, 8, "begins with 00 01 08 01"},
        {{0, 0, 7, 1, 0, 0, 0, 0}, 8, "not an IDX file"},
        {{0, 0, 8, 0}, 4, "1 to 8 sizes"},
        {{0, 0, 8, 9}, 4, "1 to 8 sizes"},
        {{0, 0, 8, 2, 0, 0, 0, 1}, 8, "ends within its header"},
        {{0, 0, 8, 1, 0, 0, 0, 3, 1, 2}, 10, "says that 3 bytes follow its header, and has 2"},
        {{0, 0, 8, 1, 0, 0, 0, 1, 1, 2}, 10, "says that 1 bytes follow its header, and has 2"},
        {{0, 0, 14, 1, 255, 255, 255, 255, 1}, 9, "says that 34359738360 bytes"},
        {{0,   0,   8,   4,   255, 255, 255, 255, 255, 255,
          255, 255, 255, 255, 255, 255, 255, 255, 255, 255},
         20,
         "bytes follow its header, and has 0"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        assert_null(tern_read_idx(test_file("bad", rows[i].bytes, rows[i].n)));
        assert_error(TERN_ERR_IO, rows[i].words);
    }
    assert_null(tern_read_idx(test_path("none")));
    assert_error(TERN_ERR_IO, "No such file");
    assert_null(tern_read_idx(test_path("")));
    assert_error(TERN_ERR_IO, "is not a regular file");
#ifndef _WIN32 /* whose pipes are in no folder */
    assert_int_equal(mkfifo(test_path("pipe"), 0600), 0);
    assert_null(tern_read_idx(test_path("pipe"))); /* and does not wait for a writer */
    assert_error(TERN_ERR_IO, "is not a regular file");
#endif
    assert_null(tern_read_idx(NULL));
    assert_error(TERN_ERR_ARGUMENT, "path is NULL");
}

/* ---- CIFAR ------------------------------------------------------------------------------- */

static void cifar_is_read(void **state)
{
    (void)state;
    enum { ROW = 3073 };
    unsigned char *rows = calloc(2, ROW + 1);
    rows[0] = 3, rows[1] = 11, rows[ROW] = 9, rows[ROW + ROW - 1] = 77;
    test_file("test_batch.bin", rows, 2 * ROW);
    TERN_SCOPE {
        tern_tensor *item[2];
        tern_dataset *d = tern_datasets_cifar10(test_path(""), false);
        assert_int_equal(tern_dataset_length(d), 2);
        assert_ok(tern_dataset_item(d, 1, item));
        assert_shape(item[0], 3, 32, 32);
        assert_int_equal(tern_item_int(item[1]), 9);
        assert_int_equal(tern_item_int(tern_select(tern_reshape(item[0], TERN_SHAPE(-1)), 0, 3071)),
                         77);
        tern_dataset_free(d);
    }
    rows[1] = 42; /* the fine label */
    test_file("test.bin", rows, ROW + 1);
    TERN_SCOPE {
        tern_tensor *item[2];
        tern_dataset *d = tern_datasets_cifar100(test_path(""), false);
        assert_ok(tern_dataset_item(d, 0, item));
        assert_int_equal(tern_item_int(item[1]), 42);
        tern_dataset_free(d);
        test_file("test.bin", rows, ROW);
        assert_null(tern_datasets_cifar100(test_path(""), false));
        assert_error(TERN_ERR_IO, "which are no rows of 3074");
    }
    free(rows);
}

/* ---- tables ------------------------------------------------------------------------------ */

static void tables_are_read(void **state)
{
    (void)state;
    TERN_SCOPE {
        tern_tensor *item[2];
        tern_dataset *d = csv("\xef\xbb\xbf"
                              "a,\"b \"\"c\"\"\",kind\r\n 1 ,-2.5e1,\"dog\"\r\n\r\n"
                              "nan,inf,cat\r\n3,4,\"dog\"",
                              &(tern_csv_options){.label = "kind"});
        assert_int_equal(tern_dataset_length(d), 3);
        assert_ok(tern_dataset_item(d, 0, item));
        assert_values(item[0], 1, -25);
        assert_int_equal(tern_item_int(item[1]), 1);
        assert_ok(tern_dataset_item(d, 1, item));
        assert_true(isnan(tern_item(tern_select(item[0], 0, 0))));
        assert_int_equal(tern_item_int(item[1]), 0);
        assert_int_equal(tern_datasets_class_count(d), 2);
        assert_string_equal(tern_datasets_class_name(d, 1), "dog");
        assert_null(tern_datasets_class_name(d, 2));
        tern_dataset_free(d);
        const char *columns[] = {"2", "0"};
        d = csv("1;2;3\n4;5;-6\n", &(tern_csv_options){.separator = ';',
                                                       .no_header = true,
                                                       .columns = columns,
                                                       .n_columns = 2,
                                                       .label = "1"});
        assert_ok(tern_dataset_item(d, 1, item));
        assert_values(item[0], -6, 4);
        assert_int_equal(tern_item_int(item[1]), 5);
        tern_dataset_free(d);
        d = csv("x,y\n,1\n", &(tern_csv_options){.empty_is_nan = true});
        assert_int_equal(tern_dataset_count(d), 1);
        assert_ok(tern_dataset_item(d, 0, item));
        assert_true(isnan(tern_item(tern_select(item[0], 0, 0))));
        tern_dataset_free(d);
        d = csv("x\n", NULL);
        assert_int_equal(tern_dataset_length(d), 0);
        tern_dataset_free(d);
    }
}

/* What pandas.read_csv gives with the options of these names. */
static void tables_are_read_by_the_options_of_pandas(void **state)
{
    (void)state;
    static const char *const words[] = {"-", "-999"};
    const struct {
        const char *content;
        tern_csv_options options;
        float first, last;
    } rows[] = {
        {"a,b\r1,2\r3,4\r", {0}, 1, 4},
        {"a,b\r1,2\r\n3,4\n", {0}, 1, 4},
        {"a,b\rNA,2\r3,null", {.empty_is_nan = true}, NAN, NAN},
        {"a,b\n N/A ,2\n3,#N/A", {.empty_is_nan = true}, NAN, NAN},
        {"a,b\n-,2\n3,-999\n", {.na_values = words, .n_na_values = 2}, NAN, NAN},
        {"a,b\n\"1,000\",2\n3,\"-12,345,678.5\"\n", {.thousands = ','}, 1000, -12345678.5f},
        {"a;b\n1.000,5;2\n3;4,25\n",
         {.separator = ';', .thousands = '.', .decimal = ','},
         1000.5f,
         4.25f},
        {"# of 2020\na,b # names\n1,2\n  # more\n3,4# end", {.comment = '#'}, 1, 4},
        {"a report\n\nof 2020\na,b\n1,2\n3,4\n", {.skiprows = 3}, 1, 4},
        {"x\r\ry\r1,2\r3,4", {.skiprows = 3, .no_header = true}, 1, 4},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        TERN_SCOPE {
            tern_tensor *item[2];
            tern_dataset *d = csv(rows[i].content, &rows[i].options);
            if (!d)
                fail_msg("number %zu: %s", i, tern_last_error());
            assert_int_equal(tern_dataset_length(d), 2);
            for (int k = 0; k < 2; k++) {
                assert_ok(tern_dataset_item(d, k, item));
                float got = (float)tern_item(tern_select(item[0], 0, k));
                float wanted = k ? rows[i].last : rows[i].first;
                if (isnan(wanted) ? !isnan(got) : got != wanted)
                    fail_msg("number %zu: %g, %g is wanted", i, (double)got, (double)wanted);
            }
            tern_dataset_free(d);
        }
    const char text[] = "a,b\n1,2\n3,4\n";
    char frame[64] = "\x28\xb5\x2f\xfd\x20"; /* of zstd, with one block, which is stored */
    frame[5] = (char)(sizeof text - 1);
    frame[6] = (char)(1 | (sizeof text - 1) << 3);
    memcpy(frame + 9, text, sizeof text - 1);
    tern_dataset *zstd =
        tern_datasets_csv(test_file("t.csv.zst", frame, 9 + sizeof text - 1), NULL);
    if (zstd || !test_no_library()) {
        assert_int_equal(tern_dataset_length(zstd), 2);
        assert_null(tern_datasets_csv(test_file("t.csv.zst", frame, 12), NULL));
        assert_error(TERN_ERR_IO, "ends within a frame of zstd");
    }
    tern_dataset_free(zstd);
    tern_dataset *gz = tern_datasets_csv(test_gzip("t.csv.gz", text, sizeof text - 1), NULL);
    if (gz || !test_no_library())
        assert_int_equal(tern_dataset_length(gz), 2);
    tern_dataset_free(gz);
    const tern_csv_options wrong[] = {
        {.skiprows = -1}, {.comment = ','}, {.thousands = '.'}, {.thousands = ',', .decimal = ','}};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        assert_null(csv("a\n1\n", &wrong[i]));
        assert_error(TERN_ERR_ARGUMENT, "tern_datasets_csv");
    }
}

static void hostile_tables_are_refused(void **state)
{
    (void)state;
    const struct {
        const char *content, *words;
    } rows[] = {
        {"a,b\n1,2\n3\n", "line 3: 1 fields, where the first line has 2"},
        {"a,b\n1,x\n", "line 2, column 1: 'x' is not a number"},
        {"a,b\n1,\n", "'' is not a number"},
        {"a\n0x10\n", "'0x10' is not a number"},
        {"a\n1 2\n", "'1 2' is not a number"},
        {"a\nnan(3)\n", "is not a number"},
        {"a\n\"1\n", "a quote is not closed"},
        {"a\n\"1\"2\n", "text behind a quoted field"},
        {"a\n1\"2\"\n", "a quote within a field"},
        {"a\nNA\n", "'NA' is not a number; with .empty_is_nan"},
        {"a\n\"1,000\"\n", "'1,000' is not a number"},
        {"a\r1\rx\r", "line 3, column 0: 'x' is not a number"},
        {"a\r\n\"1\r\n\r\n\"\r\nx", "line 2"},
        {"\"a\n\nb\"\nz\n", "line 4"},
        {"", "has no column of values"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        assert_null(csv(rows[i].content, NULL));
        assert_error(*rows[i].content ? TERN_ERR_IO : TERN_ERR_ARGUMENT, rows[i].words);
    }
    assert_null(tern_datasets_csv(test_file("zero_byte.csv", "a\n1\0002\n", 7), NULL));
    assert_error(TERN_ERR_IO, "a NUL in a field");
    assert_null(csv("a\n1\n", &(tern_csv_options){.label = "b"}));
    assert_error(TERN_ERR_ARGUMENT, "has no column b");
    char *wide = malloc((2 << 20) + 8);
    memset(wide, '1', 2 << 20);
    memcpy(wide, "a\n", 2);
    assert_null(tern_datasets_csv(test_file("wide.csv", wide, 2 << 20), NULL));
    assert_error(TERN_ERR_IO, "a field of more than 1 MiB");
    free(wide);
}

/* ---- text, tokens ------------------------------------------------------------------------ */

static void lines_are_items(void **state)
{
    (void)state;
    TERN_SCOPE {
        tern_tensor *item[1];
        tern_dataset *d = tern_datasets_text_lines(test_text("l", "ab\r\n\nxyz"));
        assert_int_equal(tern_dataset_length(d), 3);
        assert_ok(tern_dataset_item(d, 0, item));
        assert_values(item[0], 'a', 'b');
        assert_ok(tern_dataset_item(d, 1, item));
        assert_int_equal(tern_numel(item[0]), 0);
        assert_ok(tern_dataset_item(d, 2, item));
        assert_values(item[0], 'x', 'y', 'z');
        assert_int_equal(truncate(test_path("l"), 3), 0); /* under the reader */
        assert_int_equal(tern_dataset_item(d, 2, item), TERN_ERR_IO);
        assert_error(TERN_ERR_IO, "ends at byte");
        tern_dataset_free(d);
        d = tern_datasets_text_lines(test_text("l", ""));
        assert_int_equal(tern_dataset_length(d), 0);
        tern_dataset_free(d);
    }
}

static void tokens_are_windows(void **state)
{
    (void)state;
    const uint16_t words[] = {1, 2, 3, 40000, 5};
    const int32_t ints[] = {1, -2, 3};
    TERN_SCOPE {
        tern_tensor *item[2];
        tern_dataset *d = tern_datasets_tokens(test_file("t", words, sizeof words), 0, 3);
        assert_int_equal(tern_dataset_length(d), 2);
        assert_ok(tern_dataset_item(d, 1, item));
        assert_values(item[0], 2, 3, 40000);
        assert_values(item[1], 3, 40000, 5);
        tern_dataset_free(d);
        d = tern_datasets_tokens(test_file("t", ints, sizeof ints), TERN_I32, 1);
        assert_ok(tern_dataset_item(d, 1, item));
        assert_values(item[0], -2);
        tern_dataset_free(d);
        assert_null(tern_datasets_tokens(test_file("t", words, 9), 0, 3));
        assert_error(TERN_ERR_IO, "9 bytes");
        assert_null(tern_datasets_tokens(test_file("t", words, 6), 0, 3));
        assert_error(TERN_ERR_IO, "more than 3 of them");
        assert_null(tern_datasets_tokens(test_path("t"), TERN_F32, 3));
        assert_error(TERN_ERR_DTYPE, "tokens of float32");
        assert_null(tern_datasets_tokens(test_path("t"), 0, 0));
        assert_error(TERN_ERR_ARGUMENT, "block 0 should be positive");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(idx_files_are_read),
        TEST(mnist_is_found_in_its_folders),
        TEST(gzip_is_known_by_its_bytes),
        TEST(hostile_idx_files_are_refused),
        TEST(cifar_is_read),
        TEST(tables_are_read),
        TEST(tables_are_read_by_the_options_of_pandas),
        TEST(hostile_tables_are_refused),
        TEST(lines_are_items),
        TEST(tokens_are_windows),
    };
    return test_main(tests, sizeof tests / sizeof *tests);
}
