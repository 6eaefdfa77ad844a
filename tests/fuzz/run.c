/* run.c -- one step: built, run, checked, and its results put into slots. */
#include "fuzz.h"
#include "base/memory.h"
#include "tensor/node.h"
#include <string.h>
#include <strings.h>

tern_tensor *fuzz_slots[FUZZ_SLOTS], *fuzz_results[FUZZ_RESULTS];
enum { MOST_ALLOCATIONS = 100 };
int fuzz_result_count, fuzz_next_slot;
bool fuzz_writes_inside;

/* A gradient that was recorded holds its leaf, which holds the gradient, and a tensor that was saved
 * for backward and then took up in place what came of it holds itself, as in PyTorch. What may be
 * one stays until the end, where such rings are cut. */
static tern_tensor *held[512];
static int held_count;

void fuzz_put(int slot, tern_tensor *x)
{
    tern_tensor *old = fuzz_slots[slot];
    fuzz_slots[slot] = x ? tern_keep(x) : NULL;
    if (old && (tern_requires_grad(old) || tern_grad(old)) && held_count < 512)
        held[held_count++] = old;
    else
        tern_release(old);
}

/* What made x, and what it looks into, is forgotten; tern_detach_ refuses views. */
static void cut(tern_tensor *x)
{
    tern_history *h = x->history;
    if (h && h->base)
        cut(h->base);
    if (!h || !h->node)
        return;
    tern_node *node = h->node;
    if (h->retains_grad)
        node->output[h->output].retainer = NULL;
    h->retains_grad = false;
    h->node = NULL;
    tern_node_release(node);
}

void fuzz_drop_all(void)
{
    while (fuzz_result_count > 0)
        tern_release(fuzz_results[--fuzz_result_count]);
    for (int i = 0; i < FUZZ_SLOTS; i++)
        fuzz_put(i, NULL);
    for (int i = 0; i < held_count; i++) {
        tern_set_grad(held[i], NULL);
        cut(held[i]);
    }
    while (held_count > 0)
        tern_release(held[--held_count]);
}

/* ---- building ----------------------------------------------------------------------------- */

void fuzz_step_begin(fuzz_step *step, const tern_named_op *op)
{
    step->op = op;
    step->n = 0;
    step->capacity = FUZZ_RESULTS;
}

fuzz_value *fuzz_add(fuzz_step *step, const char *name, tern_value_kind kind)
{
    fuzz_value *v = &step->values[step->n++];
    snprintf(v->name, sizeof v->name, "%s", name);
    v->kind = kind;
    v->count = 0;
    return v;
}

void fuzz_add_int(fuzz_step *step, const char *name, int64_t value)
{
    fuzz_add(step, name, TERN_VALUE_SCALAR)->scalar = tern_scalar_int(value);
}

void fuzz_add_ints(fuzz_step *step, const char *name, const int64_t *values, int count)
{
    fuzz_value *v = fuzz_add(step, name, TERN_VALUE_INTS);
    v->count = count < FUZZ_LIST ? count : FUZZ_LIST;
    for (int i = 0; i < v->count; i++)
        v->ints[i] = values[i];
}

void fuzz_add_tensor(fuzz_step *step, const char *name, int slot)
{
    fuzz_add(step, name, TERN_VALUE_TENSOR)->slots[0] = slot;
}

void fuzz_add_text(fuzz_step *step, const char *name, const char *text)
{
    fuzz_value *v = fuzz_add(step, name, TERN_VALUE_TEXT);
    snprintf(v->text, sizeof v->text, "%s", text);
}

void fuzz_add_dtype(fuzz_step *step, const char *name, tern_dtype dtype)
{
    fuzz_add(step, name, TERN_VALUE_DTYPE)->dtype = dtype;
}

/* ---- running ------------------------------------------------------------------------------ */

/* What a step is called with. */
typedef struct call {
    tern_value values[TERN_MAX_PARAMETERS];
    tern_tensor *lists[TERN_MAX_PARAMETERS][FUZZ_LIST];
    fuzz_snapshot inputs[TERN_MAX_PARAMETERS * 2], watched[64];
    int n_inputs, n_watched;
} call;

static tern_tensor *take_slot(call *c, int slot)
{
    tern_tensor *x = slot >= 0 && slot < FUZZ_SLOTS ? fuzz_slots[slot] : NULL;
    if (x && c->n_inputs < (int)(sizeof c->inputs / sizeof *c->inputs))
        fuzz_look(&c->inputs[c->n_inputs++], x);
    return x;
}

/* False where a tensor is missing. */
static bool take_value(call *c, const fuzz_value *from, int i)
{
    tern_value *v = &c->values[i];
    bool there = true;
    v->name = from->name;
    v->kind = from->kind;
    v->count = from->count;
    switch (from->kind) {
    case TERN_VALUE_TENSOR:
        v->as.tensor = take_slot(c, from->slots[0]);
        return v->as.tensor != NULL;
    case TERN_VALUE_TENSORS:
        for (int k = 0; k < from->count; k++)
            there = (c->lists[i][k] = take_slot(c, from->slots[k])) && there;
        v->as.tensors = c->lists[i];
        return there;
    case TERN_VALUE_SCALAR:
        v->as.scalar = from->scalar;
        break;
    case TERN_VALUE_INTS:
        v->as.ints = from->ints;
        break;
    case TERN_VALUE_REALS:
        v->as.reals = from->reals;
        break;
    case TERN_VALUE_TEXT:
        v->as.text = from->text;
        break;
    default:
        v->as.dtype = from->dtype;
    }
    return true;
}

static bool is_own(const tern_named_op *op)
{
    for (const names_family *const *f = fuzz_families; *f; f++)
        if (op >= (*f)->rows && op < (*f)->rows + (*f)->count)
            return true;
    return false;
}

/* Operations that are to change what they are given: the own rows, running statistics, and rows of
 * an embedding that are brought to max_norm. */
bool fuzz_writes(const tern_named_op *op)
{
    static const char *const names[] = {"nn.functional.batch_norm", "nn.functional.instance_norm",
                                        "nn.functional.embedding", "nn.functional.embedding_bag"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(tern_named_op_name(op), names[i]) == 0)
            return true;
    return is_own(op);
}

/* The first of the operations of that name that takes the values. */
static const tern_named_op *choose(const fuzz_step *step, const call *c)
{
    names_argument arguments[TERN_MAX_PARAMETERS];
    char why[128];
    const tern_named_op *op = fuzz_find(tern_named_op_name(step->op));
    while (op && names_bind(op, c->values, step->n, arguments, why, sizeof why) < 0)
        op = fuzz_find_next(op);
    return op ? op : step->op;
}

/* They may have changed: from here on it is these that stay. */
static void look_again(call *c)
{
    for (int i = 0; i < c->n_inputs; i++)
        fuzz_look(&c->inputs[i], c->inputs[i].x);
    for (int i = 0; i < c->n_watched; i++)
        fuzz_look(&c->watched[i], c->watched[i].x), c->watched[i].version = -1;
}

static void check_call(const fuzz_step *step, call *c, tern_tensor *const *out, int n)
{
    const char *name = tern_named_op_name(step->op);
    tern_tensor *untouched = (tern_tensor *)&fuzz_slots;
    if (n < -1 || n > step->capacity)
        fuzz_fault("a wrong number of results", "%s: %d", name, n);
    for (int i = step->capacity; i < FUZZ_RESULTS + 2; i++)
        if (out[i] != untouched)
            fuzz_fault("more results than there was room for", "%s", name);
    if (n >= 0 && tern_last_status() != TERN_OK)
        fuzz_fault("a result and an error", "%s: %s", name, tern_last_error());
    if (n < 0 && tern_last_status() == TERN_OK)
        fuzz_fault("no result and no error", "%s", name);
    if (n < 0 && !*tern_last_error())
        fuzz_fault("an error that says nothing", "%s", name);
    for (int i = 0; i < n; i++) {
        if (!out[i] || out[i] == untouched)
            fuzz_fault("a result is missing", "%s: %d of %d", name, i, n);
        fuzz_check_result(out[i], name);
    }
    /* A place out of range or a NaN may be found when some elements are written already. */
    bool late = strstr(tern_last_error(), "out of") && tern_last_status() != TERN_ERR_MEMORY;
    /* Rows that were brought to max_norm stay that when there is no memory for the result. */
    late = late || strstr(name, "functional.embedding");
    if (n < 0 && (late || tern_is_anomaly_enabled())) {
        look_again(c);
        return;
    }
    bool own = fuzz_writes(step->op);
    for (int i = 0; i < c->n_inputs && (n < 0 ? !own || !fuzz_writes_inside : !own); i++)
        fuzz_check_unchanged(&c->inputs[i], name);
    for (int i = 0; i < c->n_watched && n < 0 && !fuzz_writes_inside; i++)
        fuzz_check_unchanged(&c->watched[i], name);
}

static void forget_results(void)
{
    while (fuzz_result_count > 0)
        tern_release(fuzz_results[--fuzz_result_count]);
}

int64_t fuzz_fail_allocation;
uint64_t fuzz_calls, fuzz_good_calls;
static uint64_t armed; /* the n of the allocation that fails from here on, 0: none does */

static void arm(uint64_t n)
{
    armed = n;
    tern_memory_fail_at(n);
}

void fuzz_spare_begin(void)
{
    uint64_t made = tern_memory_fail_at(0);
    armed = armed > made ? armed - made : 0;
}

void fuzz_spare_end(void)
{
    tern_memory_fail_at(armed);
}

/* With the n-th allocation failing, unless n is 0. armed is 0 if it was reached. */
static int call_once(const tern_named_op *op, call *c, const fuzz_step *step, tern_tensor **out,
                     uint64_t n)
{
    for (int i = 0; i < FUZZ_RESULTS + 2; i++)
        out[i] = (tern_tensor *)&fuzz_slots;
    tern_clear_error();
    fuzz_calls++;
    if (n)
        arm(n);
    int count = tern_named_op_call(op, c->values, step->n, out, step->capacity);
    fuzz_spare_begin();
    check_call(step, c, out, count);
    fuzz_good_calls += count >= 0;
    return count;
}

/* What changes something is done once: then it is done. */
static int call_failing(const tern_named_op *op, call *c, const fuzz_step *step, tern_tensor **out)
{
    int64_t at = fuzz_fail_allocation;
    fuzz_fail_allocation = 0;
    bool once = fuzz_writes(op);
    if (fuzz_other_device && at == 0 && !is_own(op))
        fuzz_compare_devices(step, op, c->values);
    for (uint64_t n = 1; at < 0 && n <= MOST_ALLOCATIONS; n++) {
        int count = call_once(op, c, step, out, n);
        if (armed || (once && count >= 0))
            return count;
    }
    return call_once(op, c, step, out, at > 0 ? (uint64_t)at : 0);
}

static void look_at_watched(const fuzz_step *step, call *c)
{
    tern_tensor *list[64];
    c->n_watched = fuzz_watched(step, list, 64);
    for (int i = 0; i < c->n_watched; i++)
        fuzz_look(&c->watched[i], list[i]), c->watched[i].version = -1;
}

int fuzz_run(const fuzz_step *step)
{
    static call c;
    tern_tensor *out[FUZZ_RESULTS + 2];
    forget_results();
    c.n_inputs = 0;
    for (int i = 0; i < step->n; i++)
        if (!take_value(&c, &step->values[i], i))
            return -1;
    for (int i = 0; i < step->n; i++)
        fuzz_writes_inside |= strcasecmp(step->values[i].name, "inplace") == 0;
    fuzz_writes_inside |= strcmp(tern_named_op_name(step->op), "Inplace") == 0;
    if (fuzz_log)
        fuzz_print_step(fuzz_log, step);
    look_at_watched(step, &c);
    int n = -1;
    TERN_SCOPE {
        n = call_failing(choose(step, &c), &c, step, out);
        for (int i = 0; i < n; i++)
            fuzz_results[fuzz_result_count++] = tern_keep(out[i]);
    }
    if (fuzz_log && n < 0)
        fprintf(fuzz_log, "# %s\n", tern_last_error());
    tern_clear_error();
    return n;
}

int fuzz_place(void)
{
    int first = -1;
    if (fuzz_log && fuzz_result_count)
        fputs("->", fuzz_log);
    for (int i = 0; i < fuzz_result_count && i < 4; i++) {
        int slot = fuzz_next_slot++ % FUZZ_SLOTS;
        fuzz_put(slot, fuzz_results[i]);
        first = i ? first : slot;
        if (fuzz_log)
            fprintf(fuzz_log, " x%d", slot);
    }
    if (fuzz_log && fuzz_result_count)
        fputc('\n', fuzz_log), fflush(fuzz_log);
    return first;
}

bool fuzz_is_handy(int slot)
{
    return slot >= 0 && fuzz_slots[slot] && tern_numel(fuzz_slots[slot]) <= FUZZ_VAST;
}
