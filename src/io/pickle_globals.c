/* pickle_globals.c -- the names that PyTorch's pickles of tensors use. */
#include "io/pickle.h"
#include <string.h>

static const io_torch_type types[] = {
#define STORAGE(NAME, DTYPE, TYPE, BYTES) {NAME "Storage", DTYPE, TYPE, BYTES},
#include "io/pickle.def"
};
enum { TYPES = sizeof types / sizeof *types };

static bool is(const char *text, size_t n, const char *what)
{
    return strlen(what) == n && memcmp(text, what, n) == 0;
}

int io_pickle_global(const char *module, size_t k, const char *name, size_t n)
{
#define GLOBAL(MODULE, NAME, WHAT)                                                                 \
    if (is(module, k, MODULE) && is(name, n, NAME))                                                \
        return G_##WHAT;
#include "io/pickle.def"
    for (int i = 0; is(module, k, "torch") && i < TYPES; i++) {
        if (is(name, n, types[i].storage))
            return G_TYPES + i;
        if (is(name, n, types[i].dtype))
            return G_DTYPES + i;
    }
    return 0;
}

const io_torch_type *io_torch_type_at(int64_t i)
{
    return i >= 0 && i < TYPES ? &types[i] : NULL;
}
