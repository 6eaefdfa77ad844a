/* test_onnx_export.c -- modules written to ONNX: read again they compute the same, on every device. */
#include "onnx_models.h"
#include "support.h"
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[200];

static const char *at(const char *name)
{
    static char path[2][400];
    static int next;
    char *p = path[next++ % 2];
    snprintf(p, sizeof path[0], "%s/%s", folder, name);
    return p;
}

/* What both modules compute of the inputs is the same. */
static void compare(const onnx_model *m, tern_module *again, tern_tensor *const *in)
{
    tern_tensor *a[ONNX_MODEL_OUTPUTS], *b[ONNX_MODEL_OUTPUTS];
    assert_ok(tern_nn_call(m->module, in, m->n_in, a, m->n_out));
    assert_ok(tern_nn_call(again, in, m->n_in, b, m->n_out));
    for (int k = 0; k < m->n_out; k++)
        assert_close(b[k], a[k], .abs = 2e-5, .rel = 1e-4);
}

static void modules_come_back(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    {
        onnx_model m;
        for (int i = 0;; i++)
            TERN_SCOPE {
                if (!test_thorough(device) && i % 4)
                    continue;
                if (!onnx_model_make(i, device, &m))
                    return;
                tern_tensor *more[ONNX_MODEL_INPUTS];
                tern_onnx_export_options o = {.n_outputs = m.n_out, .dynamic_batch = m.any_batch};
                print_message("  %s\n", m.name);
                assert_ok(tern_onnx_export(m.module, m.in, m.n_in, at("model.onnx"), &o));
                tern_module *again = tern_nn_to(tern_onnx_load(at("model.onnx")), device);
                assert_non_null(again);
                tern_nn_eval(again);
                compare(&m, again, m.in);
                onnx_model_more(&m, more);
                if (m.any_batch)
                    compare(&m, again, more);
                tern_nn_free(again);
                tern_nn_free(m.module);
            }
    }
}

static const struct CMUnitTest tests[] = {
    TEST(modules_come_back),
};

int main(void)
{
    snprintf(folder, sizeof folder, "onnx_export.XXXXXX");
    if (!mkdtemp(folder))
        return 1;
    int failures = test_main(tests, sizeof tests / sizeof *tests);
    char command[300];
    snprintf(command, sizeof command, "rm -rf %s", folder);
    return system(command) ? 1 : failures;
}
