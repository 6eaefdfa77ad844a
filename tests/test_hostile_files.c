/* test_hostile_files.c -- files of each kind that harm: cut off, links, folders, pipes, other bytes, bombs, files that change while they are
 * read. tests/hostile_safetensors.def, test_numpy.c, test_torch.c, test_datasets*.c have what is wrong within a kind. */
#define _GNU_SOURCE
#include "support.h"
#include "folder.h"
#include "archive.h"
#include "gguf_file.h"
#include <pthread.h>
#include <stdatomic.h>

/* ---- kinds of files, and their readers ------------------------------------------------------- */

static const unsigned char idx_bytes[] = {0, 0, 8, 1, 0, 0, 0, 4, 1, 2, 3, 4};
static const unsigned char gzip_bytes[] = {/* 00 00 08 01 00000003 07 08 09 */
                                           0x1f, 0x8b, 0x08, 0x00, 0x00, 0x00, 0x00, 0x00,
                                           0x02, 0x03, 0x63, 0x60, 0xe0, 0x60, 0x64, 0x60,
                                           0x60, 0x60, 0x66, 0xe7, 0xe0, 0x04, 0x00, 0xad,
                                           0x98, 0x0a, 0xba, 0x0b, 0x00, 0x00, 0x00};

static void write_dict(const char *path, int64_t n, double value)
{
    tern_state_dict *dict = tern_state_dict_new();
    TERN_SCOPE
        tern_state_dict_set(dict, "x",
                            tern_full(TERN_SHAPE(n), TERN_SCALAR(value), TERN_F32, "cpu"));
    if (strstr(path, "npz"))
        tern_npz_save(dict, path,
                      &(tern_npz_options){.compressed = strstr(path, "packed") != NULL});
    else
        tern_save(dict, path, NULL);
    tern_state_dict_free(dict);
}
static void make_dict(const char *path)
{
    write_dict(path, 40000, 3); /* more than is read when it is opened */
}
static void make_npy(const char *path)
{
    TERN_SCOPE
        assert_ok(tern_npy_save(tern_ones(TERN_SHAPE(500), TERN_F32, "cpu"), path));
}
static void make_pt(const char *path)
{
    static const char pickle[] = "\x80\2}X\1\0\0\0xctorch._utils\n_rebuild_tensor_v2\n(("
                                 "X\7\0\0\0storagectorch\nFloatStorage\nX\1\0\0\0"
                                 "0X\3\0\0\0cpuK\6tQK\0K\6\x85K\1\x85\x89"
                                 "ccollections\nOrderedDict\n)RtRs.";
    static const float numbers[6] = {1, 2, 3, 4, 5, 6};
    archive a = {0};
    archive_add(&a,
                (archive_member){.name = "a/data.pkl", .data = pickle, .size = sizeof pickle - 1});
    archive_add(&a, (archive_member){.name = "a/data/0", .data = numbers, .size = sizeof numbers});
    archive_end(&a, 0);
    write_file(path, a.bytes, a.size);
    free(a.bytes);
}
#define MAKES(NAME, BYTES)                                                                         \
    static void make_##NAME(const char *path)                                                      \
    {                                                                                              \
        write_file(path, BYTES, sizeof(BYTES));                                                    \
    }
static const char table[] = {"a,b\n1,\"2\"\n3,\"444444444444\"\n"};
static const int64_t nine_tokens[9] = {1, 2, 3};
MAKES(idx, idx_bytes)
MAKES(gzip, gzip_bytes)
MAKES(tokens, nine_tokens)
static void make_csv(const char *path)
{
    write_file(path, table, sizeof table - 1);
}
static void make_tar(const char *path)
{
    unsigned char bytes[2560] = "a.txt"; /* of 1000 bytes */
    unsigned sum = 0;
    memcpy(bytes + 124, "00000001750", 12);
    memcpy(bytes + 257, "ustar\00000", 8);
    bytes[156] = '0';
    memset(bytes + 148, ' ', 8);
    for (int i = 0; i < 512; i++)
        sum += bytes[i];
    snprintf((char *)bytes + 148, 8, "%06o", sum);
    memcpy(bytes + 512, "text", 4);
    write_file(path, bytes, sizeof bytes);
}
static void copy_file(const char *in, const char *name, const char *path)
{
    size_t n;
    char from[5000];
    snprintf(from, sizeof from, TEST_FOLDER "%s%s", in, name);
    char *bytes = read_file(from, &n);
    write_file(path, bytes, n);
    free(bytes);
}
static void make_png(const char *path)
{
    copy_file("/images/", "colour.png", path);
}
static void make_jpeg(const char *path)
{
    copy_file("/images/", "colour.jpg", path);
}

static void make_golden(const char *path)
{
    copy_file("/golden/torch", strrchr(path, '/'), path);
}

static bool look_at(tern_dataset *d)
{
    tern_tensor *item[TERN_MAX_ITEM];
    bool fine = d && (tern_dataset_length(d) == 0 || tern_dataset_item(d, 0, item) == TERN_OK);
    tern_dataset_free(d);
    return fine;
}
static bool read_dict(const char *path)
{
    tern_state_dict *dict = tern_load(path, NULL);
    tern_state_dict_free(dict);
    return dict;
}
static bool read_npy(const char *path)
{
    return tern_npy_load(path, NULL) != NULL;
}
static bool read_idx(const char *path)
{
    return tern_read_idx(path) != NULL;
}
static bool read_csv(const char *path)
{
    return look_at(tern_datasets_csv(path, NULL));
}
static bool read_tokens(const char *path)
{
    return look_at(tern_datasets_tokens(path, TERN_I64, 3));
}
static bool read_tar(const char *path)
{
    return look_at(tern_datasets_tar(&path, 1, (const char *const[]){"txt"}, 1, NULL));
}
static bool read_image(const char *path)
{
    return tern_image_read(path, NULL) != NULL;
}

enum {
    EMPTY,
    HALF,
    SHORT, /* without its last byte */
    LONGER,
    OTHER, /* zeros */
    LINK_TO_ITSELF,
    LINK_TO_NOTHING,
    LINK_TO_FOLDER,
    FOLDER,
    PIPE,
    LINK,
    WAYS
};
#define BIT(WAY) (1u << (WAY))

/* What is read beside the file itself and a link to it: a PNG is whole before its mark of the end, and images, archives
 * of tar and streams of gzip may end before the file does; zeros are tokens, and an archive of nothing. */
static const struct {
    const char *name;
    void (*make)(const char *path);
    bool (*read)(const char *path);
    unsigned accepts;
} kinds[] = {
    {"safetensors", make_dict, read_dict, 0},
    {"gguf", gguf_write_sample, read_dict, 0},
    {"npz", make_dict, read_dict, 0},
    {"packed.npz", make_dict, read_dict, 0},
    {"npy", make_npy, read_npy, 0},
    {"pt", make_pt, read_dict, 0},
    {"stream.pt", make_golden, read_dict, BIT(LONGER)},
    {"tar.pt", make_golden, read_dict,
     BIT(HALF) | BIT(SHORT) | BIT(LONGER)}, /* half of it are zeros */
    {"script.pt", make_golden, read_dict, 0},
    {"exported.pt2", make_golden, read_dict, 0},
    {"idx", make_idx, read_idx, 0},
    {"idx.gz", make_gzip, read_idx, BIT(LONGER)},
    {"csv", make_csv, read_csv, BIT(SHORT)},
    {"tokens", make_tokens, read_tokens, BIT(OTHER)},
    {"tar", make_tar, read_tar, BIT(OTHER) | BIT(SHORT) | BIT(LONGER)},
    {"png", make_png, read_image, BIT(SHORT) | BIT(LONGER)},
    {"jpg", make_jpeg, read_image, BIT(LONGER)},
};
enum { KINDS = sizeof kinds / sizeof *kinds };

static void put(const char *path, int way, const char *bytes, size_t n)
{
    char *other = calloc(1, n + 7);
    switch (way) {
    case OTHER:
        write_file(path, other, n);
        break;
    case LONGER:
        memcpy(other, bytes, n);
        memcpy(other + n, "\"more\",", 7);
        write_file(path, other, n + 7);
        break;
    case LINK_TO_ITSELF:
        assert_int_equal(symlink(path, path), 0);
        break;
    case LINK_TO_NOTHING:
        assert_int_equal(symlink("nothing/there", path), 0);
        break;
    case LINK_TO_FOLDER:
        assert_int_equal(symlink(".", path), 0);
        break;
    case LINK:
        write_file(in_folder("target"), bytes, n);
        assert_int_equal(symlink("target", path), 0);
        break;
    case FOLDER:
        assert_int_equal(mkdir(path, 0755), 0);
        break;
    case PIPE:
        assert_int_equal(mkfifo(path, 0600), 0);
        break;
    default:
        write_file(path, bytes, way == EMPTY ? 0 : way == HALF ? n / 2 : n - 1);
    }
    free(other);
}

/* 16 kinds, 11 ways. */
static void every_kind_in_every_way(void **state)
{
    (void)state;
    for (int k = 0; k < KINDS; k++)
        TERN_SCOPE {
            size_t n;
            char path[4400];
            snprintf(path, sizeof path, "%s", in_folder(kinds[k].name));
            kinds[k].make(path);
            if (test_no_library())
                continue;
            char *bytes = read_file(path, &n);
            bool fine = kinds[k].read(path);
            if (!fine && test_no_library()) {
                free(bytes);
                continue;
            }
            assert_ok(tern_last_status());
            assert_true(fine);
            for (int way = 0; way < WAYS; way++) {
                remove(path);
                put(path, way, bytes, n);
                fine = kinds[k].read(path);
                bool wanted = way == LINK || (kinds[k].accepts & BIT(way));
                if (fine != wanted || fine != (tern_last_status() == TERN_OK))
                    fail_msg("%s, way %d: %s", kinds[k].name, way,
                             fine ? "read" : tern_last_error());
                tern_clear_error();
            }
            remove(path);
            free(bytes);
        }
    assert_int_equal(tern_live_tensors(), 0);
}

/* ---- bombs ----------------------------------------------------------------------------------- */

static void expect_refusal(const char *path, bool (*read)(const char *path), const char *says)
{
    TERN_SCOPE {
        bool fine = read(path);
        if (!fine && test_no_library())
            return;
        assert_false(fine);
        assert_error(TERN_ERR_IO, says);
    }
}

/* Headers of a few bytes that stand for gigabytes: refused by the file's size, before memory is taken. */
static void small_files_do_not_become_large(void **state)
{
    (void)state;
    unsigned char bytes[4096] = {0};
    size_t n = (size_t)snprintf(
        (char *)bytes + 10, 500,
        "{'descr': '<f8', 'fortran_order': False, 'shape': (1000000, 100000), }\n");
    memcpy(bytes, "\x93NUMPY\1\0", 8);
    archive_number(bytes + 8, n, 2);
    write_file(in_folder("bomb.npy"), bytes, 10 + n);
    expect_refusal(in_folder("bomb.npy"), read_npy, "bomb.npy");
    archive a = {0};
    archive_add(&a, (archive_member){.name = "x.npy", .data = bytes, .size = 10 + n});
    archive_end(&a, 0);
    write_file(in_folder("bomb.npz"), a.bytes, a.size);
    free(a.bytes);
    expect_refusal(in_folder("bomb.npz"), read_dict, "bytes");
    /* gzip that is not as long as its end says */
    unsigned char gz[sizeof gzip_bytes];
    memcpy(gz, gzip_bytes, sizeof gz);
    gz[sizeof gz - 4] = 0xff;
    write_file(in_folder("bomb.gz"), gz, sizeof gz);
    expect_refusal(in_folder("bomb.gz"), read_idx, "bomb.gz");
    static const unsigned char huge[] = {0, 0, 14, 2, 255, 255, 255, 255, 255, 255, 255, 255};
    write_file(in_folder("bomb.idx"), huge, sizeof huge);
    expect_refusal(in_folder("bomb.idx"), read_idx, "bytes");
    /* images of 2^30 pixels in a few hundred bytes */
    copy_file("/images/", "grey.png", in_folder("bomb.png"));
    char *png = read_file(in_folder("bomb.png"), &n);
    memcpy(png + 16, "\0\0\x80\0\0\0\x80\0", 8);
    archive_number((unsigned char *)png + 29,
                   __builtin_bswap32(archive_crc((unsigned char *)png + 12, 17)), 4);
    write_file(in_folder("bomb.png"), png, n);
    free(png);
    expect_refusal(in_folder("bomb.png"), read_image, "a PNG of 32768 x 32768 pixels");
    copy_file("/images/", "colour.jpg", in_folder("bomb.jpg"));
    char *jpeg = read_file(in_folder("bomb.jpg"), &n);
    for (size_t i = 0; i + 9 < n; i++)
        if ((unsigned char)jpeg[i] == 0xff && ((unsigned char)jpeg[i + 1] & 0xfe) == 0xc0)
            memcpy(jpeg + i + 5, "\xff\0\xff\0", 4);
    write_file(in_folder("bomb.jpg"), jpeg, n);
    free(jpeg);
    expect_refusal(in_folder("bomb.jpg"), read_image, "a JPEG of 65280 x 65280 pixels");
}

/* 64 MiB of zeros in 64 KiB of deflate, which an array of 24 bytes claims to be. */
static void packed_data_is_as_long_as_it_says(void **state)
{
    (void)state;
    tern_state_dict *dict = tern_state_dict_new();
    TERN_SCOPE
        tern_state_dict_set(dict, "x", tern_zeros(TERN_SHAPE(1 << 22), TERN_F32, "cpu"));
    tern_status status =
        tern_npz_save(dict, in_folder("zeros.npz"), &(tern_npz_options){.compressed = true});
    tern_state_dict_free(dict);
    if (status != TERN_OK && test_no_library())
        return;
    size_t n;
    unsigned char *bytes = (unsigned char *)read_file(in_folder("zeros.npz"), &n);
    assert_true(n < 1 << 17);
    /* Less is claimed, in the zip64 field and in the directory: the rest may not be taken. */
    for (size_t i = 0; i + 4 < n; i++)
        if (memcmp(bytes + i, "\x80\0\0\1", 4) == 0)
            memcpy(bytes + i, "\x98\0\0\0", 4);
    write_file(in_folder("zeros.npz"), bytes, n);
    free(bytes);
    expect_refusal(in_folder("zeros.npz"), read_dict, "");
}

/* ---- files that change under the reader ------------------------------------------------------- */

static void a_file_cut_off_under_the_reader_is_an_error(void **state)
{
    (void)state;
    TERN_SCOPE {
        static const char *const names[] = {"safetensors", "npz", "npy"};
        for (int k = 0; k < 3; k++) {
            const char *path = in_folder(names[k]);
            if (k == 2)
                make_npy(path);
            else
                make_dict(path);
            tern_file *file = tern_safe_open(path);
            if (!file && test_no_library())
                continue;
            assert_non_null(file);
            assert_int_equal(truncate(path, 300), 0);
            if (tern_file_get(file, tern_file_name_at(file, 0), NULL))
                fail_msg("%s", names[k]);
            assert_error(TERN_ERR_IO, names[k]);
            tern_file_free(file);
        }
        tern_tensor *item[2];
        const char *path = in_folder("tokens");
        make_tokens(path);
        tern_dataset *d = tern_datasets_tokens(path, TERN_I64, 3);
        assert_int_equal(truncate(path, 20), 0);
        assert_int_equal(tern_dataset_item(d, 2, item), TERN_ERR_IO); /* and no SIGBUS */
        assert_error(TERN_ERR_IO, "ends at byte 20");
        tern_dataset_free(d);
        path = in_folder("tar");
        make_tar(path);
        d = tern_datasets_tar(&path, 1, (const char *const[]){"txt"}, 1, NULL);
        assert_int_equal(truncate(path, 514), 0);
        assert_int_equal(tern_dataset_item(d, 0, item), TERN_ERR_IO);
        assert_error(TERN_ERR_IO, "ends at byte 514");
        tern_dataset_free(d);
    }
}

/* Images that were listed and are something else when they are read. */
static void an_image_replaced_after_it_was_listed_is_an_error(void **state)
{
    (void)state;
    char path[4400];
    snprintf(path, sizeof path, "%s", in_folder("images/a/x.png"));
    mkdir(in_folder("images"), 0755);
    mkdir(in_folder("images/a"), 0755);
    make_png(path);
    tern_dataset *d = tern_datasets_image_folder(in_folder("images"), NULL);
    assert_non_null(d);
    size_t n;
    char *bytes = read_file(path, &n);
    for (int way = 0; way < LINK; way++)
        TERN_SCOPE {
            tern_tensor *item[2];
            remove(path);
            put(path, way, bytes, n);
            tern_status status = tern_dataset_item(d, 0, item);
            if (status != TERN_OK && test_no_library())
                continue;
            assert_true((status == TERN_OK) == (way == SHORT || way == LONGER));
            if (status != TERN_OK)
                assert_error(TERN_ERR_IO, "x.png");
        }
    tern_dataset_free(d);
    free(bytes);
}

static atomic_bool replaced_enough;
static char replaced_kind[64];

/* Two whole files of other lengths take turns under one name, with a pipe and nothing between them. */
static void *replace_it(void *user)
{
    char place[4400], next[4400], made[2][4400];
    (void)user;
    snprintf(place, sizeof place, "%s/turns.%s", folder, replaced_kind);
    snprintf(next, sizeof next, "%s/next.%s", folder, replaced_kind);
    for (int i = 0; i < 2; i++)
        snprintf(made[i], sizeof made[i], "%s/made%d.%s", folder, i, replaced_kind);
    for (int i = 0; !atomic_load(&replaced_enough); i++) {
        if (i % 3 == 2)
            mkfifo(next, 0600);
        else if (link(made[i % 3], next) != 0)
            continue;
        rename(next, place);
        if (i % 7 == 0)
            unlink(place);
    }
    return NULL;
}

/* One of the two whole, or an error, and never a mixture; and no wait for the pipe. */
static void a_file_replaced_between_open_and_stat_is_one_of_both(void **state)
{
    (void)state;
    static const char *const names[] = {"safetensors", "npz"};
    for (int k = 0; k < 2; k++) {
        char path[2][4400];
        pthread_t thread;
        snprintf(replaced_kind, sizeof replaced_kind, "%s", names[k]);
        for (int i = 0; i < 2; i++) {
            snprintf(path[i], sizeof path[i], "%s/made%d.%s", folder, i, names[k]);
            write_dict(path[i], i ? 40000 : 100, i + 1);
        }
        tern_state_dict_free(tern_load(path[0], NULL));
        if (test_no_library())
            continue;
        atomic_store(&replaced_enough, false);
        assert_int_equal(pthread_create(&thread, NULL, replace_it, NULL), 0);
        snprintf(path[0], sizeof path[0], "%s/turns.%s", folder, names[k]);
        int whole = 0;
        for (int i = 0; i < 400 || (whole < 20 && i < 1000000); i++)
            TERN_SCOPE {
                tern_state_dict *dict = tern_load(path[0], NULL);
                if (!dict) {
                    assert_true(tern_last_status() != TERN_OK);
                    tern_clear_error();
                    continue;
                }
                tern_tensor *x = tern_state_dict_get(dict, "x");
                double value = tern_numel(x) == 100 ? 1 : 2;
                assert_true(tern_item(tern_min(x)) == value && tern_item(tern_max(x)) == value);
                tern_state_dict_free(dict);
                whole++;
            }
        atomic_store(&replaced_enough, true);
        pthread_join(thread, NULL);
        assert_true(whole >= 20);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(every_kind_in_every_way),
        TEST(small_files_do_not_become_large),
        TEST(packed_data_is_as_long_as_it_says),
        TEST(a_file_cut_off_under_the_reader_is_an_error),
        TEST(an_image_replaced_after_it_was_listed_is_an_error),
        TEST(a_file_replaced_between_open_and_stat_is_one_of_both),
    };
    return folder_main(tests, sizeof tests / sizeof *tests);
}
