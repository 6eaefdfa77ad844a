/* adamw8bit_kernels.h -- the update of 8-bit AdamW, as C for the cpu and as kernel source for other
 * devices (host_and_device.h). */
#ifndef TERN_SRC_MODELS_ADAMW8BIT_KERNELS_H
#define TERN_SRC_MODELS_ADAMW8BIT_KERNELS_H
#include "models/host_and_device.h"

/* Elements of a block that a work-item processes; on the cpu it processes all of them. */
enum { EACH = 256 };

#ifdef _WIN32
#define long int64_t /* int64_t, because long has 64 bits in OpenCL */
#endif
/* clang-format off */
BOTH("enum { EACH = 4 };\n",

/* Returns the code of the value nearest to x: the number of the 255 midpoints between values that
 * are below x. */
static int code_of(__global const float *middles, float x)
{
    int at = 0;
    for (int step = 128; step > 0; step >>= 1)
        at += x > middles[at + step - 1] ? step : 0;
    return at;
}

static float largest(__local float *scratch, float x)
{
    scratch[get_local_id(0)] = x;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int i = 0; i < (int)get_local_size(0); i++)
        x = fmax(x, scratch[i]);
    barrier(CLK_LOCAL_MEM_FENCE);
    return x;
}

/* Updates blocks from .. end. tables: the signed map, its midpoints, the unsigned map, its
 * midpoints. p = shrink p - lr m / (sqrt(v) / scale + eps), with m and v before they are rounded to
 * codes. */
__kernel void update_blocks(__global float *p, __global const float *g, __global uchar *codes1,
                            __global uchar *codes2, __global float *absmax1,
                            __global float *absmax2, __global const float *tables, long n,
                                long from,
                            long end, float lr, float beta1, float beta2, float fresh1,
                            float fresh2, float eps, float shrink, float scale, float sign)
{
    __local float scratch[64];
    for (long b = from + get_group_id(0); b < end; b += get_num_groups(0)) {
        float m[EACH];
        float v[EACH];
        float most1 = 0;
        float most2 = 0;
        float old1 = absmax1[b];
        float old2 = absmax2[b];
        int first = get_local_id(0);
        int lanes = get_local_size(0);
        int count = n - b * 256 < 256 ? (int)(n - b * 256) : 256;
        for (int j = first; j < count; j += lanes) {
            long i = b * 256 + j;
            float grad = sign * g[i];
            float a = beta1 * (tables[codes1[i]] * old1) + fresh1 * grad;
            float s = beta2 * (tables[512 + codes2[i]] * old2) + fresh2 * grad * grad;
            p[i] = p[i] * shrink - lr * a / (sqrt(s) / scale + eps);
            most1 = fmax(most1, fabs(a));
            most2 = fmax(most2, s);
            m[j / lanes] = a;
            v[j / lanes] = s;
        }
        most1 = largest(scratch, most1);
        most2 = largest(scratch, most2);
        for (int j = first; j < count; j += lanes) {
            long i = b * 256 + j;
            codes1[i] = (uchar)code_of(tables + 256, most1 > 0 ? m[j / lanes] / most1 : 0);
            codes2[i] = (uchar)code_of(tables + 768, most2 > 0 ? v[j / lanes] / most2 : 0);
        }
        if (first == 0) {
            absmax1[b] = most1;
            absmax2[b] = most2;
        }
    }
}

/* The same update with float32 moments; from and end count blocks of 256 elements. */
__kernel void update_dense(__global float *p, __global const float *g, __global float *m,
                           __global float *v, long n, long from, long end, float lr, float beta1,
                           float beta2, float fresh1, float fresh2, float eps, float shrink,
                           float scale, float sign)
{
    long last = end * 256 < n ? end * 256 : n;
    long lanes = (long)get_num_groups(0) * get_local_size(0);
    long first = (long)get_group_id(0) * get_local_size(0) + get_local_id(0);
    for (long i = from * 256 + first; i < last; i += lanes) {
        float grad = sign * g[i];
        m[i] = beta1 * m[i] + fresh1 * grad;
        v[i] = beta2 * v[i] + fresh2 * grad * grad;
        p[i] = p[i] * shrink - lr * m[i] / (sqrt(v[i]) / scale + eps);
    }
}
)
/* clang-format on */
#undef long
#endif
