/* summary.c -- tern summary: the contents of a file of tensors or of a model. */
#include "tool/convert.h"
#include "tool/tool.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

static bool values;

typedef struct totals {
    int64_t elements;
    double bytes;
    int width; /* width of the longest name */
} totals;

static int width_of(const char *name, int width)
{
    int length = (int)strlen(name);
    length = length < 60 ? length : 60;
    return length > width ? length : width;
}

static int64_t count_of(tern_shape shape)
{
    int64_t n = 1;
    for (int d = 0; d < shape.ndim; d++)
        n *= shape.dims[d];
    return n;
}

static void print_head(const totals *t)
{
    printf("%-*s  %-13s  %12s  %s%s\n", t->width, "name", "type", "elements", "shape",
           values ? "  [least, mean, largest]" : "");
}

/* Prints minimum, mean and maximum of the finite elements, and the number of non-finite ones. */
static void print_values(tern_tensor *x)
{
    int64_t n = x ? tern_numel(x) : 0, odd = 0;
    double *data = n > 0 ? malloc(sizeof *data * (size_t)n) : NULL;
    double low = INFINITY, high = -INFINITY, sum = 0;
    if (!data ||
        tern_copy_to_host(tern_to_dtype(x, TERN_F64), data, sizeof *data * (size_t)n) != TERN_OK) {
        free(data);
        fputs(n > 0 ? "  [not read]" : "  []", stdout);
        tern_clear_error();
        return;
    }
    for (int64_t i = 0; i < n; i++) {
        if (!isfinite(data[i])) {
            odd++;
            continue;
        }
        low = fmin(low, data[i]);
        high = fmax(high, data[i]);
        sum += data[i];
    }
    if (n > odd)
        printf("  [%.4g, %.4g, %.4g]", low, sum / (double)(n - odd), high);
    if (odd)
        printf("%s%lld not finite", n > odd ? " and " : "  ", (long long)odd);
    free(data);
}

static void print_row(totals *t, const char *name, const char *type, tern_shape shape, double bytes,
                      tern_tensor *x)
{
    char text[128];
    int64_t n = count_of(shape);
    t->elements += n;
    t->bytes += bytes;
    printf("%-*s  %-13s  %12lld  %s", t->width, name, type, (long long)n, tool_shape(shape, text));
    if (values)
        print_values(x);
    putchar('\n');
}

static void print_totals(const totals *t, int tensors)
{
    char text[32];
    printf("%d tensors, %lld elements, %s\n", tensors, (long long)t->elements,
           tool_bytes(t->bytes, text));
}

void tool_print_text(const char *text)
{
    enum { MOST = 400 };
    size_t i = 0;
    for (; text[i] && i < MOST; i++) {
        unsigned char c = (unsigned char)text[i];
        if (c < 0x20 || c == 0x7f)
            printf(c == '\n' ? "\\n" : "\\x%02x", c);
        else
            putchar(c);
    }
    puts(text[i] ? "..." : "");
}

/* Returns tern's name of a dtype; the file's own name for blocks, which are read as float32, and
 * for types that tern lacks. */
static const char *type_of(const tern_file *file, const char *name)
{
    tern_dtype dtype = tern_file_dtype(file, name);
    const char *as_written = tern_file_dtype_name(file, name);
    bool blocks = dtype == TERN_F32 && strcmp(as_written, "F32") != 0;
    return dtype && !blocks ? tern_dtype_name(dtype) : as_written;
}

static int of_file(const char *path)
{
    totals t = {.width = 4};
    tern_file *file = tern_safe_open(path);
    if (!file)
        return tool_fail_with_error();
    int n = tern_file_count(file);
    for (int i = 0; i < n; i++)
        t.width = width_of(tern_file_name_at(file, i), t.width);
    print_head(&t);
    for (int i = 0; i < n; i++)
        TERN_SCOPE {
            const char *name = tern_file_name_at(file, i);
            print_row(&t, name, type_of(file, name), tern_file_shape(file, name),
                      (double)tern_file_nbytes(file, name),
                      values ? tern_file_get(file, name, "cpu") : NULL);
        }
    print_totals(&t, n);
    for (int i = 0; i < tern_file_metadata_count(file); i++) {
        const char *key = tern_file_metadata_key_at(file, i);
        printf("%s: ", key);
        tool_print_text(tern_file_metadata(file, key));
    }
    tern_file_free(file);
    return TOOL_FINE;
}

static int of_module(tern_module *m)
{
    totals t = {.width = 4};
    tern_state_dict *dict = m ? tern_nn_state_dict(m) : NULL;
    if (!dict) {
        tern_nn_free(m);
        return tool_fail_with_error();
    }
    int n = tern_state_dict_count(dict);
    for (int i = 0; i < n; i++)
        t.width = width_of(tern_state_dict_key_at(dict, i), t.width);
    print_head(&t);
    for (int i = 0; i < n; i++)
        TERN_SCOPE {
            tern_tensor *x = tern_state_dict_at(dict, i);
            print_row(&t, tern_state_dict_key_at(dict, i), tern_dtype_name(tern_dtype_of(x)),
                      tern_shape_of(x),
                      (double)tern_numel(x) * (double)tern_dtype_size(tern_dtype_of(x)), x);
        }
    print_totals(&t, n);
    tern_state_dict_free(dict);
    tern_nn_free(m);
    return TOOL_FINE;
}

static int run(const char *const *words, int n)
{
    if (n == 0)
        return tool_fail(TOOL_USAGE, "summary: which file?");
    if (tool_kind_of(words[0]).holds == TOOL_HOLDS_MODEL)
        return of_module(tern_onnx_load(words[0]));
    return of_file(words[0]);
}

static const tool_option options[] = {
    {"--values", NULL, "also read the elements: least, mean, largest, and how many are not finite",
     .flag = &values},
    {0}};

const tool_command tool_summary = {
    .name = "summary",
    .arguments = "FILE",
    .summary = "List the names, types and shapes in a file",
    .more = "FILE is a .safetensors, .gguf, .npy or .npz file, a .pt file of any version of "
            "PyTorch, the index\n"
            "of several files or their folder, or an .onnx file, for which the tensors of the "
            "model are listed.\n",
    .part = TOOL_FILES,
    .example = "tern summary model.safetensors",
    .most = 1,
    .options = options,
    .run = run,
};
