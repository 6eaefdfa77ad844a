/* onnx_models.c -- modules that are exported to ONNX: the rows of onnx_models.def. */
#include "onnx_models.h"
#include <string.h>

enum { FIXED, ANY };

/* ---- functions of rows ------------------------------------------------------------------------- */

static tern_tensor *y_as(tern_tensor *x, tern_tensor *y)
{
    return tern_to_dtype(y, tern_dtype_of(x));
}

static tern_tensor *sorted(tern_tensor *x)
{
    tern_values_indices both = {0};
    return tern_topk(x, 3, 1, true, true, &both) == TERN_OK ? both.values : NULL;
}

static tern_tensor *pool_places(tern_tensor *x)
{
    tern_values_indices out = {0};
    tern_max_pool2d_with_indices(x, TERN_DIMS(2), NULL, &out);
    return tern_add(out.indices, tern_to_dtype(out.values, TERN_I64));
}

/* A write in place into a copy. */
static tern_tensor *copied(tern_tensor *x)
{
    tern_tensor *y = tern_clone(x);
    tern_copy_(y, tern_mul(x, 2));
    return tern_add_(y, x);
}

/* ---- the rows ------------------------------------------------------------------------------------ */

typedef tern_tensor *(*function)(tern_tensor *x, tern_tensor *y);

static tern_status call_function(tern_module *self, tern_tensor *const *in, int n,
                                 tern_tensor **out, int k)
{
    const function *f = tern_nn_data(self);
    (void)k;
    out[0] = (*f)(in[0], n > 1 ? in[1] : NULL);
    return out[0] ? TERN_OK : tern_last_status();
}

static tern_tensor *reals(tern_shape shape)
{
    return tern_randn(shape, TERN_F32, "cpu");
}

static tern_tensor *wholes(int64_t below, tern_shape shape)
{
    return tern_randint(0, below, shape, TERN_I64, "cpu");
}

#define REALS(...)         reals(TERN_SHAPE(__VA_ARGS__))
#define WHOLES(below, ...) wholes(below, TERN_SHAPE(__VA_ARGS__))

#define MODEL(NAME, OUT, BATCH, MODULE, ...)
#define FUNCTION(NAME, BATCH, EXPRESSION, ...)                                                     \
    static tern_tensor *compute_##NAME(tern_tensor *x, tern_tensor *y)                             \
    {                                                                                              \
        (void)y;                                                                                   \
        return EXPRESSION;                                                                         \
    }                                                                                              \
    static function NAME##_function = compute_##NAME;
#include "onnx_models.def"
#undef MODEL
#undef FUNCTION

#define MODEL(NAME, OUT, BATCH, MODULE, ...)                                                       \
    static void make_##NAME(onnx_model *m)                                                         \
    {                                                                                              \
        tern_tensor *in[] = {__VA_ARGS__};                                                         \
        m->module = MODULE;                                                                        \
        m->name = #NAME;                                                                           \
        m->n_out = OUT;                                                                            \
        m->any_batch = BATCH;                                                                      \
        m->n_in = (int)(sizeof in / sizeof *in);                                                   \
        memcpy(m->in, in, sizeof in);                                                              \
    }
#define FUNCTION(NAME, BATCH, EXPRESSION, ...)                                                     \
    MODEL(NAME, 1, BATCH, tern_nn_module_with_call("Function", call_function, &NAME##_function),   \
          __VA_ARGS__)
#include "onnx_models.def"
#undef MODEL
#undef FUNCTION

static void (*const makers[])(onnx_model *m) = {
#define MODEL(NAME, OUT, BATCH, MODULE, ...)   make_##NAME,
#define FUNCTION(NAME, BATCH, EXPRESSION, ...) make_##NAME,
#include "onnx_models.def"
#undef MODEL
#undef FUNCTION
};

/* Parameters and statistics that no formula can do without. */
static tern_status stir(const char *path, tern_tensor *x, void *user)
{
    (void)path, (void)user;
    if (tern_dtype_is_floating_point(tern_dtype_of(x)))
        TERN_NO_GRAD {
            tern_copy_(x, tern_add_scalar(tern_abs(x), TERN_SCALAR(0.125)));
            tern_mul_(
                x, tern_add_scalar(tern_rand(tern_shape_of(x), TERN_F32, NULL), TERN_SCALAR(0.5)));
        }
    return tern_last_status();
}

bool onnx_model_make(int i, const char *device, onnx_model *model)
{
    if (i >= (int)(sizeof makers / sizeof *makers))
        return false;
    *model = (onnx_model){0};
    tern_manual_seed(100 + (uint64_t)i);
    makers[i](model);
    tern_nn_each_buffer(model->module, stir, NULL);
    tern_nn_eval(tern_nn_to(model->module, device));
    for (int k = 0; k < model->n_in; k++)
        model->in[k] = tern_to(model->in[k], device);
    return true;
}

void onnx_model_more(const onnx_model *model, tern_tensor *in[ONNX_MODEL_INPUTS])
{
    int64_t batch = tern_size(model->in[0], 0);
    for (int k = 0; k < model->n_in; k++) {
        tern_tensor *x = model->in[k];
        in[k] =
            tern_size(x, 0) == batch
                ? tern_cat((tern_tensor *[]){x, tern_narrow(tern_flip(x, TERN_DIMS(0)), 0, 0, 1),
                                             tern_narrow(x, 0, 0, 1)},
                           3, 0)
                : x;
    }
}
