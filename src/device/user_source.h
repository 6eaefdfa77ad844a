/* user_source.h -- a kernel of the program's own, from OpenCL C to C++ with cl_kernels/user.h
 * before it: what NVRTC and the host's compiler take. */
#ifndef TERN_DEVICE_USER_SOURCE_H
#define TERN_DEVICE_USER_SOURCE_H
#include "device/backend.h"

enum { TERN_USER_ARGUMENTS = 64 };

/* What a parameter takes: the bytes of a number, or of an element of a tensor (0 or UNTOLD where
 * the text does not show), and the rest of these that hold of it. */
enum {
    TERN_USER_BYTES = 15,
    TERN_USER_UNKNOWN = 15,
    TERN_USER_REAL = 16, /* floating-point numbers, else integers */
    TERN_USER_TENSOR = 32,
    TERN_USER_LOCAL = 64,
    TERN_USER_VECTOR = 128 /* of such numbers */
};
typedef struct tern_user_parameters {
    int n;
    uint8_t takes[TERN_USER_ARGUMENTS];
} tern_user_parameters;

typedef struct tern_user_source {
    const char *source;
    tern_text text; /* without what comes before and after it */
    tern_text call; /* of the kernel, with its words */
    tern_user_parameters parameters;
    int64_t group[3]; /* that it requires (reqd_work_group_size); 0: any */
    bool meets;       /* there are barriers */
    bool groups;      /* it sees work-groups: asks for ids or sizes of them, or has local memory */
} tern_user_source;

/* Reads the kernel called name; TERN_ERR_ARGUMENT where the source has none. */
tern_status tern_user_source_read(tern_user_source *made, const char *source, const char *name);
void tern_user_source_free(tern_user_source *made);
/* The parameters alone, and where their list opens. TERN_ERR_ARGUMENT, which is not recorded: there
 * is no kernel called name (*open is NULL), or it has too many. */
tern_status tern_user_parameters_read(tern_user_parameters *made, const char *source,
                                      const char *name, const char **open);

/* ---- launches (user_launch.c) ------------------------------------------------------------ */
/* How many dimensions of the grid are used, at least 1. */
int tern_user_dims(const tern_kernel_grid *grid);
/* An error where the arguments are not what the kernel's parameters take. */
tern_status tern_user_check(const tern_user_parameters *parameters, const char *name,
                            const tern_arg *args, int n);
/* Each argument as 8 bytes: a buffer's address, a value, or where its local memory begins among
 * *shared bytes. */
void tern_user_words(const tern_arg *args, int n, uint64_t *words, size_t *shared);
/* Work-items of a group, of which a device takes `most`: the grid's, those that the kernel
 * requires, or 64. */
tern_status tern_user_group_of(const tern_user_source *source, const char *device, const char *name,
                               const tern_kernel_grid *grid, int64_t most, int64_t group[3]);

#endif
