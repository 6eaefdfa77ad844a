/* test_numpy.c -- NumPy's files: arrays and archives of them, right and wrong. */
#include "support.h"
#include "folder.h"
#include "archive.h"

/* ---- arrays ---------------------------------------------------------------------------------- */

/* An array of version 1.0 with that header and n bytes of elements, counting from 0. */
static size_t array_of(unsigned char *to, const char *header, size_t n)
{
    size_t length = strlen(header);
    memcpy(to, "\x93NUMPY\1\0", 8);
    archive_number(to + 8, length, 2);
    memcpy(to + 10, header, length);
    for (size_t i = 0; i < n; i++)
        to[10 + length + i] = (unsigned char)i;
    return 10 + length + n;
}

#define DICT(DESCR, FORTRAN, SHAPE)                                                                \
    "{'descr': '" DESCR "', 'fortran_order': " FORTRAN ", 'shape': " SHAPE ", }\n"

static const struct {
    const char *header;
    int bytes;
    tern_status status; /* TERN_OK: it is loaded */
    const char *says;
} headers[] = {
    {DICT("<f4", "False", "(2, 3)"), 24, TERN_OK, NULL},
    {DICT("<f4", "False", "(6,)"), 24, TERN_OK, NULL},
    {DICT("<f4", "False", "()"), 4, TERN_OK, NULL},
    {DICT("<f4", "False", "(0, 5)"), 0, TERN_OK, NULL},
    {DICT("|u1", "False", "(3,)"), 3, TERN_OK, NULL},
    {DICT("|b1", "False", "(3,)"), 3, TERN_OK, NULL},
    {DICT("=i8", "False", "(1,)"), 8, TERN_OK, NULL},
    {"{\"shape\":(2,),\"descr\":\"<i4\",\"fortran_order\":False}", 8, TERN_OK, NULL},
    {"  { 'shape' : ( 2 , ) , 'descr' : '<i4' , 'fortran_order' : False } \n", 8, TERN_OK, NULL},
    {DICT("<f4", "False", "(2, 3)"), 23, TERN_ERR_IO, "has 23 bytes"},
    {DICT("<f4", "False", "(2, 3)"), 25, TERN_ERR_IO, "has 25 bytes"},
    {DICT("<f4", "False", "(4611686018427387905, 4)"), 16, TERN_ERR_IO, "too large"},
    {DICT("<f4", "False", "(4611686018427387908,)"), 16, TERN_ERR_IO, "too large"},
    {DICT("<f4", "False", "(0, 4611686018427387905, 4)"), 0, TERN_ERR_IO, "too large"},
    {DICT("<f4", "False", "(99999999999999999999999,)"), 16, TERN_ERR_IO, "whole numbers"},
    {DICT("<f4", "False", "(-1,)"), 4, TERN_ERR_IO, "whole numbers"},
    {DICT("<f4", "False", "(1.0,)"), 4, TERN_ERR_IO, "no tuple"},
    {DICT("<f4", "False", "(1L,)"), 4, TERN_ERR_IO, "no tuple"},
    {DICT("<f4", "False", "[1]"), 4, TERN_ERR_IO, "no tuple"},
    {DICT("<f4", "False", "(1"), 4, TERN_ERR_IO, "header"},
    {DICT("<f4", "False", "(1,1,1,1,1,1,1,1,1,1,1,1,1)"), 4, TERN_ERR_IO, "12 dims"},
    {DICT("<f4", "false", "(1,)"), 4, TERN_ERR_IO, "neither True nor False"},
    {DICT("<f4", "1", "(1,)"), 4, TERN_ERR_IO, "neither True nor False"},
    {"{'descr': '<f4', 'fortran_order': False, }", 4, TERN_ERR_IO, "are expected"},
    {"{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': (1,)}", 4, TERN_ERR_IO,
     "are expected"},
    {"{'descr': '<f4', 'fortran_order': False, 'shape': (1,), 'more': 1}", 4, TERN_ERR_IO,
     "are expected"},
    {"{'descr': '<f4', 'fortran_order': False, 'shape': (1,)} + 1", 4, TERN_ERR_IO,
     "behind the dict"},
    {"__import__('os').system('true')", 4, TERN_ERR_IO, "no dict"},
    {"", 4, TERN_ERR_IO, "no dict"},
    {"{", 4, TERN_ERR_IO, "no dict"},
    {"{'descr", 4, TERN_ERR_IO, "no dict"},
    {"{'descr': '<f4\\", 4, TERN_ERR_IO, "no text"},
    {DICT("<c8", "False", "(1,)"), 8, TERN_ERR_DTYPE, "<c8"},
    {DICT("|O", "False", "(1,)"), 8, TERN_ERR_DTYPE, "|O"},
    {DICT("<U4", "False", "(1,)"), 16, TERN_ERR_DTYPE, "<U4"},
    {DICT("<V2", "False", "(1,)"), 2, TERN_ERR_DTYPE, "bfloat16"},
    {DICT("|f4", "False", "(1,)"), 4, TERN_ERR_DTYPE, "|f4"},
    {DICT("f4", "False", "(1,)"), 4, TERN_ERR_DTYPE, "f4"},
    {"{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,)}", 4, TERN_ERR_DTYPE,
     "structs"},
};

static void every_header_has_its_verdict(void **state)
{
    (void)state;
    unsigned char bytes[512];
    for (size_t i = 0; i < sizeof headers / sizeof *headers; i++)
        TERN_SCOPE {
            size_t n = array_of(bytes, headers[i].header, (size_t)headers[i].bytes);
            write_file(in_folder("x.npy"), bytes, n);
            tern_tensor *x = tern_npy_load(in_folder("x.npy"), "cpu");
            if (!x != (headers[i].status != TERN_OK))
                fail_msg("%s: %s", headers[i].header, x ? "loaded" : tern_last_error());
            if (!x)
                assert_error(headers[i].status, headers[i].says);
        }
}

static void what_begins_otherwise_is_refused(void **state)
{
    (void)state;
    static const struct {
        const char *bytes;
        size_t n;
    } rows[] = {{"", 0},
                {"\x93NUMPY", 6},
                {"\x93NUMPY\1\0\xff", 9},
                {"\x93NUMPY\1\0\xff\xff{", 11},
                {"\x93NUMPY\4\0\1\0\0\0{", 13},
                {"\x93NUMPY\2\0\xff\xff\xff\xff{", 13},
                {"\x93NUMPX\1\0\1\0{", 11}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        write_file(in_folder("x.npy"), rows[i].bytes, rows[i].n);
        assert_null(tern_npy_load(in_folder("x.npy"), NULL));
        assert_error(TERN_ERR_IO, "the header of array `x`");
    }
}

static void other_orders_are_turned(void **state)
{
    (void)state;
    unsigned char bytes[256];
    TERN_SCOPE {
        write_file(in_folder("turned.npy"), bytes,
                   array_of(bytes, DICT("|u1", "True", "(2, 3)"), 6));
        tern_tensor *x = tern_npy_load(in_folder("turned.npy"), NULL);
        assert_shape(x, 2, 3);
        assert_true(tern_is_contiguous(x));
        assert_values(x, 0, 2, 4, 1, 3, 5);
        write_file(in_folder("big.npy"), bytes, array_of(bytes, DICT(">i4", "False", "(2,)"), 8));
        assert_values(tern_npy_load(in_folder("big.npy"), NULL), 0x00010203, 0x04050607);
        /* By tern_load it is under the name of its file. */
        tern_state_dict *dict = tern_load(in_folder("big.npy"), NULL);
        assert_non_null(tern_state_dict_get(dict, "big"));
        tern_state_dict_free(dict);
    }
}

/* Complex numbers: shown, and refused where they are to be read, in either order of dims. */
static void types_that_tern_lacks_are_shown(void **state)
{
    (void)state;
    static const char *const dicts[] = {DICT("<c8", "False", "(2, 3)"),
                                        DICT("<c8", "True", "(2, 3)")};
    unsigned char bytes[256];
    for (size_t i = 0; i < sizeof dicts / sizeof *dicts; i++) {
        write_file(in_folder("c.npy"), bytes, array_of(bytes, dicts[i], 48));
        tern_file *file = tern_safe_open(in_folder("c.npy"));
        assert_non_null(file);
        assert_string_equal(tern_file_dtype_name(file, "c"), "<c8");
        assert_int_equal(tern_file_nbytes(file, "c"), 48);
        assert_int_equal(tern_file_shape(file, "c").dims[1], 3);
        assert_null(tern_file_get(file, "c", NULL));
        assert_error(TERN_ERR_DTYPE, "is of type <c8, which tern does not have");
        tern_file_free(file);
    }
}

/* The bytes that NumPy 2.4 writes. */
static void an_array_is_written_as_numpy_does(void **state)
{
    (void)state;
    TERN_SCOPE {
        assert_ok(tern_npy_save(TENSOR("cpu", TERN_F32, TERN_SHAPE(2, 3), 1, 2, 3, 4, 5, 6),
                                in_folder("w.npy")));
        size_t n;
        char *bytes = read_file(in_folder("w.npy"), &n);
        assert_int_equal(n, 128 + 24);
        assert_memory_equal(bytes,
                            "\x93NUMPY\1\0v\0{'descr': '<f4', 'fortran_order': False, "
                            "'shape': (2, 3), }      ",
                            75);
        assert_int_equal(bytes[127], '\n');
        free(bytes);
        FOR_EACH_DEVICE(device)
        {
            tern_tensor *x = tern_transpose(tern_randn(TERN_SHAPE(7, 5), TERN_F64, "cpu"), 0, 1);
            assert_ok(
                tern_npy_save(tern_to(tern_to_dtype(x, TERN_F32), device), in_folder("w.npy")));
            assert_same(tern_npy_load(in_folder("w.npy"), device), tern_to_dtype(x, TERN_F32));
        }
        assert_int_equal(
            tern_npy_save(tern_ones(TERN_SHAPE(2), TERN_BF16, NULL), in_folder("b.npy")),
            TERN_ERR_DTYPE);
        assert_error(TERN_ERR_DTYPE, "NumPy has no bfloat16");
        assert_int_equal(access(in_folder("b.npy"), F_OK), -1);
    }
}

/* ---- archives -------------------------------------------------------------------------------- */

static void archives_go_both_ways(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    for (int compressed = 0; compressed < 2; compressed++)
        TERN_SCOPE {
            tern_state_dict *dict = tern_state_dict_new();
            tern_state_dict_set(dict, "zeros", tern_zeros(TERN_SHAPE(300, 500), TERN_F32, device));
            tern_state_dict_set(dict, "layer/weight",
                                tern_randn(TERN_SHAPE(90, 50), TERN_F16, device));
            tern_state_dict_set(dict, "\xc3\xa9", tern_arange(0, 7, 1, TERN_I64, device));
            tern_state_dict_set(dict, "empty", tern_zeros(TERN_SHAPE(0, 2), TERN_BOOL, device));
            tern_state_dict_set_metadata(dict, "left", "out");
            tern_status status = tern_npz_save(dict, in_folder("x.npz"),
                                               &(tern_npz_options){.compressed = compressed});
            if (status != TERN_OK && test_no_library()) {
                tern_state_dict_free(dict);
                continue;
            }
            assert_ok(status);
            struct stat facts;
            stat(in_folder("x.npz"), &facts);
            assert_true((facts.st_size < 100000) == compressed);
            tern_state_dict *back =
                tern_load(in_folder("x.npz"), &(tern_load_options){.map_location = device});
            if (back || !test_no_library()) {
                assert_non_null(back);
                assert_int_equal(tern_state_dict_count(back), 4);
                for (int i = 0; i < 4; i++) {
                    assert_string_equal(tern_state_dict_key_at(dict, i),
                                        tern_state_dict_key_at(back, i));
                    assert_same(tern_state_dict_at(dict, i), tern_state_dict_at(back, i));
                }
                tern_file *file = tern_safe_open(in_folder("x.npz"));
                assert_same(tern_file_get_slice(file, "layer/weight", 10, 12, device),
                            tern_narrow(tern_state_dict_at(dict, 1), 0, 10, 2));
                tern_file_free(file);
            }
            tern_state_dict_free(back);
            tern_state_dict_free(dict);
        }
}

/* An archive of no array begins with the record of its end, as numpy.savez writes it. */
static void an_archive_of_nothing(void **state)
{
    (void)state;
    size_t n;
    tern_state_dict *dict = tern_state_dict_new();
    assert_ok(tern_npz_save(dict, in_folder("none.npz"), NULL));
    char *bytes = read_file(in_folder("none.npz"), &n);
    assert_int_equal(n, 22);
    assert_memory_equal(bytes, "PK\5\6", 4);
    assert_null(tern_load(in_folder("none.npz"), NULL)); /* as nothing says whose it is */
    tern_clear_error();
    tern_state_dict_free(dict);
    free(bytes);
}

enum {
    FINE,
    CRC,
    CUT,
    CUT_END,
    BEHIND,
    BEFORE,
    TWICE,
    SHARED,
    LONGER,
    ENCRYPTED,
    MANY,
    METHOD,
    NO_NAME,
    NOT_NUMPY,
    FEW_BYTES,
    EMPTY,
    KINDS
};
static const struct {
    const char *name, *says; /* NULL: it is loaded */
} kinds[KINDS] = {
    [FINE] = {"fine", NULL},
    [CRC] = {"a wrong checksum", "CRC"},
    [CUT] = {"a directory that is cut off", "archive"},
    [CUT_END] = {"an end that is cut off", "archive"},
    [BEHIND] = {"bytes behind", "archive"},
    [BEFORE] = {"bytes in front", "header"},
    [TWICE] = {"a name twice", "archive"},
    [SHARED] = {"two members of the same bytes", "archive"},
    [LONGER] = {"a size that is too large", ""},
    [ENCRYPTED] = {"an encrypted member", ""},
    [MANY] = {"more members claimed", "archive"},
    [METHOD] = {"another compression", "not deflate"},
    [NO_NAME] = {"a member without a name", "no name"},
    [NOT_NUMPY] = {"a member that is no array", "header of array"},
    [FEW_BYTES] = {"an array that is too short", "has 20 bytes"},
    [EMPTY] = {"an archive of nothing", "without NumPy's arrays"},
};

static size_t broken_archive(int kind, archive *a)
{
    unsigned char bytes[256];
    size_t n = array_of(bytes, DICT("<f4", "False", "(2, 3)"), kind == FEW_BYTES ? 20 : 24);
    archive_member m = {.name = kind == NO_NAME ? ".npy" : "x.npy", .data = bytes, .size = n};
    if (kind == BEFORE)
        archive_put(a, "front", 5);
    m.wrong_crc = kind == CRC;
    m.claimed_more = kind == LONGER ? 1000000 : 0;
    m.flags = kind == ENCRYPTED;
    m.method = kind == METHOD ? 12 : 0;
    if (kind == NOT_NUMPY)
        m.data = "this is only text, which says nothing of an array";
    if (kind == NOT_NUMPY)
        m.size = 40;
    size_t at = kind == EMPTY ? 0 : archive_add(a, m);
    if (kind == TWICE)
        archive_add(a, m);
    if (kind == SHARED) {
        m.name = "y.npy";
        m.at = &at;
        archive_add(a, m);
    }
    archive_end(a, kind == MANY ? 65000 : 0);
    if (kind == BEHIND)
        archive_put(a, "behind", 6);
    return kind == CUT ? a->size - 40 : kind == CUT_END ? a->size - 4 : a->size;
}

static void every_archive_has_its_verdict(void **state)
{
    (void)state;
    for (int kind = 0; kind < KINDS; kind++)
        TERN_SCOPE {
            archive a = {0};
            size_t n = broken_archive(kind, &a);
            write_file(in_folder("a.npz"), a.bytes, n);
            free(a.bytes);
            tern_state_dict *dict = tern_load(in_folder("a.npz"), NULL);
            if (!dict && test_no_library())
                continue;
            if (!dict != (kinds[kind].says != NULL))
                fail_msg("%s: %s", kinds[kind].name, dict ? "loaded" : tern_last_error());
            if (!dict)
                assert_error(TERN_ERR_IO, kinds[kind].says);
            tern_state_dict_free(dict);
        }
    assert_int_equal(tern_live_tensors(), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(every_header_has_its_verdict),  TEST(what_begins_otherwise_is_refused),
        TEST(other_orders_are_turned),       TEST(an_array_is_written_as_numpy_does),
        TEST(archives_go_both_ways),         TEST(an_archive_of_nothing),
        TEST(every_archive_has_its_verdict), TEST(types_that_tern_lacks_are_shown),
    };
    return folder_main(tests, sizeof tests / sizeof *tests);
}
