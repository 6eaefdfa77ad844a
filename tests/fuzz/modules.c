/* modules.c -- rows of modules.def: calls, hooks and packed sequences. */
#include "objects.h"
#include <string.h>

static int given(const void *object)
{
    return object ? 0 : -1;
}

/* A parameter that is absent is no error. */
static int if_there(tern_tensor *x, tern_tensor **out, int capacity)
{
    return x || tern_last_status() != TERN_OK ? names_one(x, out, capacity) : 0;
}

static void *word(const char *text)
{
    return (void *)(uintptr_t)fuzz_lasting(text);
}

static int text(char *printed)
{
    tern_free_text(printed);
    return given(printed);
}

static int call(const names_argument *a, tern_tensor **out, int capacity)
{
    tern_tensor *results[FUZZ_LIST] = {NULL};
    int64_t k = N(2);
    if (k < 0 || k > FUZZ_LIST || k > capacity)
        return DONE(tern_fail(TERN_ERR_ARGUMENT, "fuzz: so many results"));
    return names_several(tern_nn_call(fuzz_module(N(0)), TENSORS(1), results, (int)k), results,
                         (int)k, out, capacity);
}

/* ---- hooks that do as a word says --------------------------------------------------------- */

static tern_status change_each(const char *what, tern_tensor **x, int n)
{
    for (int i = 0; i < n; i++) {
        x[i] = x[i] ? fuzz_changed(what, x[i]) : NULL;
        if (!x[i] && tern_last_status() != TERN_OK)
            return tern_last_status();
    }
    return TERN_OK;
}

static tern_status pre_hook(tern_module *m, tern_tensor **in, int n, void *user)
{
    (void)m;
    return change_each(user, in, n);
}

static tern_status forward_hook(tern_module *m, tern_tensor *const *in, int n, tern_tensor **out,
                                int k, void *user)
{
    (void)in;
    (void)n;
    if (strcmp(user, "more") == 0 && tern_nn_remove_hook(m, 1) != TERN_OK)
        tern_clear_error();
    return change_each(user, out, k);
}

static tern_status backward_hook(tern_module *m, tern_tensor **grad_in, int n,
                                 tern_tensor *const *grad_out, int k, void *user)
{
    (void)m;
    (void)grad_out;
    (void)k;
    return change_each(user, grad_in, n);
}

/* ---- state dicts -------------------------------------------------------------------------- */

static int put_dict(int64_t i, tern_state_dict *dict)
{
    if (!dict)
        return -1;
    tern_state_dict **slot = &fuzz_held.dicts[(uint64_t)i % FUZZ_OBJECTS];
    tern_state_dict_free(*slot);
    *slot = dict;
    return 0;
}

/* ---- packed sequences --------------------------------------------------------------------- */

static int pack(const names_argument *a, tern_tensor **out, int capacity)
{
    tern_packed_sequence packed = {NULL};
    tern_pack_sequence_options options = {.batch_first = B(2), .not_enforce_sorted = B(3)};
    tern_status status =
        tern_nn_pack_padded_sequence(T(0), a[1].ints, a[1].count, &options, &packed);
    tern_tensor *all[] = {packed.data, packed.batch_sizes, packed.sorted_indices,
                          packed.unsorted_indices};
    return names_several(status, all, packed.sorted_indices ? 4 : 2, out, capacity);
}

static tern_tensor *call_packed(const names_argument *a)
{
    tern_packed_sequence result = {NULL};
    tern_packed_sequence x = {T(1), T(2), T(3), T(4)};
    tern_tensor *state[2] = {NULL};
    if (tern_nn_call_packed(fuzz_module(N(0)), &x, NULL, 0, &result, state, 1) != TERN_OK)
        return NULL;
    return result.data;
}

#define TABLE  fuzz_module_rows
#define FAMILY "modules.def"
#include "names/expand.h"
