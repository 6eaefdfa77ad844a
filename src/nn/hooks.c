/* hooks.c -- hooks: functions of the program that are called around a module's run and its backward
 * pass.
 *
 * A module with backward hooks runs between two autograd functions that are identities in the
 * forward pass. In the backward pass the one after it receives the gradients of the module's
 * outputs, the one before it those of its inputs, and they call the hooks. */
#include "base/callback.h"
#include "base/memory.h"
#include "base/thread.h"
#include "nn/module.h"
#include <stdatomic.h>

/* ---- list of hooks --------------------------------------------------------------------------- */

/* Appends a hook, so that hooks are called in the order of registration. Returns its id, or 0 after
 * an error. */
static int add_hook(tern_module *m, tern_module_hook_entry entry, bool there, const char *function)
{
    TERN_MODULE_GIVEN(m, function);
    if (!m || !there) {
        tern_fail_argument_null(function, m ? "hook" : "m");
        return 0;
    }
    tern_module_hook_entry *hook = tern_alloc(sizeof *hook);
    if (!hook)
        return 0;
    *hook = entry;
    hook->id = ++m->last_hook;
    tern_module_hook_entry **end = &m->hooks;
    while (*end)
        end = &(*end)->next;
    *end = hook;
    return hook->id;
}

int tern_nn_register_forward_pre_hook(tern_module *m, tern_module_forward_pre_hook hook, void *user)
{
    tern_module_hook_entry entry = {
        .kind = HOOK_FORWARD_PRE, .call.forward_pre = hook, .user = user};
    return add_hook(m, entry, hook, "tern_nn_register_forward_pre_hook");
}

int tern_nn_register_forward_hook(tern_module *m, tern_module_forward_hook hook, void *user)
{
    tern_module_hook_entry entry = {.kind = HOOK_FORWARD, .call.forward = hook, .user = user};
    return add_hook(m, entry, hook, "tern_nn_register_forward_hook");
}

int tern_nn_register_full_backward_pre_hook(tern_module *m, tern_module_backward_pre_hook hook,
                                            void *user)
{
    tern_module_hook_entry entry = {
        .kind = HOOK_BACKWARD_PRE, .call.backward_pre = hook, .user = user};
    return add_hook(m, entry, hook, "tern_nn_register_full_backward_pre_hook");
}

int tern_nn_register_full_backward_hook(tern_module *m, tern_module_backward_hook hook, void *user)
{
    tern_module_hook_entry entry = {.kind = HOOK_BACKWARD, .call.backward = hook, .user = user};
    return add_hook(m, entry, hook, "tern_nn_register_full_backward_hook");
}

tern_status tern_nn_remove_hook(tern_module *m, int id)
{
    TERN_MODULE_GIVEN(m, "tern_nn_remove_hook");
    if (!m)
        return tern_fail_argument_null("tern_nn_remove_hook", "m");
    for (tern_module_hook_entry **h = &m->hooks; *h; h = &(*h)->next)
        if ((*h)->id == id) {
            tern_module_hook_entry *gone = *h;
            *h = gone->next;
            tern_free(gone);
            return TERN_OK;
        }
    return tern_fail(TERN_ERR_ARGUMENT, "tern_nn_remove_hook: %s has no hook %d", m->name, id);
}

void tern_nn_free_hooks(tern_module *m)
{
    while (m->hooks)
        tern_nn_remove_hook(m, m->hooks->id);
}

/* An iteration over the hooks of a kind that were registered when it began. It has a copy of the
 * current hook, as a hook may remove any hook, also itself. */
typedef struct turn {
    tern_module_hook_entry hook; /* the current hook */
    int last;
} turn;

static turn start_iteration(const tern_module *m)
{
    return (turn){.last = m ? m->last_hook : 0};
}

/* Sets t->hook to the next hook: ids increase along the list, so it is the first with a larger id.
 * Returns false at the end. */
static bool next_hook(turn *t, const tern_module *m, tern_hook_kind kind)
{
    for (const tern_module_hook_entry *h = m ? m->hooks : NULL; h && h->id <= t->last; h = h->next)
        if (h->id > t->hook.id && h->kind == kind) {
            t->hook = *h;
            return true;
        }
    return false;
}

/* ---- backward ---------------------------------------------------------------------------- */

/* One run of a module; its two autograd functions share the struct. */
typedef struct pass {
    tern_after_backward end; /* must be the first member; it is registered once at a time */
    bool waits;
    atomic_int refs;
    tern_life *module; /* may be freed, with its hooks, before the backward pass */
    int n, k;
    int *at;                /* for each input, its index among those that are not NULL, or -1 if it
                               is NULL */
    bool inputs_seen;       /* an input requires a gradient */
    tern_tensor **grad_out; /* k gradients of the outputs, kept until those of the inputs have
                               arrived */
} pass;

/* Releases the output gradients; the input gradients have arrived. */
static void release_gradients(pass *p)
{
    for (int i = 0; i < p->k; i++) {
        tern_release(p->grad_out[i]);
        p->grad_out[i] = NULL;
    }
}

/* Each of the two functions has a reference, and the graph may free them in any order. */
static void release_pass(void *data)
{
    pass *p = data;
    if (atomic_fetch_sub(&p->refs, 1) > 1)
        return;
    release_gradients(p);
    tern_life_release(p->module);
    tern_free(p->at);
    tern_free(p->grad_out);
    tern_free(p);
}

/* Releases the gradients at the end of a backward pass, also one that ended early or never reached
 * the function before the module: recorded gradients would keep the graph alive that keeps them. */
static tern_status backward_ended(tern_after_backward *end, tern_status status)
{
    pass *p = (pass *)end;
    p->waits = false;
    release_gradients(p);
    release_pass(p);
    return status;
}

static void wait_for_end(pass *p)
{
    p->end.call = backward_ended;
    if (p->waits || !tern_await_backward(&p->end))
        return;
    p->waits = true;
    atomic_fetch_add(&p->refs, 1);
}

/* The forward of both functions: the identity. */
static tern_status same(tern_function *f, tern_tensor *const *in, int n, tern_tensor **out, int k)
{
    (void)f;
    (void)n;
    for (int i = 0; i < k; i++)
        out[i] = in[i];
    return TERN_OK;
}

static tern_status call_backward(pass *p, tern_tensor **grad_in)
{
    tern_module *m = tern_life_object(p->module);
    for (turn t = start_iteration(m); next_hook(&t, m, HOOK_BACKWARD);
         m = tern_life_object(p->module))
        TERN_TRY(t.hook.call.backward(m, grad_in, p->n, p->grad_out, p->k, t.hook.user));
    return TERN_OK;
}

/* The backward of the function after the module: calls the pre-hooks, which may replace gradients,
 * and keeps the result for the backward hooks. If no input requires a gradient, the other
 * function's backward is not called, so the backward hooks are called here. */
static tern_status behind(tern_function *f, tern_tensor *const *grad_out, int k,
                          tern_tensor **grad_in, int n)
{
    pass *p = tern_function_data(f);
    (void)n;
    for (int i = 0; i < k; i++)
        grad_in[i] = grad_out[i];
    tern_module *m = tern_life_object(p->module);
    for (turn t = start_iteration(m); next_hook(&t, m, HOOK_BACKWARD_PRE);
         m = tern_life_object(p->module))
        TERN_TRY(t.hook.call.backward_pre(m, grad_in, k, t.hook.user));
    release_gradients(p);
    wait_for_end(p);
    for (int i = 0; i < k; i++)
        p->grad_out[i] = tern_keep(grad_in[i]);
    if (p->inputs_seen)
        return TERN_OK;
    tern_tensor *none[p->n + 1];
    for (int i = 0; i < p->n; i++)
        none[i] = NULL;
    return call_backward(p, none);
}

/* The backward of the function before the module: calls the hooks with a gradient for each input,
 * NULL for absent ones; they may replace gradients. */
static tern_status before(tern_function *f, tern_tensor *const *grad_out, int k,
                          tern_tensor **grad_in, int n)
{
    pass *p = tern_function_data(f);
    tern_tensor *all[p->n];
    (void)k;
    (void)n;
    for (int i = 0; i < p->n; i++)
        all[i] = p->at[i] >= 0 ? grad_out[p->at[i]] : NULL;
    tern_status status = call_backward(p, all);
    for (int i = 0; i < p->n; i++)
        if (p->at[i] >= 0)
            grad_in[p->at[i]] = all[i];
    release_gradients(p);
    return status;
}

static const tern_function_type before_type = {
    .name = "BackwardHookFunction", .forward = same, .backward = before, .free_data = release_pass};
static const tern_function_type behind_type = {
    .name = "BackwardHookFunction", .forward = same, .backward = behind, .free_data = release_pass};

static pass *new_pass(tern_module *m, tern_tensor *const *in, int n, int k)
{
    pass *p = tern_alloc(sizeof *p);
    tern_tensor **grad_out = p ? tern_alloc(sizeof *grad_out * (size_t)k) : NULL;
    int *at = grad_out ? tern_alloc(sizeof *at * (size_t)n) : NULL;
    tern_life *life = at ? tern_life_of(&m->life, m) : NULL;
    if (!life) {
        tern_free(at);
        tern_free(grad_out);
        tern_free(p);
        return NULL;
    }
    atomic_init(&p->refs, 2);
    p->module = life;
    p->n = n;
    p->k = k;
    p->at = at;
    p->grad_out = grad_out;
    for (int i = 0, next = 0; i < n; i++) {
        p->at[i] = in[i] ? next++ : -1;
        p->inputs_seen = p->inputs_seen || tern_requires_grad(in[i]);
    }
    return p;
}

/* ---- running ----------------------------------------------------------------------------- */

/* Returns whether m needs the two functions. */
static bool has_backward_hooks(const tern_module *m)
{
    if (!tern_is_grad_enabled())
        return false;
    for (const tern_module_hook_entry *h = m->hooks; h; h = h->next)
        if (h->kind == HOOK_BACKWARD || h->kind == HOOK_BACKWARD_PRE)
            return true;
    return false;
}

tern_status tern_nn_check_result(const tern_module *m, tern_tensor *const *out, int k,
                                 uint64_t failures)
{
    for (int i = 0; i < k; i++)
        if (!out[i])
            return tern_failed_since(failures) != TERN_OK
                       ? tern_failed_since(failures)
                       : tern_fail(TERN_ERR_ARGUMENT,
                                   "tern_nn_call: %s gave no tensor (output %d of %d is NULL)",
                                   m->name, i, k);
    return TERN_OK;
}

/* Runs m between the two functions. The first has no absent inputs. */
static tern_status run_between(tern_module *m, tern_module_run run, tern_tensor *const *in, int n,
                               tern_tensor **out, int k)
{
    if (n < 1 || k < 1 || !has_backward_hooks(m))
        return run(m, in, n, out, k);
    const uint64_t failures = tern_failures();
    pass *p = new_pass(m, in, n, k);
    if (!p)
        return TERN_ERR_MEMORY;
    tern_tensor *there[n], *seen[n], *made[k];
    int n_there = 0;
    for (int i = 0; i < k; i++)
        made[i] = NULL;
    for (int i = 0; i < n; i++)
        if (in[i])
            there[n_there++] = in[i];
    tern_status status = TERN_OK;
    if (n_there)
        status = tern_function_apply(&before_type, p, there, n_there, seen, n_there);
    else
        release_pass(p);
    tern_tensor *given[n];
    for (int i = 0; i < n; i++)
        given[i] = p->at[i] >= 0 ? seen[p->at[i]] : NULL;
    if (status == TERN_OK)
        status = run(m, given, n, made, k);
    if (status == TERN_OK)
        status = tern_nn_check_result(m, made, k, failures);
    if (status != TERN_OK) {
        release_pass(p);
        return status;
    }
    return tern_function_apply(&behind_type, p, made, k, out, k);
}

static tern_status run_pre_hook(const turn *t, tern_module *m, tern_tensor **in, int n)
{
    const tern_callback before = tern_callback_begin();
    tern_status status = t->hook.call.forward_pre(m, in, n, t->hook.user);
    return TERN_CALLBACK_END(&before, status, "tern_nn_call: a hook of %s failed", m->name);
}

static tern_status run_hook(const turn *t, tern_module *m, tern_tensor *const *in, int n,
                            tern_tensor **out, int k)
{
    const tern_callback before = tern_callback_begin();
    tern_status status = t->hook.call.forward(m, in, n, out, k, t->hook.user);
    return TERN_CALLBACK_END(&before, status, "tern_nn_call: a hook of %s failed", m->name);
}

tern_status tern_nn_run_hooked(tern_module *m, tern_module_run run, tern_tensor *const *in, int n,
                               tern_tensor **out, int k)
{
    const uint64_t failures = tern_failures();
    tern_tensor *given[n > 0 ? n : 1];
    for (int i = 0; i < n; i++)
        given[i] = in[i];
    for (turn t = start_iteration(m); next_hook(&t, m, HOOK_FORWARD_PRE);)
        TERN_TRY(run_pre_hook(&t, m, given, n));
    TERN_TRY(run_between(m, run, given, n, out, k));
    TERN_TRY(tern_nn_check_result(m, out, k, failures));
    for (turn t = start_iteration(m); next_hook(&t, m, HOOK_FORWARD);)
        TERN_TRY(run_hook(&t, m, given, n, out, k));
    return tern_failed_since(failures);
}
