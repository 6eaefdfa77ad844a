/* matrix_trial.c -- trials of kernels of products and convolutions on matrix units. */
#include "device/matrix_trial.h"
#include "device/opencl/gemm.h"

typedef struct product {
    tern_place *place;
    const tern_cl_matrix_kernel *kernel;
} product;

static tern_status run_product(void *user, const tern_gemm *g)
{
    const product *p = user;
    return tern_cl_matrix_launch(p->place, p->kernel->kernel, g, &p->kernel->tile);
}

tern_conv_variant tern_cl_conv_variant(const tern_cl_matrix_kernel *k)
{
    return (tern_conv_variant){.dtype = k->dtype,
                               .way = k->way,
                               .rows = k->tile.m,
                               .columns = k->tile.n,
                               .depth = k->tile.k,
                               .channels_last = k->layout,
                               .odd = k->odd,
                               .pass = k->pass,
                               .unit = k->unit};
}

tern_status tern_cl_matrix_try(tern_place *place, const tern_cl_matrix_kernel *k, bool *right)
{
    product p = {place, k};
    if (k->file == tern_cl_conv_file) {
        const tern_conv_variant v = tern_cl_conv_variant(k);
        return tern_conv_matrix_try(place, k->kernel, &v, right);
    }
    const tern_gemm_variant of = {.dtype = k->dtype,
                                  .layout = k->layout,
                                  .odd = k->odd,
                                  .rows = k->tile.m,
                                  .columns = k->tile.n,
                                  .depth = k->tile.k};
    return tern_gemm_try(place, &of, run_product, &p, right);
}
