/* host_tables.h -- the tables of the kernels that were compiled with the library, by instruction
 * set. It includes no header of src, as the kernels are compiled with the dialect (dialect.h).
 *
 * Whole kernels are functions by name and dtype. Rows of elementwise operations are loops over
 * contiguous elements of float, double or int64_t (cl_kernels/row_tiles.h); row_run.c converts
 * other types, strides and forms for them. */
#ifndef TERN_DEVICE_CPU_HOST_TABLES_H
#define TERN_DEVICE_CPU_HOST_TABLES_H
#include "types_host.h"
#include "dtypes.def"

/* Types of elements in memory, in the order of tern_dtype from TERN_F32 on. */
typedef enum tern_stored {
#define X(T) STORED_AS_##T,
    EACH_DTYPE(X)
#undef X
} tern_stored;
/* The tile type of each dtype's elements: DTYPE_IN(TILES, row). */
#define SET_TILES (f32, f64, f32, i64, i64, i64)

typedef struct tern_host_entry {
    const char *name;                                           /* with its dtype: "fill_f32" */
    void (*run)(const tern_host_grid *grid, void *const *args); /* NULL: only devices have it */
    const char *parameters; /* source text; NULL but in the lowest instruction set */
} tern_host_entry;

/* Computes out[0..n) from up to three inputs and two numbers, all of the tile's type; the result of
 * a logical row is bytes 0 or 1. out may be one of in. n is a multiple of TERN_ROW_BLOCK: a loop
 * over a rest would be as much code again. */
enum { TERN_ROW_BLOCK = 16 };
typedef void tern_tile(void *out, const void *const *in, ptrdiff_t n, const void *numbers);
typedef struct tern_host_row {
    const char *name;            /* "add" */
    tern_tile *value, *gradient; /* gradient: of (x, y, dy), NULL for none */
    uint8_t inputs, numbers, logical;
    uint16_t flips; /* bits that value flips in half precision, if it does nothing else */
} tern_host_row;

/* The rows of one family and tile type: STORED_AS_f32, f64 or i64. A row without a name ends the
 * array. */
typedef struct tern_host_rows {
    tern_stored type;
    const tern_host_row *rows;
} tern_host_rows;

/* A kernel for one dtype, ready to run. The arguments of a row's kernel are out, the inputs, a
 * tern_nd_index and the numbers; if `constant`, the last input is the first number instead of a
 * tensor. */
typedef struct tern_cpu_kernel tern_cpu_kernel;
typedef void tern_cpu_run(const tern_cpu_kernel *k, int part, int parts, void *const *args);
struct tern_cpu_kernel {
    tern_cpu_run *run;
    const tern_host_entry *entry; /* NULL for a row's kernel */
    tern_tile *tile;
    tern_stored stored;
    uint8_t inputs, numbers, logical, constant, gradient;
    uint16_t flips; /* see tern_host_row */
    tern_cpu_kernel *next;
};

#endif
