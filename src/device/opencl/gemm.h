/* gemm.h -- the ways to compute a matrix product on an OpenCL device. */
#ifndef TERN_DEVICE_OPENCL_GEMM_H
#define TERN_DEVICE_OPENCL_GEMM_H
#include "base/dtype.h"
#include "base/lock.h"
#include "device/attention_matrix.h"
#include "device/conv_matrix.h"
#include "device/matrix_trial.h"
#include "device/opencl/opencl.h"

/* ---- the way of a product (route.c) ------------------------------------------------------ */
/* X(WAY, name in a tuning file). OWN: matmul_vector.cl on CPU-type devices, matmul.cl elsewhere.
 * GEMM, GEMV: CLBlast's gemm or gemv for each matrix. BATCHED: CLBlast's strided batched gemm.
 * TILES: matmul_tiles.cl. MATRIX: gemm_matrix.cl, for half precision. */
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
        TERN_CL_PORTABLE /* matmul.cl, if no other way can */
} tern_cl_way;

/* The sizes that matmul_tiles.cl is built for: "16x16x4x4x16x4" in a tuning file. */
typedef struct tern_cl_tile {
    /* gemm_matrix.cl has m, n and k alone: rows, columns and depth of a group, "128x128x64" */
    uint16_t down, across, m, n, k, v;
} tern_cl_tile;
/* The first function reads a tile, the second compares it with a device's limits. Both return NULL,
 * or say what is wrong. */
const char *tern_cl_tile_read(const char *text, tern_cl_tile *tile);
const char *tern_cl_tile_check(const tern_cl_tile *tile, uint64_t local_memory, size_t group_limit);
/* Returns the default tile for a device of this name (tiles.def), or NULL for an unknown one. */
const char *tern_cl_tile_of_family(const char *name);

/* A route: the way of products with least <= size <= most for m, n, k and the batch. */
enum { TERN_CL_SIZES = 4 };
typedef struct tern_cl_route {
    int64_t least[TERN_CL_SIZES], most[TERN_CL_SIZES];
    tern_cl_way way;
    tern_cl_tile tile; /* for TERN_CL_TILES and TERN_CL_MATRIX */
    char layout[3];    /* "nt": only products with A as it is and B transposed; "": any */
    bool halves;       /* only for float16 and bfloat16 */
} tern_cl_route;

/* Returns the way of a product, by the routes of the device's tuning file, then by those that are
 * built in. Sets *tile for TERN_CL_TILES and TERN_CL_MATRIX, if tile is not NULL. */
tern_cl_way tern_cl_route_of(tern_place *place, const tern_gemm *gemm, tern_cl_tile *tile);
/* Returns the way of a convolution that is this product: by tiles (TERN_CL_TILES) or on matrix
 * units (TERN_CL_MATRIX, in the way *matrix; not if matrix is NULL), both with *tile; else
 * TERN_CL_OWN. */
tern_cl_way tern_cl_convolution_tile(tern_place *place, const tern_gemm *gemm, tern_cl_tile *tile,
                                     int *matrix);

/* ---- a tuning file (tuning.c) ------------------------------------------------------------ */
/* A text file, named by TERN_OPENCL_TUNING or else tern/opencl.tuning in the user's configuration
 * folder, which is read when a device is opened. # begins a comment. Lines:
 *
 *   device PART
 *       The lines below are for devices with PART in their name, in any case.
 *   driver PART, tern VERSION
 *       The lines below, until the next `device`, are also only for this driver or this tern.
 *   kernel NAME 32|64 PARAMETER=N ...
 *       All parameters of a kernel of CLBlast for float32 or float64, as its tuners print them.
 *   route WAY [m=A..B] [n=A..B] [k=A..B] [count=A..B] [layout=nn|nt|tn|tt] [type=half]
 *             [tile=T]
 *       Products of these sizes go this way (own, gemm, gemv, batched, tiles, matrix); the first
 *       line that matches counts. A, B or both may be missing; m=1 is 1..1. nt: the second operand
 *       is a transposed view. Large half-precision products on a device with a matrix unit take
 *       only lines with type=half or of `matrix`. The tile of `tiles` (matmul_tiles.cl) has items
 *       down, across, rows and columns of each, depth, elements a load: "16x16x4x4x16x4"; that of
 *       `matrix` has rows, columns and depth of a group: "128x128x64", for half precision alone.
 *
 * gemm, gemv and batched need CLBlast, and do not take f16 and bf16, which it sums in too few bits;
 * f64 does not go by tiles. `tern tune` writes such lines. */
typedef struct tern_cl_tuning tern_cl_tuning;
/* Reads the tuning file. An error is TERN_ERR_ARGUMENT and names file and line. */
tern_status tern_cl_tuning_read(tern_place *place, tern_cl_tuning *tuning);

/* A batch of products. Matrix i of A starts at at[0] + i / inner * outer[0] + i % inner *
 * stride[0], and for CLBlast at at[0] + i * stride[0]; B and C have the next elements of the
 * arrays. */
typedef struct tern_cl_product {
    const tern_gemm *of;
    int64_t count, at[3], stride[3], inner, outer[3];
} tern_cl_product;

/* The state of a device for products, guarded by lock. */
typedef struct tern_cl_gemm_state {
    tern_mutex lock;
    tern_cl_kernel *vector[3][TERN_DTYPE_END]; /* gemm, gemm_dot, gemm_sum for each dtype */
    tern_buffer scratch;                       /* scratch memory for products cut along k */
    void *portable[TERN_DTYPE_END][2], *bias[TERN_DTYPE_END][2];
    tern_buffer wide[4]; /* A, B, C and the bias of a half-precision product in float32 */
    void *convert[2 * TERN_DTYPE_END][2]; /* by dtype: kernels to float32, then from it */
    struct tern_cl_tiled *tiled;          /* list of kernels of tiles */
    tern_matrix_kernels matrix;           /* matrix_kernels.c */
    void *convolve[3][TERN_DTYPE_END];    /* kernels of convolution_vector.cl */
} tern_cl_gemm_state;
tern_cl_gemm_state *tern_cl_gemm_state_of(tern_place *place);

/* A kernel of tiles (gemm_tiles.c): "gemm_tiles" of matmul_tiles.cl, "conv_tiles" or "conv_parts"
 * of convolution_tiles.cl. Guarded by the state's lock. */
typedef struct tern_cl_tiled {
    struct tern_cl_tiled *next;
    const char *file, *name, *function; /* literals; function: the public function, for warnings */
    tern_cl_tile tile;
    tern_dtype dtype;
    int layout; /* tern_gemm_layout's */
    bool narrow;
    tern_cl_kernel *kernel;
} tern_cl_tiled;
/* Sets *kernel to the kernel for the other fields; NULL if the driver does not build it. */
tern_status tern_cl_tile_kernel(tern_place *place, tern_cl_gemm_state *state, tern_cl_tiled of,
                                tern_cl_kernel **kernel);
/* Computes the product by matmul_tiles.cl. *done is false if the driver does not build it. */
tern_status tern_cl_tiles_gemm(tern_place *place, tern_cl_gemm_state *state, const tern_gemm *gemm,
                               const tern_cl_tile *tile, bool *done);

/* ---- matrix units (matrix_device.c, matrix_unit.c, matrix_kernels.c, gemm_matrix.c,
 * convolution.c, attention.c) ---------------------------------------------------------------- */
/* Returns the way of matrix units for products of dtype; TERN_MATRIX_NONE if the device has none,
 * or its trial failed. The first call for a dtype makes the trial under the state's lock, which the
 * caller does not hold. */
int tern_cl_matrix_way(tern_place *place, tern_dtype dtype);
/* Returns that way without a trial: the one that the device reports or TERN_MATRIX selects. */
int tern_cl_matrix_wanted(tern_place *place, tern_dtype dtype);
/* Describes the device's matrix unit and its trials so far, for tern_device_get_info. */
void tern_cl_describe(tern_place *place, tern_device_info *info);
/* matrix_program.c: builds a kernel of a file over matrix.h, whose text begins with `defines`. */
tern_status tern_cl_matrix_build(tern_place *place, int way, size_t group, const char *defines,
                                 const char *file, const char *name, const char *title,
                                 tern_cl_kernel **kernel);
/* The same as for tern_cl_tile_read and tern_cl_tile_check, for tiles of gemm_matrix.cl. */
const char *tern_cl_matrix_tile_read(const char *text, tern_cl_tile *tile);
const char *tern_cl_matrix_tile_check(const tern_cl_tile *tile, uint64_t local_memory,
                                      size_t group_limit);
/* Returns the tile of a product that no tuned route matches. */
tern_cl_tile tern_cl_matrix_tile(tern_place *place, int way, const tern_gemm *gemm);

/* Returns the kernels over matrix.h. The caller holds the state's lock. */
tern_matrix_kernels *tern_cl_matrix_kernels(tern_cl_gemm_state *state);
/* Calls tern_matrix_prepare for these kernels; the caller holds the lock, too. Kernels that are not
 * usable are an error if TERN_OPENCL_GEMM names a tile for matrix units. */
tern_status tern_cl_matrix_prepare(tern_place *place, const tern_matrix_call *call,
                                   tern_matrix_kernel **found, bool *usable);
extern const tern_gemm_backend tern_cl_gemm_backend; /* called with that lock held */
/* Computes a product, with the state's lock held. *done is false if there is no kernel. */
tern_status tern_cl_matrix_gemm(tern_place *place, const tern_gemm *gemm, int way,
                                const tern_cl_tile *tile, bool *done);

/* matmul_vector.cl, for CPU-type devices. */
/* Returns the source of the program of gemm, gemm_dot or gemm_sum. The caller frees the text. */
tern_cl_source tern_cl_vector_source(tern_place *place, const char *name, tern_dtype dtype,
                                     tern_text *text, char title[256]);
struct tern_cl_gemm_plan tern_cl_vector_plan(tern_place *place, const tern_gemm *g, int64_t batch);
bool tern_cl_vector_fits(tern_place *place, tern_dtype dtype);
tern_status tern_cl_vector_gemm(tern_place *place, tern_cl_gemm_state *state,
                                const tern_cl_product *product);

/* gemm_half.c: half-precision products in float32. The first function returns whether CLBlast takes
 * the product so, and sets *wide to the float32 product; the next converts the operands, with the
 * state's lock held; the last converts the result to the product's own type. */
bool tern_cl_half_fits(tern_place *place, const tern_gemm *gemm, tern_gemm *wide);
tern_status tern_cl_half_begin(tern_place *place, tern_cl_gemm_state *state, const tern_gemm *gemm,
                               tern_gemm *wide);
tern_status tern_cl_half_end(tern_place *place, tern_cl_gemm_state *state, const tern_gemm *gemm);

/* CLBlast, opened at run time, for f32 and f64 only, as its f16 sums are in f16. */
bool tern_cl_clblast_is_there(void);
bool tern_cl_clblast_can(tern_cl_way way, const tern_gemm *gemm);
/* Computes the product. beta is given apart, as C may hold the bias already. */
tern_status tern_cl_clblast_gemm(tern_place *place, tern_cl_way way, const tern_cl_product *product,
                                 double beta);
/* Sets the n parameters of a kernel. Returns CLBlast's code: 0 for success. */
int tern_cl_clblast_override(tern_place *place, const char *kernel, int precision, size_t n,
                             const char **names, const size_t *values);

#endif
