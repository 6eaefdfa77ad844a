/* reshape.c -- Flatten and Unflatten. */
#include "nn/layers/layer.h"
#include "nn/layers/list.h"

static tern_tensor *flatten_forward(tern_module *self, tern_tensor *x)
{
    const int *dims = tern_nn_data(self);
    return tern_flatten(x, dims[0], dims[1]);
}

tern_module *tern_nn_flatten_dims(int start_dim, int end_dim)
{
    int dims[2] = {start_dim, end_dim};
    tern_module *m = tern_layer("Flatten", flatten_forward, dims, sizeof dims);
    return tern_layer_if(m, tern_nn_set_extra(m, "start_dim=%d, end_dim=%d", start_dim, end_dim));
}

tern_module *tern_nn_flatten(void)
{
    return tern_nn_flatten_dims(1, -1);
}

typedef struct unflatten {
    int dim;
    tern_shape sizes;
} unflatten;

static tern_tensor *unflatten_forward(tern_module *self, tern_tensor *x)
{
    const unflatten *u = tern_nn_data(self);
    return tern_unflatten(x, u->dim, u->sizes);
}

tern_module *tern_nn_unflatten(int dim, tern_shape unflattened_size)
{
    unflatten u = {dim, unflattened_size};
    tern_module *m = tern_layer("Unflatten", unflatten_forward, &u, sizeof u);
    return tern_layer_if(
        m, tern_nn_set_extra(m, "dim=%d, unflattened_size=%s", dim, TUPLE(unflattened_size)));
}
