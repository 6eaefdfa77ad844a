/* ending.h -- the end of the process. Libraries that were opened at run time, such as a driver's
 * compiler, run their destructors while other threads run: before that, all threads must have left
 * these libraries, and none may enter one again. */
#ifndef TERN_BASE_ENDING_H
#define TERN_BASE_ENDING_H
#include "base/error.h"
#include "base/lock.h"

/* Enclose calls of such a library; they nest. At the end of the process the outermost enter does
 * not return, so it must not be called with a lock held that a handler of the program may need. */
void tern_foreign_enter(void);
void tern_foreign_leave(void);
/* Locks a mutex within enter and leave. Its owner may be inside a library, or end the process from
 * a handler that the library calls, so a thread that waits counts as outside. */
void tern_foreign_lock(tern_mutex *lock);
/* Enclose a call, between enter and leave, that may compile or load code: the library may register
 * handlers meanwhile, which exit() would call before handlers that were registered earlier. */
void tern_foreign_compile_begin(void);
void tern_foreign_compile_end(void);

/* Called after a library was opened, so that its destructors run after the functions here. */
void tern_foreign_loaded(void);

/* A function that runs at the end of the process, before threads are stopped. Each runs once; the
 * last one registered runs first. */
typedef struct tern_ending {
    void (*run)(void);
    bool after; /* called after all threads have left the libraries */
    bool registered;
    struct tern_ending *next;
} tern_ending;
void tern_at_ending(tern_ending *ending);

/* Returns whether the end has begun: threads of the library may never return then. */
bool tern_is_ending(void);
/* For destructors: returns whether a plugin that contains the library is being unloaded while the
 * process continues, so that everything the library allocated must be freed. */
bool tern_is_unloading(void);

#endif
