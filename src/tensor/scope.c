/* scope.c -- who releases a new tensor: a stack of tensors a thread, scopes are marks on it. */
#include "base/thread.h"
#include "base/thread_end.h"
#include "base/warning.h"
#include "device/device.h"
#include "tensor/header.h"
#include "tensor/scope.h"

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

/* module: the kind of the module whose call the scope is of; NULL: a scope of the program's. The calls' scopes have
 * no number and no depth of their own, as the program does not see them. */
static __attribute__((noinline)) void note_opened(stack *s, const char *module)
{
    if (!s->place && !(s->place = tern_alloc(MAX_DEPTH * sizeof *s->place)))
        return;
    const int around = s->depth > 1 ? s->place[s->depth - 1].depth : 0;
    s->place[s->depth] = (tern_scope_place){.number = module ? s->opened : ++s->opened,
                                            .depth = module ? around : around + 1,
                                            .module = module,
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

static tern_scope_block enter(stack *s, const char *module)
{
    s->mark[++s->depth] = s->count;
    if (tern_debugging)
        note_opened(s, module);
    return (tern_scope_block){.active = 1, .depth = s->depth, .mark = s->count};
}

tern_scope_block tern_scope_enter(void)
{
    if (scopes.depth + 1 < MAX_DEPTH)
        return enter(&scopes, NULL);
    tern_fail(TERN_ERR_STATE, "TERN_SCOPE: more than %d scopes are open", MAX_DEPTH - 1);
    /* What is made inside belongs to the scope around. */
    return (tern_scope_block){.active = 1, .depth = -1};
}

static bool leave(stack *s, const tern_scope_block *block)
{
    if (block->depth <= 0 || block->depth > s->depth)
        return false;
    release_from(s, block->depth);
    s->depth = block->depth - 1;
    return true;
}

void tern_scope_leave(tern_scope_block *block)
{
    if (leave(&scopes, block))
        tern_flush(); /* the end of a step, or of what was wanted */
}

/* Hand x from scope `depth`, if it is that scope's, to the scope around. */
static void escape(stack *s, int depth, tern_tensor *x)
{
    /* Swap it to the scope's beginning and begin the scope after it. */
    size_t *mark = &s->mark[depth];
    for (size_t i = s->count; i > *mark; i--)
        if (s->items[i - 1] == x) {
            s->items[i - 1] = s->items[*mark];
            s->items[*mark] = x;
            (*mark)++;
            break;
        }
}

tern_scope_block tern_call_scope_enter(const char *module)
{
    return scopes.depth + 1 < MAX_DEPTH ? enter(&scopes, module)
                                        : (tern_scope_block){.active = 1, .depth = -1};
}

void tern_call_scope_leave(tern_scope_block *block, tern_tensor *const *out, int k)
{
    stack *s = &scopes;
    for (int i = 0; i < k && block->depth > 0 && block->depth <= s->depth; i++)
        if (out[i])
            escape(s, block->depth, out[i]);
    leave(s, block);
}

tern_tensor *tern_call_scope_next(tern_scope_block *block, tern_tensor *result, tern_tensor *before)
{
    tern_tensor *held = result ? tern_keep(result) : NULL;
    tern_call_scope_leave(block, NULL, 0);
    tern_release(before);
    return held;
}

tern_tensor *tern_escape(tern_tensor *x)
{
    if (!x || !tern_given(x, "tern_escape", "x"))
        return NULL;
    if (scopes.depth > 0)
        escape(&scopes, scopes.depth, x);
    return x;
}

void tern_scope_clear(void)
{
    release_from(&scopes, scopes.depth);
}
