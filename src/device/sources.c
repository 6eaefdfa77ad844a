/* sources.c -- joins embedded files to one text. #include lines are resolved here, because some
 * devices' compilers can't resolve them. */
#include "device/sources.h"
#include "base/lock.h"
#include "base/ending.h"
#include "base/zlib.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The text of all files; NULL until it is first needed, or after unpacking ran out of memory. */
static const char *whole;
static tern_mutex lock = TERN_MUTEX_INIT;

static const char missing[] = "#error zlib (Debian: zlib1g) can't be opened to unpack kernels\n";

#ifdef TERN_PACKS_SOURCES
static const char *unpack(void)
{
    const tern_source_pack *pack = &tern_packed_sources;
    const tern_zlib *zlib = tern_zlib_open("kernels of a device");
    if (!zlib)
        return missing;
    char *to = malloc(pack->whole);
    z_stream z = {.next_in = (z_const Bytef *)pack->bytes,
                  .avail_in = (uInt)pack->packed,
                  .next_out = (Bytef *)to,
                  .avail_out = (uInt)pack->whole};
    bool begun = to && zlib->inflateInit2_(&z, -15, ZLIB_VERSION, (int)sizeof z) == Z_OK;
    bool done = begun && zlib->inflate(&z, Z_FINISH) == Z_STREAM_END;
    if (begun)
        zlib->inflateEnd(&z);
    if (done)
        return to;
    free(to);
    return NULL;
}

/* Frees the text if the library is unloaded with the plugin that contains it. */
__attribute__((destructor)) static void forget(void)
{
    if (tern_is_unloading() && whole != missing)
        free((void *)(uintptr_t)whole);
}
#else
static const char *unpack(void)
{
    return (const char *)tern_packed_sources.bytes;
}
#endif

static const tern_source *find(const char *name, size_t length, size_t *index)
{
    for (*index = 0; tern_sources[*index].name; (*index)++) {
        const tern_source *s = &tern_sources[*index];
        if (strlen(s->name) == length && memcmp(s->name, name, length) == 0)
            return s;
    }
    return NULL;
}

static bool see(tern_sources_seen *seen, size_t index)
{
    uint64_t bit = UINT64_C(1) << index % 64;
    bool first = !(seen->bits[index / 64 % 4] & bit);
    seen->bits[index / 64 % 4] |= bit;
    return first;
}

/* Returns whether the file's rows define the kernels of a .cl file, as those of elementwise.def
 * do. */
static bool has_rows(const char *name)
{
    char file[64];
    size_t stem = strcspn(name, "."), index;
    int n = snprintf(file, sizeof file, "%.*s.cl", (int)stem, name);
    return strcmp(name + stem, ".def") == 0 && find(file, (size_t)n, &index);
}

/* Returns whether a line is the row of a kernel that is not among `kernels`. The row "gelu" defines
 * gelu and gelu_gradient. */
static bool is_other_row(const char *kernels, const char *line, const char *end)
{
    static const char capitals[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789";
    const char *name = line + strspn(line, capitals);
    if (name == line || *name++ != '(')
        return false;
    size_t length = strcspn(name, ",");
    for (const char *at = kernels; name + length < end && (at = strchr(at, ' ')); at++)
        if (strncmp(at + 1, name, length) == 0 && strchr(" _", at[1 + length]))
            return false;
    return true;
}

static void add(tern_text *text, tern_sources_seen *seen, const char *name, size_t length)
{
    static const char include[] = "#include \"";
    size_t index;
    const tern_source *source = find(name, length, &index);
    if (!source) {
        tern_text_add(text, "#error no file %.*s in cl_kernels\n", (int)length, name);
        return;
    }
    if (!see(seen, index))
        return;
    tern_text_add(text, "#line 1 \"%s\"\n", source->name);
    const char *line = whole + source->from, *last = line + source->bytes;
    const char *kernels = has_rows(source->name) ? seen->kernels : NULL;
    for (int number = 1; line < last; number++) {
        const char *end = memchr(line, '\n', (size_t)(last - line));
        end = end ? end + 1 : last;
        if ((size_t)(end - line) >= sizeof include &&
            memcmp(line, include, sizeof include - 1) == 0) {
            const char *from = line + sizeof include - 1;
            add(text, seen, from, strcspn(from, "\""));
            tern_text_add(text, "#line %d \"%s\"\n", number + 1, source->name);
        } else if (!kernels || !is_other_row(kernels, line, end)) {
            tern_text_add_bytes(text, line, (size_t)(end - line));
        }
        line = end;
    }
}

void tern_source_add(tern_text *text, tern_sources_seen *seen, const char *name)
{
    tern_mutex_lock(&lock);
    whole = whole ? whole : unpack();
    tern_mutex_unlock(&lock);
    if (!whole)
        text->failed = true;
    else if (whole == missing)
        tern_text_add(text, "%s", missing);
    else
        add(text, seen, name, strlen(name));
}
