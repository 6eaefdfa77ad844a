/* cache.c -- tern cache: the compiled programs that the library stores on disk. */
#include "tool/tool.h"
#include "base/os.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { PATH_BYTES = 4096, KEY = 32 };
static int older;
static bool dry;

typedef struct entry {
    char name[KEY + 1];
    int64_t bytes;
    time_t when;
} entry;

typedef struct listing {
    char path[PATH_BYTES];
    int folder; /* a file descriptor; -1: there is no folder */
    entry *of;
    int n;
    int64_t bytes;
} listing;

/* Writes the path of the library's cache folder (see programs_loaded in tern/device.h). */
static bool path_of_folder(char *path)
{
    const char *own = tool_env("TERN_CACHE_DIR");
    if (own && *own)
        return snprintf(path, PATH_BYTES, "%s", own) < PATH_BYTES;
    return tern_os_folder(TERN_OS_CACHE, "/tern", path, PATH_BYTES);
}

/* Programs are files named by 32 hexadecimal digits; other files are ignored. */
static bool is_program(const char *name)
{
    return strlen(name) == KEY && strspn(name, "0123456789abcdef") == KEY;
}

static bool add(listing *l, const char *name)
{
    struct tern_os_stat s;
    if (!is_program(name) || tern_os_fstatat(l->folder, name, &s, AT_SYMLINK_NOFOLLOW) != 0 ||
        !S_ISREG(s.st_mode))
        return true;
    if (older > 0 && difftime(time(NULL), s.st_mtime) < older * 86400.0)
        return true;
    entry *grown = realloc(l->of, sizeof *grown * (size_t)(l->n + 1));
    if (!grown)
        return false;
    l->of = grown;
    entry *e = &l->of[l->n++];
    memcpy(e->name, name, KEY + 1);
    e->bytes = (int64_t)s.st_size;
    e->when = s.st_mtime;
    l->bytes += e->bytes;
    return true;
}

static int by_time(const void *a, const void *b)
{
    time_t x = ((const entry *)a)->when, y = ((const entry *)b)->when;
    return x < y ? 1 : x > y ? -1 : strcmp(((const entry *)a)->name, ((const entry *)b)->name);
}

static int read_folder(listing *l)
{
    if (!path_of_folder(l->path))
        return tool_fail(TOOL_WRONG, "cache: none of TERN_CACHE_DIR, XDG_CACHE_HOME, HOME is set");
    l->folder = tern_os_open(l->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (l->folder < 0)
        return errno == ENOENT ? TOOL_FINE
                               : tool_fail(TOOL_WRONG, "cache: %s: %s", l->path, strerror(errno));
    tern_os_dir *entries = tern_os_fdopendir(tern_os_dup_private(l->folder));
    bool good = entries != NULL;
    for (struct tern_os_dirent *e; good && (e = tern_os_readdir(entries));)
        good = add(l, e->d_name);
    if (entries)
        tern_os_closedir(entries);
    if (l->n)
        qsort(l->of, (size_t)l->n, sizeof *l->of, by_time);
    return good ? TOOL_FINE : tool_fail(TOOL_WRONG, "cache: out of memory");
}

static void print_size(const listing *l)
{
    char text[32];
    printf("%d program%s, %s, in %s\n", l->n, l->n == 1 ? "" : "s",
           tool_bytes((double)l->bytes, text), l->path);
}

static void print_list(const listing *l)
{
    char size[32], when[32];
    for (int i = 0; i < l->n; i++) {
        strftime(when, sizeof when, "%Y-%m-%d %H:%M", localtime(&l->of[i].when));
        printf("%s  %10s  %s\n", when, tool_bytes((double)l->of[i].bytes, size), l->of[i].name);
    }
    print_size(l);
}

/* ---- PoCL's cache ---------------------------------------------------------------------------- */

static struct {
    int kernels;
    double bytes;
} pocl;

/* Counts the kernels in a folder; returns whether the path is a folder. */
static bool count_kernels(const char *folder, int depth)
{
    char path[PATH_BYTES];
    struct tern_os_stat s;
    tern_os_dir *open = depth < 16 ? tern_os_opendir(folder) : NULL;
    for (struct tern_os_dirent *e; open && (e = tern_os_readdir(open));) {
        const size_t n = strlen(e->d_name);
        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0 ||
            snprintf(path, sizeof path, "%s/%s", folder, e->d_name) >= PATH_BYTES ||
            tern_os_lstat(path, &s) != 0)
            continue;
        if (S_ISDIR(s.st_mode))
            count_kernels(path, depth + 1);
        if (!S_ISREG(s.st_mode))
            continue;
        pocl.bytes += (double)s.st_size;
        pocl.kernels += n > 3 && strcmp(e->d_name + n - 3, ".so") == 0;
    }
    if (open)
        tern_os_closedir(open);
    return open != NULL;
}

/* PoCL caches machine code itself, for the kernels of all programs. */
static void print_pocl(bool stays)
{
    char path[PATH_BYTES], text[32];
    const char *own = tern_os_getenv("POCL_CACHE_DIR");
    const bool known = own && *own
                           ? snprintf(path, PATH_BYTES, "%s", own) < PATH_BYTES
                           : tern_os_folder(TERN_OS_CACHE, "/pocl/kcache", path, PATH_BYTES);
    if (!known || !count_kernels(path, 0))
        return;
    printf("PoCL keeps its own%s: %d kernel%s, %s, in %s\n", stays ? ", which stay" : "",
           pocl.kernels, pocl.kernels == 1 ? "" : "s", tool_bytes(pocl.bytes, text), path);
}

/* ---- the command ----------------------------------------------------------------------------- */

static int clear(const listing *l)
{
    char text[32];
    int gone = 0, code = TOOL_FINE;
    for (int i = 0; i < l->n; i++)
        if (dry || tern_os_unlinkat(l->folder, l->of[i].name, 0) == 0 || errno == ENOENT)
            gone++;
        else
            code =
                tool_fail(TOOL_WRONG, "cache: %s/%s: %s", l->path, l->of[i].name, strerror(errno));
    printf("%d program%s, %s, %s %s\n", gone, gone == 1 ? "" : "s",
           tool_bytes((double)l->bytes, text), dry ? "would be removed from" : "removed from",
           l->path);
    return code;
}

static int run(const char *const *words, int n)
{
    const char *what = n ? words[0] : "size";
    bool list = strcmp(what, "list") == 0, size = strcmp(what, "size") == 0;
    if (!list && !size && strcmp(what, "clear") != 0)
        return tool_fail(TOOL_USAGE, "cache: \"%s\" is none of list, size, clear", what);
    listing l = {.folder = -1};
    int code = read_folder(&l);
    if (code == TOOL_FINE && list)
        print_list(&l);
    else if (code == TOOL_FINE && size)
        print_size(&l);
    else if (code == TOOL_FINE)
        code = clear(&l);
    if (code == TOOL_FINE)
        print_pocl(!list && !size);
    if (l.folder >= 0)
        tern_os_close(l.folder);
    free(l.of);
    return code;
}

static const tool_option options[] = {
    {"--older", "DAYS", "take only programs that were written DAYS days ago or earlier",
     .number = &older},
    {"--dry-run", NULL, "with clear, print what would be removed, and remove nothing",
     .flag = &dry},
    {0}};

static const char *const what_words[] = {"list", "size", "clear", NULL};
const tool_command tool_cache = {
    .name = "cache",
    .arguments = "[list | size | clear]",
    .summary = "List or remove the compiled programs on disk",
    .more = "The programs are in TERN_CACHE_DIR, XDG_CACHE_HOME/tern or ~/.cache/tern. A program "
            "that was removed\n"
            "is compiled again when it is next needed. PoCL keeps its kernels itself, in "
            "POCL_CACHE_DIR,\n"
            "XDG_CACHE_HOME/pocl/kcache or ~/.cache/pocl/kcache: `tern cache` counts them, and "
            "never removes\n"
            "them.\n",
    .part = TOOL_INSTALLATION,
    .example = "tern cache size",
    .words = what_words,
    .most = 1,
    .options = options,
    .run = run,
};
