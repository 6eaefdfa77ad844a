/* custom_kernel.c -- a kernel of your own on tern's tensors: y = a x + y.
 *
 *   custom_kernel opencl:0        custom_kernel cpu
 *
 * What to expect: the mean is exact. The same by tern's own operations writes a product and reads it again, which the kernel
 * need not: it is faster on every device. */
#include "progress.h"
#include <stdio.h>

static const char source[] =
    "__kernel void saxpy(__global const float *x, __global float *y, float a, int n)\n"
    "{\n"
    "    int i = (int)get_global_id(0);\n"
    "    if (i < n) y[i] = a * x[i] + y[i];\n"
    "}\n";

enum { N = 1000000, TIMES = 1000 };

static void launch(tern_kernel *saxpy, tern_tensor *x, tern_tensor *y)
{
    tern_kernel_launch(saxpy, TERN_GRID(N), TERN_ARG_TENSOR(x), TERN_ARG_TENSOR(y),
                       TERN_ARG_FLOAT(2), TERN_ARG_INT(N));
}

/* Elements in a second, by the kernel or by tern's operations. */
static double rate(tern_kernel *saxpy, tern_tensor *x, tern_tensor *y, const char *name)
{
    tern_report *report = progress_begin("elements", TIMES);
    for (int i = 1; i <= TIMES; i++)
        TERN_SCOPE {
            if (saxpy)
                launch(saxpy, x, y);
            else
                tern_add_(y, tern_mul_scalar(x, TERN_SCALAR(2)));
            if (i == TIMES)
                tern_synchronize(NULL);
            tern_report_step(report, i, N);
        }
    double each = tern_report_rate(report);
    tern_report_close(report);
    printf("%s: %.1f GB/s of x and y\n", name, 12 * each * 1e-9);
    return each;
}

static void run(tern_kernel *saxpy)
{
    tern_tensor *x = tern_ones(TERN_SHAPE(N), TERN_F32, NULL);
    tern_tensor *y = tern_full(TERN_SHAPE(N), TERN_SCALAR(0.5), TERN_F32, NULL);
    launch(saxpy, x, y);
    /* Before and after it, tern's own operations. */
    printf("mean of 2 x 1 + 0.5 is %g; by hand: 2.5\n", tern_item(tern_mean(y)));
    tern_add_(y, tern_mul_scalar(x, TERN_SCALAR(0))); /* its programs are built */
    double own = rate(saxpy, x, y, "the kernel"), theirs = rate(NULL, x, y, "two operations");
    printf("the kernel is %.2f times as fast as mul and add_\n", own / theirs);
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

    tern_kernel *saxpy = tern_kernel_compile(device, source, "saxpy");
    if (tern_last_status() == TERN_ERR_UNSUPPORTED) {
        printf("%s\n", tern_last_error());
        return 0;
    }
    if (tern_set_default_device(device) == TERN_OK)
        TERN_SCOPE {
            run(saxpy);
        }
    tern_kernel_free(saxpy);
    if (tern_last_status() != TERN_OK) {
        fprintf(stderr, "custom_kernel: %s\n", tern_last_error());
        return 1;
    }
    return 0;
}
