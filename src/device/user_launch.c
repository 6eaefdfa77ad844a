/* user_launch.c -- the arguments and the grid of a kernel of the program's own, for devices that take them as words
 * (user_source.h). */
#include "device/backend.h"
#include "device/user_source.h"
#include <string.h>

int tern_user_dims(const tern_kernel_grid *grid)
{
    int dims = 3;
    while (dims > 1 && grid->items[dims - 1] <= 1 && grid->group[dims - 1] <= 1)
        dims--;
    return dims;
}

static int given(const tern_arg *a)
{
    if (a->buffer)
        return TERN_USER_TENSOR;
    return a->by_reference && !a->value.data ? TERN_USER_LOCAL : (int)a->bytes;
}

static const char *title(int kind)
{
    return kind == TERN_USER_TENSOR  ? "a tensor"
           : kind == TERN_USER_LOCAL ? "local memory"
           : kind == 4               ? "a value of 4 bytes"
                                     : "a value of 8 bytes";
}

tern_status tern_user_check(const tern_user_parameters *parameters, const char *name,
                            const tern_arg *args, int n)
{
    if (n != parameters->n)
        return tern_fail(TERN_ERR_ARGUMENT,
                         "tern_kernel_launch: kernel %s takes %d arguments, %d were given", name,
                         parameters->n, n);
    for (int i = 0; i < n; i++)
        if (parameters->takes[i] != TERN_USER_ANY && parameters->takes[i] != given(&args[i]))
            return tern_fail(TERN_ERR_ARGUMENT,
                             "tern_kernel_launch: argument %d of kernel %s is %s, where %s was "
                             "expected",
                             i, name, title(given(&args[i])), title(parameters->takes[i]));
    return TERN_OK;
}

void tern_user_words(const tern_arg *args, int n, uint64_t *words, size_t *shared)
{
    *shared = 0;
    for (int i = 0; i < n; i++) {
        const tern_arg *a = &args[i];
        words[i] = 0;
        if (given(a) == TERN_USER_LOCAL) {
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
