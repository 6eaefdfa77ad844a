/* words.cl -- names that mean something in C++ or CUDA, and not in OpenCL C. */
typedef struct {
    float this, new;
} class;

float operator_(float virtual, float delete)
{
    return virtual - delete;
}

__kernel void words(__global const float *x, __global float *template, int n)
{
    int i = get_global_id(0), blockSize = 3, warpSize_ = 4; // "a comment's __local float word"
    const char *unused = 0;
    if (i < n) {
        class namespace = {x[i], 2.0f};
        float using = operator_(namespace.this, namespace.new), or = 1.0f, xor = 2.0f, lo = 3.0f;
        int min = blockSize + warpSize_, not = !min;
        template[i] = using + or *xor+lo + (float)(min + not ) + (unused ? 1.0f : 0.0f);
    }
}
