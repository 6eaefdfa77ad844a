/* bundle.c -- reading the tensors and options that the other side wrote. */
#include "bundle.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 256, MOST_OPTIONS = 16 };

typedef struct entry {
    char name[96];
    tern_dtype dtype;
    size_t offset;
    tern_shape shape;
} entry;

typedef struct option {
    char name[32], value[32];
} option;

struct bundle {
    entry entries[MOST];
    option options[MOST_OPTIONS];
    int n, n_options;
    char *raw;
    size_t bytes;
};

static FILE *open_part(const char *stem, const char *suffix)
{
    char path[1024];
    snprintf(path, sizeof path, "%s.%s", stem, suffix);
    FILE *file = fopen(path, "rb");
    if (!file)
        perror(path);
    return file;
}

/* Every element of e lies inside the bytes there are. */
static bool fits(const bundle *b, const entry *e)
{
    size_t bytes = tern_dtype_size(e->dtype);
    for (int i = 0; i < e->shape.ndim; i++)
        bytes *= (size_t)e->shape.dims[i];
    return e->offset + bytes <= b->bytes;
}

static bool parse(bundle *b, char *line)
{
    option *o = &b->options[b->n_options < MOST_OPTIONS ? b->n_options : MOST_OPTIONS - 1];
    if (sscanf(line, "%31s = %31s", o->name, o->value) == 2)
        return ++b->n_options <= MOST_OPTIONS;
    entry *e = &b->entries[b->n];
    char dtype[8];
    int used = 0;
    if (b->n == MOST || sscanf(line, "%95s %7s %zu%n", e->name, dtype, &e->offset, &used) != 3)
        return false;
    e->dtype = strcmp(dtype, "i64") == 0 ? TERN_I64 : TERN_F32;
    char *at = line + used, *end;
    for (long long size; size = strtoll(at, &end, 10), end != at; at = end) {
        if (size < 0 || e->shape.ndim == TERN_MAX_DIMS)
            return false;
        e->shape.dims[e->shape.ndim++] = size;
    }
    b->n++;
    return fits(b, e);
}

bundle *bundle_read(const char *stem)
{
    bundle *b = calloc(1, sizeof *b);
    FILE *raw = open_part(stem, "raw"), *index = open_part(stem, "txt");
    bool fine = b && raw && index && fseek(raw, 0, SEEK_END) == 0;
    if (fine) {
        b->bytes = (size_t)ftell(raw);
        b->raw = malloc(b->bytes + 1);
        rewind(raw);
        fine = b->raw && fread(b->raw, 1, b->bytes, raw) == b->bytes;
    }
    char line[512];
    while (fine && fgets(line, sizeof line, index))
        fine = parse(b, line);
    if (raw)
        fclose(raw);
    if (index)
        fclose(index);
    if (fine)
        return b;
    fprintf(stderr, "%s: not readable\n", stem);
    bundle_free(b);
    return NULL;
}

void bundle_free(bundle *b)
{
    if (b)
        free(b->raw);
    free(b);
}

tern_tensor *bundle_tensor(const bundle *b, const char *name)
{
    for (int i = 0; i < b->n; i++) {
        const entry *e = &b->entries[i];
        if (strcmp(e->name, name) == 0)
            return tern_from_data(b->raw + e->offset, e->shape, e->dtype, NULL);
    }
    fprintf(stderr, "no tensor named %s\n", name);
    return NULL;
}

const char *bundle_option(const bundle *b, const char *name)
{
    for (int i = 0; i < b->n_options; i++)
        if (strcmp(b->options[i].name, name) == 0)
            return b->options[i].value;
    return "";
}

double bundle_number(const bundle *b, const char *name)
{
    return strtod(bundle_option(b, name), NULL);
}

static tern_status load_one(const char *path, tern_tensor *x, void *user)
{
    TERN_NO_GRAD
        TERN_SCOPE
            tern_copy_(x, bundle_tensor(user, path));
    return tern_last_status();
}

bool bundle_load(const bundle *b, tern_module *module)
{
    return tern_nn_each_parameter(module, load_one, (void *)(uintptr_t)b) == TERN_OK;
}
