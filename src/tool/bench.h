/* bench.h -- the measurements of `tern bench` that `tern doctor` records too. */
#ifndef TERN_TOOL_BENCH_H
#define TERN_TOOL_BENCH_H

/* Speed of a copy on the device in GB/s (bytes read and written) and of a float32 product in
 * GFLOP/s; 0 after a failure. */
typedef struct bench_speed {
    double copy, gemm;
} bench_speed;
bench_speed bench_quickly(const char *device);

#endif
