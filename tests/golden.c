/* golden.c -- numbers that another program computed, from text files in tests/golden/. */
#include "tensor/fields.h"
#include "tensor/shape.h"
#include "support.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct test_golden {
    FILE *file;
    char name[64];
};

test_golden *test_golden_open(const char *name)
{
    char path[1024];
    snprintf(path, sizeof path, "%s/golden/%s.txt", TEST_FOLDER, name);
    test_golden *golden = calloc(1, sizeof *golden);
    assert_non_null(golden);
    golden->file = fopen(path, "r");
    if (!golden->file) {
        print_error("cannot open %s\n", path);
        free(golden);
        fail();
    }
    snprintf(golden->name, sizeof golden->name, "%s", name);
    return golden;
}

/* The next word that is not in a comment. */
static bool word(FILE *file, char text[64])
{
    while (fscanf(file, "%63s", text) == 1) {
        if (text[0] != '#')
            return true;
        for (int c = 0; c != '\n' && c != EOF;)
            c = fgetc(file);
    }
    return false;
}

static int64_t number(test_golden *golden)
{
    char text[64];
    if (!word(golden->file, text))
        fail_msg("golden/%s.txt ends early", golden->name);
    return strtoll(text, NULL, 10);
}

static tern_dtype dtype_named(const char *text)
{
    for (int d = 1; tern_dtype_size((tern_dtype)d); d++)
        if (strcmp(tern_dtype_name((tern_dtype)d), text) == 0)
            return (tern_dtype)d;
    return TERN_DTYPE_DEFAULT;
}

/* Read the next entry's header: false at the end. */
static bool golden_header(test_golden *golden, char name[64], tern_dtype *dtype, tern_shape *shape)
{
    char type[64];
    if (!word(golden->file, name))
        return false;
    if (!word(golden->file, type))
        fail_msg("golden/%s.txt ends early in %s", golden->name, name);
    *dtype = dtype_named(type);
    shape->ndim = (int)number(golden);
    assert_in_range(shape->ndim, 0, TERN_MAX_DIMS);
    for (int d = 0; d < shape->ndim; d++)
        shape->dims[d] = number(golden);
    return true;
}

/* Go to the entry called name, its header read. */
static bool golden_find(test_golden *golden, const char *name, tern_dtype *dtype, tern_shape *shape)
{
    char text[64];
    rewind(golden->file);
    while (golden_header(golden, text, dtype, shape)) {
        if (strcmp(text, name) == 0)
            return true;
        for (int64_t n = tern_shape_numel(shape, "test_golden"); n > 0; n--)
            word(golden->file, text);
    }
    return false;
}

bool test_golden_has(test_golden *golden, const char *name)
{
    tern_dtype dtype;
    tern_shape shape = {0};
    return golden_find(golden, name, &dtype, &shape);
}

tern_tensor *test_golden_tensor(test_golden *golden, const char *name, const char *device)
{
    tern_dtype dtype = TERN_DTYPE_DEFAULT;
    tern_shape shape = {0};
    char text[64];
    if (!golden_find(golden, name, &dtype, &shape))
        fail_msg("golden/%s.txt has no %s", golden->name, name);
    int64_t n = tern_shape_numel(&shape, "test_golden");
    double *values = malloc(((size_t)n + 1) * sizeof *values);
    assert_non_null(values);
    for (int64_t i = 0; i < n; i++) {
        if (!word(golden->file, text))
            fail_msg("golden/%s.txt ends early in %s", golden->name, name);
        values[i] = strtod(text, NULL);
    }
    tern_tensor *x = test_tensor(device, dtype, shape, values);
    free(values);
    return x;
}

void test_golden_compare(test_golden *golden, const char *name, const char *suffix,
                         const tern_tensor *x, double tolerance)
{
    char full[64];
    snprintf(full, sizeof full, "%s%s", name, suffix);
    test_close(x, tern_to_dtype(test_golden_tensor(golden, full, "cpu"), tern_dtype_of(x)),
               (test_tolerance){.abs = tolerance, .rel = tolerance}, full, __FILE__, __LINE__);
}

tern_tensor *test_golden_weight(const tern_tensor *y)
{
    tern_tensor *w = tern_arange(1, (double)tern_numel(y) + 1, 1, tern_dtype_of(y), tern_device(y));
    return tern_view(tern_div_scalar(w, TERN_SCALAR(8)), tern_shape_of(y));
}

void test_golden_close(test_golden *golden)
{
    fclose(golden->file);
    free(golden);
}
