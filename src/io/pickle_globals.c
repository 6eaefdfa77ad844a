/* pickle_globals.c -- the known globals of pickles, and the texts of refusals. */
#include "io/pickle.h"
#include <string.h>

static const io_torch_type types[] = {
#define STORAGE(NAME, DTYPE, TYPE, BYTES) {NAME "Storage", DTYPE, TYPE, BYTES},
#include "io/pickle.def"
};
enum { TYPES = sizeof types / sizeof *types };

static const struct {
    const char *module, *name;
    io_global number;
} globals[] = {
#define GLOBAL(MODULE, NAME, WHAT) {MODULE, NAME, G_##WHAT},
#include "io/pickle.def"
};

static bool is(const char *text, size_t n, const char *what)
{
    return strlen(what) == n && memcmp(text, what, n) == 0;
}

/* Renames a module of Python 2 or NumPy 2 to that of Python 3 or NumPy 1. */
static void rename_module(const char **module, size_t *k)
{
    static const char *const other[][2] = {{"__builtin__", "builtins"},
                                           {"copy_reg", "copyreg"},
                                           {"numpy._core.multiarray", "numpy.core.multiarray"}};
    for (size_t i = 0; i < sizeof other / sizeof *other; i++)
        if (is(*module, *k, other[i][0])) {
            *module = other[i][1];
            *k = strlen(other[i][1]);
            return;
        }
}

io_global io_pickle_global(const char *module, size_t k, const char *name, size_t n)
{
    static const char rebuild[] = "_rebuild_";
    rename_module(&module, &k);
    for (size_t i = 0; i < sizeof globals / sizeof *globals; i++)
        if (is(module, k, globals[i].module) && is(name, n, globals[i].name))
            return globals[i].number;
    for (int i = 0; is(module, k, "torch") && i < TYPES; i++) {
        if (is(name, n, types[i].storage))
            return (io_global)(G_TYPES + i);
        if (is(name, n, types[i].dtype))
            return (io_global)(G_DTYPES + i);
    }
    bool makes_tensor = (is(module, k, "torch._utils") || is(module, k, "torch._tensor")) &&
                        n >= sizeof rebuild && memcmp(name, rebuild, sizeof rebuild - 1) == 0;
    return makes_tensor ? G_OTHER_TENSOR : G_UNKNOWN;
}

const io_torch_type *io_torch_type_at(int64_t i)
{
    return i >= 0 && i < TYPES ? &types[i] : NULL;
}

const char *io_refusal_text(io_refusal why)
{
    static const char *const texts[] = {
        [IO_READABLE] = NULL,
        [IO_QUANTIZED] = "quantized (_rebuild_qtensor), which is not read",
        [IO_SPARSE] = "sparse, which is not read",
        [IO_NESTED] = "nested (_rebuild_nested_tensor), which is not read",
        [IO_META] = "on the device meta: the file has no elements of it",
        [IO_WRAPPER] = "of a subclass without elements of its own (_rebuild_wrapper_subclass)",
        [IO_OTHER_TENSOR] = "made by a function of PyTorch's that is not known",
        [IO_CONJUGATED] = "lazily conjugated, and complex numbers are not read",
        [IO_OTHER_METADATA] = "said to have properties that are not known",
        [IO_EXPANDED] = "expanded (by strides of 0, or that overlap) to far more than the file has",
    };
    return texts[why];
}
