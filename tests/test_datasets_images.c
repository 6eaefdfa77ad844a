/* test_datasets_images.c -- images in files, in folders and in tar archives; and hostile ones. */
#include "files.h"

/* ---- images ------------------------------------------------------------------------------ */

static bool images_can_be_read(const char *name)
{
    size_t n;
    unsigned char *bytes = test_image(name, &n);
    TERN_SCOPE
        tern_image_decode(bytes, n, NULL);
    free(bytes);
    if (test_no_library())
        return false;
    assert_ok(tern_last_status());
    return true;
}

static void images_are_as_torchvision_reads_them(void **state)
{
    (void)state;
    static const char *const names[] = {
        "colour.png", "grey.png",  "palette.png", "alpha.png", "deep.png",   "colour.jpg",
        "grey.jpg",   "large.jpg", "cmyk.jpg",    "ycck.jpg",  "colour.bmp", "palette.bmp",
        "grey.bmp",   "bits.bmp",  "alpha.bmp",   "runs.bmp",  "colour.webp"};
    if (!images_can_be_read("grey.png") || !images_can_be_read("grey.jpg"))
        skip();
    test_golden *golden = test_golden_open("decoded");
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        TERN_SCOPE {
            size_t n;
            if (strstr(names[i], "webp") && !images_can_be_read(names[i]))
                continue;
            unsigned char *bytes = test_image(names[i], &n);
            tern_tensor *x = tern_image_decode(bytes, n, NULL);
            assert_non_null(x);
            test_close(x, test_golden_tensor(golden, names[i], "cpu"), (test_tolerance){.abs = 0},
                       names[i], __FILE__, __LINE__);
            free(bytes);
        }
    test_golden_close(golden);
}

static void sixteen_bits_are_kept_where_asked(void **state)
{
    (void)state;
    static const char *const names[] = {"deep.png",       "deep_colour.png",     "deep_gamma.png",
                                        "deep_alpha.png", "deep_grey_alpha.png", "deep_lines.png"};
    const tern_image_options kept = {.keep_16_bits = true};
    if (!images_can_be_read("grey.png"))
        skip();
    test_golden *golden = test_golden_open("decoded");
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        TERN_SCOPE {
            size_t n;
            char name[64];
            unsigned char *bytes = test_image(names[i], &n);
            tern_tensor *x = tern_image_decode(bytes, n, &kept);
            assert_non_null(x);
            assert_int_equal(tern_dtype_of(x), TERN_U16);
            snprintf(name, sizeof name, "%s/16", names[i]);
            test_close(tern_to_dtype(x, TERN_I32), test_golden_tensor(golden, name, "cpu"),
                       (test_tolerance){.abs = 0}, names[i], __FILE__, __LINE__);
            assert_int_equal(tern_dtype_of(tern_image_decode(bytes, n, NULL)), TERN_U8);
            assert_null(tern_image_decode(
                bytes, n, &(tern_image_options){.max_pixels = 3, .keep_16_bits = true}));
            assert_error(TERN_ERR_IO, "3 are allowed");
            for (size_t cut = 26; cut < n - 12; cut += 7) { /* a copy, so that ASan sees its end */
                unsigned char *part = malloc(cut);
                memcpy(part, bytes, cut);
                assert_null(tern_image_decode(part, cut, &kept));
                assert_error(TERN_ERR_IO, "tern_image_decode: ");
                free(part);
            }
            free(bytes);
        }
    TERN_SCOPE {
        size_t n;
        unsigned char *bytes = test_image("colour.png", &n);
        assert_int_equal(tern_dtype_of(tern_image_decode(bytes, n, &kept)), TERN_U8);
        free(bytes);
    }
    test_golden_close(golden);
}

static void hostile_images_are_refused(void **state)
{
    (void)state;
    size_t n;
    if (!images_can_be_read("grey.png") || !images_can_be_read("grey.jpg"))
        skip();
    static const char *const names[] = {"colour.png", "colour.jpg",  "colour.bmp",
                                        "runs.bmp",   "palette.bmp", "colour.webp"};
    for (int i = 0; i < 6; i++) {
        if (i == 5 && !images_can_be_read(names[i]))
            continue;
        unsigned char *bytes = test_image(names[i], &n);
        n -= i == 0 ? 12 : 0; /* behind which a PNG has but a mark of its end */
        for (size_t cut = 0; cut + (i > 1 ? 4 : 0) < n;
             cut += 1 + cut / 8) { /* a copy, so that ASan sees its end */
            unsigned char *part = malloc(cut + !cut);
            memcpy(part, bytes, cut);
            TERN_SCOPE
                assert_null(tern_image_decode(part, cut, NULL));
            assert_error(TERN_ERR_IO, "tern_image_decode: ");
            free(part);
        }
        n += i == 0 ? 12 : 0;
        for (size_t at = 0; at < n; at++) { /* whatever comes of it, nothing else happens */
            bytes[at] ^= (unsigned char)(1 + at * 37 % 255);
            TERN_SCOPE
                tern_image_decode(bytes, n, NULL);
            bytes[at] ^= (unsigned char)(1 + at * 37 % 255);
            tern_clear_error();
        }
        TERN_SCOPE
            assert_null(tern_image_decode(bytes, n, &(tern_image_options){.max_pixels = 11}));
        assert_error(TERN_ERR_IO, "11 are allowed");
        free(bytes);
    }
    /* a PNG that says it is 2^31 - 1 pixels wide and high */
    unsigned char *bomb = test_image("grey.png", &n);
    memcpy(bomb + 16, "\x7f\xff\xff\xff\x7f\xff\xff\xff", 8);
    assert_null(tern_image_decode(bomb, n, NULL));
    assert_error(TERN_ERR_IO, "tern_image_decode: ");
    free(bomb);
    /* tables without an image, as an abbreviated JPEG begins: the library says no sizes, and no error */
    assert_null(tern_image_decode("\xff\xd8\xff\xfe\0\4ab\xff\xd9", 10, NULL));
    assert_error(TERN_ERR_IO, "a JPEG of 0 x 0 pixels");
    assert_null(tern_image_decode("GIF89a..", 8, NULL));
    assert_error(TERN_ERR_IO, "none of PNG, JPEG, WebP and BMP");
}

static void jpegs_are_decoded_smaller(void **state)
{
    (void)state;
    size_t n;
    if (!images_can_be_read("large.jpg"))
        skip();
    unsigned char *bytes = test_image("large.jpg", &n); /* 40 x 56 */
    TERN_SCOPE {
        assert_shape(tern_image_decode(bytes, n, &(tern_image_options){.min_edge = 20}), 3, 20, 28);
        assert_shape(tern_image_decode(bytes, n, &(tern_image_options){.min_edge = 21}), 3, 40, 56);
        assert_shape(tern_image_decode(bytes, n, &(tern_image_options){.min_edge = 1}), 3, 5, 7);
    }
    free(bytes);
}

static void folders_are_classes(void **state)
{
    (void)state;
    if (!images_can_be_read("grey.png") || !images_can_be_read("grey.jpg"))
        skip();
    test_make_folder("f");
    assert_null(tern_datasets_image_folder(test_path("f"), NULL));
    assert_error(TERN_ERR_IO, "Couldn't find any class folder in");
    test_make_folder("f/dog");
    test_make_folder("f/cat");
    test_make_folder("f/cat/more");
    test_text("f/dog/notes.txt", "no image");
    test_copy_image("colour.jpg", "f/cat/b.JPG");
    test_copy_image("colour.png", "f/cat/a.png");
    test_copy_image("grey.png", "f/cat/more/c.jpeg"); /* by its bytes, not its name */
    assert_null(tern_datasets_image_folder(test_path("f"), NULL));
    assert_error(TERN_ERR_IO, "Found no valid file for the classes dog.");
    TERN_SCOPE {
        tern_tensor *item[2];
        tern_dataset *d = tern_datasets_image_folder(
            test_path("f"), &(tern_image_folder_options){.allow_empty = true});
        assert_int_equal(tern_dataset_length(d), 3);
        assert_int_equal(tern_datasets_class_count(d), 2);
        assert_string_equal(tern_datasets_class_name(d, 0), "cat");
        const int64_t heights[] = {5, 10, 5};
        for (int i = 0; i < 3; i++) {
            assert_ok(tern_dataset_item(d, i, item));
            assert_int_equal(tern_size(item[0], 1), heights[i]);
            assert_int_equal(tern_item_int(item[1]), 0);
        }
        test_text("f/cat/a.png", "\x89PNG\r\n\x1a\n broken");
        assert_int_equal(tern_dataset_item(d, 0, item), TERN_ERR_IO);
        assert_error(TERN_ERR_IO, "f/cat/a.png: ");
        unlink(test_path("f/cat/b.JPG"));
        assert_int_equal(tern_dataset_item(d, 1, item), TERN_ERR_IO);
        assert_error(TERN_ERR_IO, "b.JPG: No such file");
        tern_dataset_free(d);
    }
}

/* ---- tar --------------------------------------------------------------------------------- */

typedef struct archive {
    unsigned char bytes[1 << 14];
    size_t n;
} archive;

static void seal(unsigned char *header)
{
    unsigned sum = 0;
    memset(header + 148, ' ', 8);
    for (int i = 0; i < 512; i++)
        sum += header[i];
    snprintf((char *)header + 148, 8, "%06o", sum);
}

static unsigned char *add(archive *a, const char *name, char kind, const void *data, size_t n)
{
    unsigned char *header = a->bytes + a->n;
    snprintf((char *)header, 100, "%s", name);
    snprintf((char *)header + 124, 12, "%011o", (unsigned)n);
    header[156] = (unsigned char)kind;
    memcpy(header + 257, "ustar\00000", 8);
    seal(header);
    memcpy(header + 512, data, n);
    a->n += 512 + (n + 511) / 512 * 512;
    return header;
}

static tern_dataset *tar(const archive *a)
{
    const char *path = test_file("a.tar", a->bytes, a->n);
    return tern_datasets_tar(&path, 1, (const char *const[]){"txt;text", "cls"}, 2, NULL);
}

static void tar_archives_are_samples(void **state)
{
    (void)state;
    archive *a = calloc(1, sizeof *a);
    char longer[150] = "folder/";
    memset(longer + 7, 'x', 120);
    strcpy(longer + 127, ".txt");
    add(a, "folder/", '5', "", 0);
    add(a, "folder/one.txt", '0', "first", 5);
    add(a, "folder/one.cls", '0', "3\n", 2);
    add(a, "folder/two.txt", '0', "no label", 8);
    add(a, "../../three.part.text", '0', "other ending", 12);
    add(a, "four.cls", '0', "-4", 2);
    add(a, "four.text", '0', "last", 4);
    add(a, "L", 'L', longer, strlen(longer) + 1);
    add(a, "cut", '0', "by a long name", 14);
    strcpy(longer + 127, ".cls");
    char pax[200];
    snprintf(pax, sizeof pax, "%d path=%s\n", (int)strlen(longer) + 10, longer);
    add(a, "x", 'x', pax, strlen(pax));
    add(a, "cut", '0', "7", 1);
    a->n += 1024;
    TERN_SCOPE {
        tern_tensor *item[2];
        tern_dataset *d = tar(a);
        assert_non_null(d);
        assert_int_equal(tern_dataset_length(d), 3);
        assert_ok(tern_dataset_item(d, 0, item));
        assert_values(item[0], 'f', 'i', 'r', 's', 't');
        assert_int_equal(tern_item_int(item[1]), 3);
        assert_ok(tern_dataset_item(d, 1, item));
        assert_int_equal(tern_item_int(item[1]), -4);
        assert_ok(tern_dataset_item(d, 2, item));
        assert_int_equal(tern_numel(item[0]), 14);
        assert_int_equal(tern_item_int(item[1]), 7);
        tern_dataset_free(d);
    }
    free(a);
}

/* What is packed is known by its bytes; a file of nothing, or of another kind, is no archive. */
static void packed_archives_are_samples(void **state)
{
    (void)state;
    static const char *const fields[] = {"txt"};
    archive *a = calloc(1, sizeof *a);
    add(a, "one.txt", '0', "first", 5);
    add(a, "two.txt", '0', "second", 6);
    a->n += 1024;
    const char *path = test_gzip("a.tar.gz", a->bytes, a->n);
    TERN_SCOPE {
        tern_tensor *item[1];
        tern_dataset *d = tern_datasets_tar(&path, 1, fields, 1, NULL);
        if (d || !test_no_library()) {
            assert_non_null(d);
            assert_int_equal(tern_dataset_length(d), 2);
            assert_ok(tern_dataset_item(d, 1, item));
            assert_values(item[0], 's', 'e', 'c', 'o', 'n', 'd');
            tern_dataset_free(d);
        }
    }
    static const struct {
        const char *bytes, *says;
        size_t n;
    } others[] = {{"", "has 0 bytes and is no tar archive", 0},
                  {"PK\3\4", "a zip archive", 600},
                  {"\x89HDF\r\n\x1a\n", "HDF5", 600}};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        memset(a, 0, sizeof *a);
        memcpy(a->bytes, others[i].bytes, strlen(others[i].bytes));
        path = test_file("other.tar", a->bytes, others[i].n);
        assert_null(tern_datasets_tar(&path, 1, fields, 1, NULL));
        assert_error(TERN_ERR_IO, others[i].says);
    }
    free(a);
}

static void hostile_archives_are_refused(void **state)
{
    (void)state;
    archive *a = calloc(1, sizeof *a);
    unsigned char *header = add(a, "one.txt", '0', "text", 4);
    add(a, "one.cls", '0', "dog", 3);
    TERN_SCOPE {
        tern_tensor *item[2];
        tern_dataset *d = tar(a);
        assert_int_equal(tern_dataset_item(d, 0, item), TERN_ERR_IO);
        assert_error(TERN_ERR_IO, "'dog' is not a class's number");
        tern_dataset_free(d);
    }
    header[0] = 'O';
    assert_null(tar(a));
    assert_error(TERN_ERR_IO, "is no tar archive");
    memcpy(header + 124, "77777777777", 12);
    seal(header);
    assert_null(tar(a));
    assert_error(TERN_ERR_IO, "a file that goes beyond the archive's end");
    memset(header + 124, 0xff, 12);
    seal(header);
    assert_null(tar(a));
    assert_error(TERN_ERR_IO, "a size that is no number");
    memcpy(header + 124, "00000000009", 12);
    seal(header);
    assert_null(tar(a));
    assert_error(TERN_ERR_IO, "a size that is no number");
    memset(a, 0, sizeof *a);
    add(a, "one.txt", '0', "text", 4);
    add(a, "one.text", '0', "text", 4);
    assert_null(tar(a));
    assert_error(TERN_ERR_IO, "two files for one field");
    a->n = 514;
    assert_null(tar(a));
    assert_error(TERN_ERR_IO, "beyond the archive's end");
    a->n = 1100;
    assert_null(tar(a));
    assert_error(TERN_ERR_IO, "ends at byte");
    memset(a, 0, sizeof *a);
    add(a, "x", 'x', "99999 path=a\n", 13);
    assert_null(tar(a));
    assert_error(TERN_ERR_IO, "a malformed pax header");
    free(a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(images_are_as_torchvision_reads_them),
        TEST(sixteen_bits_are_kept_where_asked),
        TEST(hostile_images_are_refused),
        TEST(jpegs_are_decoded_smaller),
        TEST(folders_are_classes),
        TEST(tar_archives_are_samples),
        TEST(packed_archives_are_samples),
        TEST(hostile_archives_are_refused),
    };
    return test_main(tests, sizeof tests / sizeof *tests);
}
