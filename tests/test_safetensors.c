/* test_safetensors.c -- safetensors files: read, written as the reference does, refused. */
#include "support.h"
#include "folder.h"
#include "hostile.h"
#include "base/memory.h"

/* ---- files that are damaged or made to do harm ------------------------------------------- */

static void every_file_has_its_verdict(void **state)
{
    (void)state;
    hostile_file file;
    int n = 0;
    for (; hostile_safetensors(n, &file); n++) {
        const char *path = in_folder("hostile.safetensors");
        write_file(path, file.bytes, file.size);
        free(file.bytes);
        TERN_SCOPE {
            tern_state_dict *dict = tern_load(path, NULL);
            if (!dict != !file.accepted)
                fail_msg("%s: %s", file.name, dict ? "loaded" : tern_last_error());
            if (!dict) {
                if (tern_last_status() != TERN_ERR_IO || !strstr(tern_last_error(), path) ||
                    (file.says && !strstr(tern_last_error(), file.says)))
                    fail_msg("%s says %s", file.name, tern_last_error());
                tern_clear_error();
            }
            tern_state_dict_free(dict);
        }
    }
    assert_true(n > 110);
    assert_int_equal(tern_live_tensors(), 0);
}

/* Messages show nothing that a terminal obeys, and a part of what is long. */
static void names_are_shown_cut_and_escaped(void **state)
{
    (void)state;
    static const char header[] =
        "{\"\\u001b[2J%s%n\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":"
        "[4,8]}}";
    char bytes[200] = {sizeof header - 1};
    memcpy(bytes + 8, header, sizeof header - 1);
    write_file(in_folder("name.safetensors"), bytes, 8 + sizeof header - 1 + 8);
    assert_null(tern_load(in_folder("name.safetensors"), NULL));
    assert_error(TERN_ERR_IO, "`\\x1b[2J%s%n`");
}

/* Three bytes a character: 80 bytes end in the middle of one, or behind it. */
static void names_are_cut_between_characters(void **state)
{
    (void)state;
    tern_state_dict *dict = tern_state_dict_new();
    assert_ok(tern_save(dict, in_folder("cut.safetensors"), NULL));
    tern_file *file = tern_safe_open(in_folder("cut.safetensors"));
    for (int before = 0; before < 3; before++) {
        char name[200] = "", shown[200];
        memset(name, 'a', (size_t)before);
        for (int i = 0; i < 40; i++)
            strcat(name, "\xe2\x82\xac");
        snprintf(shown, sizeof shown, "`%.*s...`", before + (80 - before) / 3 * 3, name);
        assert_null(tern_file_get(file, name, NULL));
        assert_error(TERN_ERR_ARGUMENT, shown);
    }
    tern_file_free(file);
    tern_state_dict_free(dict);
}

/* A path in the folder as programs of the system have it: on Windows with backslashes. */
static const char *own_path(const char *name)
{
    static char path[4400];
#ifdef _WIN32
    const char apart = '\\';
#else
    const char apart = '/';
#endif
    snprintf(path, sizeof path, "%s", in_folder(name));
    for (char *c = path; *c; c++)
        *c = *c == '/' ? apart : *c;
    return path;
}

static void paths_are_those_of_the_system(void **state)
{
    (void)state;
    int64_t n = 7;
    tern_state_dict *dict = tern_state_dict_new(), *back;
    tern_snapshot *snapshot = tern_snapshot_new();
    assert_ok(tern_snapshot_add_int(snapshot, "n", &n));
    assert_ok(tern_snapshot_save(snapshot, own_path("own/deeper"), NULL));
    assert_int_equal(tern_snapshot_count(in_folder("own/deeper")), 1);
    TERN_SCOPE
        tern_state_dict_set(dict, "x", tern_ones(TERN_SHAPE(2), TERN_F32, "cpu"));
    assert_ok(tern_save(dict, own_path("own/one.safetensors"), NULL));
    assert_non_null(back = tern_load(own_path("own/one.safetensors"), NULL));
    tern_state_dict_free(back);
    assert_ok(tern_save(dict, own_path("own/parts.safetensors"),
                        &(tern_save_options){.max_shard_size = 100}));
    assert_non_null(back = tern_load(own_path("own/parts.safetensors.index.json"), NULL));
    tern_state_dict_free(back);
    tern_snapshot_free(snapshot);
    tern_state_dict_free(dict);
}

static void what_is_no_file_is_refused(void **state)
{
    (void)state;
    assert_null(tern_load(in_folder("absent"), NULL));
    assert_error(TERN_ERR_IO, "absent\": No such file or directory");
#ifndef _WIN32 /* whose pipes are in no folder */
    assert_int_equal(mkfifo(in_folder("pipe"), 0600), 0);
    assert_null(tern_load(in_folder("pipe"), NULL)); /* and does not wait */
    assert_error(TERN_ERR_IO, "no regular file");
#endif
    assert_null(tern_load(folder, NULL));
    assert_error(TERN_ERR_IO, "model.safetensors");
    assert_null(tern_load(NULL, NULL));
    assert_error(TERN_ERR_ARGUMENT, "path");
}

/* ---- both ways --------------------------------------------------------------------------- */

static tern_state_dict *some_tensors(const char *device)
{
    tern_state_dict *dict = tern_state_dict_new();
    assert_non_null(dict);
    TERN_SCOPE {
        tern_tensor *x = tern_randn(TERN_SHAPE(30, 5), TERN_F32, device);
        assert_ok(tern_state_dict_set(dict, "half", tern_to_dtype(x, TERN_BF16)));
        assert_ok(tern_state_dict_set(dict, "turned", tern_transpose(x, 0, 1)));
        assert_ok(tern_state_dict_set(dict, "whole", tern_arange(0, 7, 1, TERN_I64, device)));
        assert_ok(
            tern_state_dict_set(dict, "scalar", tern_ones(TERN_SHAPE_SCALAR, TERN_F16, device)));
        assert_ok(
            tern_state_dict_set(dict, "empty", tern_ones(TERN_SHAPE(3, 0), TERN_F32, device)));
        assert_ok(tern_state_dict_set(dict, "yes", tern_ones(TERN_SHAPE(3), TERN_BOOL, device)));
        assert_ok(tern_state_dict_set(dict, "bytes", tern_ones(TERN_SHAPE(3), TERN_U8, device)));
        assert_ok(tern_state_dict_set(dict, "int", tern_ones(TERN_SHAPE(2), TERN_I32, device)));
    }
    return dict;
}

static void assert_same_dict(const tern_state_dict *a, const tern_state_dict *b)
{
    assert_int_equal(tern_state_dict_count(a), tern_state_dict_count(b));
    for (int i = 0; i < tern_state_dict_count(a); i++) {
        tern_tensor *other = tern_state_dict_get(b, tern_state_dict_key_at(a, i));
        assert_non_null(other);
        assert_same(tern_state_dict_at(a, i), other);
    }
    for (int i = 0; i < tern_state_dict_metadata_count(a); i++) {
        const char *key = tern_state_dict_metadata_key_at(a, i);
        assert_non_null(tern_state_dict_metadata(b, key));
        assert_string_equal(tern_state_dict_metadata(a, key), tern_state_dict_metadata(b, key));
    }
}

static void what_was_saved_is_loaded(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    TERN_SCOPE {
        tern_state_dict *dict = some_tensors(device);
        assert_ok(tern_state_dict_set_metadata(dict, "note", "\"a\"\n\\\t\x01 \xc3\xa9"));
        assert_ok(tern_state_dict_set_metadata(dict, "other", ""));
        assert_ok(tern_save(dict, in_folder("t.safetensors"), NULL));
        tern_state_dict *back =
            tern_load(in_folder("t.safetensors"), &(tern_load_options){.map_location = device});
        assert_non_null(back);
        assert_string_equal(tern_device(tern_state_dict_get(back, "half")),
                            tern_device_canonical(device));
        assert_same_dict(dict, back);
        tern_state_dict_free(back);
        tern_state_dict_free(dict);
    }
}

/* The types that tern only stores; their bytes are looked at, since a device may not compare them. */
static void stored_types_go_both_ways(void **state)
{
    (void)state;
    static const tern_dtype types[] = {TERN_I8,  TERN_I16,       TERN_U16,    TERN_U32,
                                       TERN_U64, TERN_F8_E4M3FN, TERN_F8_E5M2};
    FOR_EACH_DEVICE(device)
    TERN_SCOPE {
        tern_state_dict *dict = tern_state_dict_new(), *back;
        uint64_t bytes[7], loaded[7];
        for (int i = 0; i < 7; i++) {
            char name[16];
            snprintf(name, sizeof name, "x%d", i);
            for (int k = 0; k < 7; k++)
                bytes[k] = 0x0102030405060708u * (uint64_t)(k + 1);
            tern_state_dict_set(dict, name,
                                tern_from_data((void *)bytes, TERN_SHAPE(7), types[i], device));
        }
        assert_ok(tern_save(dict, in_folder("stored.safetensors"), NULL));
        back = tern_load(in_folder("stored.safetensors"),
                         &(tern_load_options){.map_location = device});
        assert_non_null(back);
        for (int i = 0; i < 7; i++) {
            tern_tensor *x = tern_state_dict_get(back, tern_state_dict_key_at(dict, i));
            size_t n = 7 * tern_dtype_size(types[i]);
            assert_int_equal(tern_dtype_of(x), types[i]);
            assert_ok(tern_copy_to_host(x, (void *)loaded, n));
            assert_memory_equal(loaded, bytes, n);
        }
        tern_state_dict_free(back);
        tern_state_dict_free(dict);
    }
}

/* More than a piece, dense and not, and rows that are larger than one. */
static void large_tensors_come_in_pieces(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    TERN_SCOPE {
        tern_state_dict *dict = tern_state_dict_new(), *back;
        tern_tensor *x = tern_arange(0, 5 << 20, 1, TERN_I32, device);
        assert_ok(tern_state_dict_set(dict, "flat", x));
        x = tern_view(x, TERN_SHAPE(2, 5 << 10, 512));
        assert_ok(tern_state_dict_set(dict, "turned", tern_transpose(x, 1, 2)));
        assert_ok(tern_save(dict, in_folder("large.safetensors"), NULL));
        back =
            tern_load(in_folder("large.safetensors"), &(tern_load_options){.map_location = device});
        assert_non_null(back);
        assert_same_dict(dict, back);
        tern_state_dict_free(back);
        tern_state_dict_free(dict);
    }
}

/* The reference's bytes: by type, then by name, without blanks, padded. */
static void a_file_is_byte_for_byte_the_reference(void **state)
{
    (void)state;
    static const char header[] =
        "{\"__metadata__\":{\"format\":\"pt\"},\"n\":{\"dtype\":\"I64\",\"shape\":[1],\"data_"
        "offsets\":[0,8]},"
        "\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[8,16]},"
        "\"b\\\"\\u0001\":{\"dtype\":\"F32\",\"shape\":[],\"data_offsets\":[16,20]},"
        "\"z\":{\"dtype\":\"BOOL\",\"shape\":[1,1],\"data_offsets\":[20,21]}}";
    TERN_SCOPE {
        tern_state_dict *dict = tern_state_dict_new();
        tern_state_dict_set_metadata(dict, "format", "pt");
        tern_state_dict_set(dict, "z", TENSOR("cpu", TERN_BOOL, TERN_SHAPE(1, 1), 1));
        tern_state_dict_set(dict, "b\"\x01", TENSOR("cpu", TERN_F32, TERN_SHAPE_SCALAR, 1));
        tern_state_dict_set(dict, "a", TENSOR("cpu", TERN_F32, TERN_SHAPE(2), 2, -2));
        tern_state_dict_set(dict, "n", TENSOR("cpu", TERN_I64, TERN_SHAPE(1), 258));
        assert_ok(tern_save(dict, in_folder("bytes.safetensors"), NULL));
        tern_state_dict_free(dict);
    }
    size_t n, padded = (sizeof header - 1 + 7) / 8 * 8;
    char *bytes = read_file(in_folder("bytes.safetensors"), &n);
    assert_int_equal(n, 8 + padded + 21);
    assert_int_equal((unsigned char)bytes[0] | (unsigned char)bytes[1] << 8, padded);
    assert_memory_equal(bytes + 8, header, sizeof header - 1);
    for (size_t i = sizeof header - 1; i < padded; i++)
        assert_int_equal(bytes[8 + i], ' ');
    assert_memory_equal(bytes + 8 + padded, "\2\1\0\0\0\0\0\0\0\0\0\x40\0\0\0\xc0\0\0\x80\x3f\1",
                        21);
    free(bytes);
}

static void names_that_no_file_can_have_are_refused(void **state)
{
    (void)state;
    static const char *const names[] = {"", "__metadata__", "\xff", "\xed\xa0\x80", "\xc3"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        TERN_SCOPE {
            tern_state_dict *dict = tern_state_dict_new();
            tern_state_dict_set(dict, names[i], tern_ones(TERN_SHAPE(1), TERN_F32, "cpu"));
            assert_int_equal(tern_save(dict, in_folder("never.safetensors"), NULL),
                             TERN_ERR_ARGUMENT);
            assert_error(TERN_ERR_ARGUMENT, "tern_save: a tensor can't be called");
            assert_int_equal(access(in_folder("never.safetensors"), F_OK), -1);
            tern_state_dict_free(dict);
        }
}

/* ---- a look inside ----------------------------------------------------------------------- */

static void a_file_is_looked_at_without_loading(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    TERN_SCOPE {
        tern_state_dict *dict = some_tensors(device);
        assert_ok(tern_state_dict_set_metadata(dict, "a", "b"));
        assert_ok(tern_save(dict, in_folder("look.safetensors"), NULL));
        tern_file *file = tern_safe_open(in_folder("look.safetensors"));
        assert_non_null(file);
        assert_int_equal(tern_file_count(file), 8);
        assert_true(tern_file_has(file, "half") && !tern_file_has(file, "quarter"));
        assert_int_equal(tern_file_shape(file, "half").ndim, 2);
        assert_int_equal(tern_file_shape(file, "half").dims[0], 30);
        assert_int_equal(tern_file_dtype(file, "half"), TERN_BF16);
        assert_string_equal(tern_file_dtype_name(file, "half"), "BF16");
        assert_string_equal(tern_file_metadata(file, "a"), "b");
        assert_int_equal(tern_file_metadata_count(file), 1);
        assert_string_equal(tern_file_metadata_key_at(file, 0), "a");
        tern_tensor *rows = tern_file_get_slice(file, "half", 10, 20, device);
        assert_same(rows, tern_narrow(tern_state_dict_get(dict, "half"), 0, 10, 10));
        assert_same(tern_file_get_slice(file, "half", 30, 30, device),
                    tern_narrow(tern_state_dict_get(dict, "half"), 0, 30, 0));
        assert_null(tern_file_get_slice(file, "half", 20, 31, device));
        assert_error(TERN_ERR_ARGUMENT, "30 rows: 20 to 31");
        assert_null(tern_file_get_slice(file, "scalar", 0, 0, device));
        assert_error(TERN_ERR_ARGUMENT, "no dims");
        assert_null(tern_file_get(file, "quarter", device));
        assert_error(TERN_ERR_ARGUMENT, "there is no tensor `quarter`");
        assert_null(tern_file_name_at(file, 8));
        assert_error(TERN_ERR_ARGUMENT, "out of range");
        tern_file_free(file);
        tern_state_dict_free(dict);
    }
}

static void only_what_is_asked_for_is_loaded(void **state)
{
    (void)state;
    TERN_SCOPE {
        tern_state_dict *dict = some_tensors("cpu");
        assert_ok(tern_save(dict, in_folder("some.safetensors"), NULL));
        const char *names[] = {"half", "int", "half"};
        tern_state_dict *back = tern_load(in_folder("some.safetensors"),
                                          &(tern_load_options){.only = names, .n_only = 3});
        assert_int_equal(tern_state_dict_count(back), 2);
        tern_state_dict_free(back);
        back = tern_load(in_folder("some.safetensors"), &(tern_load_options){.prefix = "ha"});
        assert_int_equal(tern_state_dict_count(back), 1);
        assert_non_null(tern_state_dict_get(back, "lf"));
        tern_state_dict_free(back);
        names[0] = "absent";
        assert_null(tern_load(in_folder("some.safetensors"),
                              &(tern_load_options){.only = names, .n_only = 1}));
        assert_error(TERN_ERR_ARGUMENT, "`absent`");
        tern_state_dict_free(dict);
    }
}

/* Types that tern lacks are seen, and refused when they are asked for. */
static void foreign_types_are_seen_and_not_loaded(void **state)
{
    (void)state;
    static const char header[] = "{\"f\":{\"dtype\":\"F4\",\"shape\":[4],\"data_offsets\":[4,6]},"
                                 "\"t\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}";
    char bytes[200] = {sizeof header - 1};
    memcpy(bytes + 8, header, sizeof header - 1);
    write_file(in_folder("f4.safetensors"), bytes, 8 + sizeof header - 1 + 6);
    assert_null(tern_load(in_folder("f4.safetensors"), NULL));
    assert_error(TERN_ERR_DTYPE, "tensor `f` is of type F4");
    const char *only[] = {"t"};
    tern_state_dict *dict =
        tern_load(in_folder("f4.safetensors"), &(tern_load_options){.only = only, .n_only = 1});
    assert_int_equal(tern_state_dict_count(dict), 1);
    tern_state_dict_free(dict);
    tern_file *file = tern_safe_open(in_folder("f4.safetensors"));
    assert_string_equal(tern_file_dtype_name(file, "f"), "F4");
    assert_int_equal(tern_file_dtype(file, "f"), TERN_DTYPE_DEFAULT);
    assert_null(tern_file_get(file, "f", NULL));
    assert_error(TERN_ERR_DTYPE, "F4");
    tern_file_free(file);
}

/* ---- failures ---------------------------------------------------------------------------- */

static void a_file_that_shrinks_under_the_reader_is_an_error(void **state)
{
    (void)state;
    TERN_SCOPE {
        tern_state_dict *dict = tern_state_dict_new();
        tern_state_dict_set(dict, "x", tern_ones(TERN_SHAPE(1000), TERN_F32, "cpu"));
        assert_ok(tern_save(dict, in_folder("shrinks.safetensors"), NULL));
        tern_file *file = tern_safe_open(in_folder("shrinks.safetensors"));
        assert_int_equal(truncate(in_folder("shrinks.safetensors"), 500), 0);
        assert_null(tern_file_get(file, "x", "cpu"));
        assert_error(TERN_ERR_IO, "ends at byte 500, in the middle of tensor `x`");
        tern_file_free(file);
        tern_state_dict_free(dict);
    }
}

/* Every allocation fails in turn: an error, and nothing is left. */
static void no_memory_is_an_error(void **state)
{
    (void)state;
    tern_state_dict *dict = some_tensors("cpu");
    int64_t live = tern_live_tensors();
    bool done = false;
    for (uint64_t n = 1; !done && n < 1000; n++)
        TERN_SCOPE {
            tern_memory_fail_at(n);
            tern_status status = tern_save(dict, in_folder("memory.safetensors"), NULL);
            tern_state_dict *back =
                status == TERN_OK ? tern_load(in_folder("memory.safetensors"), NULL) : NULL;
            tern_memory_fail_at(0);
            done = back != NULL;
            if (!done)
                assert_error(TERN_ERR_MEMORY, "");
            tern_state_dict_free(back);
        }
    assert_true(done);
    assert_int_equal(tern_live_tensors(), live);
    tern_state_dict_free(dict);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(every_file_has_its_verdict),
        TEST(names_are_shown_cut_and_escaped),
        TEST(names_are_cut_between_characters),
        TEST(paths_are_those_of_the_system),
        TEST(what_is_no_file_is_refused),
        TEST(what_was_saved_is_loaded),
        TEST(stored_types_go_both_ways),
        TEST(large_tensors_come_in_pieces),
        TEST(a_file_is_byte_for_byte_the_reference),
        TEST(names_that_no_file_can_have_are_refused),
        TEST(a_file_is_looked_at_without_loading),
        TEST(only_what_is_asked_for_is_loaded),
        TEST(foreign_types_are_seen_and_not_loaded),
        TEST(a_file_that_shrinks_under_the_reader_is_an_error),
        TEST(no_memory_is_an_error),
    };
    return folder_main(tests, sizeof tests / sizeof *tests);
}
