/* macros.cl -- macros in a list of parameters. */
#define IN(T, name)  __global const T *restrict name
#define OUT(T, name) __global T *restrict name
#define SIZES        int n, int step_
#define SCRATCH      __local float *
#define BOTH(T)      IN(T, x), OUT(T, y)
#define TWICE(v)     ((v) + (v))

__kernel void macros(BOTH(float), SCRATCH buffer, SIZES)
{
    int i = get_global_id(0), lane = get_local_id(0);
    buffer[lane] = i < n ? TWICE(x[i]) : 0.0f;
    barrier(CLK_LOCAL_MEM_FENCE);
    if (i < n)
        y[i] = buffer[lane] + buffer[(lane + step_) % get_local_size(0)];
}
