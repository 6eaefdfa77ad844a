/* cache.c -- compiled programs on disk, under $TERN_CACHE_DIR, $XDG_CACHE_HOME/tern or
 * ~/.cache/tern: one file each, named by the hash of what it was made from. */
#define _GNU_SOURCE /* F_OFD_SETLK */
#include "base/env.h"
#include "device/cache.h"
#include "base/warning.h"
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
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

/* Programs run in this process: what somebody else owns, or could write, is left alone. */
static bool is_trusted(int file, mode_t type, const char *path)
{
    struct stat status;
    if (fstat(file, &status) != 0)
        return false;
    bool right = (status.st_mode & S_IFMT) == type;
    bool own = status.st_uid == geteuid() || status.st_uid == 0;
    if (right && own && !(status.st_mode & (S_IWGRP | S_IWOTH)))
        return true;
    tern_warn("cache", "TERN_CACHE_DIR", "compiled programs are not read from %s, which %s", path,
              !right ? "is no regular file"
              : own  ? "others may write to (chmod go-w)"
                     : "belongs to another user");
    return false;
}

static bool path_of_folder(char *path)
{
    const char *own = tern_env(TERN_ENV_CACHE_DIR), *xdg = getenv("XDG_CACHE_HOME");
    const char *home = getenv("HOME");
    int n = -1;
    if (own)
        n = snprintf(path, PATH_BYTES, "%s", own);
    else if (xdg && *xdg)
        n = snprintf(path, PATH_BYTES, "%s/tern", xdg);
    else if (home && *home)
        n = snprintf(path, PATH_BYTES, "%s/.cache/tern", home);
    return n >= 0 && n < PATH_BYTES;
}

/* Programs are compiled again by each process. */
static void warn_unwritable(void)
{
    char path[PATH_BYTES];
    const char *why = strerror(errno);
    if (path_of_folder(path))
        tern_warn("cache", "TERN_CACHE_DIR", "compiled programs are not kept in %s: %s", path, why);
}

/* The cache's folder, made if need be and open; -1 where there is none. Its files are opened by way
 * of this descriptor, so that nobody can exchange the folder meanwhile. */
static int open_folder(void)
{
    char path[PATH_BYTES];
    if (!path_of_folder(path))
        return -1;
    for (char *slash = path + 1; (slash = strchr(slash, '/')); slash++) {
        *slash = '\0';
        mkdir(path, 0700);
        *slash = '/';
    }
    mkdir(path, 0700);
    int folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (folder < 0)
        warn_unwritable();
    if (folder >= 0 && !is_trusted(folder, S_IFDIR, path)) {
        close(folder);
        folder = -1;
    }
    return folder;
}

enum { NAME_BYTES = 33, LOCK_TURNS = 6000 };

static void name_of(const tern_cache_key *key, char name[NAME_BYTES])
{
    snprintf(name, NAME_BYTES, "%016" PRIx64 "%016" PRIx64, key->hash[0], key->hash[1]);
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

/* An entry: no link, and opened without waiting, should it be a FIFO. */
static FILE *open_entry(int folder, const char *name)
{
    int file = openat(folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (file < 0)
        return NULL;
    FILE *f = is_trusted(file, S_IFREG, name) ? fdopen(file, "rb") : NULL;
    if (!f)
        close(file);
    return f;
}

/* ---- in memory --------------------------------------------------------------------------- */

static struct kept {
    struct kept *next;
    tern_cache_key key;
    size_t bytes;
    unsigned char data[];
} * kept;
static pthread_mutex_t kept_lock = PTHREAD_MUTEX_INITIALIZER;

/* With the lock held: where the entry hangs; the end where there is none. */
static struct kept **find_kept(const tern_cache_key *key)
{
    struct kept **at = &kept;
    while (*at && memcmp(&(*at)->key, key, sizeof *key) != 0)
        at = &(*at)->next;
    return at;
}

static void *load_kept(const tern_cache_key *key, size_t *bytes)
{
    void *data = NULL;
    pthread_mutex_lock(&kept_lock);
    const struct kept *k = *find_kept(key);
    if (k && (data = tern_alloc_aligned(k->bytes ? k->bytes : 1))) {
        memcpy(data, k->data, k->bytes);
        *bytes = k->bytes;
    }
    pthread_mutex_unlock(&kept_lock);
    return data;
}

static bool keep(const tern_cache_key *key, const void *data, size_t bytes)
{
    pthread_mutex_lock(&kept_lock);
    struct kept *k = *find_kept(key);
    if (!k && bytes < SIZE_MAX / 2 && (k = malloc(sizeof *k + bytes))) {
        *k = (struct kept){.next = kept, .key = *key, .bytes = bytes};
        memcpy(k->data, data, bytes);
        kept = k;
    }
    pthread_mutex_unlock(&kept_lock);
    return k != NULL;
}

bool tern_cache_keep(const tern_cache_key *key, const void *data, size_t bytes)
{
    return tern_cache_store(key, data, bytes) || keep(key, data, bytes);
}

bool tern_cache_has(const tern_cache_key *key)
{
    char name[NAME_BYTES];
    pthread_mutex_lock(&kept_lock);
    bool has = *find_kept(key) != NULL;
    pthread_mutex_unlock(&kept_lock);
    int folder = has ? -1 : open_folder();
    if (folder < 0)
        return has;
    name_of(key, name);
    has = faccessat(folder, name, R_OK, 0) == 0;
    close(folder);
    return has;
}

/* ---- both -------------------------------------------------------------------------------- */

void *tern_cache_load(const tern_cache_key *key, size_t *bytes)
{
    char name[NAME_BYTES];
    void *own = load_kept(key, bytes);
    if (own)
        return own;
    int folder = open_folder();
    if (folder < 0)
        return NULL;
    name_of(key, name);
    FILE *f = open_entry(folder, name);
    void *data = f ? read_body(f, key, bytes) : NULL;
    if (f)
        fclose(f);
    if (f && !data)
        unlinkat(folder, name, 0);
    close(folder);
    return data;
}

static bool write_entry(int file, const tern_cache_key *key, const void *data, size_t bytes)
{
    header h = {.format = FORMAT, .bytes = bytes, .hash = tern_hash(TERN_HASH_SEED, data, bytes)};
    memcpy(h.magic, magic, sizeof magic);
    memcpy(h.key, key->hash, sizeof h.key);
    FILE *f = fdopen(file, "wb");
    bool whole = f && fwrite(&h, sizeof h, 1, f) == 1 && fwrite(data, 1, bytes, f) == bytes;
    if (!f)
        close(file);
    return f && fclose(f) == 0 && whole;
}

bool tern_cache_store(const tern_cache_key *key, const void *data, size_t bytes)
{
    static atomic_uint stored;
    char name[NAME_BYTES], temporary[NAME_BYTES + 32];
    int folder = open_folder();
    if (folder < 0)
        return false;
    name_of(key, name);
    snprintf(temporary, sizeof temporary, "%s.%ld.%u", name, (long)getpid(),
             atomic_fetch_add(&stored, 1));
    int file = openat(folder, temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    bool kept_there = file >= 0 && write_entry(file, key, data, bytes) &&
                      renameat(folder, temporary, folder, name) == 0;
    if (!kept_there)
        warn_unwritable();
    if (!kept_there && file >= 0)
        unlinkat(folder, temporary, 0);
    close(folder);
    return kept_there;
}

/* ---- one process at a time ---------------------------------------------------------------- */

/* A byte of the file "lock" for each key; who ends without letting go holds nothing. */
static bool lock_byte(int file, const tern_cache_key *key, short type)
{
    struct flock byte = {.l_type = type,
                         .l_whence = SEEK_SET,
                         .l_start = (off_t)(key->hash[0] & INT32_MAX),
                         .l_len = 1};
    return fcntl(file, F_OFD_SETLK, &byte) == 0;
}

int tern_cache_claim(const tern_cache_key *key)
{
    int folder = open_folder();
    if (folder < 0)
        return -1;
    int file = openat(folder, "lock", O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
    close(folder);
    for (int turn = 0; file >= 0 && !lock_byte(file, key, F_WRLCK); turn++) {
        if ((errno != EAGAIN && errno != EACCES) || turn == LOCK_TURNS) {
            close(file);
            return -1;
        }
        nanosleep(&(struct timespec){0, 10000000}, NULL);
    }
    return file;
}

void tern_cache_let_go(int claim, const tern_cache_key *key)
{
    if (claim < 0)
        return;
    lock_byte(claim, key, F_UNLCK); /* a child that was forked meanwhile has the file too */
    close(claim);
}

void tern_cache_remove(const tern_cache_key *key)
{
    char name[NAME_BYTES];
    pthread_mutex_lock(&kept_lock);
    struct kept **at = find_kept(key), *gone = *at;
    if (gone)
        *at = gone->next;
    free(gone);
    pthread_mutex_unlock(&kept_lock);
    int folder = open_folder();
    if (folder < 0)
        return;
    name_of(key, name);
    unlinkat(folder, name, 0);
    close(folder);
}

bool tern_cache_folder(char *path, size_t bytes)
{
    char own[PATH_BYTES];
    const char *temporary = getenv("TMPDIR");
    int folder = open_folder();
    bool made = folder >= 0 && path_of_folder(own) &&
                (size_t)snprintf(path, bytes, "%s/XXXXXX", own) < bytes && mkdtemp(path);
    if (folder >= 0)
        close(folder);
    if (!made)
        made = (size_t)snprintf(path, bytes, "%s/tern-XXXXXX",
                                temporary && *temporary ? temporary : "/tmp") < bytes &&
               mkdtemp(path);
    return made;
}
