/* show.c -- tern show: which kind a file is, its size, its tensors by type, and all that `tern
 * summary` says. */
#define _GNU_SOURCE
#include "tool/convert.h"
#include "base/os.h"
#include "tool/tool.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { HEAD = 512, TAIL = 1 << 16, MOST_TYPES = 64 };

/* ---- kinds --------------------------------------------------------------------------------- */

static bool has(const char *bytes, size_t n, const char *text)
{
    return tern_os_memmem(bytes, n, text, strlen(text)) != NULL;
}

/* An archive, by its first entry and its directory. */
static const char *kind_of_zip(FILE *file, const char *head, size_t n)
{
    char *tail = malloc(TAIL);
    size_t got = 0;
    if (tail && (fseek(file, -TAIL, SEEK_END) == 0 || fseek(file, 0, SEEK_SET) == 0))
        got = fread(tail, 1, TAIL, file);
    const char *kind = has(head, n, ".npy") ? "NumPy archive (numpy.savez)"
                       : tail && has(tail, got, "/archive_format")
                           ? "PyTorch program (torch.export.save)"
                       : tail && has(tail, got, "/code/")    ? "TorchScript (torch.jit.save)"
                       : tail && has(tail, got, "/data.pkl") ? "PyTorch archive (torch.save)"
                                                             : "zip archive";
    free(tail);
    return kind;
}

const char *tool_kind_of(const char *path)
{
    static const struct {
        size_t at, n;
        const char *bytes, *kind;
    } kinds[] = {{0, 4, "GGUF", "GGUF"},
                 {0, 6, "\x93NUMPY", "NumPy array (numpy.save)"},
                 {0, 4, "\x80\2\x8a\x0a", "PyTorch stream of pickles (torch.save before 1.6)"},
                 {257, 5, "ustar", "tar (PyTorch before 0.1.10)"},
                 {0, 4, "\x89PNG", "PNG image"},
                 {0, 3, "\xff\xd8\xff", "JPEG image"},
                 {8, 4, "WEBP", "WebP image"},
                 {0, 2, "BM", "BMP image"}};
    char head[HEAD] = {0};
    struct tern_os_stat about;
    if (tern_os_stat(path, &about) == 0 && S_ISDIR(about.st_mode))
        return "folder";
    FILE *file = tern_os_fopen(path, "rb");
    const size_t n = file ? fread(head, 1, HEAD, file) : 0, length = strlen(path);
    const char *kind = n > 9 && head[8] == '{' ? "safetensors" : NULL;
    if (n > 4 && memcmp(head, "PK\3\4", 4) == 0)
        kind = kind_of_zip(file, head, n);
    for (size_t i = 0; !kind && i < sizeof kinds / sizeof *kinds; i++)
        if (n >= kinds[i].at + kinds[i].n &&
            memcmp(head + kinds[i].at, kinds[i].bytes, kinds[i].n) == 0)
            kind = kinds[i].kind;
    if (!kind && length > 5 && strcmp(path + length - 5, ".onnx") == 0)
        kind = "ONNX model";
    if (!kind && length > 11 && strcmp(path + length - 11, ".index.json") == 0)
        kind = "index of several files";
    if (file)
        fclose(file);
    return kind ? kind : "unknown";
}

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
    printf("types: ");
    for (int k = 0; k < types; k++)
        printf("%s%d %s", k ? ", " : "", counts[k], names[k]);
    putchar('\n');
}

static int show_image(const char *path)
{
    int code = TOOL_FINE;
    char text[128];
    TERN_SCOPE {
        tern_tensor *x = tern_image_read(path, NULL);
        if (x)
            printf("image: uint8 %s\n", tool_shape(tern_shape_of(x), text));
        else
            code = tool_fail_with_error();
    }
    return code;
}

static int run(const char *const *words, int n)
{
    struct tern_os_stat about;
    char text[32];
    if (n == 0)
        return tool_fail(TOOL_USAGE, "show: which file?");
    const bool is_there = tern_os_stat(words[0], &about) == 0;
    const char *kind = tool_kind_of(words[0]);
    if (is_there) {
        printf("kind: %s\n", kind);
        if (S_ISREG(about.st_mode))
            printf("size: %s\n", tool_bytes((double)about.st_size, text));
    }
    if (strstr(kind, " image"))
        return show_image(words[0]);
    if (strcmp(kind, "ONNX model") != 0) {
        tern_file *file = tern_safe_open(words[0]);
        if (!file)
            return tool_fail_with_error();
        print_types(file);
        tern_file_free(file);
    }
    return tool_summary.run(words, n);
}

const tool_command tool_show = {
    .name = "show",
    .arguments = "FILE",
    .summary = "Show the kind, the size and all contents of a file",
    .more = "FILE is whatever `tern summary` takes, or an image. Its kind goes by its contents, "
            "not by its name.\n",
    .part = TOOL_FILES,
    .example = "tern show model.gguf",
    .most = 1,
    .run = run,
};
