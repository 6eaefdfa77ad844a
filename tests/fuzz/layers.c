/* layers.c -- rows of layers.def, and where modules stand. */
#include "objects.h"
#include <string.h>

/* More layers than this only take time. */
static int few(int64_t n)
{
    return n > 6 ? 6 : (int)(n < INT32_MIN ? INT32_MIN : n);
}

static tern_status run_own(tern_module *self, tern_tensor *const *in, int n, tern_tensor **out,
                           int k)
{
    const char *what = tern_nn_data(self);
    for (int i = 0; i < k; i++) {
        out[i] = n > 0 ? fuzz_changed(what, in[i % n]) : NULL;
        if (!out[i] && tern_last_status() != TERN_OK)
            return tern_last_status();
    }
    return TERN_OK;
}

static tern_module *own_module(const char *what)
{
    return tern_nn_module_with_call("Own", run_own, (void *)(uintptr_t)fuzz_lasting(what));
}

/* A list of modules that are taken from their slots, one of them maybe twice. */
typedef struct taken {
    tern_module *modules[FUZZ_LIST];
    int n;
} taken;

static taken *take_list(const names_argument *a)
{
    static taken t;
    t.n = a->count < FUZZ_LIST ? a->count : FUZZ_LIST;
    for (int i = 0; i < t.n; i++)
        t.modules[i] = fuzz_module(a->ints[i]);
    for (int i = 0; i < t.n; i++)
        fuzz_take(a->ints[i]);
    return &t;
}
#define TAKEN(i)  take_list(&a[i])->modules, a[i].count < FUZZ_LIST ? a[i].count : FUZZ_LIST
#define REDUCE(i) ((tern_reduction)(N(i) & 3))

#define LAYER(ID, NAME, PARAMETERS, MODULE)                                                        \
    OPS(ID, NAME, "int into, " PARAMETERS, "()", NOTHING(fuzz_put_module(N(0), MODULE)))

#define TABLE  fuzz_layer_rows
#define FAMILY "layers.def"
#include "names/expand.h"
