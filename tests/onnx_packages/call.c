/* call.c -- an ONNX model as tern runs it.
 *
 *   onnx_call MODEL IN.npz OUT.npz K [CALLS]
 *
 * IN.npz holds i0, i1, ...; the first K results go to OUT.npz as o0, o1, ... With CALLS it is called so many times more,
 * and the median of their times is printed in milliseconds, with TERN_DEVICE as the device. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tern/tern.h>
#include <time.h>

enum { MOST = 32 };

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

static int by_size(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static int stop(const char *what)
{
    fprintf(stderr, "%s: %s\n", what, tern_last_error());
    return 1;
}

static void measure(tern_module *m, tern_tensor *const *in, int n, int k, int calls)
{
    double *times = calloc((size_t)calls, sizeof *times);
    for (int i = 0; times && i < calls; i++)
        TERN_SCOPE {
            tern_tensor *out[MOST] = {NULL};
            const double start = now();
            tern_nn_call(m, in, n, out, k);
            tern_synchronize(tern_device(in[0]));
            times[i] = now() - start;
        }
    if (times) {
        qsort(times, (size_t)calls, sizeof *times, by_size);
        printf("%.4f\n", times[calls / 2]);
    }
    free(times);
}

static int run(tern_module *m, const char *in_path, const char *out_path, int k, int calls)
{
    tern_tensor *in[MOST] = {NULL}, *out[MOST] = {NULL};
    char name[8];
    int n = 0;
    tern_state_dict *inputs = tern_load(in_path, NULL), *outputs = tern_state_dict_new();
    if (!inputs)
        return stop(in_path);
    for (; n < MOST; n++) {
        snprintf(name, sizeof name, "i%d", n);
        tern_tensor *x = tern_state_dict_get(inputs, name);
        if (!x)
            break;
        in[n] = tern_to(x, NULL);
    }
    tern_clear_error();
    if (tern_nn_call(m, in, n, out, k) != TERN_OK)
        return stop("tern_nn_call");
    for (int i = 0; i < k; i++) {
        snprintf(name, sizeof name, "o%d", i);
        tern_state_dict_set(outputs, name, tern_contiguous(tern_to(out[i], "cpu")));
    }
    if (tern_npz_save(outputs, out_path, NULL) != TERN_OK)
        return stop(out_path);
    if (calls > 0)
        measure(m, in, n, k, calls);
    tern_state_dict_free(outputs);
    tern_state_dict_free(inputs);
    return tern_last_status() == TERN_OK ? 0 : stop("tern");
}

int main(int argc, char **argv)
{
    if (argc < 5 || atoi(argv[4]) < 0 || atoi(argv[4]) > MOST) {
        fprintf(stderr, "usage: onnx_call MODEL IN.npz OUT.npz K [CALLS]\n");
        return 2;
    }
    tern_module *m = tern_onnx_load(argv[1]);
    if (!m)
        return stop("tern_onnx_load");
    int status = 1;
    tern_nn_eval(tern_nn_to(m, NULL));
    TERN_SCOPE
        TERN_NO_GRAD
            status = run(m, argv[2], argv[3], atoi(argv[4]), argc > 5 ? atoi(argv[5]) : 0);
    tern_nn_free(m);
    return status;
}
