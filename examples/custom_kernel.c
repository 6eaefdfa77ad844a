/* custom_kernel.c -- a kernel of your own on tern's tensors: y = a x + y.
 *
 *   custom_kernel opencl:0        custom_kernel cpu */
#include <stdio.h>
#include <tern/tern.h>
#include <time.h>

static const char source[] =
    "__kernel void saxpy(__global const float *x, __global float *y, float a, int n)\n"
    "{\n"
    "    int i = (int)get_global_id(0);\n"
    "    if (i < n) y[i] = a * x[i] + y[i];\n"
    "}\n";

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* The one named, else the cpu; NULL after saying that there is none. */
static const char *find_device(int argc, char **argv)
{
    const char *device = argc > 1 ? argv[1] : "cpu";
    if (tern_device_is_available(device))
        return device;
    printf("no device \"%s\" here. %s\n", device, tern_device_notes("opencl"));
    puts("hint: on Debian, apt install pocl-opencl-icd makes an OpenCL device of the processor.");
    return NULL;
}

int main(int argc, char **argv)
{
    const char *device = find_device(argc, argv);
    if (!device)
        return 0;

    enum { N = 1000000, TIMES = 20 };
    tern_kernel *saxpy = tern_kernel_compile(device, source, "saxpy");
    if (tern_last_status() == TERN_ERR_UNSUPPORTED) {
        printf("%s\n", tern_last_error());
        return 0;
    }
    TERN_SCOPE {
        tern_tensor *x = tern_ones(TERN_SHAPE(N), TERN_F32, device);
        tern_tensor *y = tern_full(TERN_SHAPE(N), TERN_SCALAR(0.5), TERN_F32, device);
        tern_kernel_launch(saxpy, TERN_GRID(N), TERN_ARG_TENSOR(x), TERN_ARG_TENSOR(y),
                           TERN_ARG_FLOAT(2), TERN_ARG_INT(N));
        /* Before and after it, tern's own operations. */
        double mean = tern_item(tern_mean(y));
        tern_synchronize(device);
        double begun = now();
        for (int i = 0; i < TIMES; i++)
            tern_kernel_launch(saxpy, TERN_GRID(N), TERN_ARG_TENSOR(x), TERN_ARG_TENSOR(y),
                               TERN_ARG_FLOAT(2), TERN_ARG_INT(N));
        tern_synchronize(device);
        double each = (now() - begun) / TIMES;
        if (tern_last_status() == TERN_OK)
            printf("on %s: mean of 2 x 1 + 0.5 is %g; by hand: 2.5\n%.3f ms, %.1f GB/s\n",
                   tern_device_name(device), mean, each * 1e3, 12.0 * N / each * 1e-9);
    }
    tern_kernel_free(saxpy);
    if (tern_last_status() != TERN_OK) {
        fprintf(stderr, "custom_kernel: %s\n", tern_last_error());
        return 1;
    }
    return 0;
}
