/* ending.h -- the end of the process. Libraries that were opened at run time, a driver's compiler
 * among them, are torn down while other threads run: none of these is inside one by then, and none
 * enters one any more. */
#ifndef TERN_BASE_ENDING_H
#define TERN_BASE_ENDING_H
#include "base/error.h"
#include "base/lock.h"

/* Around what calls such a library; they nest. Where the process ends, the outermost enter does not
 * return: call it before a lock is taken that a handler of the program's could want. */
void tern_foreign_enter(void);
void tern_foreign_leave(void);
/* Takes a lock within enter and leave, with which another thread may be in a library, or end the
 * process from a handler that the library calls: who waits for it counts as outside meanwhile. */
void tern_foreign_lock(tern_mutex *lock);
/* Around a call that may compile or load something: the library may register handlers of its own
 * meanwhile, which exit() would call before those that were registered earlier. Within enter and
 * leave. */
void tern_foreign_compile_begin(void);
void tern_foreign_compile_end(void);

/* A library was opened: its destructors come after what is done here. */
void tern_foreign_loaded(void);

/* What is done when the process ends, before threads are held: the last that was registered first,
 * each once. */
typedef struct tern_ending {
    void (*run)(void);
    bool after; /* when no thread is inside a library any more */
    bool registered;
    struct tern_ending *next;
} tern_ending;
void tern_at_ending(tern_ending *ending);

/* Whether that has begun: threads of the library's may never come back. */
bool tern_is_ending(void);
/* Whether a destructor that asks is called because a plugin is unloaded which the library is linked
 * into, while the process goes on: all that the library took is given back. */
bool tern_is_unloading(void);

#endif
