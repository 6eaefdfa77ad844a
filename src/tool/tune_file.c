/* tune_file.c -- the tuning file that the library reads: a device's results are between two
 * comments, and the rest of the file is kept. */
#include "tool/tune.h"
#include "base/os.h"
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define BEGIN "# tern tune: results for "
#define END   "# tern tune: end\n"

bool tune_file_path(char *path, size_t bytes)
{
    const char *own = tool_env("TERN_OPENCL_TUNING");
    if (own && *own && strcmp(own, "off") != 0)
        return (size_t)snprintf(path, bytes, "%s", own) < bytes;
    return tern_os_folder(TERN_OS_CONFIG, "/tern/opencl.tuning", path, bytes);
}

/* ---- reading --------------------------------------------------------------------------------- */

static char *whole_file(const char *path)
{
    FILE *file = tern_os_fopen(path, "r");
    tern_os_text all;
    if (!file)
        return errno == ENOENT ? calloc(1, 1) : NULL;
    FILE *to = tern_os_text_begin(&all);
    for (int c; to && (c = getc(file)) != EOF;)
        putc(c, to);
    const bool good = !ferror(file);
    fclose(file);
    char *text = tern_os_text_end(&all);
    if (good && text)
        return text;
    free(text);
    errno = errno ? errno : EIO;
    return NULL;
}

/* Writes the lines before the classes; they differ for each key. */
static void head_of(const tune_key *key, char *text, size_t bytes)
{
    snprintf(text, bytes,
             BEGIN "%s (what is between here and the end is written anew)\n"
                   "# products of %" PRId64 "%s\ndevice %s\ndriver %s\ntern %s\n",
             key->name, key->size, key->quick ? ", quick" : "", key->name, key->driver,
             TERN_VERSION_TEXT);
}

/* Reads the classes: "# large: ..." and the route on the next line. */
static void take_classes(tune_file *file, const char *from, const char *end,
                         const tune_class *classes)
{
    for (int i = 0; i < TUNE_CLASSES; i++) {
        char first[32];
        snprintf(first, sizeof first, "# %s: ", classes[i].name);
        const char *at = strstr(from, first);
        if (!at || at >= end)
            continue;
        const char *next = strchr(at, '\n') + 1;
        if (strncmp(next, "route ", 6) == 0)
            next = strchr(next, '\n') + 1;
        file->result[i] = tern_os_strndup(at, (size_t)(next - at));
    }
}

bool tune_file_read(tune_file *file, const tune_key *key, const tune_class *classes, bool anew)
{
    char begin[512], head[2048];
    char *text = whole_file(file->path);
    if (!text)
        return false;
    snprintf(begin, sizeof begin, BEGIN "%s (", key->name);
    head_of(key, head, sizeof head);
    file->others = text;
    char *from = strstr(text, begin), *end = from ? strstr(from, END) : NULL;
    if (!end)
        return true;
    end += strlen(END);
    if (!anew && strncmp(from, head, strlen(head)) == 0)
        take_classes(file, from + strlen(head), end, classes);
    memmove(from, end, strlen(end) + 1);
    return true;
}

/* ---- writing --------------------------------------------------------------------------------- */

static bool print(FILE *to, const tune_file *file, const tune_key *key)
{
    char head[2048];
    size_t n = strlen(file->others);
    head_of(key, head, sizeof head);
    fprintf(to, "%s%s%s", file->others, n && file->others[n - 1] != '\n' ? "\n" : "", head);
    for (int i = 0; i < TUNE_CLASSES; i++)
        if (file->result[i])
            fputs(file->result[i], to);
    return fputs(END, to) >= 0 && fflush(to) == 0 && tern_os_fsync(fileno(to)) == 0;
}

bool tune_file_write(const tune_file *file, const tune_key *key)
{
    char beside[4200];
    tool_make_folders(file->path);
    snprintf(beside, sizeof beside, "%s.XXXXXX", file->path);
    int made = tern_os_mkstemp(beside); /* mkstemp creates the file with mode 0600 */
    FILE *to = made >= 0 ? tern_os_fdopen(made, "w") : NULL;
    bool good = to && print(to, file, key);
    good = to && fclose(to) == 0 && good && tern_os_rename(beside, file->path) == 0;
    if (made >= 0 && !good) {
        int code = errno;
        tern_os_unlink(beside);
        errno = code;
    }
    return good;
}

void tune_file_free(tune_file *file)
{
    free(file->others);
    for (int i = 0; i < TUNE_CLASSES; i++)
        free(file->result[i]);
}
