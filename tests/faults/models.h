/* models.h -- small models of the kinds that the examples train, and a step of each. */
#ifndef TERN_TESTS_FAULT_MODELS_H
#define TERN_TESTS_FAULT_MODELS_H
#include <tern/tern.h>

typedef struct test_model {
    const char *name;
    tern_module *(*make)(void); /* on the default device */
    tern_shape input, target;   /* float32 in [-1, 1), or ids where there are classes of inputs */
    int64_t ids, classes;       /* classes 0: the target is of float32 */
    tern_optimizer *(*optimizer)(tern_module *m);
    tern_dtype amp; /* trains in mixed precision with a scaler; or TERN_DTYPE_DEFAULT */
    bool clips;     /* the gradients' norm */
} test_model;
extern const test_model test_models[];
extern const int test_models_count;

/* A model at work. */
typedef struct test_training {
    const test_model *model;
    const char *device;
    tern_module *m;
    tern_tensor *x, *y; /* kept */
    tern_optimizer *optimizer;
    tern_scaler *scaler; /* or NULL */
    bool is_odd;         /* the last step's forward gave a result, and an error */
} test_training;

/* The same numbers each time. */
tern_status test_training_start(test_training *t, const test_model *model, const char *device);
/* A new optimizer, and scaler. */
tern_status test_training_begin(test_training *t);
void test_training_end(test_training *t);
/* One step; the first error of it. Random numbers are the same each time. */
tern_status test_training_step(test_training *t, double *loss);

#endif
