/* tensors.c -- rows of tensors.def: how a tensor is filled, and how it lies in memory. */
#include "fuzz.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- elements ----------------------------------------------------------------------------- */

static uint64_t next_random(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

/* More elements than that are zeros. */
enum { FILLED = 1 << 19 };
typedef enum fill { SMALL, SPECIAL, ZEROS, UNIT, INDEX, FAR, BACK } fill;

static fill fill_of(const char *word)
{
    static const char *const words[] = {"small", "special", "zeros", "unit",
                                        "index", "far",     "back"};
    for (int i = BACK; i > 0; i--)
        if (strcmp(words[i], word) == 0)
            return (fill)i;
    return SMALL;
}

static double element(fill how, int64_t high, uint64_t *state)
{
    static const double special[] = {0,    -0.0,  NAN,          INFINITY, -INFINITY, 1,
                                     -1,   1e-40, 1e30,         -1e30,    65504,     3.4e38,
                                     1e-8, 0.5,   2147483648.0, -9.3e18};
    uint64_t r = next_random(state);
    switch (how) {
    case SPECIAL:
        return special[r % 16];
    case ZEROS:
        return 0;
    case UNIT:
        return (double)(r >> 11) * 0x1p-53;
    case INDEX:
        return high > 0 ? (double)(r % (uint64_t)high) : 0;
    case FAR: /* mostly indices */
        return r % 8 ? element(INDEX, high, state) : (double)high;
    case BACK:
        return (double)(int64_t)(r % 7) - 3;
    default:
        return ((double)(r % 33) - 16) / 8;
    }
}

static tern_tensor *filled(tern_shape shape, tern_dtype dtype, const char *word, uint64_t state,
                           int64_t high)
{
    tern_tensor *x = tern_empty(shape, TERN_F64, "cpu");
    int64_t n = x ? tern_numel(x) : 0;
    fill how = fill_of(word);
    if (n > FILLED || how == ZEROS)
        x = tern_zero_(x);
    double *data = x && n > 0 && n <= FILLED && how != ZEROS ? tern_data(x) : NULL;
    for (int64_t i = 0; data && i < n; i++)
        data[i] = element(how, high, &state);
    return tern_to_dtype(x, dtype);
}

/* ---- layouts ------------------------------------------------------------------------------ */

static tern_tensor *transposed(tern_tensor *x)
{
    tern_shape order = tern_shape_of(x);
    for (int d = 0; d < order.ndim; d++)
        order.dims[d] = order.ndim - 1 - d;
    return tern_permute(x, order);
}

/* Of a base that is larger: with other strides, or behind other elements. */
static tern_tensor *laid_out(const names_argument *a, tern_shape shape, const char *layout)
{
    bool every_other = strcmp(layout, "strided") == 0, behind = strcmp(layout, "offset") == 0;
    bool same = strcmp(layout, "expanded") == 0, turned = strcmp(layout, "transposed") == 0;
    bool overlapping = strcmp(layout, "overlapping") == 0;
    tern_shape base = shape, stride = shape;
    int last = shape.ndim - 1;
    if (last < 0 || last >= TERN_MAX_DIMS)
        every_other = behind = same = turned = overlapping = false;
    if (every_other || behind) /* a shape that does not fit is refused */
        base.dims[last] =
            base.dims[last] < 0 || base.dims[last] > INT64_MAX / 4 ? -1 : base.dims[last] * 2 + 3;
    if (same)
        base.dims[0] = 1;
    if (every_other && base.dims[last] < 0)
        every_other = false;
    for (int d = 0; turned && d <= last; d++)
        base.dims[d] = shape.dims[last - d];
    if (overlapping)
        base = TERN_SHAPE(64);
    tern_tensor *x =
        filled(base, a[1].dtype ? a[1].dtype : TERN_F32, TEXT(2), (uint64_t)N(3), N(5));
    if (every_other)
        return tern_slice(x, last, 1, 1 + 2 * shape.dims[last], 2);
    if (behind)
        return tern_narrow(x, last, 2, shape.dims[last]);
    if (same)
        return tern_expand(x, shape);
    if (turned)
        return x ? transposed(x) : NULL;
    for (int d = 0; d <= last && last < TERN_MAX_DIMS; d++)
        stride.dims[d] = 1 + d % 2;
    return overlapping ? tern_as_strided(x, shape, stride, 0) : x;
}

static tern_tensor *make_tensor(const names_argument *a)
{
    tern_tensor *x = laid_out(a, LIST(0), TEXT(4));
    x = x && tern_requires_grad(x) ? tern_detach(x) : x;
    return B(6) ? tern_requires_grad_(x, true) : x;
}

/* ---- looking ------------------------------------------------------------------------------ */

static int print(tern_tensor *x)
{
    char *text = tern_to_text(x);
    tern_free_text(text);
    return text ? 0 : -1;
}

static int to_host(tern_tensor *x, int64_t bytes)
{
    size_t right = (size_t)tern_numel(x) * tern_dtype_size(tern_dtype_of(x));
    void *room = right <= 1 << 20 ? malloc(right ? right : 1) : NULL;
    tern_status status =
        room || bytes != 0 ? tern_copy_to_host(x, room, bytes ? (size_t)bytes : right) : TERN_OK;
    free(room);
    return DONE(status);
}

static void fail_again(const tern_error_info *error, void *user)
{
    (void)user;
    tern_fail(error->status, "again: %.20s", error->message);
}

static void fail_once_more(const tern_error_info *error, void *user)
{
    (void)user;
    tern_clear_error();
    tern_fail(error->status, "again: %.20s", error->message);
}

static int set_error_handler(const char *what)
{
    bool all = strcmp(what, "double") == 0;
    tern_error_handler handler = strcmp(what, "clear") == 0 ? fail_once_more : fail_again;
    return DONE(tern_set_error_policy(all ? TERN_ERRORS_CALL : TERN_ERRORS_RECORD,
                                      strcmp(what, "none") == 0 ? NULL : handler, NULL));
}

#define TABLE  fuzz_tensor_rows
#define FAMILY "tensors.def"
#include "names/expand.h"
