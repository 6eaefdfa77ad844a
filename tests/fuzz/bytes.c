/* bytes.c -- fuzzers whose inputs are files, as programs of their own:
 *
 *   fuzz_x [--seed N --seconds N] [--catch FOLDER] FILE|FOLDER... [--only .ending FILE|FOLDER...]
 *
 * gives every file to the fuzzer, and then, as long as that, files whose bytes were changed. */
#include "bytes.h"
#include <dirent.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

enum { MOST = 1 << 16, CAPACITY = 2 * MOST, FILES = 2048 };

typedef struct input {
    uint8_t *bytes;
    size_t n;
} input;

static bool load(input *in, const char *path)
{
    FILE *f = fopen(path, "rb");
    in->bytes = f ? malloc(MOST) : NULL;
    in->n = in->bytes ? fread(in->bytes, 1, MOST, f) : 0;
    if (f)
        fclose(f);
    return in->n > 0;
}

/* The files of a folder and of those in it, or a file, behind the n of the list; how many there are then. Only those
 * with that ending, if it is not NULL. */
static int load_all(input *list, int n, const char *path, const char *ending)
{
    DIR *dir = opendir(path);
    size_t length = strlen(path), more = ending ? strlen(ending) : 0;
    if (!dir)
        return n + (n < FILES && length >= more &&
                    (!ending || !strcmp(path + length - more, ending)) && load(&list[n], path));
    for (struct dirent *e; n < FILES && (e = readdir(dir));) {
        char inside[2048];
        snprintf(inside, sizeof inside, "%s/%s", path, e->d_name);
        if (e->d_name[0] != '.')
            n = load_all(list, n, inside, ending);
    }
    closedir(dir);
    return n;
}

static uint64_t next(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15u; /* splitmix64 */
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

/* The input that is tried is there if it ends the process. */
static void keep(const char *folder, const uint8_t *bytes, size_t size)
{
    char path[2048];
    mkdir(folder, 0777);
    snprintf(path, sizeof path, "%s/last", folder);
    FILE *file = fopen(path, "wb");
    if (file) {
        fwrite(bytes, 1, size, file);
        fclose(file);
    }
}

/* A word in place of some bytes, or of the whole value behind a colon. */
static size_t put_word(uint8_t *bytes, size_t size, uint64_t *state)
{
    size_t words = 0, at = next(state) % size, end;
    while (fuzz_words[words])
        words++;
    const char *word = fuzz_words[next(state) % words];
    const size_t n = strlen(word);
    if (next(state) % 3 == 0) {
        end = at + next(state) % 8;
    } else {
        while (at > 0 && bytes[at] != ':')
            at--;
        for (end = ++at; end < size && !strchr(",}]", bytes[end]); end++)
            ;
    }
    end = end < size ? end : size;
    if (at > end || size + n > CAPACITY)
        return size;
    memmove(bytes + at + n, bytes + end, size - end);
    memcpy(bytes + at, word, n);
    return size - (end - at) + n;
}

/* Bytes changed, cut off, repeated or put in from another input. */
static void try_one(const input *list, int n, uint64_t *state, const char *folder)
{
    static uint8_t bytes[CAPACITY];
    const input *from = &list[next(state) % (uint64_t)n], *other = &list[next(state) % (uint64_t)n];
    size_t size = from->n;
    memcpy(bytes, from->bytes, size);
    for (uint64_t k = next(state) % 4 + 1; k > 0; k--) {
        if (fuzz_words && next(state) % 2) {
            size = put_word(bytes, size, state);
            continue;
        }
        size_t at = next(state) % size, length = next(state) % 16;
        switch (next(state) % 5) {
        case 0:
            bytes[at] = (uint8_t)next(state);
            break;
        case 1:
            bytes[at] ^= (uint8_t)(1u << next(state) % 8);
            break;
        case 2:
            size = at + 1;
            break;
        case 3:
            if (size + length < sizeof bytes) {
                memmove(bytes + at + length, bytes + at, size - at);
                size += length;
            }
            break;
        default:
            for (size_t i = 0; i < length && at + i < size && i < other->n; i++)
                bytes[at + i] = other->bytes[next(state) % other->n];
        }
    }
    if (folder)
        keep(folder, bytes, size);
    uint8_t *exact = malloc(size); /* so that sanitizers see its end */
    if (exact)
        LLVMFuzzerTestOneInput(memcpy(exact, bytes, size), size);
    free(exact);
}

int main(int argc, char **argv)
{
    static input list[FILES];
    uint64_t seed = 1;
    const char *ending = NULL, *folder = NULL;
    double seconds = 0;
    int n = 0;
    int64_t tried = 0;
    for (int i = 1; i < argc; i++)
        if (!strcmp(argv[i], "--seed") && i + 1 < argc)
            seed = strtoull(argv[++i], NULL, 10);
        else if (!strcmp(argv[i], "--seconds") && i + 1 < argc)
            seconds = atof(argv[++i]);
        else if (!strcmp(argv[i], "--catch") && i + 1 < argc)
            folder = argv[++i];
        else if (!strcmp(argv[i], "--only") && i + 1 < argc)
            ending = argv[++i];
        else
            n = load_all(list, n, argv[i], ending);
    for (int i = 0; i < n; i++)
        LLVMFuzzerTestOneInput(list[i].bytes, list[i].n);
    uint64_t state = seed;
    for (time_t end = time(NULL) + (time_t)seconds; n > 0 && time(NULL) < end; tried++)
        try_one(list, n, &state, folder);
    printf("%" PRId64 " files from %d of the corpus, programs of seed %" PRIu64 "\n", tried, n,
           seed);
    for (int i = 0; i < n; i++)
        free(list[i].bytes);
    return n == 0;
}
