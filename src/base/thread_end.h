/* thread_end.h -- what a thread keeps for itself ends with it. */
#ifndef TERN_BASE_THREAD_END_H
#define TERN_BASE_THREAD_END_H
#include <stdbool.h>

/* A variable of the thread's. */
typedef struct tern_thread_end {
    void (*run)(void);
    bool waits;
    struct tern_thread_end *next;
} tern_thread_end;

/* end->run is called when this thread ends, once; it may be asked for again after that. */
void tern_at_thread_end(tern_thread_end *end);

#endif
