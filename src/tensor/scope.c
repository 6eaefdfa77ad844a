/* scope.c -- who releases a new tensor: a stack of tensors a thread, scopes are marks on it. */
#include "tensor/tensor.h"
#include <pthread.h>
#include <string.h>

enum { MAX_DEPTH = 1024 };

static _Thread_local struct {
    tern_tensor **items;
    size_t count, capacity;
    size_t mark[MAX_DEPTH]; /* where each open scope begins; mark[0] is the root's */
    int depth;
    bool watched; /* this thread's end drains the root */
} scopes;

static pthread_key_t at_thread_end;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void release_down_to(size_t mark)
{
    while (scopes.count > mark)
        tern_release(scopes.items[--scopes.count]);
}

static void drain(void *unused)
{
    (void)unused;
    release_down_to(0);
    tern_free(scopes.items);
    scopes.items = NULL;
    scopes.capacity = 0;
}

static bool key_is_made;

static void make_key(void)
{
    key_is_made = pthread_key_create(&at_thread_end, drain) == 0;
}

/* The library may be unloaded, within a module that it is linked into, while threads that used it
 * live: at their end nothing of it can be called. (The shared library stays: -z nodelete.) */
__attribute__((destructor)) static void delete_key(void)
{
    if (key_is_made)
        pthread_key_delete(at_thread_end);
}

static bool reserve(size_t n)
{
    if (scopes.count + n <= scopes.capacity)
        return true;
    size_t capacity = scopes.capacity ? 2 * scopes.capacity : 256;
    tern_tensor **items = tern_grow(scopes.items, capacity * sizeof *items);
    if (!items)
        return false;
    scopes.items = items;
    scopes.capacity = capacity;
    if (!scopes.watched) {
        pthread_once(&once, make_key);
        if (key_is_made)
            pthread_setspecific(at_thread_end, &scopes);
        scopes.watched = true;
    }
    return true;
}

tern_status tern_scope_reserve(int n)
{
    return reserve((size_t)n) ? TERN_OK : TERN_ERR_MEMORY;
}

tern_tensor *tern_scoped(tern_tensor *x)
{
    if (!x)
        return NULL;
    if (!reserve(1)) {
        tern_release(x);
        return NULL;
    }
    return scopes.items[scopes.count++] = x;
}

tern_scope_block tern_scope_enter(void)
{
    tern_scope_block block = {.active = 1};
    if (scopes.depth + 1 >= MAX_DEPTH) {
        tern_fail(TERN_ERR_STATE, "TERN_SCOPE: more than %d scopes are open", MAX_DEPTH - 1);
        block.depth = -1; /* what is made inside belongs to the scope around */
        return block;
    }
    scopes.mark[++scopes.depth] = scopes.count;
    block.depth = scopes.depth;
    block.mark = scopes.count;
    return block;
}

void tern_scope_leave(tern_scope_block *block)
{
    if (block->depth <= 0 || block->depth > scopes.depth)
        return;
    release_down_to(scopes.mark[block->depth]);
    scopes.depth = block->depth - 1;
}

tern_tensor *tern_escape(tern_tensor *x)
{
    if (!x || scopes.depth == 0)
        return x;
    /* Swap it to the scope's beginning and begin the scope after it. */
    size_t *mark = &scopes.mark[scopes.depth];
    for (size_t i = scopes.count; i > *mark; i--)
        if (scopes.items[i - 1] == x) {
            scopes.items[i - 1] = scopes.items[*mark];
            scopes.items[*mark] = x;
            (*mark)++;
            break;
        }
    return x;
}

void tern_scope_clear(void)
{
    release_down_to(scopes.depth == 0 ? 0 : scopes.mark[scopes.depth]);
}
