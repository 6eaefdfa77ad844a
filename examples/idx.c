/* idx.c -- reads IDX files: a magic number, sizes, bytes; all numbers big-endian. */
#define _POSIX_C_SOURCE 200809L /* popen, setenv */
#include "idx.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int ends_in(const char *text, const char *end)
{
    size_t n = strlen(text), m = strlen(end);
    return n >= m && strcmp(text + n - m, end) == 0;
}

static int read_number(FILE *in, size_t *value)
{
    uint8_t b[4];
    if (fread(b, 1, 4, in) != 4)
        return 0;
    *value = (size_t)b[0] << 24 | (size_t)b[1] << 16 | (size_t)b[2] << 8 | b[3];
    return 1;
}

static const char *read_all(FILE *in, idx_file *file)
{
    size_t magic, size;
    if (!read_number(in, &magic) || magic >> 8 != 8 || (magic & 255) < 1 || (magic & 255) > 3)
        return "is not an IDX file of bytes";
    if (!read_number(in, &file->n) || file->n > 1u << 24)
        return "has no sizes";
    file->each = 1;
    for (size_t d = 1; d < (magic & 255); d++) {
        if (!read_number(in, &size) || size > 1u << 12)
            return "has no sizes";
        file->each *= size;
    }
    file->bytes = malloc(file->n * file->each + 1);
    if (!file->bytes)
        return "does not fit into memory";
    return fread(file->bytes, file->each, file->n, in) == file->n ? NULL : "ends early";
}

int idx_read(idx_file *file, const char *path)
{
    int packed = ends_in(path, ".gz");
    memset(file, 0, sizeof *file);
    if (packed)
        setenv("IDX_FILE", path, 1); /* so that the shell does not read the name */
    FILE *in = packed ? popen("exec gzip -dc -- \"$IDX_FILE\"", "r") : fopen(path, "rb");
    const char *wrong = in ? read_all(in, file) : "cannot be opened";
    if (in && packed)
        pclose(in);
    else if (in)
        fclose(in);
    if (wrong) {
        fprintf(stderr, "%s %s\n", path, wrong);
        idx_free(file);
    }
    return !wrong;
}

void idx_free(idx_file *file)
{
    free(file->bytes);
    file->bytes = NULL;
}
