/* cache.c -- compiled programs on disk, under $TERN_CACHE_DIR, $XDG_CACHE_HOME/tern or
 * ~/.cache/tern: one file each, named by the hash of what it was made from. */
#include "device/cache.h"
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PATH_BYTES = 4096, FORMAT = 1 };
static const char magic[8] = "ternprog";

typedef struct header {
    char magic[8];
    uint64_t format, key[2], bytes, hash;
} header;

tern_cache_key tern_cache_key_start(const char *kind)
{
    tern_cache_key key = {{TERN_HASH_SEED, ~TERN_HASH_SEED}};
    tern_cache_key_add(&key, kind);
    return key;
}

void tern_cache_key_add(tern_cache_key *key, const char *text)
{
    /* With its end, so that ("ab", "c") is not ("a", "bc"). */
    for (int i = 0; i < 2; i++)
        key->hash[i] = tern_hash(key->hash[i], text, strlen(text) + 1);
}

/* The cache's folder, made if need be; false where there is none. */
static bool folder(char *path)
{
    const char *own = getenv("TERN_CACHE_DIR"), *xdg = getenv("XDG_CACHE_HOME");
    const char *home = getenv("HOME");
    int n = -1;
    if (own && *own)
        n = snprintf(path, PATH_BYTES, "%s", own);
    else if (xdg && *xdg)
        n = snprintf(path, PATH_BYTES, "%s/tern", xdg);
    else if (home && *home)
        n = snprintf(path, PATH_BYTES, "%s/.cache/tern", home);
    if (n < 0 || n > PATH_BYTES - 128)
        return false;
    for (char *slash = path + 1; (slash = strchr(slash, '/')); slash++) {
        *slash = '\0';
        mkdir(path, 0700);
        *slash = '/';
    }
    return mkdir(path, 0700) == 0 || errno == EEXIST;
}

static bool file_of(const tern_cache_key *key, char *path)
{
    if (!folder(path))
        return false;
    size_t used = strlen(path);
    snprintf(path + used, PATH_BYTES - used, "/%016" PRIx64 "%016" PRIx64, key->hash[0],
             key->hash[1]);
    return true;
}

static void *read_body(FILE *f, const tern_cache_key *key, size_t *bytes)
{
    header h;
    struct stat status;
    if (fread(&h, sizeof h, 1, f) != 1 || memcmp(h.magic, magic, sizeof magic) != 0 ||
        h.format != FORMAT || memcmp(h.key, key->hash, sizeof h.key) != 0)
        return NULL;
    /* No more memory than the file has bytes, whatever its header says. */
    if (fstat(fileno(f), &status) != 0 || (uint64_t)status.st_size != sizeof h + h.bytes)
        return NULL;
    void *data = tern_alloc_aligned(h.bytes ? h.bytes : 1);
    if (!data)
        return NULL;
    if (fread(data, 1, h.bytes, f) == h.bytes &&
        tern_hash(TERN_HASH_SEED, data, h.bytes) == h.hash) {
        *bytes = h.bytes;
        return data;
    }
    tern_free(data);
    return NULL;
}

void *tern_cache_load(const tern_cache_key *key, size_t *bytes)
{
    char path[PATH_BYTES];
    FILE *f = file_of(key, path) ? fopen(path, "rbe") : NULL;
    void *data = f ? read_body(f, key, bytes) : NULL;
    if (f)
        fclose(f);
    if (f && !data)
        unlink(path);
    return data;
}

void tern_cache_store(const tern_cache_key *key, const void *data, size_t bytes)
{
    char path[PATH_BYTES], temporary[PATH_BYTES + 16];
    if (!file_of(key, path))
        return;
    snprintf(temporary, sizeof temporary, "%s.XXXXXX", path);
    int file = mkstemp(temporary); /* mode 0600 */
    if (file < 0)
        return;
    header h = {.format = FORMAT, .bytes = bytes, .hash = tern_hash(TERN_HASH_SEED, data, bytes)};
    memcpy(h.magic, magic, sizeof magic);
    memcpy(h.key, key->hash, sizeof h.key);
    FILE *f = fdopen(file, "wb");
    bool whole = f && fwrite(&h, sizeof h, 1, f) == 1 && fwrite(data, 1, bytes, f) == bytes;
    if (f)
        whole = fclose(f) == 0 && whole;
    else
        close(file);
    if (!whole || rename(temporary, path) != 0)
        unlink(temporary);
}

void tern_cache_remove(const tern_cache_key *key)
{
    char path[PATH_BYTES];
    if (file_of(key, path))
        unlink(path);
}
