/* matrix_kernel.h -- kernels on matrix units (cl_kernels/matrix.h), for every backend that has such
 * kernels: their variants, the definitions at the beginning of their source, and a trial of each
 * kernel before it is used. */
#ifndef TERN_DEVICE_MATRIX_KERNEL_H
#define TERN_DEVICE_MATRIX_KERNEL_H
#include "device/device.h"
#include "device/matrix_way.h"

enum { TERN_MATRIX_NUMBERS = 10 };

/* The kernels of a file, which differ in the values of macros. */
typedef struct tern_matrix_family {
    const char *file, *kernel;   /* "gemm_matrix.cl"; "gemm_matrix", the name without the dtype */
    const char *function, *what; /* for warnings: "tern_matmul", "products" */
    const char *macros[TERN_MATRIX_NUMBERS];
} tern_matrix_family;

/* The variant of a kernel. The struct has no padding, because variants are compared by memcmp. */
typedef struct tern_matrix_variant {
    const tern_matrix_family *family;
    int32_t dtype, way;
    int32_t group;  /* threads of a work-group */
    int32_t narrow; /* indices have 32 bits */
    int32_t numbers[TERN_MATRIX_NUMBERS];
} tern_matrix_variant;

typedef struct tern_matrix_kernel {
    struct tern_matrix_kernel *next;
    tern_matrix_variant of;
    void *compiled; /* the backend's kernel; NULL: the compilation failed */
    enum { TERN_MATRIX_NOT_TRIED, TERN_MATRIX_RIGHT, TERN_MATRIX_WRONG } state;
} tern_matrix_kernel;

/* The source of a kernel: definitions, the kernel's name, and a title for messages. */
typedef struct tern_matrix_source {
    char defines[640], name[40], title[96];
} tern_matrix_source;

typedef struct tern_matrix_backend {
    tern_status (*build)(tern_place *place, const tern_matrix_variant *of,
                         const tern_matrix_source *source, void **compiled);
    void (*free)(void *compiled);
} tern_matrix_backend;

/* The kernels of a device. The caller of the functions below holds a lock of the backend. Kernels
 * keep their addresses. */
typedef struct tern_matrix_kernels {
    const tern_matrix_backend *backend;
    tern_matrix_kernel *first;
} tern_matrix_kernels;

/* The variants of a call's kernels; try(user) solves a problem with exact results with them and
 * sets *right to whether the results are exact. */
typedef struct tern_matrix_call {
    const tern_matrix_variant *of;
    int n;
    tern_status (*try)(void *user, bool *right);
    void *user;
} tern_matrix_call;

/* Sets *found to the kernel of a variant, which is compiled when it is first needed; returns an
 * error if the compilation fails. */
tern_status tern_matrix_find(tern_place *place, tern_matrix_kernels *kernels,
                             const tern_matrix_variant *of, tern_matrix_kernel **found);
/* Compiles and tries the kernels of a call and writes them to found. Sets *usable to whether all
 * compile and, except for TERN_MATRIX_PLAIN, gave exact results. If one does not, a warning says so
 * once, and the kernel is not tried again. If memory is out or nothing may be compiled, returns an
 * error, and the next call tries again. A graph that the thread records does not contain trials. */
tern_status tern_matrix_prepare(tern_place *place, tern_matrix_kernels *kernels,
                                const tern_matrix_call *call, tern_matrix_kernel **found,
                                bool *usable);
/* A function like tern_matrix_prepare for the kernels of the place's backend. */
typedef tern_status tern_matrix_prepare_own(tern_place *place, const tern_matrix_call *call,
                                            tern_matrix_kernel **found, bool *usable);
void tern_matrix_kernels_free(tern_matrix_kernels *kernels);

#endif
