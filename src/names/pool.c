/* pool.c -- names of pool.def, and what its rows need beside the public functions. */
#include "names/rows.h"

typedef tern_tensor *(*avg_pool_function)(tern_tensor *x, tern_shape kernel_size,
                                          const tern_avg_pool_options *options);

static tern_tensor *avg_pool(avg_pool_function function, const names_argument *a)
{
    tern_avg_pool_options options = {.stride = LIST(2),
                                     .padding = LIST(3),
                                     .ceil_mode = B(4),
                                     .no_count_include_pad = !B(5),
                                     .divisor_override = names_some(&a[6])};
    return function(T(0), LIST(1), &options);
}

typedef tern_status (*fractional_function)(tern_tensor *x, tern_shape kernel_size,
                                           const tern_fractional_max_pool_options *options,
                                           tern_values_indices *out);

static int fractional_max_pool(fractional_function function, const names_argument *a,
                               tern_tensor **out, int capacity)
{
    tern_fractional_max_pool_options options = {.output_size = LIST(2), .random_samples = T(5)};
    tern_values_indices pair = {NULL, NULL};
    for (int i = 0; GIVEN(3) && i < a[3].count && i < 3; i++)
        options.output_ratio[i] = a[3].reals[i];
    tern_status status = function(T(0), LIST(1), &options, &pair);
    return B(4) ? names_pair(status, &pair, out, capacity) : names_one(pair.values, out, capacity);
}

#define ONE(x) names_one(x, out, capacity)
#define MAX_POOL                                                                                   \
    &(tern_max_pool_options)                                                                       \
    {                                                                                              \
        .stride = LIST(2), .padding = LIST(3), .dilation = LIST(4), .ceil_mode = B(5)              \
    }

#define TABLE  names_pool
#define FAMILY "names/pool.def"
#include "names/expand.h"
