/* fuzz_onnx.c -- ONNX models of any bytes: an error, or a module that computes or refuses, and nothing else.
 *
 * An input is a model, or the number of inputs that it is given (1 to 4), each of them as type (0 float32, 1 int64, 2 bool,
 * 3 uint8), dims and sizes, a byte each, and the model behind. A model alone begins with 8, its version, and is given float32
 * tensors of (3, 4, 5), one to three. */
#define _GNU_SOURCE /* memfd_create */
#include "bytes.h"
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <tern/tern.h>
#include <unistd.h>

enum { INPUTS = 4, DIMS = 5, SIZE = 16 };

static void wrong(const char *what)
{
    fprintf(stderr, "fuzz_onnx: %s\n", what);
    abort();
}

/* The tensors that stand before the model, and how many bytes of it they are; n 0: none do. */
static size_t read_inputs(const uint8_t *bytes, size_t size, tern_tensor *in[INPUTS], int *n)
{
    size_t at = 1;
    *n = 0;
    if (!size || bytes[0] < 1 || bytes[0] > INPUTS)
        return 0;
    for (; *n < bytes[0] && at + 2 + DIMS < size; ++*n) {
        tern_shape shape = {.ndim = bytes[at + 1] % (DIMS + 1)};
        static const tern_dtype dtypes[] = {TERN_F32, TERN_I64, TERN_BOOL, TERN_U8};
        tern_dtype dtype = dtypes[bytes[at] % 4];
        at += 2;
        for (int d = 0; d < shape.ndim; d++)
            shape.dims[d] = bytes[at++] % (SIZE + 1);
        in[*n] = dtype == TERN_F32 ? tern_full(shape, TERN_SCALAR(0.5), TERN_F32, "cpu")
                                   : tern_ones(shape, dtype, "cpu");
    }
    return at;
}

static void call(tern_module *m, tern_tensor *const *in, int n)
{
    tern_tensor *out[1] = {NULL};
    tern_status status = tern_nn_call(m, in, n, out, 1);
    if (status == TERN_OK && (!out[0] || tern_last_status() != TERN_OK))
        wrong("a call that succeeded left an error, or no result");
    if (status != TERN_OK && tern_last_status() == TERN_OK)
        wrong("a call failed without an error");
    tern_clear_error();
}

static void load_and_call(const char *path, tern_tensor **in, int n)
{
    tern_module *m = tern_onnx_load(path);
    if (!m && (tern_last_status() == TERN_OK || !*tern_last_error()))
        wrong("neither a module nor an error");
    if (m && tern_last_status() != TERN_OK)
        wrong("a module and an error");
    tern_clear_error();
    for (int k = n ? n : 1; m && k <= (n ? n : 3); k++)
        TERN_SCOPE
            TERN_NO_GRAD
                call(tern_nn_eval(m), in, k);
    tern_nn_free(m);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    char path[64];
    setenv("TERN_ONNX_LOOP_LIMIT", "100", 0); /* which is read once */
    int64_t live = tern_live_tensors();
    TERN_SCOPE {
        tern_tensor *in[INPUTS];
        int n = 0, fd = memfd_create("model", MFD_CLOEXEC);
        size_t at = read_inputs(bytes, size, in, &n);
        for (int k = 0; !n && k < 3; k++)
            in[k] = tern_full(TERN_SHAPE(3, 4, 5), TERN_SCALAR(0.5), TERN_F32, "cpu");
        tern_clear_error();
        if (fd < 0 || at > size || write(fd, bytes + at, size - at) != (ssize_t)(size - at))
            wrong("no file in memory");
        snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
        load_and_call(path, in, n);
        close(fd);
    }
    if (tern_last_status() != TERN_OK)
        wrong(tern_last_error());
    if (tern_live_tensors() != live)
        wrong("tensors are left");
    return 0;
}
