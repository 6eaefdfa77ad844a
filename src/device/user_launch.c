/* user_launch.c -- the arguments and the grid of a user's kernel, for devices that take arguments
 * as words of 8 bytes (user_source.h). */
#include "base/dtype.h"
#include "device/backend.h"
#include "device/user_source.h"
#include <stdio.h>
#include <string.h>

int tern_user_dims(const tern_kernel_grid *grid)
{
    int dims = 3;
    while (dims > 1 && grid->items[dims - 1] <= 1 && grid->group[dims - 1] <= 1)
        dims--;
    return dims;
}

static bool is_local(const tern_arg *a)
{
    return !a->buffer && a->by_reference && !a->value.data;
}

/* Returns the kind of an argument, in the bits of tern_user_parameters; TERN_USER_VECTOR if the
 * type of its bytes is unknown. */
static int given(const tern_arg *a)
{
    if (is_local(a))
        return TERN_USER_LOCAL;
    /* A parameter half * does not take a tensor of bfloat16. */
    bool real = a->type != TERN_BF16 && tern_dtype_in((tern_dtype)a->type, TERN_SET_FLOATS);
    return (int)a->bytes | (a->buffer ? TERN_USER_TENSOR : 0) |
           (!a->type ? TERN_USER_VECTOR
            : real   ? TERN_USER_REAL
                     : 0);
}

static bool fits(int takes, int is)
{
    const int bytes = takes & TERN_USER_BYTES;
    const bool has_size = bytes && bytes != TERN_USER_UNKNOWN;
    if (takes & TERN_USER_LOCAL)
        return is == TERN_USER_LOCAL;
    if (!(takes & TERN_USER_TENSOR) && (!has_size || bytes < 4 || takes & TERN_USER_VECTOR))
        return true;
    if ((takes ^ is) & (TERN_USER_TENSOR | TERN_USER_LOCAL))
        return false;
    if (!has_size || bytes != (is & TERN_USER_BYTES))
        return !has_size;
    /* Parameters of 8- and 16-bit integers take tensors of any type of this size. */
    return takes & TERN_USER_REAL ? is & (TERN_USER_REAL | TERN_USER_VECTOR)
                                  : bytes < 4 || !(is & TERN_USER_REAL);
}

/* Returns the name of a kind, which may be written to the 64 bytes `to`: "a tensor of 4-byte
 * integers", or if dtype is not 0, "a tensor of float16". */
static const char *title(char *to, int kind, tern_dtype dtype)
{
    const int bytes = kind & TERN_USER_BYTES;
    const bool tensor = kind & TERN_USER_TENSOR;
    if (kind & TERN_USER_LOCAL)
        return "local memory";
    if (tensor && (dtype || !bytes || bytes == TERN_USER_UNKNOWN))
        snprintf(to, 64, "a tensor%s%s", dtype ? " of " : "", tern_dtype_rows[dtype].name);
    else
        snprintf(to, 64, "a%s %d-byte %s%s",
                 tensor       ? " tensor of"
                 : bytes == 8 ? "n"
                              : "",
                 bytes,
                 kind & TERN_USER_REAL                ? "floating-point number"
                 : kind & TERN_USER_VECTOR && !tensor ? "value"
                                                      : "integer",
                 tensor ? "s" : "");
    return to;
}

tern_status tern_user_check(const tern_user_parameters *parameters, const char *name,
                            const tern_arg *args, int n)
{
    char is[64], wanted[64];
    if (n != parameters->n)
        return tern_fail(TERN_ERR_ARGUMENT,
                         "tern_kernel_launch: kernel %s takes %d arguments, %d were given", name,
                         parameters->n, n);
    for (int i = 0; i < n; i++)
        if (!fits(parameters->takes[i], given(&args[i])))
            return tern_fail(TERN_ERR_ARGUMENT,
                             "tern_kernel_launch: argument %d of kernel %s is %s, where %s was "
                             "expected",
                             i, name, title(is, given(&args[i]), (tern_dtype)args[i].type),
                             title(wanted, parameters->takes[i], (tern_dtype)0));
    return TERN_OK;
}

void tern_user_words(const tern_arg *args, int n, uint64_t *words, size_t *shared)
{
    *shared = 0;
    for (int i = 0; i < n; i++) {
        const tern_arg *a = &args[i];
        words[i] = 0;
        if (is_local(a)) {
            words[i] = *shared;
            *shared += (a->bytes + 15u) / 16u * 16u;
        } else if (a->buffer) {
            words[i] = (uint64_t)(uintptr_t)a->buffer->handle + (uint64_t)a->at * a->bytes;
        } else {
            memcpy(&words[i], &a->value, a->bytes);
        }
    }
}

tern_status tern_user_group_of(const tern_user_source *source, const char *device, const char *name,
                               const tern_kernel_grid *grid, int64_t most, int64_t group[3])
{
    const int64_t *fixed = source->group;
    int64_t all = 1;
    for (int i = 0; i < 3; i++)
        group[i] = grid->group[0] && grid->group[i] > 0 ? grid->group[i] : 1;
    if (grid->group[0] == 0 && fixed[0])
        memcpy(group, fixed, sizeof source->group);
    while (grid->group[0] == 0 && !fixed[0] && group[0] < 64 && group[0] < grid->items[0])
        group[0] *= 2;
    for (int i = 0; i < 3; i++)
        all = group[i] > most ? most + 1 : all * group[i] > most ? most + 1 : all * group[i];
    if (all > most)
        return tern_fail(TERN_ERR_ARGUMENT,
                         "tern_kernel_launch: a group of %lldx%lldx%lld work-items is too large: "
                         "kernel %s on %s takes %lld",
                         (long long)group[0], (long long)group[1], (long long)group[2], name,
                         device, (long long)most);
    if (fixed[0] && memcmp(fixed, group, sizeof source->group) != 0)
        return tern_fail(TERN_ERR_ARGUMENT,
                         "tern_kernel_launch: kernel %s requires groups of %lldx%lldx%lld, not "
                         "%lldx%lldx%lld",
                         name, (long long)fixed[0], (long long)fixed[1], (long long)fixed[2],
                         (long long)group[0], (long long)group[1], (long long)group[2]);
    return TERN_OK;
}
