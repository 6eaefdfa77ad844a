/* user_source.h -- translates a user's kernel from OpenCL C to C++ that includes cl_kernels/user.h,
 * for NVRTC and the host's compiler. */
#ifndef TERN_DEVICE_USER_SOURCE_H
#define TERN_DEVICE_USER_SOURCE_H
#include "device/backend.h"

enum { TERN_USER_ARGUMENTS = 64 };

/* The kind of a parameter: the bytes of the number, or of an element of the tensor (0 or
 * TERN_USER_UNKNOWN if the source does not show them), and flags. */
enum {
    TERN_USER_BYTES = 15,
    TERN_USER_UNKNOWN = 15,
    TERN_USER_REAL = 16, /* floating-point numbers; else integers */
    TERN_USER_TENSOR = 32,
    TERN_USER_LOCAL = 64,
    TERN_USER_VECTOR = 128 /* a vector of these numbers */
};
typedef struct tern_user_parameters {
    int n;
    uint8_t takes[TERN_USER_ARGUMENTS];
} tern_user_parameters;

typedef struct tern_user_source {
    const char *source;
    tern_text text; /* the C++ source, without the text that a backend adds before and after it */
    tern_text call; /* a call of the kernel, whose arguments are words */
    tern_user_parameters parameters;
    int64_t group[3]; /* the work-group size of reqd_work_group_size; 0: any */
    bool meets;       /* there are barriers */
    bool groups;      /* the kernel uses ids or sizes of work-groups, or local memory */
} tern_user_source;

/* Translates the kernel called name; returns TERN_ERR_ARGUMENT if the source has none. */
tern_status tern_user_source_read(tern_user_source *made, const char *source, const char *name);
void tern_user_source_free(tern_user_source *made);
/* Reads the parameters alone, and sets *open to the parenthesis of their list. Returns
 * TERN_ERR_ARGUMENT, without recording an error, if there is no kernel called name (*open is NULL
 * then) or it has too many parameters. */
tern_status tern_user_parameters_read(tern_user_parameters *made, const char *source,
                                      const char *name, const char **open);

/* ---- launches (user_launch.c) ------------------------------------------------------------ */
/* Returns how many dimensions of the grid are used, at least 1. */
int tern_user_dims(const tern_kernel_grid *grid);
/* Returns an error if the arguments do not fit the kernel's parameters. */
tern_status tern_user_check(const tern_user_parameters *parameters, const char *name,
                            const tern_arg *args, int n);
/* Writes each argument as a word of 8 bytes: a buffer's address, a value, or the offset of its
 * local memory. Sets *shared to the bytes of local memory. */
void tern_user_words(const tern_arg *args, int n, uint64_t *words, size_t *shared);
/* Sets `group` to the size of a work-group: that of the grid, or else that which the kernel
 * requires, or else up to 64 work-items. Returns an error if the kernel requires another size or
 * there are more than `most`. */
tern_status tern_user_group_of(const tern_user_source *source, const char *device, const char *name,
                               const tern_kernel_grid *grid, int64_t most, int64_t group[3]);

#endif
