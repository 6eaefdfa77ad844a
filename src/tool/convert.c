/* convert.c -- tern convert: writes the tensors of a file in another format. */
#include "tool/convert.h"
#include "base/os.h"
#include "tool/tool.h"
#include <string.h>

static const char *dtype_name, *type_name;

static bool ends_in(const char *path, const char *end)
{
    const size_t n = strlen(path), k = strlen(end);
    return n > k && tern_os_strcasecmp(path + n - k, end) == 0;
}

/* Prints the progress if stderr is a terminal. */
static void progress(int i, int n)
{
    if (!tern_os_isatty(STDERR_FILENO))
        return;
    if (i < n)
        fprintf(stderr, "\rtensor %d of %d ", i + 1, n);
    else
        fputs("\r\x1b[K", stderr); /* clears the line */
}

/* ---- tensors ------------------------------------------------------------------------------- */

tern_dtype tool_tensor_dtype(const tool_tensors *from, const char *name)
{
    const tern_dtype dtype = tern_file_dtype(from->file, name);
    if (!dtype) {
        TERN_SCOPE
            tern_file_get(from->file, name, "cpu"); /* sets the error that explains why the
                                                       tensor cannot be read */
        tool_fail_with_error();
    }
    return dtype && from->dtype && tern_dtype_is_floating_point(dtype) ? from->dtype : dtype;
}

tern_tensor *tool_tensor_get(const tool_tensors *from, int i)
{
    const int n = tern_file_count(from->file);
    progress(i, n);
    tern_tensor *x = tern_file_get(from->file, tern_file_name_at(from->file, i), "cpu");
    if (x && from->dtype && tern_dtype_is_floating_point(tern_dtype_of(x)))
        x = tern_to_dtype(x, from->dtype);
    x = x ? tern_contiguous(x) : NULL;
    if (!x || i + 1 == n)
        progress(n, n);
    return x;
}

/* Reads all tensors and the metadata; returns NULL after an error. */
static tern_state_dict *read_all(const tool_tensors *from)
{
    tern_state_dict *dict = tern_state_dict_new();
    tern_status status = dict ? TERN_OK : TERN_ERR_MEMORY;
    for (int i = 0; i < tern_file_count(from->file) && status == TERN_OK; i++)
        TERN_SCOPE {
            tern_tensor *x = tool_tensor_get(from, i);
            status =
                x ? tern_state_dict_set(dict, tern_file_name_at(from->file, i), x) : TERN_ERR_IO;
        }
    for (int i = 0; i < tern_file_metadata_count(from->file) && status == TERN_OK; i++) {
        const char *key = tern_file_metadata_key_at(from->file, i);
        status = tern_state_dict_set_metadata(dict, key, tern_file_metadata(from->file, key));
    }
    if (status == TERN_OK)
        return dict;
    tern_state_dict_free(dict);
    return NULL;
}

/* ---- output formats -------------------------------------------------------------------------- */

static int write_all(const tool_tensors *from, const char *path, bool npz)
{
    tern_state_dict *dict = read_all(from);
    tern_status status = dict ? TERN_OK : TERN_ERR_IO;
    if (dict)
        status = npz ? tern_npz_save(dict, path, NULL) : tern_save(dict, path, NULL);
    tern_state_dict_free(dict);
    return status == TERN_OK ? TOOL_FINE : tool_fail_with_error();
}

static int write_safetensors(const tool_tensors *from, const char *path)
{
    return write_all(from, path, false);
}

static int write_npz(const tool_tensors *from, const char *path)
{
    for (int i = 0; i < tern_file_count(from->file); i++) {
        const char *name = tern_file_name_at(from->file, i);
        const tern_dtype dtype = tool_tensor_dtype(from, name);
        if (dtype == TERN_BF16 || dtype == TERN_F8_E4M3FN || dtype == TERN_F8_E5M2)
            return tool_fail(TOOL_WRONG,
                             "convert: %s is of %s, which NumPy does not have: --dtype float32 "
                             "converts it",
                             name, tern_dtype_name(dtype));
    }
    return write_all(from, path, true);
}

static const struct {
    const char *end;
    int (*write)(const tool_tensors *from, const char *path);
} writers[] = {{".safetensors", write_safetensors}, {".npz", write_npz},
               {".pt", tool_write_torch},           {".pth", tool_write_torch},
               {".bin", tool_write_torch},          {".gguf", tool_write_gguf}};
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

static int report(const char *path, int tensors)
{
    char text[32];
    struct tern_os_stat about;
    if (tern_os_stat(path, &about) == 0)
        printf("%s: %d tensors, %s\n", path, tensors, tool_bytes((double)about.st_size, text));
    return TOOL_FINE;
}

/* Whether path is a folder with a config.json. */
static bool is_model(const char *path)
{
    char config[4096];
    struct tern_os_stat about;
    snprintf(config, sizeof config, "%s/config.json", path);
    return tern_os_stat(config, &about) == 0;
}

static int convert_model(const char *from, const char *path, tern_dtype dtype)
{
    const char *type = dtype == TERN_F32    ? "f32"
                       : dtype == TERN_F16  ? "f16"
                       : dtype == TERN_BF16 ? "bf16"
                                            : type_name;
    if (dtype == TERN_F64)
        return tool_fail(TOOL_USAGE, "convert: a model's GGUF is not written as float64");
    const int code = tool_write_model(from, path, type);
    if (code != TOOL_FINE)
        return code;
    tern_file *file = tern_safe_open(path);
    const int n = file ? tern_file_count(file) : 0;
    tern_file_free(file);
    return file ? report(path, n) : tool_fail_with_error();
}

static int run(const char *const *words, int n)
{
    tool_tensors from = {0};
    int k = 0;
    if (n < 2)
        return tool_fail(TOOL_USAGE, "convert: from which file, to which?");
    if (find_dtype(&from.dtype) != TOOL_FINE)
        return TOOL_USAGE;
    while (k < WRITERS && !ends_in(words[1], writers[k].end))
        k++;
    if (k == WRITERS)
        return tool_fail(TOOL_USAGE,
                         "convert: %s: .safetensors, .npz, .pt, .pth, .bin or .gguf is expected",
                         words[1]);
    const bool gguf = writers[k].write == tool_write_gguf;
    if (type_name && (!gguf || dtype_name))
        return tool_fail(TOOL_USAGE, "convert: --type is of a .gguf, and without --dtype");
    if (gguf && (type_name || is_model(words[0])))
        return convert_model(words[0], words[1], from.dtype);
    from.file = tern_safe_open(words[0]);
    if (!from.file)
        return tool_fail_with_error();
    const int code = writers[k].write(&from, words[1]), tensors = tern_file_count(from.file);
    tern_file_free(from.file);
    return code == TOOL_FINE ? report(words[1], tensors) : code;
}

static const tool_option options[] = {
    {"--dtype", "NAME", "write floats as float32, float16, bfloat16 or float64",
     .text = &dtype_name},
    {"--type", "NAME",
     "matrices of a model's GGUF as f32, f16, bf16, q8_0, q4_0, q4_k, ... (tern/models.h)",
     .text = &type_name},
    {0}};

const tool_command tool_convert = {
    .name = "convert",
    .arguments = "FROM TO",
    .summary = "Write the tensors of a file as another kind",
    .more = "FROM is a file that `tern summary` takes, except .onnx. The ending of TO decides what "
            "is written:\n"
            ".safetensors, .npz, .pt, .pth or .bin (PyTorch), or .gguf. TO appears whole or not at "
            "all. Names\n"
            "stay as they are. Blocks of a GGUF become float32; only in another GGUF they stay "
            "blocks, and all\n"
            "metadata stays (so a GGUF of several parts becomes one file). A folder with a "
            "config.json becomes a\n"
            "GGUF that llama.cpp runs; so does a GGUF of a model with --type.\n",
    .part = TOOL_FILES,
    .example = "tern convert a.gguf b.npz",
    .most = 2,
    .options = options,
    .run = run,
};
