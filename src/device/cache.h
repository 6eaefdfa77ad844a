/* cache.h -- a cache of compiled programs on disk, for every backend that compiles at run time. */
#ifndef TERN_DEVICE_CACHE_H
#define TERN_DEVICE_CACHE_H
#include "base/text.h"

/* A hash of what a program is compiled from: source, options, device, driver version, ... */
typedef struct tern_cache_key {
    uint64_t hash[2];
} tern_cache_key;

tern_cache_key tern_cache_key_start(const char *kind);
void tern_cache_key_add(tern_cache_key *key, const char *text);

/* tern_cache_load returns the stored bytes, which the caller frees with tern_free, or NULL if there
 * is no trusted entry. tern_cache_store writes an entry and returns whether it did. No function
 * here records an error: without an entry the program is compiled from source. */
void *tern_cache_load(const tern_cache_key *key, size_t *bytes);
bool tern_cache_store(const tern_cache_key *key, const void *data, size_t bytes);
/* As tern_cache_store, but if the disk can't be written, keeps the entry in memory. */
bool tern_cache_keep(const tern_cache_key *key, const void *data, size_t bytes);
/* Returns whether there is an entry, trusted or not. */
bool tern_cache_has(const tern_cache_key *key);
/* tern_cache_claim locks a program between processes: it waits, a minute at most, until no other
 * process has the lock, and returns an argument for tern_cache_let_go, which unlocks it. So several
 * ranks compile a program once, and only one at a time uses PoCL's own cache, which two processes
 * at once can damage. */
int tern_cache_claim(const tern_cache_key *key);
void tern_cache_let_go(int claim, const tern_cache_key *key);
/* Creates a folder for unfinished files of this process and writes its path: in the cache, or if
 * that can't be written, in TMPDIR or /tmp. Returns false if none can be created. */
bool tern_cache_folder(char *path, size_t bytes);
/* Removes an entry that the driver refused. */
void tern_cache_remove(const tern_cache_key *key);

#endif
