/* product_kernels.c -- the host's own matrix products, compiled once per instruction set: small
 * shapes, matrix times vector, and everything where oneDNN is absent. */
#include "device/cpu/host_tables.h"
#include "prelude_host.h"
#define TERN_GLUE_(a, b) a##b
#define TERN_GLUE(a, b)  TERN_GLUE_(a, b)
#define TERN_SECTION     TERN_GLUE(tern_kernels_, TERN_ISA)
#include "params_host.h"
#include "product.h"

/* What host_table.c refers to, so that a static library brings this object. */
#define FAMILY TERN_GLUE(tern_family_product_, TERN_ISA)
extern const char FAMILY;
const char FAMILY = 0;

/* One register, and how many rows of C fit into registers two registers wide. */
#if defined(__AVX512F__)
enum { VECTOR = 64, ROWS = 8 };
#elif defined(__AVX2__)
enum { VECTOR = 32, ROWS = 4 };
#else
enum { VECTOR = 16, ROWS = 4 };
#endif
enum { DEPTH = 256 /* of a packed panel of B */ };

#define NAME(n) TERN_GLUE(n, REAL)

#define REAL  f32
#define QUADS 4 /* numbers in 16 bytes */
#include "product_vector.h"
#include "product_tile.h"
#undef REAL
#undef QUADS
#define REAL  f64
#define QUADS 2
#include "product_vector.h"
#include "product_tile.h"
