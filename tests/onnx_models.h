/* onnx_models.h -- modules that are exported to ONNX, and inputs for them. */
#ifndef TERN_TESTS_ONNX_MODELS_H
#define TERN_TESTS_ONNX_MODELS_H
#include <tern/tern.h>

enum { ONNX_MODEL_INPUTS = 4, ONNX_MODEL_OUTPUTS = 4 };

typedef struct onnx_model {
    const char *name;
    tern_module *module; /* in evaluation, on the device */
    tern_tensor *in[ONNX_MODEL_INPUTS];
    int n_in, n_out;
    bool any_batch;
} onnx_model;

/* Number i, its module to be freed, its inputs of the scope; false behind the last. */
bool onnx_model_make(int i, const char *device, onnx_model *model);
/* The same inputs with two entries more of dim 0. */
void onnx_model_more(const onnx_model *model, tern_tensor *in[ONNX_MODEL_INPUTS]);

#endif
