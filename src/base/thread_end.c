/* thread_end.c -- functions that are called when a thread ends. */
#include "base/thread_end.h"
#include "base/ending.h"
#include <pthread.h>
#include <stddef.h>

static pthread_key_t key;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static bool key_is_made;

/* What one of them does may ask for another, or itself. */
static void run_all(void *unused)
{
    (void)unused;
    while (tern_thread.ends) {
        tern_thread_end *end = tern_thread.ends;
        tern_thread.ends = end->next;
        end->waits = false;
        end->run();
    }
}

static void make_key(void)
{
    key_is_made = pthread_key_create(&key, run_all) == 0;
}

/* The library may be unloaded, within a module that it is linked into, while threads that used it
 * live: at their end nothing of it can be called. (The shared library stays: -z nodelete.) */
__attribute__((destructor)) static void delete_key(void)
{
    if (key_is_made)
        pthread_key_delete(key);
    if (tern_is_unloading()) /* what the thread that unloads it kept */
        run_all(NULL);
}

void tern_at_thread_end(tern_thread_end *end, void (*run)(void))
{
    if (end->waits)
        return;
    pthread_once(&once, make_key);
    *end = (tern_thread_end){.run = run, .waits = true, .next = tern_thread.ends};
    tern_thread.ends = end;
    if (key_is_made)
        pthread_setspecific(key, &tern_thread.ends);
}
