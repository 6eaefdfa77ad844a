/* host_and_device.h -- kernels that are also C: BOTH(HEAD, text ...) defines the text as functions
 * for the cpu, where one work-item does all the work, and as the string `source` for
 * tern_kernel_compile. The text has no preprocessor lines; HEAD, which only the string has, may
 * have some. */
#ifndef TERN_SRC_MODELS_HOST_AND_DEVICE_H
#define TERN_SRC_MODELS_HOST_AND_DEVICE_H
#include <math.h>
#include <stdint.h>

typedef unsigned char uchar;
#define __kernel static
#define __global
#define __local
#define CLK_LOCAL_MEM_FENCE 0
#define barrier(FENCE)      (void)(FENCE)
#define get_group_id(D)     (D)
#define get_num_groups(D)   ((D) + 1)
#define get_local_id(D)     (D)
#define get_local_size(D)   ((D) + 1)
#define sqrt(x)             sqrtf(x)
#define fmax(x, y)          fmaxf(x, y)
#define fabs(x)             fabsf(x)

#define BOTH(HEAD, ...)                                                                            \
    static const char source[] = HEAD #__VA_ARGS__;                                                \
    __VA_ARGS__

#endif
