/* show.c -- tern show: the format of a file, its size, and its contents. */
#include "tool/convert.h"
#include "base/os.h"
#include "tool/tool.h"
#include <string.h>

enum { MOST_TYPES = 64 };

/* ---- tensors by type ----------------------------------------------------------------------- */

static void print_types(tern_file *file)
{
    const char *names[MOST_TYPES];
    int counts[MOST_TYPES] = {0}, types = 0;
    for (int i = 0; i < tern_file_count(file); i++) {
        const char *type = tern_file_dtype_name(file, tern_file_name_at(file, i));
        int k = 0;
        while (k < types && strcmp(names[k], type) != 0)
            k++;
        if (k == MOST_TYPES)
            continue;
        types += k == types;
        names[k] = type;
        counts[k]++;
    }
    printf("types: %s", types ? "" : "none");
    for (int k = 0; k < types; k++)
        printf("%s%d %s", k ? ", " : "", counts[k], names[k]);
    putchar('\n');
}

/* ---- other contents (functions return false after an error) ---------------------------------- */

static bool show_image(const char *path)
{
    bool good = false;
    char text[128];
    TERN_SCOPE {
        tern_tensor *x = tern_image_read(path, &(tern_image_options){.keep_16_bits = true});
        good = x != NULL;
        if (good)
            printf("image: %s %s\n", tern_dtype_name(tern_dtype_of(x)),
                   tool_shape(tern_shape_of(x), text));
    }
    return good;
}

static bool show_idx(const char *path)
{
    bool good = false;
    char text[128];
    TERN_SCOPE {
        tern_tensor *x = tern_read_idx(path);
        good = x != NULL;
        if (good)
            printf("tensor: %s %s\n", tern_dtype_name(tern_dtype_of(x)),
                   tool_shape(tern_shape_of(x), text));
    }
    return good;
}

static void print_line(const char *what, tern_dataset *lines)
{
    char text[401];
    tern_tensor *item[TERN_MAX_ITEM];
    if (!lines || !tern_dataset_length(lines) || tern_dataset_item(lines, 0, item) != TERN_OK)
        return;
    printf("%s: ", what);
    snprintf(text, sizeof text, "%.*s", (int)tern_numel(item[0]), (const char *)tern_data(item[0]));
    tool_print_text(text);
}

/* Shows a table of numbers: rows, columns and, if it is not compressed, its first line. */
static bool show_table(const char *path, bool packed)
{
    tern_dataset *table = tern_datasets_csv(path, NULL);
    tern_dataset *lines = packed || !table ? NULL : tern_datasets_text_lines(path);
    TERN_SCOPE {
        tern_tensor *item[TERN_MAX_ITEM];
        const int64_t rows = table ? tern_dataset_length(table) : 0;
        if (rows && tern_dataset_item(table, 0, item) == TERN_OK)
            printf("table: %lld rows of %lld numbers\n", (long long)rows,
                   (long long)tern_numel(item[0]));
        print_line("columns", lines);
    }
    const bool good = table != NULL;
    tern_dataset_free(lines);
    tern_dataset_free(table);
    return good;
}

/* Shows which samples of an archive have files with which endings. */
static bool show_archive(const char *path)
{
    static const char *const fields[] = {"jpg;jpeg;png;webp;bmp", "cls", "json", "txt", "npy;npz",
                                         "safetensors;pt;pth",    "wav"};
    bool any = false;
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
        tern_dataset *d = tern_datasets_tar(&path, 1, &fields[i], 1, NULL);
        const int64_t n = d ? tern_dataset_length(d) : 0;
        if (!d)
            return false;
        if (n)
            printf("%lld samples with .%s\n", (long long)n, fields[i]);
        any = any || n;
        tern_dataset_free(d);
    }
    if (!any)
        puts("no samples of images, classes, texts or tensors");
    return true;
}

/* The contents of a compressed file are found by trying each format. */
static bool show_packed(const char *path)
{
    static bool (*const ways[])(const char *path) = {show_idx, show_archive};
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        if (ways[i](path))
            return true;
        tern_clear_error();
    }
    return show_table(path, true);
}

/* Determines by reading whether lines of text are a vocabulary or a table. */
static tool_kind kind_of_lines(const char *path, tool_kind kind)
{
    static const struct {
        const char *name;
        tool_holds holds;
    } kinds[] = {{"vocab.txt (a tokenizer)", TOOL_HOLDS_TOKENIZER},
                 {"table (CSV)", TOOL_HOLDS_TABLE}};
    tern_dataset *table = tern_datasets_csv(path, NULL);
    const int i = tool_is_tokenizer(path) ? 0 : table ? 1 : 2;
    tern_clear_error();
    tern_dataset_free(table);
    if (i < 2) {
        kind.holds = kinds[i].holds;
        snprintf(kind.name, sizeof kind.name, "%s", kinds[i].name);
    }
    return kind;
}

static bool show_lines(const char *path)
{
    tern_dataset *lines = tern_datasets_text_lines(path);
    if (lines)
        printf("lines: %lld\n", (long long)tern_dataset_length(lines));
    TERN_SCOPE
        print_line("the first", lines);
    const bool good = lines != NULL;
    tern_dataset_free(lines);
    return good;
}

/* ---- the command --------------------------------------------------------------------------- */

/* Shows the tensors of a file or folder, or the tokenizer of a folder without tensors. */
static int show_tensors(const char *const *words, int n, bool folder)
{
    tern_file *file = tern_safe_open(words[0]);
    if (!file && folder) {
        char message[1024];
        snprintf(message, sizeof message, "%s", tool_error());
        tern_clear_error();
        if (tool_show_tokenizer(words[0]))
            return TOOL_FINE;
        tern_clear_error();
        return tool_fail(TOOL_WRONG, "show: %s, and no tokenizer", message);
    }
    if (!file)
        return tool_fail_with_error();
    print_types(file);
    tern_file_free(file);
    return tool_summary.run(words, n);
}

static bool show_contents(const char *path, tool_holds holds)
{
    switch (holds) {
    case TOOL_HOLDS_IMAGE:
        return show_image(path);
    case TOOL_HOLDS_SOUND:
        return tool_show_sound(path);
    case TOOL_HOLDS_IDX:
        return show_idx(path);
    case TOOL_HOLDS_TOKENIZER:
        return tool_show_tokenizer(path);
    case TOOL_HOLDS_ARCHIVE:
        return show_archive(path);
    case TOOL_HOLDS_PACKED:
        return show_packed(path);
    case TOOL_HOLDS_TABLE:
        return show_table(path, false);
    default:
        return show_lines(path);
    }
}

static int run(const char *const *words, int n)
{
    struct tern_os_stat about;
    char text[32];
    if (n == 0)
        return tool_fail(TOOL_USAGE, "show: which file?");
    const bool is_there = tern_os_stat(words[0], &about) == 0;
    tool_kind kind = tool_kind_of(words[0]);
    if (kind.holds == TOOL_HOLDS_TEXT)
        kind = kind_of_lines(words[0], kind);
    if (is_there) {
        printf("kind: %s\n", kind.name);
        if (S_ISREG(about.st_mode))
            printf("size: %s\n", tool_bytes((double)about.st_size, text));
    }
    if (kind.holds == TOOL_HOLDS_MODEL)
        return tool_summary.run(words, n);
    if (kind.holds == TOOL_HOLDS_TENSORS || kind.holds == TOOL_HOLDS_UNKNOWN)
        return show_tensors(words, n, is_there && S_ISDIR(about.st_mode));
    return show_contents(words[0], kind.holds) ? TOOL_FINE : tool_fail_with_error();
}

const tool_command tool_show = {
    .name = "show",
    .arguments = "FILE",
    .summary = "Show the kind, the size and all contents of a file",
    .more = "FILE is a file that `tern summary` takes, a tokenizer of any kind, an image, a sound, "
            "a table, a tar\n"
            "of samples, or an IDX file. The contents decide what kind a file is, not its name.\n",
    .part = TOOL_FILES,
    .example = "tern show model.gguf",
    .most = 1,
    .run = run,
};
