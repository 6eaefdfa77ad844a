/* keys.c -- reads the metadata of a GGUF file by key, numbers independent of their width. */
#include "models/gguf/gguf.h"
#include "base/os.h"
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool gguf_is_file(const char *path)
{
    char head[4];
    struct tern_os_stat about;
    int fd = tern_os_open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    bool is = fd >= 0 && tern_os_fstat(fd, &about) == 0 && S_ISREG(about.st_mode) &&
              tern_os_read(fd, head, sizeof head) == sizeof head &&
              memcmp(head, "GGUF", sizeof head) == 0;
    if (fd >= 0)
        tern_os_close(fd);
    return is;
}

tern_status gguf_bad(const gguf_file *g, const char *format, ...)
{
    char message[1024];
    va_list args;
    va_start(args, format);
    vsnprintf(message, sizeof message, format, args);
    va_end(args);
    return tern_fail(TERN_ERR_IO, "%s: \"%s\": %s", g->function, g->path, message);
}

const char *gguf_key(const gguf_file *g, const char *name, char key[128])
{
    snprintf(key, 128, "%s.%s", g->arch, name);
    return key;
}

bool gguf_has(const gguf_file *g, const char *key)
{
    io_gguf_value v;
    return io_gguf_find(g->file, key, &v);
}

tern_status gguf_begin(gguf_file *g, tern_file *file, const char *function, const char *path)
{
    int64_t parts;
    const char *arch;
    char end[32];
    size_t n = strlen(path), k;
    *g = (gguf_file){.file = file, .function = function, .path = path, .arch = ""};
    TRY(gguf_size(g, "split.count", 1, 1, &parts));
    k = (size_t)snprintf(end, sizeof end, "-of-%05lld.gguf", (long long)parts);
    if (parts > 1 && (n < k || strcmp(path + n - k, end) != 0))
        return gguf_bad(g,
                        "`split.count` is %lld, and a part is found by its name: "
                        "NAME-00001-of-%05lld.gguf is expected for the first",
                        (long long)parts, (long long)parts);
    TRY(gguf_text(g, "general.architecture", &arch));
    if (!arch)
        return gguf_bad(g, "there is no `general.architecture`");
    snprintf(g->arch_text, sizeof g->arch_text, "%s", arch);
    g->arch = g->arch_text;
    return TERN_OK;
}

/* ---- values ------------------------------------------------------------------------------ */

static tern_status lacks(const gguf_file *g, const char *key)
{
    return gguf_bad(g, "there is no `%s`", key);
}

tern_status gguf_size(const gguf_file *g, const char *key, int64_t least, int64_t absent,
                      int64_t *x)
{
    io_gguf_value v;
    int64_t next;
    *x = absent;
    if (!io_gguf_find(g->file, key, &v))
        return absent < least ? lacks(g, key) : TERN_OK;
    for (uint64_t i = 0; i < v.count; i++) {
        if (!io_gguf_integer(v.kind, v.bytes + i * io_gguf_size(v.kind), &next))
            return gguf_bad(g, "`%s` is %.80s, and a whole number is expected", key,
                            tern_file_metadata(g->file, key));
        if (next < least || next > INT32_MAX)
            return gguf_bad(g, "`%s` is %lld, and a number from %lld to %d is expected", key,
                            (long long)next, (long long)least, INT32_MAX);
        if (i && next != *x)
            return tern_fail(TERN_ERR_UNSUPPORTED,
                             "%s: \"%s\": `%s` has other numbers for other layers, which is not "
                             "supported",
                             g->function, g->path, key);
        *x = next;
    }
    return v.count ? TERN_OK : gguf_bad(g, "`%s` is an array without elements", key);
}

/* Returns the shortest decimal number that rounds to this float32, for example 1e-05. */
static double shortest(double x)
{
    char text[32];
    const tern_os_locale before = tern_os_locale_enter();
    for (int digits = 6; digits <= 9; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, x);
        if ((float)tern_os_strtod(text, NULL) == (float)x)
            break;
    }
    tern_os_locale_leave(before);
    return tern_os_strtod(text, NULL);
}

tern_status gguf_real(const gguf_file *g, const char *key, double absent, double *x)
{
    io_gguf_value v;
    *x = absent;
    if (!io_gguf_find(g->file, key, &v))
        return isnan(absent) ? lacks(g, key) : TERN_OK;
    if (!v.is_array && io_gguf_size(v.kind) && v.kind != IO_GGUF_BOOL &&
        isfinite(*x = io_gguf_real(v.kind, v.bytes))) {
        *x = v.kind == IO_GGUF_F32 ? shortest(*x) : *x;
        return TERN_OK;
    }
    return gguf_bad(g, "`%s` is %.80s, and a number is expected", key,
                    tern_file_metadata(g->file, key));
}

tern_status gguf_flag(const gguf_file *g, const char *key, bool absent, bool *x)
{
    io_gguf_value v;
    *x = absent;
    if (!io_gguf_find(g->file, key, &v))
        return TERN_OK;
    if (v.is_array || v.kind != IO_GGUF_BOOL)
        return gguf_bad(g, "`%s` is %.80s, and a bool is expected", key,
                        tern_file_metadata(g->file, key));
    *x = *v.bytes != 0;
    return TERN_OK;
}

tern_status gguf_text(const gguf_file *g, const char *key, const char **text)
{
    io_gguf_value v;
    *text = NULL;
    if (!io_gguf_find(g->file, key, &v))
        return TERN_OK;
    if (v.is_array || v.kind != IO_GGUF_TEXT)
        return gguf_bad(g, "`%s` is %.80s, and a text is expected", key,
                        tern_file_metadata(g->file, key));
    *text = tern_file_metadata(g->file, key);
    return TERN_OK;
}
