/* scope.c -- who releases a new tensor: a stack of tensors a thread, scopes are marks on it. */
#include "base/thread.h"
#include "base/thread_end.h"
#include "base/warning.h"
#include "tensor/tensor.h"

enum { MAX_DEPTH = 1024, ROOT_IS_LARGE = 10000 };

typedef struct stack {
    tern_tensor **items;
    size_t count, capacity;
    size_t mark[MAX_DEPTH]; /* where each open scope begins; mark[0] is the root's */
    int depth;
    tern_headers_kept *headers; /* this thread's, where there are items */
    int64_t opened;             /* while debugging */
    tern_scope_place *place;    /* of MAX_DEPTH open scopes, likewise; or NULL */
} stack;

static _Thread_local stack scopes;

static void drain(void);
static _Thread_local tern_thread_end end = {.run = drain};

/* With a pointer, because each look at a thread's variable takes a call. */
static __attribute__((noinline)) void release_down_to(stack *s, size_t mark)
{
    tern_headers ended = {.count = 0};
    while (s->count > mark)
        tern_release_into(s->items[--s->count], &ended);
    if (ended.count)
        tern_released(s->headers, &ended);
}

/* Errors about what ends in here tell of the scope that does. */
static __attribute__((noinline)) void release_and_tell(stack *s, int depth)
{
    static const tern_scope_place root = {.number = 0};
    const tern_scope_place *outer = tern_thread.ending;
    tern_thread.ending = depth == 0 ? &root : s->place ? &s->place[depth] : NULL;
    release_down_to(s, s->mark[depth]);
    tern_thread.ending = outer;
}

static void release_from(stack *s, int depth)
{
    if (tern_debugging)
        release_and_tell(s, depth);
    else
        release_down_to(s, s->mark[depth]);
}

/* At the end of the thread. */
static void drain(void)
{
    release_from(&scopes, 0);
    tern_free(scopes.items);
    tern_free(scopes.place);
    scopes.items = NULL;
    scopes.place = NULL;
    scopes.capacity = 0;
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
    scopes.headers = tern_headers_of_thread();
    tern_at_thread_end(&end);
    return true;
}

tern_status tern_scope_reserve(int n)
{
    return reserve((size_t)n) ? TERN_OK : TERN_ERR_MEMORY;
}

/* ---- debugging --------------------------------------------------------------------------- */

static __attribute__((noinline)) void note_opened(stack *s)
{
    if (!s->place && !(s->place = tern_alloc(MAX_DEPTH * sizeof *s->place)))
        return;
    s->place[s->depth] = (tern_scope_place){.number = ++s->opened,
                                            .depth = s->depth,
                                            .file = tern_thread.running.at.file,
                                            .line = tern_thread.running.at.line};
}

/* A training loop without a scope keeps all that it makes. */
static __attribute__((noinline)) void watch_root(const tern_tensor *x)
{
    if (scopes.depth == 0 && scopes.count == ROOT_IS_LARGE)
        tern_warn("scope", "tern_scope_clear",
                  "the root scope holds %d tensors and grows (the newest is made by %s): what is "
                  "made outside of TERN_SCOPE { } stays until tern_scope_clear() or the end of the "
                  "thread",
                  ROOT_IS_LARGE, x->handle.about ? x->handle.about : "tern");
}

/* ---- scopes ------------------------------------------------------------------------------ */

tern_tensor *tern_scoped(tern_tensor *x)
{
    if (!x)
        return NULL;
    if (!reserve(1)) {
        tern_release(x);
        return NULL;
    }
    if (tern_debugging)
        watch_root(x);
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
    if (tern_debugging)
        note_opened(&scopes);
    return block;
}

void tern_scope_leave(tern_scope_block *block)
{
    stack *s = &scopes;
    if (block->depth <= 0 || block->depth > s->depth)
        return;
    release_from(s, block->depth);
    s->depth = block->depth - 1;
    tern_flush(); /* the end of a step, or of what was wanted */
}

tern_tensor *tern_escape(tern_tensor *x)
{
    if (!x || !tern_given(x, "tern_escape", "x"))
        return NULL;
    if (scopes.depth == 0)
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
    release_from(&scopes, scopes.depth);
}
