/* onnx_files.c -- onnx_files FOLDER [seeds]: each of onnx_models.def as NAME.onnx, with inputs and what tern computes of them as
 * NAME.in0.npy, NAME.out0.npy and so on; of a dynamic batch with another one than it was exported with. With "seeds" instead
 * NAME as an input of fuzz_onnx, of those that are small. */
#include "../onnx_models.h"
#include <stdio.h>

static tern_status write(const onnx_model *m, const char *folder)
{
    tern_tensor *in[ONNX_MODEL_INPUTS], *out[ONNX_MODEL_OUTPUTS];
    char path[500];
    tern_onnx_export_options o = {.n_outputs = m->n_out, .dynamic_batch = m->any_batch};
    snprintf(path, sizeof path, "%s/%s.onnx", folder, m->name);
    tern_status status = tern_onnx_export(m->module, m->in, m->n_in, path, &o);
    if (status != TERN_OK)
        return status;
    if (m->any_batch)
        onnx_model_more(m, in);
    for (int k = 0; k < m->n_in; k++) {
        in[k] = m->any_batch ? in[k] : m->in[k];
        snprintf(path, sizeof path, "%s/%s.in%d.npy", folder, m->name, k);
        tern_npy_save(in[k], path);
    }
    status = tern_nn_call(m->module, in, m->n_in, out, m->n_out);
    for (int k = 0; status == TERN_OK && k < m->n_out; k++) {
        snprintf(path, sizeof path, "%s/%s.out%d.npy", folder, m->name, k);
        tern_npy_save(out[k], path);
    }
    return tern_last_status();
}

/* The inputs' types and sizes, and the model. */
static tern_status write_seed(const onnx_model *m, const char *folder)
{
    enum { MOST = 3000 };
    char path[500], bytes[MOST + 1];
    tern_onnx_export_options o = {.n_outputs = m->n_out, .dynamic_batch = m->any_batch};
    snprintf(path, sizeof path, "%s/%s", folder, m->name);
    tern_status status = tern_onnx_export(m->module, m->in, m->n_in, path, &o);
    FILE *file = status == TERN_OK ? fopen(path, "rb") : NULL;
    size_t n = file ? fread(bytes, 1, sizeof bytes, file) : 0;
    if (file)
        fclose(file);
    if (n > MOST)
        return remove(path) ? TERN_ERR_IO : TERN_OK;
    if (!n || !(file = fopen(path, "wb")))
        return TERN_ERR_IO;
    fputc(m->n_in, file);
    for (int k = 0; k < m->n_in; k++) {
        fputc(tern_dtype_of(m->in[k]) == TERN_I64, file);
        fputc(tern_dim(m->in[k]), file);
        for (int d = 0; d < tern_dim(m->in[k]); d++)
            fputc((int)tern_size(m->in[k], d), file);
    }
    fwrite(bytes, 1, n, file);
    return fclose(file) ? TERN_ERR_IO : TERN_OK;
}

int main(int argc, char **argv)
{
    int failures = 0;
    bool there = argc > 1, seeds = argc > 2;
    if (there && !tern_onnx_is_available()) {
        printf("SKIP: libprotobuf-c.so.1 can't be opened\n");
        return 77;
    }
    for (int i = 0; there; i++)
        TERN_SCOPE {
            onnx_model m;
            there = onnx_model_make(i, "cpu", &m);
            if (there) {
                if ((seeds ? write_seed : write)(&m, argv[1]) != TERN_OK) {
                    printf("FAIL %s: %s\n", m.name, tern_last_error());
                    failures++;
                }
                tern_clear_error();
                tern_nn_free(m.module);
            }
        }
    return failures;
}
