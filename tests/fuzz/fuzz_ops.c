/* fuzz_ops.c -- programs of operations: all of the library's names, in place on views and aliases,
 * gradients of gradients. */
#include "fuzz.h"

const names_family *const fuzz_families[] = {&fuzz_tensor_rows, &fuzz_inplace_rows,
                                             &fuzz_gradient_rows, NULL};

int fuzz_watched(const fuzz_step *step, tern_tensor **list, int most)
{
    (void)step;
    (void)list;
    (void)most;
    return 0;
}

void fuzz_leave(void)
{
}

void fuzz_clean(void)
{
}

bool fuzz_pick_object(fuzz_source *s, const char *name, int64_t *value)
{
    (void)s;
    (void)name;
    (void)value;
    return false;
}

static const tern_named_op *any_view(fuzz_source *s)
{
    char word[48];
    fuzz_pick_word(s,
                   "view permute transpose narrow slice select expand as_strided diagonal unfold t "
                   "unsqueeze squeeze unbind split chunk flatten detach reshape movedim",
                   word);
    return fuzz_find(word);
}

/* An operation, the gradients of what it gave with the graph of them, and the gradients of those. */
static void twice_back(fuzz_source *s)
{
    static fuzz_step step;
    int slots[FUZZ_LIST], count = 0, at = fuzz_next_slot;
    if (fuzz_call(s, fuzz_any_named(s)) < 1)
        return;
    int last = fuzz_next_slot;
    for (int i = at; i < last && count < 8; i++)
        if (fuzz_slots[i % FUZZ_SLOTS] && tern_requires_grad(fuzz_slots[i % FUZZ_SLOTS]))
            slots[count++] = i % FUZZ_SLOTS;
    if (count < 2 || !tern_is_leaf(fuzz_slots[slots[0]]))
        return;
    fuzz_step_begin(&step, fuzz_find("sum"));
    fuzz_add_tensor(&step, "input", slots[count - 1]);
    int sum = fuzz_run(&step) > 0 ? fuzz_place() : -1;
    for (int order = 0; order < 2 && sum >= 0; order++) {
        fuzz_step_begin(&step, fuzz_find("autograd_grad"));
        fuzz_value *v = fuzz_add(&step, "outputs", TERN_VALUE_TENSORS);
        v->slots[v->count++] = sum;
        v = fuzz_add(&step, "inputs", TERN_VALUE_TENSORS);
        v->slots[v->count++] = slots[0];
        fuzz_add(&step, "create_graph", TERN_VALUE_SCALAR)->scalar = tern_scalar_bool(true);
        fuzz_add(&step, "allow_unused", TERN_VALUE_SCALAR)->scalar = tern_scalar_bool(true);
        if (fuzz_chance(s, 5))
            fuzz_fail_next(s);
        int dx = fuzz_run(&step) > 0 ? fuzz_place() : -1;
        if (dx < 0 || !fuzz_is_handy(dx))
            return;
        fuzz_step_begin(&step, fuzz_find("sum"));
        fuzz_add_tensor(&step, "input", dx);
        sum = fuzz_run(&step) > 0 ? fuzz_place() : -1;
    }
}

void fuzz_program(fuzz_source *s)
{
    for (int i = 0; i < 2; i++)
        fuzz_tensor(s, NULL, 0, fuzz_dtype(s), -1);
    for (int steps = 0; steps < 24 && !fuzz_ended(s); steps++) {
        uint32_t kind = fuzz_pick(s, 20);
        if (kind < 8)
            fuzz_call(s, fuzz_any_named(s));
        else if (kind < 9)
            twice_back(s);
        else if (kind < 11)
            fuzz_call(s, any_view(s));
        else if (kind < 14)
            fuzz_call(s, fuzz_any(s, &fuzz_inplace_rows));
        else if (kind < 15)
            fuzz_call(s, fuzz_find("backward"));
        else if (kind < 16)
            fuzz_call(s, fuzz_find("autograd_grad"));
        else if (kind < 18)
            fuzz_call(s, fuzz_any(s, &fuzz_gradient_rows));
        else
            fuzz_call(s, fuzz_any(s, &fuzz_tensor_rows));
    }
}
