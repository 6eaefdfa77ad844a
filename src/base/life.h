/* life.h -- objects that others outlive: a scheduler its optimizer, a graph the module whose hooks
 * it calls. They hold the object's life instead of the object, and ask it whether there still is
 * one. */
#ifndef TERN_BASE_LIFE_H
#define TERN_BASE_LIFE_H
#include <stdatomic.h>

typedef struct tern_life tern_life;

/* The life of object, which keeps it in *own, made when somebody first asks; a reference. NULL
 * after TERN_ERR_MEMORY. */
tern_life *tern_life_of(_Atomic(tern_life *) *own, void *object);
/* The object; NULL after its end. */
void *tern_life_object(tern_life *life);
/* Give up a reference; NULL is allowed. */
void tern_life_release(void *life);
/* The object in whose *own it is ends. */
void tern_life_end(_Atomic(tern_life *) *own);

#endif
