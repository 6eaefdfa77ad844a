/* npy.c -- reads and writes NumPy's arrays: a header that is a Python literal, and the elements.
 *
 *   \x93NUMPY major minor length {'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), } \n */
#include "io/numpy.h"
#include <stdio.h>
#include <string.h>
#include <tern/io/numpy.h>

/* ---- reading the header ------------------------------------------------------------------ */

typedef struct npy {
    tern_file *file;
    const char *name;     /* name of the array */
    const char *at, *end; /* rest of the text */
    char descr[24];
    bool fortran_order;
    tern_shape shape;
    int seen; /* a bit for each of the three keys */
} npy;

static tern_status bad(const npy *h, const char *what)
{
    return io_bad(h->file, 0, "the header of array `%s`: %s", IO_SHOW(h->name), what);
}

static void skip_blanks(npy *h)
{
    while (h->at < h->end && strchr(" \t\n", *h->at) && *h->at)
        h->at++;
}

/* Passes c and returns true if it comes next. */
static bool pass(npy *h, char c)
{
    skip_blanks(h);
    if (h->at >= h->end || *h->at != c)
        return false;
    h->at++;
    return true;
}

static bool pass_word(npy *h, const char *word)
{
    size_t n = strlen(word);
    skip_blanks(h);
    if ((size_t)(h->end - h->at) < n || memcmp(h->at, word, n) != 0)
        return false;
    h->at += n;
    return true;
}

/* Reads a quoted text without escapes. */
static bool read_text(npy *h, char *to, size_t capacity)
{
    skip_blanks(h);
    char quote = h->at < h->end ? *h->at : '\0';
    if (quote != '\'' && quote != '"')
        return false;
    const char *begin = ++h->at;
    while (h->at < h->end && *h->at != quote && *h->at != '\\')
        h->at++;
    size_t n = (size_t)(h->at - begin);
    if (h->at >= h->end || *h->at != quote || n >= capacity)
        return false;
    memcpy(to, begin, n);
    to[n] = '\0';
    h->at++;
    return true;
}

static bool read_size(npy *h, int64_t *size)
{
    skip_blanks(h);
    const char *begin = h->at;
    for (*size = 0; h->at < h->end && *h->at >= '0' && *h->at <= '9'; h->at++)
        if (__builtin_mul_overflow(*size, 10, size) ||
            __builtin_add_overflow(*size, *h->at - '0', size))
            return false;
    return h->at > begin;
}

static tern_status read_shape(npy *h)
{
    if (!pass(h, '('))
        return bad(h, "shape is no tuple");
    for (h->shape.ndim = 0; !pass(h, ')'); h->shape.ndim++) {
        if (h->shape.ndim == TERN_MAX_DIMS)
            return bad(h, "it has more than 12 dims");
        if (!read_size(h, &h->shape.dims[h->shape.ndim]))
            return bad(h, "shape is not of whole numbers");
        skip_blanks(h);
        if (!pass(h, ',') && (h->at >= h->end || *h->at != ')'))
            return bad(h, "shape is no tuple");
    }
    return TERN_OK;
}

static tern_status read_member(npy *h)
{
    static const char *const keys[] = {"descr", "fortran_order", "shape"};
    char key[16];
    int k = 0;
    if (!read_text(h, key, sizeof key) || !pass(h, ':'))
        return bad(h, "it is no dict");
    while (k < 3 && strcmp(keys[k], key) != 0)
        k++;
    if (k == 3 || h->seen & 1 << k)
        return bad(h, "descr, fortran_order and shape are expected");
    h->seen |= 1 << k;
    if (k == 2)
        return read_shape(h);
    if (k == 1) {
        h->fortran_order = pass_word(h, "True");
        return h->fortran_order || pass_word(h, "False")
                   ? TERN_OK
                   : bad(h, "fortran_order is neither True nor False");
    }
    skip_blanks(h);
    if (h->at < h->end && *h->at == '[') /* a list of fields */
        return tern_fail(TERN_ERR_DTYPE,
                         "%s: \"%s\": array `%s` is of structs, which tern does not have",
                         h->file->function, h->file->path, IO_SHOW(h->name));
    return read_text(h, h->descr, sizeof h->descr) ? TERN_OK : bad(h, "descr is no text");
}

static tern_status read_dict(npy *h)
{
    if (!pass(h, '{'))
        return bad(h, "it is no dict");
    while (!pass(h, '}')) {
        TERN_TRY(read_member(h));
        skip_blanks(h);
        if (!pass(h, ',') && (h->at >= h->end || *h->at != '}'))
            return bad(h, "it is no dict");
    }
    skip_blanks(h);
    if (h->at != h->end)
        return bad(h, "there is something behind the dict");
    return h->seen == 7 ? TERN_OK : bad(h, "descr, fortran_order and shape are expected");
}

/* Counts the bytes of the elements. Returns false on overflow, also if a dim is 0. */
static bool count_bytes(const npy *h, const io_type *type, uint64_t *bytes)
{
    uint64_t n = (uint64_t)type->bits / 8;
    bool empty = false;
    for (int i = 0; i < h->shape.ndim; i++) {
        uint64_t size = (uint64_t)h->shape.dims[i];
        empty = empty || !size;
        if (size && __builtin_mul_overflow(n, size, &n))
            return false;
    }
    *bytes = empty ? 0 : n;
    return n <= INT64_MAX;
}

/* Adds the entry, with strides for Fortran order. Without a type the bytes were not counted, and no
 * strides are needed. */
static io_entry *add_entry(const npy *h, const io_type *type)
{
    int64_t numbers[2 * TERN_MAX_DIMS], stride = 1;
    int ndim = h->shape.ndim;
    const bool strided = type && h->fortran_order && ndim > 1;
    for (int i = 0; i < ndim; i++) {
        numbers[i] = h->shape.dims[i];
        numbers[ndim + i] = stride;
        stride *= strided ? h->shape.dims[i] : 1;
    }
    return io_add_entry(h->file, h->name, type, numbers, ndim, strided);
}

static io_entry *make_entry(const npy *h, size_t header, uint64_t size)
{
    char order = h->descr[0];
    const io_type *type = strchr("<>|=", order) && order ? io_type_numpy(h->descr + 1) : NULL;
    uint64_t bytes;
    if (type && order == '|' && type->bits > 8)
        type = NULL;
    if (type && !count_bytes(h, type, &bytes)) {
        bad(h, "its shape is too large");
        return NULL;
    }
    if (type && bytes != size - header) {
        io_bad(h->file, 0, "array `%s` has %llu bytes of elements at byte %zu, its shape %llu",
               IO_SHOW(h->name), (unsigned long long)(size - header), header,
               (unsigned long long)bytes);
        return NULL;
    }
    io_entry *e = add_entry(h, type);
    if (!e)
        return NULL;
    e->at = header;
    e->bytes = size - header;
    e->is_swapped = order == '>';
    snprintf(e->foreign, sizeof e->foreign, "%.8s%s", IO_SHOW(h->descr),
             strcmp(h->descr + 1, "V2") == 0 ? " (bfloat16?)" : "");
    return e;
}

io_entry *io_npy_entry(tern_file *file, const char *name, const unsigned char *bytes, size_t n,
                       uint64_t size)
{
    npy h = {.file = file, .name = name};
    int major = n >= 8 ? bytes[6] : 0;
    size_t front = major == 1 ? 10 : 12, length = 0;
    if (n < front || memcmp(bytes, "\x93NUMPY", 6) != 0 || major < 1 || major > 3) {
        bad(&h, "it is none of NumPy's");
        return NULL;
    }
    for (size_t i = front; i-- > 8;)
        length = length << 8 | bytes[i];
    if (length > IO_NPY_MOST_HEADER || length > n - front) {
        bad(&h, length > IO_NPY_MOST_HEADER ? "it is longer than 10000 bytes"
                                            : "it is longer than the file");
        return NULL;
    }
    h.at = (const char *)bytes + front;
    h.end = h.at + length;
    return read_dict(&h) == TERN_OK ? make_entry(&h, front + length, size) : NULL;
}

/* ---- a file of one array ----------------------------------------------------------------- */

/* Returns "x" for "folder/x.npy"; the caller frees it. */
static char *stem_of(const char *path)
{
    const char *slash = strrchr(path, '/'), *begin = slash ? slash + 1 : path;
    const char *point = strrchr(begin, '.');
    tern_text text = {0};
    tern_text_add(&text, "%.*s", point && point > begin ? (int)(point - begin) : (int)strlen(begin),
                  begin);
    if (!text.failed)
        return text.data;
    tern_text_free(&text);
    return NULL;
}

tern_status io_npy_open(tern_file *file)
{
    unsigned char head[IO_NPY_MOST_HEADER + 12];
    uint64_t size = file->parts[0].size;
    size_t n = size < sizeof head ? (size_t)size : sizeof head;
    TERN_TRY(io_read_at(file, 0, 0, head, n, "header"));
    char *name = stem_of(file->path);
    const io_entry *e = name ? io_npy_entry(file, name, head, n, size) : NULL;
    tern_free(name);
    return e ? TERN_OK : tern_last_status();
}

tern_tensor *tern_npy_load(const char *path, const char *device)
{
    if (!path) {
        tern_fail_argument_null("tern_npy_load", "path");
        return NULL;
    }
    tern_file *file = io_open_as("tern_npy_load", path, io_npy_open);
    tern_tensor *x =
        file ? io_read(file, &file->entries[0], -1, -1, device, "tern_npy_load") : NULL;
    tern_file_free(file);
    return x;
}

/* ---- writing ----------------------------------------------------------------------------- */

tern_text io_npy_header(const tern_tensor *x, const char *function)
{
    enum { ALIGN = 64, GROWTH = 21 };
    tern_text text = {0};
    tern_shape shape = tern_shape_of(x);
    const io_type *type = io_type_of(tern_dtype_of(x));
    if (!type || !type->numpy[0]) {
        tern_fail(TERN_ERR_DTYPE, "%s: NumPy has no %s: convert it (tern_to_dtype)", function,
                  tern_dtype_name(tern_dtype_of(x)));
        return text;
    }
    tern_text_add_bytes(&text, "\x93NUMPY\1\0\0\0", 10);
    tern_text_add(&text, "{'descr': '%c%s', 'fortran_order': False, 'shape': (",
                  type->bits > 8 ? '<' : '|', type->numpy);
    for (int i = 0; i < shape.ndim; i++)
        tern_text_add(&text, "%s%lld%s", i ? ", " : "", (long long)shape.dims[i],
                      shape.ndim == 1 ? "," : "");
    tern_text_add(&text, "), }");
    /* NumPy leaves space for a first dim that grows */
    if (shape.ndim)
        tern_text_add(&text, "%*s", GROWTH - snprintf(NULL, 0, "%lld", (long long)shape.dims[0]),
                      "");
    tern_text_add(&text, "%*s", (int)(ALIGN - (text.length + 1) % ALIGN), "");
    tern_text_add(&text, "\n");
    if (text.failed) {
        tern_text_free(&text);
        return (tern_text){0};
    }
    text.data[8] = (char)((text.length - 10) & 255);
    text.data[9] = (char)((text.length - 10) >> 8);
    return text;
}

tern_status tern_npy_save(tern_tensor *x, const char *path)
{
    TERN_NAMED_IN_ERRORS;
    if (!x || !path)
        return tern_fail_argument_null(__func__, x ? "path" : "x");
    TERN_TRY(tern_last_status());
    io_out out = {.function = __func__, .path = path};
    tern_text header = io_npy_header(x, out.function);
    if (!header.data)
        return tern_last_status();
    tern_status status = io_out_open(&out, header.length + (uint64_t)tern_numel(x) *
                                                               tern_dtype_size(tern_dtype_of(x)));
    if (status == TERN_OK)
        status = io_out_write(&out, header.data, header.length);
    if (status == TERN_OK)
        status = io_out_tensor(&out, x, NULL, NULL);
    if (status == TERN_OK)
        status = io_out_commit(&out);
    io_out_close(&out);
    tern_text_free(&header);
    return status;
}
