/* numbers.c -- the stand-in's floating point types. */
#include "standin.h"
#include <string.h>

double standin_load(const void *from, int64_t at, cudaDataType type)
{
    uint16_t half;
    uint32_t bits;
    float value;
    if (type == CUDA_R_64F)
        return ((const double *)from)[at];
    if (type == CUDA_R_32F)
        return ((const float *)from)[at];
    memcpy(&half, (const char *)from + 2 * at, sizeof half);
    if (type == CUDA_R_16BF) {
        bits = (uint32_t)half << 16;
        memcpy(&value, &bits, sizeof value);
        return value;
    }
    _Float16 narrow;
    memcpy(&narrow, &half, sizeof narrow);
    return (double)narrow;
}

void standin_save(void *to, int64_t at, cudaDataType type, double value)
{
    if (type == CUDA_R_64F) {
        ((double *)to)[at] = value;
    } else if (type == CUDA_R_32F) {
        ((float *)to)[at] = (float)value;
    } else if (type == CUDA_R_16BF) {
        float f = (float)value;
        uint32_t bits;
        memcpy(&bits, &f, sizeof bits);
        uint32_t rounded = bits + 0x7fffu + (bits >> 16 & 1u);
        ((uint16_t *)to)[at] = (uint16_t)(value != value ? 0x7fffu : rounded >> 16);
    } else {
        const uint16_t nan = 0x7fff;
        const _Float16 narrow = (_Float16)(float)value;
        memcpy((char *)to + 2 * at, value != value ? (const void *)&nan : &narrow, sizeof narrow);
    }
}

double standin_tf32(double value)
{
    float f = (float)value;
    uint32_t bits;
    memcpy(&bits, &f, sizeof bits);
    if ((bits >> 23 & 0xffu) != 0xffu)
        bits = (bits + 0xfffu + (bits >> 13 & 1u)) & ~0x1fffu;
    memcpy(&f, &bits, sizeof f);
    return (double)f;
}
