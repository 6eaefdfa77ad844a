/* cache.h -- compiled programs on disk, for every backend that compiles at run time. */
#ifndef TERN_DEVICE_CACHE_H
#define TERN_DEVICE_CACHE_H
#include "base/text.h"

/* What a program was made from: text, options, device, driver version, ... */
typedef struct tern_cache_key {
    uint64_t hash[2];
} tern_cache_key;

tern_cache_key tern_cache_key_start(const char *kind);
void tern_cache_key_add(tern_cache_key *key, const char *text);

/* The stored bytes (free with tern_free), or NULL when there are none that can be trusted. None
 * of these records an error: whatever goes wrong, the program is built from source. */
void *tern_cache_load(const tern_cache_key *key, size_t *bytes);
bool tern_cache_store(const tern_cache_key *key, const void *data, size_t bytes);
/* The same, or in memory where there is no disk to write to. */
bool tern_cache_keep(const tern_cache_key *key, const void *data, size_t bytes);
/* Whether there is an entry; it may still be one that can't be trusted. */
bool tern_cache_has(const tern_cache_key *key);
/* Wait until no other process makes that program, a minute at most, and let others wait until what
 * this returns is given to tern_cache_let_go: several ranks compile it once, and PoCL's own cache,
 * which two processes at once can damage, has one of them in it. */
int tern_cache_claim(const tern_cache_key *key);
void tern_cache_let_go(int claim, const tern_cache_key *key);
/* A new folder of the process's own, for what is not finished: in the cache, or where that can't be
 * written in TMPDIR or /tmp. False where none can be made. */
bool tern_cache_folder(char *path, size_t bytes);
/* Remove an entry that the driver refused. */
void tern_cache_remove(const tern_cache_key *key);

#endif
