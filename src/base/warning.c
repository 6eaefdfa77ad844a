/* warning.c -- reports each warning once. */
#include "base/warning.h"
#include "base/lock.h"
#include "base/env.h"
#include "base/strict.h"
#include "base/text.h"
#include "base/thread.h"
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TEXT_BYTES = 1024, PLACES = 1024, MOST_PLACES = PLACES * 3 / 4 };

static tern_mutex lock = TERN_MUTEX_INIT;
static struct {
    tern_warning_handler call;
    void *user;
    uint64_t seen[PLACES]; /* hash table of the reported warnings' hashes; 0: free */
    int count;
} warnings;

static tern_once once = TERN_ONCE_INIT;
static tern_warning_handler standard; /* the handler if the program sets none */
static atomic_bool listens;

static void print(const char *kind, const char *text, void *unused)
{
    (void)unused;
    fprintf(stderr, "tern: warning: %s [%s]\n", text, kind);
}

static void read_environment(void)
{
    if (!tern_env_prints())
        return;
    warnings.call = standard = print;
    atomic_store(&listens, true);
}

void tern_on_warning(tern_warning_handler handler, void *user)
{
    tern_call_once(&once, read_environment);
    tern_mutex_lock(&lock);
    warnings.call = handler ? handler : standard;
    warnings.user = user;
    memset(warnings.seen, 0, sizeof warnings.seen);
    warnings.count = 0;
    atomic_store(&listens, warnings.call != NULL);
    tern_mutex_unlock(&lock);
}

bool tern_warns(void)
{
    tern_call_once(&once, read_environment);
    return atomic_load_explicit(&listens, memory_order_relaxed) && !tern_thread.in_warning;
}

static uint64_t place_of(const char *kind, const char *operation, const char *format)
{
    uint64_t place = tern_hash(TERN_HASH_SEED, kind, strlen(kind) + 1);
    const tern_running *running = &tern_thread.running;
    place = tern_hash(place, operation, strlen(operation) + 1);
    if (running->at.file)
        place = tern_hash(place, running->at.file, strlen(running->at.file) + 1);
    place = tern_hash(place, &running->at.line, sizeof running->at.line);
    return tern_hash(place, format, strlen(format)) | 1;
}

/* Records a warning's place, and returns whether it was new. If the table is nearly full, no more
 * warnings are reported: a warning that cannot be recorded would be reported each time. */
static bool is_new(uint64_t place)
{
    size_t i = place % PLACES;
    for (; warnings.seen[i]; i = (i + 1) % PLACES)
        if (warnings.seen[i] == place)
            return false;
    if (warnings.count == MOST_PLACES)
        return false;
    warnings.seen[i] = place;
    warnings.count++;
    return true;
}

void tern_warn(const char *kind, const char *operation, const char *format, ...)
{
    if (strcmp(kind, "slow") == 0)
        tern_count_fallback(operation);
    if (!tern_warns())
        return;
    tern_mutex_lock(&lock);
    bool wanted = is_new(place_of(kind, operation, format));
    tern_warning_handler call = warnings.call;
    void *user = warnings.user;
    tern_mutex_unlock(&lock);
    if (!wanted || !call)
        return;
    char reason[TEXT_BYTES], text[TEXT_BYTES + 256];
    const tern_running *running = &tern_thread.running;
    va_list args;
    va_start(args, format);
    vsnprintf(reason, sizeof reason, format, args);
    va_end(args);
    tern_text_unsign_nan(reason, reason);
    if (running->at.file)
        snprintf(text, sizeof text, "%s: %s (%s:%d)", operation, reason, running->at.file,
                 running->at.line);
    else
        snprintf(text, sizeof text, "%s: %s", operation, reason);
    TERN_UNNAMED_IN_ERRORS;
    tern_thread.in_warning = true;
    call(kind, text, user);
    tern_thread.in_warning = false;
}
