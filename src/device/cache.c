/* cache.c -- compiled programs on disk, under $TERN_CACHE_DIR, $XDG_CACHE_HOME/tern or
 * ~/.cache/tern: one file a program, whose name is the key. */
#include "base/env.h"
#include "base/os.h"
#include "device/cache.h"
#include "base/warning.h"
#include <errno.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
    /* The hash includes the final '\0', so that ("ab", "c") and ("a", "bc") differ. */
    for (int i = 0; i < 2; i++)
        key->hash[i] = tern_hash(key->hash[i], text, strlen(text) + 1);
}

/* Returns whether a file or folder of the cache may be used: programs run in this process, so no
 * other user may own or write it. */
static bool is_trusted(int file, bool folder, const char *path)
{
    struct tern_os_stat status;
    bool own;
    if (tern_os_fstat(file, &status) != 0)
        return false;
    bool right = folder ? S_ISDIR(status.st_mode) : S_ISREG(status.st_mode);
    if (tern_os_is_private(&status, &own) && right)
        return true;
    tern_warn("cache", "TERN_CACHE_DIR", "compiled programs are not read from %s, which %s", path,
              !right ? "is no regular file"
              : own  ? "others may write to (chmod go-w)"
                     : "belongs to another user");
    return false;
}

static bool path_of_folder(char *path)
{
    const char *own = tern_env(TERN_ENV_CACHE_DIR);
    if (!own)
        return tern_os_folder(TERN_OS_CACHE, "/tern", path, PATH_BYTES);
    const int bytes = snprintf(path, PATH_BYTES, "%s", own);
    (void)tern_os_plain_path(path);
    return bytes < PATH_BYTES;
}

/* Warns that the cache can't be written, so that each process compiles its programs again. */
static void warn_unwritable(void)
{
    char path[PATH_BYTES];
    const char *why = strerror(errno);
    if (path_of_folder(path))
        tern_warn("cache", "TERN_CACHE_DIR", "compiled programs are not kept in %s: %s", path, why);
}

/* Opens the cache's folder, creating it first if needed, and returns the descriptor; -1 if there is
 * none. Files are opened relative to this descriptor, so that another process can't replace the
 * folder meanwhile. */
static int open_folder(void)
{
    char path[PATH_BYTES];
    if (!path_of_folder(path))
        return -1;
    for (char *slash = path + 1; (slash = strchr(slash, '/')); slash++) {
        *slash = '\0';
        tern_os_mkdir(path, 0700);
        *slash = '/';
    }
    tern_os_mkdir(path, 0700);
    int folder = tern_os_open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (folder < 0)
        warn_unwritable();
    if (folder >= 0 && !is_trusted(folder, true, path)) {
        tern_os_close(folder);
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
    struct tern_os_stat status;
    if (fread(&h, sizeof h, 1, f) != 1 || memcmp(h.magic, magic, sizeof magic) != 0 ||
        h.format != FORMAT || memcmp(h.key, key->hash, sizeof h.key) != 0)
        return NULL;
    /* h.bytes must match the size of the file, so that a wrong header can't ask for more memory. */
    if (tern_os_fstat(fileno(f), &status) != 0 || (uint64_t)status.st_size != sizeof h + h.bytes)
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

/* Opens an entry; returns NULL if it is a link or not trusted. With O_NONBLOCK a FIFO can't
 * block. */
static FILE *open_entry(int folder, const char *name)
{
    int file = tern_os_openat(folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (file < 0)
        return NULL;
    FILE *f = is_trusted(file, false, name) ? tern_os_fdopen(file, "rb") : NULL;
    if (!f)
        tern_os_close(file);
    return f;
}

/* ---- in memory --------------------------------------------------------------------------- */

static struct kept {
    struct kept *next;
    tern_cache_key key;
    size_t bytes;
    unsigned char data[];
} * kept;
static tern_mutex kept_lock = TERN_MUTEX_INIT;

/* Returns the pointer in the list that points to the entry, or the last, which is NULL, if there is
 * no such entry. The caller holds kept_lock. */
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
    tern_mutex_lock(&kept_lock);
    const struct kept *k = *find_kept(key);
    if (k && (data = tern_alloc_aligned(k->bytes ? k->bytes : 1))) {
        memcpy(data, k->data, k->bytes);
        *bytes = k->bytes;
    }
    tern_mutex_unlock(&kept_lock);
    return data;
}

static bool keep(const tern_cache_key *key, const void *data, size_t bytes)
{
    tern_mutex_lock(&kept_lock);
    struct kept *k = *find_kept(key);
    if (!k && bytes < SIZE_MAX / 2 && (k = malloc(sizeof *k + bytes))) {
        *k = (struct kept){.next = kept, .key = *key, .bytes = bytes};
        memcpy(k->data, data, bytes);
        kept = k;
    }
    tern_mutex_unlock(&kept_lock);
    return k != NULL;
}

bool tern_cache_keep(const tern_cache_key *key, const void *data, size_t bytes)
{
    return tern_cache_store(key, data, bytes) || keep(key, data, bytes);
}

bool tern_cache_has(const tern_cache_key *key)
{
    char name[NAME_BYTES];
    tern_mutex_lock(&kept_lock);
    bool has = *find_kept(key) != NULL;
    tern_mutex_unlock(&kept_lock);
    int folder = has ? -1 : open_folder();
    if (folder < 0)
        return has;
    name_of(key, name);
    has = tern_os_faccessat(folder, name, R_OK, 0) == 0;
    tern_os_close(folder);
    return has;
}

/* ---- in memory and on disk ----------------------------------------------------------------- */

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
        tern_os_unlinkat(folder, name, 0);
    tern_os_close(folder);
    return data;
}

static bool write_entry(int file, const tern_cache_key *key, const void *data, size_t bytes)
{
    header h = {.format = FORMAT, .bytes = bytes, .hash = tern_hash(TERN_HASH_SEED, data, bytes)};
    memcpy(h.magic, magic, sizeof magic);
    memcpy(h.key, key->hash, sizeof h.key);
    FILE *f = tern_os_fdopen(file, "wb");
    bool whole = f && fwrite(&h, sizeof h, 1, f) == 1 && fwrite(data, 1, bytes, f) == bytes;
    if (!f)
        tern_os_close(file);
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
    snprintf(temporary, sizeof temporary, "%s.%ld.%u", name, (long)tern_os_getpid(),
             atomic_fetch_add(&stored, 1));
    int file = tern_os_openat(folder, temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    bool kept_there = file >= 0 && write_entry(file, key, data, bytes) &&
                      tern_os_renameat(folder, temporary, folder, name) == 0;
    if (!kept_there)
        warn_unwritable();
    if (!kept_there && file >= 0)
        tern_os_unlinkat(folder, temporary, 0);
    tern_os_close(folder);
    return kept_there;
}

/* ---- one process at a time ---------------------------------------------------------------- */

/* Locks or unlocks the byte of the file "lock" that belongs to the key. The lock of a process that
 * ends is released by the system. */
static bool lock_byte(int file, const tern_cache_key *key, bool locks)
{
    return tern_os_lock_byte(file, (int64_t)(key->hash[0] & INT32_MAX), locks);
}

int tern_cache_claim(const tern_cache_key *key)
{
    int folder = open_folder();
    if (folder < 0)
        return -1;
    int file = tern_os_openat(folder, "lock", O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
    tern_os_close(folder);
    for (int turn = 0; file >= 0 && !lock_byte(file, key, true); turn++) {
        if ((errno != EAGAIN && errno != EACCES) || turn == LOCK_TURNS) {
            tern_os_close(file);
            return -1;
        }
        tern_os_sleep(10000000);
    }
    return file;
}

void tern_cache_let_go(int claim, const tern_cache_key *key)
{
    if (claim < 0)
        return;
    lock_byte(claim, key, false); /* a child that was forked meanwhile also has the file open */
    tern_os_close(claim);
}

void tern_cache_remove(const tern_cache_key *key)
{
    char name[NAME_BYTES];
    tern_mutex_lock(&kept_lock);
    struct kept **at = find_kept(key), *gone = *at;
    if (gone)
        *at = gone->next;
    free(gone);
    tern_mutex_unlock(&kept_lock);
    int folder = open_folder();
    if (folder < 0)
        return;
    name_of(key, name);
    tern_os_unlinkat(folder, name, 0);
    tern_os_close(folder);
}

bool tern_cache_folder(char *path, size_t bytes)
{
    char own[PATH_BYTES];
    int folder = open_folder();
    bool made = folder >= 0 && path_of_folder(own) &&
                (size_t)snprintf(path, bytes, "%s/XXXXXX", own) < bytes && tern_os_mkdtemp(path);
    if (folder >= 0)
        tern_os_close(folder);
    if (!made)
        made =
            tern_os_folder(TERN_OS_TEMPORARY, "/tern-XXXXXX", path, bytes) && tern_os_mkdtemp(path);
    return made;
}
