/* test_file_kinds.c -- what a file is: kinds that are read are found by their first bytes, others are refused by name. */
#include "support.h"
#include "folder.h"

/* The first bytes of a file, and what is to stand in the message that refuses it. */
typedef struct kind {
    const char *bytes;
    size_t n;
    const char *name, *way;
} kind;
#define KIND(BYTES, NAME, WAY)                                                                     \
    {                                                                                              \
        BYTES, sizeof(BYTES) - 1, NAME, WAY                                                        \
    }

static const kind others[] = {
    KIND("\x89HDF\r\n\x1a\n", "HDF5", "safetensors"),
    KIND("\x1c\0\0\0TFL3\x14\0\x20\0", "TFLite", "ONNX"),
    KIND("\x1c\0\0\0PTMF\x14\0\x20\0", "mobile", "state_dict"),
    KIND("\x08\x08\x12\x07pytorch", "ONNX", "tern_onnx_load"),
    KIND("RIFF\x24\0\0\0WEBPVP8 ", "WebP", "tern_image_read"),
    KIND("BM\x46\0\0\0\0\0\0\0\x36\0\0\0", "BMP", "tern_image_read"),
    KIND("II*\0\x08\0\0\0", "TIFF", "tern_image_read"),
    KIND("MM\0*\0\0\0\x08", "TIFF", "tern_image_read"),
    KIND("GIF89a\1\0\1\0", "GIF", "tern_image_read"),
    KIND("\x1f\x8b\x08\0\0\0\0\0\0\3", "gzip", "gunzip"),
    KIND("BZh91AY&SY", "bzip2", "bunzip2"),
    KIND("\xfd"
         "7zXZ\0\0\4",
         "xz", "unxz"),
    KIND("\x28\xb5\x2f\xfd\x24\1", "zstd", "unzstd"),
    KIND("\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR", "PNG", "tern_image_read"),
    KIND("\xff\xd8\xff\xe0\0\x10JFIF", "JPEG", "tern_image_read"),
    KIND("RIFF\x24\0\0\0WAVEfmt ", "WAV", "tern_audio_load"),
    KIND("\0\0\x08\3\0\0\0\1\0\0\0\1\0\0\0\1x", "IDX", "tern_read_idx"),
    KIND("<!DOCTYPE html><html>", "HTML", "download"),
    KIND("version https://git-lfs.github.com/spec/v1\n", "Git LFS", "git lfs pull"),
    KIND("PAR1\x15\4", "Parquet", "tern_datasets_csv"),
    KIND("SQLite format 3\0", "SQLite", ""),
    KIND("\x80\4\x95\x0a\0\0\0\0\0\0\0}\x94.", "pickle", "nothing of it is run"),
    KIND("\x0a\x0e\x0a\5<unk>\x15\0\0\0\0\x18\2", "sentencepiece", ""),
    KIND("ftypxxxxftyp", "unknown", ""),
};

/* The library has no word for what is no kind of its table: such a row is not compared. */
static bool is_known(const kind *k)
{
    return strcmp(k->name, "unknown") != 0;
}

/* A file that begins with the row's bytes, long enough to be any kind. */
static const char *file_of(const kind *k)
{
    char bytes[600] = {0};
    memcpy(bytes, k->bytes, k->n);
    write_file(in_folder("x"), bytes, sizeof bytes);
    return in_folder("x");
}

static void other_kinds_are_refused_by_name(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        tern_module *m = tern_nn_linear(2, 2, NULL);
        assert_null(tern_load(file_of(&others[i]), NULL));
        if (is_known(&others[i]) &&
            (!strstr(tern_last_error(), others[i].name) ||
             !strstr(tern_last_error(), others[i].way) || !strstr(tern_last_error(), "tern_load")))
            fail_msg("%s, %s: %s", others[i].name, others[i].way, tern_last_error());
        assert_error(TERN_ERR_IO, "/x");
        assert_null(tern_safe_open(in_folder("x")));
        assert_error(TERN_ERR_IO, "/x");
        assert_int_equal(tern_nn_load(m, in_folder("x"), NULL), TERN_ERR_IO);
        assert_error(TERN_ERR_IO, is_known(&others[i]) ? others[i].name : "");
        tern_nn_free(m);
    }
}

/* Readers of one kind say what they were given in its place. */
static void readers_of_one_kind_name_the_other(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        const char *name = others[i].name, *path = file_of(&others[i]);
        if (!is_known(&others[i]) || strstr("PNG JPEG IDX gzip zstd", name))
            continue;
        assert_null(tern_image_read(path, NULL));
        if (!test_no_library())
            assert_error(TERN_ERR_IO, name);
        if (others[i].bytes[0] != '\0') {
            assert_null(tern_read_idx(path));
            assert_error(TERN_ERR_IO, "x begins with");
        }
        if (!tern_onnx_is_available() || strcmp(name, "ONNX") == 0)
            continue;
        assert_null(tern_onnx_load(path));
        assert_error(TERN_ERR_IO, name);
    }
}

/* Bytes that are two kinds' are a file of safetensors where its header says so. */
static void a_header_of_safetensors_goes_before_other_kinds(void **state)
{
    (void)state;
    char bytes[8 + 0x4d42] = "BM\0\0\0\0\0\0";
    memset(bytes + 8, ' ', sizeof bytes - 8);
    memcpy(bytes + 8, "{}", 2);
    write_file(in_folder("x"), bytes, sizeof bytes);
    tern_state_dict *dict = tern_load(in_folder("x"), NULL);
    assert_non_null(dict);
    assert_int_equal(tern_state_dict_count(dict), 0);
    tern_state_dict_free(dict);
}

static void a_folder_without_a_model_names_what_was_looked_for(void **state)
{
    (void)state;
    assert_null(tern_load(folder, NULL));
    assert_error(TERN_ERR_IO, "model.safetensors, model.safetensors.index.json, pytorch_model.bin, "
                              "pytorch_model.bin.index.json");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(other_kinds_are_refused_by_name),
        TEST(readers_of_one_kind_name_the_other),
        TEST(a_header_of_safetensors_goes_before_other_kinds),
        TEST(a_folder_without_a_model_names_what_was_looked_for),
    };
    return folder_main(tests, sizeof tests / sizeof *tests);
}
