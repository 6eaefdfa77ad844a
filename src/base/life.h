/* life.h -- weak references. A scheduler may outlive its optimizer, or a graph the module whose
 * hooks it calls: they hold a reference to the object's tern_life, which outlives the object and
 * returns NULL after its end. */
#ifndef TERN_BASE_LIFE_H
#define TERN_BASE_LIFE_H
#include <stdatomic.h>

typedef struct tern_life tern_life;

/* Returns a new reference to the life of object, which stores its life in *own; the first call
 * creates the life. NULL after TERN_ERR_MEMORY. */
tern_life *tern_life_of(_Atomic(tern_life *) *own, void *object);
/* Returns the object; NULL after its end. */
void *tern_life_object(tern_life *life);
/* Releases a reference; NULL is fine. */
void tern_life_release(void *life);
/* Ends the life in *own, which the object calls when it is freed. */
void tern_life_end(_Atomic(tern_life *) *own);

#endif
