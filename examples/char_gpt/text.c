/* text.c -- reading files, the vocabulary, windows for batches, and the bigram table. */
#include "text.h"
#include "../stories.h"
#include "../portable.h"
#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* ---- files ----------------------------------------------------------------------------------- */

typedef struct path_list {
    char **paths;
    size_t n, capacity;
} path_list;

static bool is_folder(const char *path)
{
    struct stat status;
    return stat(path, &status) == 0 && S_ISDIR(status.st_mode);
}

static char *join(const char *folder, const char *name)
{
    size_t room = strlen(folder) + strlen(name) + 2;
    char *path = malloc(room);
    if (path)
        snprintf(path, room, "%s/%s", folder, name);
    return path;
}

/* Takes path, which was allocated. */
static bool add_path(path_list *list, char *path)
{
    if (list->n == list->capacity) {
        size_t capacity = list->capacity ? 2 * list->capacity : 64;
        char **paths = realloc(list->paths, capacity * sizeof *paths);
        if (!paths) {
            free(path);
            return false;
        }
        list->paths = paths;
        list->capacity = capacity;
    }
    list->paths[list->n++] = path;
    return true;
}

/* Every file below folder whose name is not hidden; links are not followed out of it. */
static bool collect(path_list *list, const char *folder)
{
    DIR *directory = opendir(folder);
    if (!directory)
        return false;
    bool fine = true;
    struct dirent *entry;
    while (fine && (entry = readdir(directory))) {
        if (entry->d_name[0] == '.')
            continue;
        char *path = join(folder, entry->d_name);
        struct stat status;
        if (!path || lstat(path, &status) != 0) {
            free(path);
            fine = path != NULL;
        } else if (S_ISDIR(status.st_mode)) {
            fine = collect(list, path);
            free(path);
        } else if (S_ISREG(status.st_mode)) {
            fine = add_path(list, path);
        } else {
            free(path);
        }
    }
    closedir(directory);
    return fine;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Add the bytes of a file; one that has a zero byte is no text and adds nothing. */
static bool append(text_ids *to, const char *path)
{
    FILE *file = fopen(path, "rb");
    struct stat status;
    if (!file || fstat(fileno(file), &status) != 0) {
        if (file)
            fclose(file);
        return false;
    }
    size_t size = (size_t)status.st_size;
    uint8_t *grown = realloc(to->ids, to->n + size + 1);
    bool fine = grown != NULL;
    if (fine) {
        to->ids = grown;
        size = fread(grown + to->n, 1, size, file);
        if (!memchr(grown + to->n, 0, size)) {
            to->n += size;
            to->files++;
        }
    }
    fclose(file);
    return fine;
}

static bool read_folder(text *t, const char *path)
{
    static const char *const parts[] = {"src", "include", "cl_kernels"};
    path_list list = {0};
    bool fine = true, found = false;
    for (int i = 0; i < 3; i++) {
        char *part = join(path, parts[i]);
        if (part && is_folder(part)) {
            fine = fine && collect(&list, part);
            found = true;
        }
        free(part);
    }
    if (!found)
        fine = collect(&list, path);
    if (list.n > 0)
        qsort(list.paths, list.n, sizeof *list.paths, by_name);
    for (size_t i = 0; i < list.n; i++) {
        fine = fine && append(i % 10 == 9 ? &t->valid : &t->train, list.paths[i]);
        free(list.paths[i]);
    }
    free(list.paths);
    return fine;
}

static bool read_file(text *t, const char *path)
{
    if (!append(&t->train, path))
        return false;
    size_t n = t->train.n / 10;
    t->valid = (text_ids){.ids = malloc(n + 1), .n = n, .files = 1};
    if (!t->valid.ids)
        return false;
    t->train.n -= n;
    memcpy(t->valid.ids, t->train.ids + t->train.n, n);
    return true;
}

/* Stories that nobody wrote, the same at each run, others to validate than to train. */
static bool make_up(text *t)
{
    enum { TRAIN = 400000, VALID = 20000 };
    t->train = (text_ids){.ids = (uint8_t *)stories_new(TRAIN, 1), .n = TRAIN, .files = 1};
    t->valid = (text_ids){.ids = (uint8_t *)stories_new(VALID, 2), .n = VALID, .files = 1};
    return t->train.ids && t->valid.ids;
}

/* ---- the vocabulary ---------------------------------------------------------------------- */

static void number_bytes(text *t)
{
    memset(t->id_of, -1, sizeof t->id_of);
    bool seen[256] = {false};
    for (size_t i = 0; i < t->train.n; i++)
        seen[t->train.ids[i]] = true;
    for (int byte = 0; byte < 256; byte++)
        if (seen[byte]) {
            t->byte_of[t->vocabulary] = (unsigned char)byte;
            t->id_of[byte] = t->vocabulary++;
        }
}

/* Bytes to ids, in place; a byte that the vocabulary does not have is left out. */
static void encode(const text *t, text_ids *part)
{
    size_t n = 0;
    for (size_t i = 0; i < part->n; i++) {
        int id = t->id_of[part->ids[i]];
        if (id >= 0)
            part->ids[n++] = (uint8_t)id;
    }
    part->n = n;
}

bool text_load(text *t, const char *path)
{
    *t = (text){0};
    bool folder = path && is_folder(path);
    if (!(!path ? make_up(t) : folder ? read_folder(t, path) : read_file(t, path))) {
        fprintf(stderr, "char_gpt: cannot read %s: %s\n", path ? path : "stories", strerror(errno));
        text_free(t);
        return false;
    }
    number_bytes(t);
    encode(t, &t->train);
    encode(t, &t->valid);
    if (t->vocabulary < 2 || t->valid.n < 2) {
        fprintf(stderr, "char_gpt: %s has too little text%s\n", path,
                folder ? ": 10 text files are the least" : "");
        text_free(t);
        return false;
    }
    return true;
}

void text_free(text *t)
{
    free(t->train.ids);
    free(t->valid.ids);
    *t = (text){0};
}

/* ---- windows ----------------------------------------------------------------------------- */

/* splitmix64 (Steele, Lea, Flood 2014). */
double text_random(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return (double)((z ^ (z >> 31)) >> 11) * 0x1p-53;
}

static void read_window(const text_ids *from, size_t start, int length, int64_t *x, int64_t *y)
{
    for (int i = 0; i < length; i++) {
        x[i] = from->ids[start + (size_t)i];
        y[i] = from->ids[start + (size_t)i + 1];
    }
}

void text_random_windows(const text_ids *from, int n, int length, uint64_t *state, int64_t *x,
                         int64_t *y)
{
    double starts = (double)(from->n - (size_t)length);
    for (int i = 0; i < n; i++, x += length, y += length)
        read_window(from, (size_t)(text_random(state) * starts), length, x, y);
}

text_windows text_validation_windows(const text *t, int length, int batch, int most)
{
    size_t room = t->valid.n - 1;
    text_windows w = {.length = length};
    if (room < (size_t)length)
        return w;
    size_t count = room / (size_t)length;
    w.count = count < (size_t)most ? (int)count : most;
    if (w.count > batch)
        w.count -= w.count % batch;
    w.distance = room / (size_t)w.count;
    return w;
}

void text_windows_read(const text *t, text_windows w, int first, int n, int64_t *x, int64_t *y)
{
    for (int i = first; i < first + n; i++, x += w.length, y += w.length)
        read_window(&t->valid, (size_t)i * w.distance, w.length, x, y);
}

double text_bigram_loss(const text *t, text_windows w)
{
    static double count[256][256], sum[256];
    for (int a = 0; a < t->vocabulary; a++) {
        sum[a] = t->vocabulary;
        for (int b = 0; b < t->vocabulary; b++)
            count[a][b] = 1;
    }
    for (size_t i = 1; i < t->train.n; i++) {
        count[t->train.ids[i - 1]][t->train.ids[i]]++;
        sum[t->train.ids[i - 1]]++;
    }
    double loss = 0;
    for (int i = 0; i < w.count; i++) {
        const uint8_t *at = t->valid.ids + (size_t)i * w.distance;
        for (int j = 0; j < w.length; j++)
            loss -= log(count[at[j]][at[j + 1]] / sum[at[j]]);
    }
    return loss / ((double)w.count * w.length);
}
