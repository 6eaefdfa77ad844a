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

void fuzz_program(fuzz_source *s)
{
    for (int i = 0; i < 2; i++)
        fuzz_tensor(s, NULL, 0, fuzz_dtype(s), -1);
    for (int steps = 0; steps < 24 && !fuzz_ended(s); steps++) {
        uint32_t kind = fuzz_pick(s, 20);
        if (kind < 9)
            fuzz_call(s, fuzz_any_named(s));
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
