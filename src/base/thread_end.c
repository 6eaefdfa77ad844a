/* thread_end.c -- functions that are called when a thread ends. */
#include "base/thread_end.h"
#include "base/ending.h"
#include "base/os.h"

/* A function in the list may register others, or itself again. */
static void run_all(void)
{
    while (tern_thread.ends) {
        tern_thread_end *end = tern_thread.ends;
        tern_thread.ends = end->next;
        end->waits = false;
        end->run();
    }
}

/* If the library is linked into a plugin that is unloaded, threads that used it may still run: at
 * their end no function of it can be called. (The shared library stays: -z nodelete.) */
__attribute__((destructor)) static void forget_ends(void)
{
    tern_os_forget_thread_end();
    if (tern_is_unloading()) /* the thread that unloads the plugin frees what it keeps */
        run_all();
}

void tern_at_thread_end(tern_thread_end *end, void (*run)(void))
{
    if (end->waits)
        return;
    *end = (tern_thread_end){.run = run, .waits = true, .next = tern_thread.ends};
    tern_thread.ends = end;
    tern_os_at_thread_end(run_all);
}
