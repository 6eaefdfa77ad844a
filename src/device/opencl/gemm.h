/* gemm.h -- the ways to a matrix product on an OpenCL device. */
#ifndef TERN_DEVICE_OPENCL_GEMM_H
#define TERN_DEVICE_OPENCL_GEMM_H
#include "base/dtype.h"
#include "base/lock.h"
#include "device/attention_matrix.h"
#include "device/conv_matrix.h"
#include "device/matrix_trial.h"
#include "device/opencl/opencl.h"

/* ---- which way a product goes (route.c) -------------------------------------------------- */
/* X(WAY, name in a tuning file): matmul_vector.cl on CPU-type devices and matmul.cl elsewhere;
 * CLBlast's gemm for each matrix, gemv likewise, its strided batched gemm; matmul_tiles.cl;
 * gemm_matrix.cl, of halves. */
#define TERN_CL_WAYS(X)                                                                            \
    X(OWN, "own")                                                                                  \
    X(GEMM, "gemm")                                                                                \
    X(GEMV, "gemv")                                                                                \
    X(BATCHED, "batched")                                                                          \
    X(TILES, "tiles")                                                                              \
    X(MATRIX, "matrix")
typedef enum tern_cl_way {
#define X(WAY, NAME) TERN_CL_##WAY,
    TERN_CL_WAYS(X)
#undef X
        TERN_CL_PORTABLE /* matmul.cl, wherever nothing else can */
} tern_cl_way;

/* What matmul_tiles.cl is built for; "16x16x4x4x16x4". */
typedef struct tern_cl_tile {
    /* of gemm_matrix.cl m, n and k alone: rows, columns and depth of a group, "128x128x64" */
    uint16_t down, across, m, n, k, v;
} tern_cl_tile;
/* NULL, or what is wrong with it, or too much for a device with such limits. */
const char *tern_cl_tile_read(const char *text, tern_cl_tile *tile);
const char *tern_cl_tile_check(const tern_cl_tile *tile, uint64_t local_memory, size_t group_limit);
/* What a device with this name begins with (tiles.def); NULL: nothing is known of it. */
const char *tern_cl_tile_of_family(const char *name);

/* Products with least <= size <= most for m, n, k and the batch go this way, if it can. */
enum { TERN_CL_SIZES = 4 };
typedef struct tern_cl_route {
    int64_t least[TERN_CL_SIZES], most[TERN_CL_SIZES];
    tern_cl_way way;
    tern_cl_tile tile; /* of TERN_CL_TILES and TERN_CL_MATRIX */
    char layout[3];    /* "nt": of products with A as it is and B transposed; "": any */
    bool halves;       /* of float16 and bfloat16 alone */
} tern_cl_route;

/* The device's own routes (of a tuning file), then those that are built in; with the tile of
 * TERN_CL_TILES, where tile is no NULL. */
tern_cl_way tern_cl_route_of(tern_place *place, const tern_gemm *gemm, tern_cl_tile *tile);
/* Whether a convolution that is such a product goes by tiles (TERN_CL_TILES) or on matrix units
 * (TERN_CL_MATRIX, in the way *matrix; matrix NULL: not so), and by which tile; else
 * TERN_CL_OWN. */
tern_cl_way tern_cl_convolution_tile(tern_place *place, const tern_gemm *gemm, tern_cl_tile *tile,
                                     int *matrix);

/* ---- a tuning file (tuning.c) ------------------------------------------------------------ */
/* Text, from TERN_OPENCL_TUNING or else tern/opencl.tuning in the user's configuration folder; read
 * when a device is opened. # begins a comment; a line is one of
 *
 *   device PART
 *       the lines below are for devices with PART in their name, in any case
 *   driver PART, tern VERSION
 *       and only with such a driver, or this tern: until the next line `device`
 *   kernel NAME 32|64 PARAMETER=N ...
 *       all parameters of a kernel of CLBlast's, for float32 or float64, as its tuners print them
 *   route WAY [m=A..B] [n=A..B] [k=A..B] [count=A..B] [layout=nn|nt|tn|tt] [type=half]
 *             [tile=T]
 *       products of these sizes go this way (own, gemm, gemv, batched, tiles, matrix); the first
 *       line that fits counts. A, B or both may be missing; m=1 is 1..1. nt: the second operand is
 *       a transposed look at memory. Large products of halves on a device with a matrix unit take
 *       lines with type=half and of `matrix` alone. `tiles` has a tile (matmul_tiles.cl): items
 *       down, across, rows and columns of each, depth, elements a load, "16x16x4x4x16x4"; `matrix`
 *       has rows, columns and depth of a group, "128x128x64", and is of halves alone
 *
 * Without CLBlast, and in f16 and bf16, which it sums in too few bits, only `own`, `tiles` and
 * `matrix` are taken; f64 does not go by tiles. `tern tune` writes such lines. */
typedef struct tern_cl_tuning tern_cl_tuning;
/* TERN_ERR_ARGUMENT names file and line. */
tern_status tern_cl_tuning_read(tern_place *place, tern_cl_tuning *tuning);

/* Matrix i of A starts at at[0] + i / inner * outer[0] + i % inner * stride[0], B and C have the
 * next ones; of CLBlast's at at[0] + i * stride[0]. */
typedef struct tern_cl_product {
    const tern_gemm *of;
    int64_t count, at[3], stride[3], inner, outer[3];
} tern_cl_product;

/* What a device keeps for products; behind lock. */
typedef struct tern_cl_gemm_state {
    tern_mutex lock;
    tern_cl_kernel *vector[3][TERN_DTYPE_END]; /* gemm, gemm_dot, gemm_sum for each dtype */
    tern_buffer scratch;                       /* for products cut along k */
    void *portable[TERN_DTYPE_END][2], *bias[TERN_DTYPE_END][2];
    tern_buffer wide[4]; /* A, B, C and the bias of a product of halves, in float32 */
    void *convert[2 * TERN_DTYPE_END][2]; /* to float32 from a type, and from it to a type */
    struct tern_cl_tiled *tiled;          /* kernels of tiles */
    tern_matrix_kernels matrix;           /* matrix_kernels.c */
    void *convolve[3][TERN_DTYPE_END];    /* of convolution_vector.cl */
} tern_cl_gemm_state;
tern_cl_gemm_state *tern_cl_gemm_state_of(tern_place *place);

/* Kernels of tiles (gemm_tiles.c): "gemm_tiles" of matmul_tiles.cl, "conv_tiles" and "conv_parts"
 * of convolution_tiles.cl. With the state's lock held. */
typedef struct tern_cl_tiled {
    struct tern_cl_tiled *next;
    const char *file, *name, *function; /* literals; function: the public one, for warnings */
    tern_cl_tile tile;
    tern_dtype dtype;
    int layout; /* as tern_gemm_layout's */
    bool narrow;
    tern_cl_kernel *kernel;
} tern_cl_tiled;
/* The kernel for what is written but kernel; NULL: the driver does not build it. */
tern_status tern_cl_tile_kernel(tern_place *place, tern_cl_gemm_state *state, tern_cl_tiled of,
                                tern_cl_kernel **kernel);
/* matmul_tiles.cl, for GPUs. Not done: the driver does not build it. */
tern_status tern_cl_tiles_gemm(tern_place *place, tern_cl_gemm_state *state, const tern_gemm *gemm,
                               const tern_cl_tile *tile, bool *done);

/* ---- matrix units (matrix_device.c, matrix_unit.c, matrix_kernels.c, gemm_matrix.c,
 * convolution.c, attention.c) ---------------------------------------------------------------- */
/* How products of this type go on matrix units: NONE where the device has none, or what it has was
 * tried and did not come out. The first call for a type tries it, with the state's lock, which the
 * caller has not. */
int tern_cl_matrix_way(tern_place *place, tern_dtype dtype);
/* The same untried: the way that the device speaks of, or that TERN_MATRIX wants. */
int tern_cl_matrix_wanted(tern_place *place, tern_dtype dtype);
/* The device's unit and what its trials have shown so far, for tern_device_get_info. */
void tern_cl_describe(tern_place *place, tern_device_info *info);
/* matrix_program.c: a kernel of a file over matrix.h, whose text begins with these definitions. */
tern_status tern_cl_matrix_build(tern_place *place, int way, size_t group, const char *defines,
                                 const char *file, const char *name, const char *title,
                                 tern_cl_kernel **kernel);
/* NULL, or what is wrong with it, or too much for a device with such limits. */
const char *tern_cl_matrix_tile_read(const char *text, tern_cl_tile *tile);
const char *tern_cl_matrix_tile_check(const tern_cl_tile *tile, uint64_t local_memory,
                                      size_t group_limit);
/* What a product takes untuned. */
tern_cl_tile tern_cl_matrix_tile(tern_place *place, int way, const tern_gemm *gemm);

/* With the state's lock held. */
tern_matrix_kernels *tern_cl_matrix_kernels(tern_cl_gemm_state *state);
/* tern_matrix_prepare of them, with that lock held, too. What is not usable is an error where
 * TERN_OPENCL_GEMM names a tile for matrix units. */
tern_status tern_cl_matrix_prepare(tern_place *place, const tern_matrix_call *call,
                                   tern_matrix_kernel **found, bool *usable);
extern const tern_gemm_backend tern_cl_gemm_backend; /* with that lock held */
/* A product, with the state's lock held. Not done: there is no kernel for it. */
tern_status tern_cl_matrix_gemm(tern_place *place, const tern_gemm *gemm, int way,
                                const tern_cl_tile *tile, bool *done);

/* matmul_vector.cl, for CPU-type devices. */
/* The program of its kernel gemm, gemm_dot or gemm_sum; whoever asks frees the text. */
tern_cl_source tern_cl_vector_source(tern_place *place, const char *name, tern_dtype dtype,
                                     tern_text *text, char title[256]);
struct tern_cl_gemm_plan tern_cl_vector_plan(tern_place *place, const tern_gemm *g, int64_t batch);
bool tern_cl_vector_fits(tern_place *place, tern_dtype dtype);
tern_status tern_cl_vector_gemm(tern_place *place, tern_cl_gemm_state *state,
                                const tern_cl_product *product);

/* gemm_half.c: halves in float32. Whether CLBlast takes the product so, and which product that is;
 * the operands converted, with the state's lock held; its result in the product's own type. */
bool tern_cl_half_fits(tern_place *place, const tern_gemm *gemm, tern_gemm *wide);
tern_status tern_cl_half_begin(tern_place *place, tern_cl_gemm_state *state, const tern_gemm *gemm,
                               tern_gemm *wide);
tern_status tern_cl_half_end(tern_place *place, tern_cl_gemm_state *state, const tern_gemm *gemm);

/* CLBlast, opened at run time; for f32 and f64 only, as its f16 sums are in f16. */
bool tern_cl_clblast_is_there(void);
bool tern_cl_clblast_can(tern_cl_way way, const tern_gemm *gemm);
/* With beta given apart: the bias may be in C already. */
tern_status tern_cl_clblast_gemm(tern_place *place, tern_cl_way way, const tern_cl_product *product,
                                 double beta);
/* CLBlast's code: 0 where it took the n parameters. */
int tern_cl_clblast_override(tern_place *place, const char *kernel, int precision, size_t n,
                             const char **names, const size_t *values);

#endif
