/* test_onnx_opened.c -- a program that is linked with libtern.so alone reads and writes ONNX by libtern_onnx.so, which is
 * opened beside it; with "without": of a copy that has none beside it, an error says so. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <tern/tern.h>

static int check(bool good, const char *what)
{
    if (!good)
        fprintf(stderr, "test_onnx_opened: %s: %s\n", what, tern_last_error());
    return !good;
}

static int without(void)
{
    int failed = check(!tern_onnx_is_available(), "available");
    failed |= check(!tern_onnx_load("model.onnx"), "loaded");
    failed |= check(tern_last_status() == TERN_ERR_UNSUPPORTED &&
                        strstr(tern_last_error(), "there is no libtern_onnx.so in "),
                    "the message");
    tern_clear_error();
    tern_module *m = tern_nn_tanh();
    tern_tensor *x = tern_ones(TERN_SHAPE(2), TERN_F32, "cpu");
    failed |= check(tern_onnx_export(m, &x, 1, "model.onnx", NULL) == TERN_ERR_UNSUPPORTED &&
                        strstr(tern_last_error(), "tern_onnx_export: model.onnx: "),
                    "the message of export");
    tern_release(x);
    tern_nn_free(m);
    return failed;
}

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "without") == 0)
        return without();
    if (!tern_onnx_is_available()) {
        printf("test_onnx_opened: skipped: libprotobuf-c.so.1 is not there\n");
        return 77;
    }
    int failed = 0;
    tern_module *m = tern_nn_linear(3, 2, NULL), *back = NULL;
    TERN_SCOPE {
        tern_tensor *x = tern_randn(TERN_SHAPE(4, 3), TERN_F32, "cpu");
        failed |= check(tern_onnx_export(m, &x, 1, argv[1], NULL) == TERN_OK, "not written");
        back = tern_onnx_load(argv[1]);
        failed |= check(back != NULL, "not loaded");
        double apart = back ? tern_item(tern_max(tern_abs(
                                  tern_sub(tern_nn_forward(m, x), tern_nn_forward(back, x)))))
                            : NAN;
        failed |= check(apart < 1e-6, "other results");
        failed |= check(!tern_onnx_load("/nowhere.onnx") && tern_last_status() == TERN_ERR_IO,
                        "a file that is not there");
        tern_clear_error();
    }
    tern_nn_free(m);
    tern_nn_free(back);
    remove(argv[1]);
    return failed;
}
