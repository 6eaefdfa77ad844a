/* bench.h -- what of `tern bench` the doctor notes too. */
#ifndef TERN_TOOL_BENCH_H
#define TERN_TOOL_BENCH_H

/* A copy on the device in GB/s (read and written), a product of float32 in GFLOP/s; 0 where it
 * failed. */
typedef struct bench_speed {
    double copy, gemm;
} bench_speed;
bench_speed bench_quickly(const char *device);

#endif
