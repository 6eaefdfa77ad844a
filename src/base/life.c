/* life.c -- weak references (life.h). */
#include "base/life.h"
#include "base/memory.h"

struct tern_life {
    atomic_int refs; /* the object has one of these references */
    _Atomic(void *) object;
};

tern_life *tern_life_of(_Atomic(tern_life *) *own, void *object)
{
    tern_life *life = atomic_load(own);
    if (!life) {
        tern_life *made = tern_alloc(sizeof *made);
        if (!made)
            return NULL;
        atomic_init(&made->refs, 1);
        atomic_init(&made->object, object);
        if (atomic_compare_exchange_strong(own, &life, made))
            life = made;
        else
            tern_free(made); /* another thread created it first */
    }
    atomic_fetch_add_explicit(&life->refs, 1, memory_order_relaxed);
    return life;
}

void *tern_life_object(tern_life *life)
{
    return atomic_load(&life->object);
}

void tern_life_release(void *life)
{
    tern_life *l = life;
    if (l && atomic_fetch_sub_explicit(&l->refs, 1, memory_order_acq_rel) == 1)
        tern_free(l);
}

void tern_life_end(_Atomic(tern_life *) *own)
{
    tern_life *life = atomic_exchange(own, NULL);
    if (life)
        atomic_store(&life->object, NULL);
    tern_life_release(life);
}
