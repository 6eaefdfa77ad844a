/* scope.c -- who releases a new tensor: a scope is a mark on a thread's stack of tensors. */
#include "base/thread.h"
#include "base/thread_end.h"
#include "base/warning.h"
#include "device/device.h"
#include "tensor/header.h"
#include "tensor/scope.h"

enum { ROOT_IS_LARGE = 10000 };

/* Takes a pointer, because each access to a thread-local variable is a function call. */
static __attribute__((noinline)) void release_down_to(tern_scope_stack *s, size_t mark)
{
    tern_headers ended = {.count = 0};
    while (s->count > mark)
        tern_release_into(s->items[--s->count], &ended);
    if (ended.count)
        tern_released(s->headers, &ended);
}

/* Records which scope ends, so that errors about tensors freed here name it. */
static __attribute__((noinline)) void release_and_report(tern_scope_stack *s, int depth)
{
    static const tern_scope_place root = {.number = 0};
    const tern_scope_place *outer = tern_thread.ending;
    tern_thread.ending = depth == 0 ? &root : s->place ? &s->place[depth] : NULL;
    release_down_to(s, s->mark[depth]);
    tern_thread.ending = outer;
}

static void release_from(tern_scope_stack *s, int depth)
{
    if (tern_debugging)
        release_and_report(s, depth);
    else
        release_down_to(s, s->mark[depth]);
}

/* Called at the end of the thread. */
static void drain(void)
{
    tern_scope_stack *s = &tern_thread.scopes;
    release_from(s, 0);
    tern_free(s->items);
    tern_free(s->place);
    s->items = NULL;
    s->place = NULL;
    s->capacity = 0;
}

static __attribute__((noinline)) bool grow(tern_scope_stack *s)
{
    size_t capacity = s->capacity ? 2 * s->capacity : 256;
    tern_tensor **items = tern_grow(s->items, capacity * sizeof *items);
    if (!items)
        return false;
    s->items = items;
    s->capacity = capacity;
    s->headers = &tern_thread.headers;
    tern_at_thread_end(&tern_thread.scopes_end, drain);
    return true;
}

static bool reserve(tern_scope_stack *s, size_t n)
{
    return s->count + n <= s->capacity || grow(s);
}

tern_status tern_scope_reserve(int n)
{
    return reserve(&tern_thread.scopes, (size_t)n) ? TERN_OK : TERN_ERR_MEMORY;
}

/* ---- debugging --------------------------------------------------------------------------- */

/* Records where a scope was opened. module: the kind of the module whose call opened it; NULL: the
 * program did. Scopes of calls have no number and no depth: the program does not see them. */
static __attribute__((noinline)) void note_opened(tern_scope_stack *s, const char *module)
{
    if (!s->place && !(s->place = tern_alloc(TERN_SCOPE_DEPTH * sizeof *s->place)))
        return;
    const int around = s->depth > 1 ? s->place[s->depth - 1].depth : 0;
    s->place[s->depth] = (tern_scope_place){.number = module ? s->opened : ++s->opened,
                                            .depth = module ? around : around + 1,
                                            .module = module,
                                            .file = tern_thread.running.at.file,
                                            .line = tern_thread.running.at.line};
}

/* Warns of a large root scope: a training loop without a scope keeps all tensors it creates. */
static __attribute__((noinline)) void watch_root(const tern_scope_stack *s, const tern_tensor *x)
{
    if (s->depth == 0 && s->count == ROOT_IS_LARGE)
        tern_warn("scope", "tern_scope_clear",
                  "the root scope holds %d tensors and grows (the newest is made by %s): what is "
                  "made outside of TERN_SCOPE { } stays until tern_scope_clear() or the end of the "
                  "thread",
                  ROOT_IS_LARGE, x->handle.about ? x->handle.about : "tern");
}

/* ---- scopes ------------------------------------------------------------------------------ */

tern_tensor *tern_scoped(tern_tensor *x)
{
    tern_scope_stack *s = &tern_thread.scopes;
    if (!x)
        return NULL;
    if (!reserve(s, 1)) {
        tern_release(x);
        return NULL;
    }
    if (tern_debugging)
        watch_root(s, x);
    return s->items[s->count++] = x;
}

static tern_scope_block enter(tern_scope_stack *s, const char *module)
{
    s->mark[++s->depth] = s->count;
    if (tern_debugging)
        note_opened(s, module);
    return (tern_scope_block){.active = 1, .depth = s->depth, .mark = s->count};
}

tern_scope_block tern_scope_enter(void)
{
    if (tern_thread.scopes.depth + 1 < TERN_SCOPE_DEPTH)
        return enter(&tern_thread.scopes, NULL);
    tern_fail(TERN_ERR_STATE, "TERN_SCOPE: more than %d scopes are open", TERN_SCOPE_DEPTH - 1);
    /* The outer scope owns the tensors that are created inside. */
    return (tern_scope_block){.active = 1, .depth = -1};
}

static bool leave(tern_scope_stack *s, const tern_scope_block *block)
{
    if (block->depth <= 0 || block->depth > s->depth)
        return false;
    release_from(s, block->depth);
    s->depth = block->depth - 1;
    return true;
}

void tern_scope_leave(tern_scope_block *block)
{
    if (leave(&tern_thread.scopes, block))
        tern_flush(); /* a scope is often a step: its commands are submitted */
}

/* Moves x from scope `depth`, if that scope owns it, to the outer scope. */
static void escape(tern_scope_stack *s, int depth, tern_tensor *x)
{
    /* x is swapped with the first tensor of the scope, and the scope then begins after x. */
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
    return tern_thread.scopes.depth + 1 < TERN_SCOPE_DEPTH
               ? enter(&tern_thread.scopes, module)
               : (tern_scope_block){.active = 1, .depth = -1};
}

void tern_call_scope_leave(tern_scope_block *block, tern_tensor *const *out, int k)
{
    tern_scope_stack *s = &tern_thread.scopes;
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
    if (tern_thread.scopes.depth > 0)
        escape(&tern_thread.scopes, tern_thread.scopes.depth, x);
    return x;
}

void tern_scope_clear(void)
{
    release_from(&tern_thread.scopes, tern_thread.scopes.depth);
}
