/* snapshot_folder.c -- the snapshots of a folder: files step-<number>.safetensors with the header
 * of a snapshot. Other files are not touched. */
#define _GNU_SOURCE
#include "io/snapshot.h"
#include "base/os.h"
#include "io/out.h"
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- single files ---------------------------------------------------------------------------- */

/* Returns the number in "step-12.safetensors", or -1 for another name. */
static int64_t number_of(const char *name)
{
    int64_t number = 0;
    if (strncmp(name, "step-", 5) != 0)
        return -1;
    const char *c = name + 5;
    for (; *c >= '0' && *c <= '9'; c++)
        if (__builtin_mul_overflow(number, 10, &number) ||
            __builtin_add_overflow(number, *c - '0', &number))
            return -1;
    return c > name + 5 && strcmp(c, ".safetensors") == 0 ? number : -1;
}

/* Returns whether the file's header begins as a snapshot's; false if it can't be read. */
static bool is_snapshot(int folder, const char *name)
{
    static const char begins[] = "{\"__metadata__\":{\"format\":\"" IO_SNAPSHOT_FORMAT "\"";
    char head[8 + sizeof begins];
    struct tern_os_stat facts;
    int fd = tern_os_openat(folder, name, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return false;
    ssize_t n = tern_os_fstat(fd, &facts) == 0 && S_ISREG(facts.st_mode)
                    ? tern_os_read(fd, head, sizeof head)
                    : -1;
    tern_os_close(fd);
    return n >= (ssize_t)(8 + sizeof begins - 1) &&
           memcmp(head + 8, begins, sizeof begins - 1) == 0;
}

/* ---- lists ----------------------------------------------------------------------------------- */

typedef struct list {
    int64_t *number; /* count numbers, the greatest last */
    int count, capacity;
    bool failed;
} list;

static int by_number(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static void add(list *all, int64_t number)
{
    if (all->count == all->capacity) {
        int capacity = all->capacity ? 2 * all->capacity : 16;
        int64_t *numbers = tern_grow(all->number, sizeof *numbers * (size_t)capacity);
        all->failed = all->failed || !numbers;
        if (!numbers)
            return;
        all->number = numbers;
        all->capacity = capacity;
    }
    all->number[all->count++] = number;
}

static list list_of(const char *folder)
{
    list all = {0};
    tern_os_dir *open = tern_os_opendir(folder);
    for (struct tern_os_dirent *e; open && (e = tern_os_readdir(open));) {
        int64_t number = number_of(e->d_name);
        if (number >= 0 && is_snapshot(tern_os_dirfd(open), e->d_name))
            add(&all, number);
    }
    if (open)
        tern_os_closedir(open);
    if (all.count)
        qsort(all.number, (size_t)all.count, sizeof *all.number, by_number);
    return all;
}

int64_t io_snapshot_newest(const char *folder, int *count)
{
    list all = list_of(folder);
    int64_t newest = all.count ? all.number[all.count - 1] : -1;
    *count = all.count;
    tern_free(all.number);
    return newest;
}

tern_status io_snapshot_path(tern_text *path, const char *folder, int64_t step)
{
    tern_text_add(path, "%s/step-%lld.safetensors", folder, (long long)step);
    return path->failed ? TERN_ERR_MEMORY : TERN_OK;
}

tern_status io_snapshot_keep(const char *folder, int keep, int64_t saved)
{
    list all = list_of(folder);
    tern_status status = all.failed ? TERN_ERR_MEMORY : TERN_OK;
    int left = all.count;
    for (int i = 0; i < all.count && left > keep && status == TERN_OK; i++) {
        tern_text path = {0};
        if (all.number[i] == saved)
            continue;
        status = io_snapshot_path(&path, folder, all.number[i]);
        if (status == TERN_OK && tern_os_unlink(path.data) != 0 && errno != ENOENT)
            status = io_fail_system("tern_snapshot_save", path.data, "it can't be removed");
        tern_text_free(&path);
        left--;
    }
    tern_free(all.number);
    return status;
}

/* ---- best.safetensors ------------------------------------------------------------------------ */

/* Copies the bytes of the file, where hard links are not possible. */
static tern_status copy(const char *path, const char *best)
{
    enum { PIECE = 1 << 20 };
    io_out out = {.function = "tern_snapshot_save", .path = best};
    char *memory = tern_grow(NULL, PIECE);
    int fd = memory ? tern_os_open(path, O_RDONLY | O_CLOEXEC) : -1;
    tern_status status = !memory  ? TERN_ERR_MEMORY
                         : fd < 0 ? io_fail_system(out.function, path, "")
                                  : io_out_open(&out, 0);
    for (ssize_t n = 1; status == TERN_OK && n > 0;) {
        n = tern_os_read(fd, memory, PIECE);
        status =
            n < 0 ? io_fail_system(out.function, path, "") : io_out_write(&out, memory, (size_t)n);
    }
    if (status == TERN_OK)
        status = io_out_commit(&out);
    io_out_close(&out);
    if (fd >= 0)
        tern_os_close(fd);
    tern_free(memory);
    return status;
}

tern_status io_snapshot_make_best(const char *folder, const char *path)
{
    tern_text best = {0}, temporary = {0};
    tern_text_add(&best, "%s/best.safetensors", folder);
    tern_text_add(&temporary, "%s/.best.safetensors.%ld.tmp", folder, (long)tern_os_getpid());
    tern_status status = best.failed || temporary.failed ? TERN_ERR_MEMORY : TERN_OK;
    if (status == TERN_OK) {
        tern_os_unlink(temporary.data);
        if (tern_os_link(path, temporary.data) != 0)
            status = copy(path, best.data);
        else if (tern_os_rename(temporary.data, best.data) != 0) {
            status = io_fail_system("tern_snapshot_save", best.data, "");
            tern_os_unlink(temporary.data);
        } else
            tern_os_unlink(temporary.data); /* if both are hard links to one file, rename does
                                               nothing */
    }
    tern_text_free(&best);
    tern_text_free(&temporary);
    return status;
}

/* ---- public ---------------------------------------------------------------------------------- */

/* Returns a copy of path that is valid until the thread's next call, or NULL. */
static const char *held(const tern_text *path)
{
    if (path->failed || path->length >= TERN_PATH_BYTES)
        return NULL;
    return memcpy(tern_thread.path, path->data, path->length + 1);
}

const char *tern_snapshot_latest(const char *folder)
{
    int count;
    int64_t newest = folder ? io_snapshot_newest(folder, &count) : -1;
    tern_text path = {0};
    const char *text =
        newest >= 0 && io_snapshot_path(&path, folder, newest) == TERN_OK ? held(&path) : NULL;
    tern_text_free(&path);
    return text;
}

const char *tern_snapshot_best(const char *folder)
{
    tern_text path = {0};
    const char *text = NULL;
    if (folder) {
        tern_text_add(&path, "%s/best.safetensors", folder);
        if (!path.failed && is_snapshot(AT_FDCWD, path.data))
            text = held(&path);
    }
    tern_text_free(&path);
    return text;
}

int tern_snapshot_count(const char *folder)
{
    int count = 0;
    if (folder)
        io_snapshot_newest(folder, &count);
    return count;
}
