/* convert.c -- tern convert: tensors of a file of one kind written as one of another. */
#include "tool/convert.h"
#include "base/os.h"
#include "tool/tool.h"
#include <errno.h>
#include <string.h>

static const char *dtype_name;

static bool ends_in(const char *path, const char *end)
{
    const size_t n = strlen(path), k = strlen(end);
    return n > k && tern_os_strcasecmp(path + n - k, end) == 0;
}

/* On a terminal alone. */
static void progress(const char *what, int i, int n)
{
    if (!tern_os_isatty(STDERR_FILENO))
        return;
    if (i < n)
        fprintf(stderr, "\r%s %d of %d ", what, i + 1, n);
    else
        fputs("\r\x1b[K", stderr); /* an empty line */
}

/* All tensors of a file, one after the other, and its metadata. NULL after an error. */
static tern_state_dict *read_all(const char *path, tern_dtype dtype)
{
    tern_file *file = tern_safe_open(path);
    tern_state_dict *dict = file ? tern_state_dict_new() : NULL;
    tern_status status = dict ? TERN_OK : TERN_ERR_IO;
    const int n = file ? tern_file_count(file) : 0;
    for (int i = 0; i < n && status == TERN_OK; i++)
        TERN_SCOPE {
            const char *name = tern_file_name_at(file, i);
            progress("reading tensor", i, n);
            tern_tensor *x = tern_file_get(file, name, "cpu");
            if (x && dtype && tern_dtype_is_floating_point(tern_dtype_of(x)))
                x = tern_to_dtype(x, dtype);
            status = x ? tern_state_dict_set(dict, name, x) : TERN_ERR_IO;
        }
    for (int i = 0; file && i < tern_file_metadata_count(file) && status == TERN_OK; i++) {
        const char *key = tern_file_metadata_key_at(file, i);
        status = tern_state_dict_set_metadata(dict, key, tern_file_metadata(file, key));
    }
    progress("", n, n);
    tern_file_free(file);
    if (status == TERN_OK)
        return dict;
    tern_state_dict_free(dict);
    return NULL;
}

static int save_safetensors(const tern_state_dict *dict, const char *path)
{
    return tern_save(dict, path, NULL) == TERN_OK ? TOOL_FINE : tool_fail_with_error();
}

static int save_npz(const tern_state_dict *dict, const char *path)
{
    return tern_npz_save(dict, path, NULL) == TERN_OK ? TOOL_FINE : tool_fail_with_error();
}

static const struct {
    const char *end;
    int (*write)(const tern_state_dict *dict, const char *path);
} writers[] = {{".safetensors", save_safetensors}, {".npz", save_npz},
               {".pt", tool_write_torch},          {".pth", tool_write_torch},
               {".bin", tool_write_torch},         {".gguf", tool_write_gguf}};
enum { WRITERS = sizeof writers / sizeof *writers };

static int find_dtype(tern_dtype *dtype)
{
    static const struct {
        const char *name;
        tern_dtype dtype;
    } names[] = {{"float32", TERN_F32},
                 {"float16", TERN_F16},
                 {"bfloat16", TERN_BF16},
                 {"float64", TERN_F64}};
    for (size_t i = 0; dtype_name && i < sizeof names / sizeof *names; i++)
        if (strcmp(names[i].name, dtype_name) == 0)
            *dtype = names[i].dtype;
    return !dtype_name || *dtype
               ? TOOL_FINE
               : tool_fail(TOOL_USAGE,
                           "convert: --dtype %s is none of float32, float16, bfloat16, float64",
                           dtype_name);
}

static int run(const char *const *words, int n)
{
    tern_dtype dtype = TERN_DTYPE_DEFAULT;
    int k = 0;
    char text[32];
    struct tern_os_stat about;
    if (n < 2)
        return tool_fail(TOOL_USAGE, "convert: from which file, to which?");
    if (find_dtype(&dtype) != TOOL_FINE)
        return TOOL_USAGE;
    while (k < WRITERS && !ends_in(words[1], writers[k].end))
        k++;
    if (k == WRITERS)
        return tool_fail(TOOL_USAGE,
                         "convert: %s: .safetensors, .npz, .pt, .pth, .bin or .gguf is expected",
                         words[1]);
    tern_state_dict *dict = read_all(words[0], dtype);
    if (!dict)
        return tool_fail_with_error();
    const int code = writers[k].write(dict, words[1]);
    if (code == TOOL_FINE && tern_os_stat(words[1], &about) == 0)
        printf("%s: %d tensors, %s\n", words[1], tern_state_dict_count(dict),
               tool_bytes((double)about.st_size, text));
    tern_state_dict_free(dict);
    return code;
}

static const tool_option options[] = {
    {"--dtype", "NAME", "floats as float32, float16, bfloat16 or float64", .text = &dtype_name},
    {0}};

const tool_command tool_convert = {
    .name = "convert",
    .arguments = "FROM TO",
    .summary = "Write the tensors of a file as another kind",
    .more = "FROM is whatever `tern summary` takes but .onnx. TO says by its end what is written: "
            ".safetensors, .npz, .pt,\n"
            ".pth or .bin of PyTorch's, .gguf. It appears whole or not at all. Names stay as they "
            "are, blocks of a GGUF become\n"
            "float32. A GGUF that llama.cpp runs is written by tern_models_save_pretrained.\n",
    .part = TOOL_FILES,
    .example = "tern convert a.gguf b.npz",
    .most = 2,
    .options = options,
    .run = run,
};
