/* matrix_kernel.h -- kernels over cl_kernels/matrix.h, for every backend that has some: what one is
 * built for, the definitions that its text begins with, and its trial before it is used. */
#ifndef TERN_DEVICE_MATRIX_KERNEL_H
#define TERN_DEVICE_MATRIX_KERNEL_H
#include "device/device.h"
#include "device/matrix_way.h"

enum { TERN_MATRIX_NUMBERS = 10 };

/* The kernels of a file: they differ in the values of macros. */
typedef struct tern_matrix_family {
    const char *file, *kernel;   /* "gemm_matrix.cl"; "gemm_matrix", to which a type is added */
    const char *function, *what; /* for warnings: "tern_matmul", "products" */
    const char *macros[TERN_MATRIX_NUMBERS];
} tern_matrix_family;

/* What one is built for. Compared byte by byte: it has no padding. */
typedef struct tern_matrix_variant {
    const tern_matrix_family *family;
    int32_t dtype, way;
    int32_t group;  /* threads */
    int32_t narrow; /* indices of 32 bits */
    int32_t numbers[TERN_MATRIX_NUMBERS];
} tern_matrix_variant;

typedef struct tern_matrix_kernel {
    struct tern_matrix_kernel *next;
    tern_matrix_variant of;
    void *compiled; /* the backend's; NULL: it does not build */
    enum { TERN_MATRIX_NOT_TRIED, TERN_MATRIX_RIGHT, TERN_MATRIX_WRONG } state;
} tern_matrix_kernel;

/* What a backend builds one from; title: for messages. */
typedef struct tern_matrix_source {
    char defines[640], name[40], title[96];
} tern_matrix_source;

typedef struct tern_matrix_backend {
    tern_status (*build)(tern_place *place, const tern_matrix_variant *of,
                         const tern_matrix_source *source, void **compiled);
    void (*free)(void *compiled);
} tern_matrix_backend;

/* The kernels of a device; who calls holds a lock of its own. They stay where they are. */
typedef struct tern_matrix_kernels {
    const tern_matrix_backend *backend;
    tern_matrix_kernel *first;
} tern_matrix_kernels;

/* The kernels of a call; try(user) does a problem with them whose numbers are exact. */
typedef struct tern_matrix_call {
    const tern_matrix_variant *of;
    int n;
    tern_status (*try)(void *user, bool *right);
    void *user;
} tern_matrix_call;

/* The kernel of that variant, built when it is first wanted; an error where it does not build. */
tern_status tern_matrix_find(tern_place *place, tern_matrix_kernels *kernels,
                             const tern_matrix_variant *of, tern_matrix_kernel **found);
/* Those of a call, in found, where it returns usable: all are built and, but for those of PLAIN,
 * gave what they were to give. What does not build or is wrong is warned of once, and stays so;
 * without memory, or while nothing may be compiled, it is an error, and tried another time.
 * Trials are not part of a graph that the thread records. */
tern_status tern_matrix_prepare(tern_place *place, tern_matrix_kernels *kernels,
                                const tern_matrix_call *call, tern_matrix_kernel **found,
                                bool *usable);
/* The same of a device's own kernels. */
typedef tern_status tern_matrix_prepare_own(tern_place *place, const tern_matrix_call *call,
                                            tern_matrix_kernel **found, bool *usable);
void tern_matrix_kernels_free(tern_matrix_kernels *kernels);

#endif
