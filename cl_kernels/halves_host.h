/* halves_host.h -- the rows of elementwise.def for f16 and bf16 on the host: the f32 kernel of the row,
 * tile by tile, with conversions around it. The numbers are the same as of a loop of its own, the code
 * is a fraction of it. */

#ifndef TERN_TILE
#define TERN_TILE 512
typedef void tern_host_run(const tern_host_grid *grid, void *const *args);
#endif

/* out = run(in[0..n)) over the walk; out holds halves, or bools when out_is_bool. Tensor 0 of the walk
 * is out. a and b follow as the row's parameters (b is not read where the row has one). */
static __attribute__((noinline)) void K(through_floats)(const tern_host_grid tern_g,
                                                        tern_host_run *run, void *out,
                                                        int out_is_bool, const u16 *const *in, int n,
                                                        const tern_walk *w, f32 a, f32 b)
{
    f32 tile[TERN_WALK_TENSORS][TERN_TILE];
    tern_walk one = {.rows = 1, .form = w->form};
    FLAT(r, w->rows, w->inner)
    {
        idx at[TERN_WALK_TENSORS] = {0}, q = r;
        for (i32 d = w->ndim - 1; d >= 0; d--) {
            idx position = q % (idx)w->dim[d];
            q /= (idx)w->dim[d];
            for (int k = 0; k <= n; k++)
                at[k] += position * (idx)w->stride[k][d];
        }
        idx from = tern_larger(tern_b - r * tern_in, 0);
        idx to = tern_smaller(tern_e - r * tern_in, tern_in);
        for (idx j = from; j < to; j += TERN_TILE) {
            idx count = tern_smaller(to - j, TERN_TILE);
            void *args[TERN_WALK_TENSORS + 3];
            u8 *bools = (u8 *)out + at[0] + j;
            u16 *halves = (u16 *)out + at[0] + j;
            args[0] = out_is_bool ? (void *)bools : (void *)tile[0];
            for (int k = 1; k <= n; k++) {
                const u16 *x = in[k - 1] + at[k];
                idx step = w->form == TERN_WALK_UNIT ? 1 : (idx)w->step[k];
                args[k] = tile[k];
                if (step == 0)
                    tile[k][0] = LD(x, 0);
                else
                    SIMD for (idx i = 0; i < count; i++)
                        tile[k][i] = LD(x, j + i);
            }
            one.inner = count;
            args[n + 1] = &one;
            args[n + 2] = &a;
            args[n + 3] = &b;
            run(&(const tern_host_grid){0, 1}, args);
            if (!out_is_bool)
                SIMD for (idx i = 0; i < count; i++)
                    ST(halves, i, tile[0][i]);
        }
    }
}

#define UNARY_0(NAME, Y)
#define UNARY_1(NAME, Y)                                                                           \
    KERNEL5(K(NAME), (OUT, STO, ys), (IN, STO, xs), (ARG, tern_walk, w), (ARG, REAL, a),           \
            (ARG, REAL, b))                                                                        \
    {                                                                                              \
        K(through_floats)(tern_g, NAME##_f32_run, ys, 0, (const u16 *const[]){xs}, 1, &w, a, b);   \
    }
#define GRADIENT_0(NAME, DX)
#define GRADIENT_1(NAME, DX)                                                                       \
    KERNEL7(K(NAME##_gradient), (OUT, STO, dxs), (IN, STO, xs), (IN, STO, ys), (IN, STO, dys),     \
            (ARG, tern_walk, w), (ARG, REAL, a), (ARG, REAL, b))                                   \
    {                                                                                              \
        K(through_floats)(tern_g, NAME##_gradient_f32_run, dxs, 0,                                 \
                          (const u16 *const[]){xs, ys, dys}, 3, &w, a, b);                         \
    }
#define HALF_BINARY_(NAME, T, IS_BOOL)                                                             \
    KERNEL4(K(NAME), (OUT, T, zs), (IN, STO, xs), (IN, STO, ys), (ARG, tern_walk, w))              \
    {                                                                                              \
        K(through_floats)(tern_g, NAME##_f32_run, zs, IS_BOOL, (const u16 *const[]){xs, ys}, 2,    \
                          &w, 0, 0);                                                               \
    }                                                                                              \
    KERNEL4(K(NAME##_scalar), (OUT, T, zs), (IN, STO, xs), (ARG, tern_walk, w), (ARG, REAL, y))    \
    {                                                                                              \
        K(through_floats)(tern_g, NAME##_scalar_f32_run, zs, IS_BOOL, (const u16 *const[]){xs}, 1, \
                          &w, y, 0);                                                               \
    }
#define BINARY_0(NAME, Z)
#define BINARY_1(NAME, Z) HALF_BINARY_(NAME, STO, 0)
#define COMPARE_0(NAME, Z)
#define COMPARE_1(NAME, Z) HALF_BINARY_(NAME, u8, 1)
#define PREDICATE_0(NAME, Z)
#define PREDICATE_1(NAME, Z)                                                                       \
    KERNEL3(K(NAME), (OUT, u8, zs), (IN, STO, xs), (ARG, tern_walk, w))                            \
    {                                                                                              \
        K(through_floats)(tern_g, NAME##_f32_run, zs, 1, (const u16 *const[]){xs}, 1, &w, 0, 0);   \
    }
