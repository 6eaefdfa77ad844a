// test_cpp.cpp -- a C++20 program that uses every macro of the public headers and option structs of
// each kind; options.h checks all of them.
#include <cstdio>
#include <cstring>
#include <tern/tern.h>

static int failures;

static void check(bool holds, const char *what)
{
    std::printf("%-4s %s\n", holds ? "ok" : "FAIL", what);
    failures += !holds;
}

static tern_tensor *twice(tern_module *, tern_tensor *x)
{
    return tern_mul_scalar(x, TERN_SCALAR(2));
}

static void makes_tensors()
{
    TERN_SCOPE {
        const std::size_t rows = 2;
        tern_tensor *x = tern_zeros(TERN_SHAPE(rows, 3), TERN_F32, nullptr);
        check(tern_numel(x) == 6, "TERN_SHAPE takes any integers");
        check(tern_dim(tern_ones(TERN_SHAPE_SCALAR, TERN_F32, nullptr)) == 0, "TERN_SHAPE_SCALAR");
        check(tern_numel(tern_sum_dim(x, TERN_DIMS(-1), false)) == 2, "TERN_DIMS");
        check(tern_dtype_of(tern_tensor_scalar(TERN_SCALAR(2), TERN_DTYPE_DEFAULT, nullptr)) ==
                  TERN_I64,
              "TERN_SCALAR of an integer");
        check(tern_dtype_of(tern_tensor_scalar(TERN_SCALAR(2.0f), TERN_DTYPE_DEFAULT, nullptr)) ==
                  TERN_F32,
              "TERN_SCALAR of a real");
        check(tern_dtype_of(tern_tensor_scalar(TERN_SCALAR(true), TERN_DTYPE_DEFAULT, nullptr)) ==
                  TERN_BOOL,
              "TERN_SCALAR of a bool");
        check(tern_numel(tern_slice(x, 1, 0, TERN_SLICE_END, 1)) == 6, "TERN_SLICE_END");
    }
}

static bool is(tern_tensor *x, tern_dtype dtype, double sum)
{
    return x && tern_dtype_of(x) == dtype && tern_item(tern_sum(x)) == sum;
}

// numbers.h, pointers.h: overloads.
static void tells_types()
{
    TERN_SCOPE {
        const double reals[] = {1.5, 2};
        const float rows[2][2] = {{1, 2}, {3, 4}};
        double back[2] = {};
        tern_tensor *(*mul)(tern_tensor *, tern_tensor *) = tern_mul;
        tern_tensor *d = tern_from_data(reals, TERN_SHAPE(2), TERN_DTYPE_DEFAULT, "cpu");
        tern_tensor *i = tern_arange(0, 3, 1, TERN_DTYPE_DEFAULT, "cpu");
        check(is(d, TERN_F64, 3.5), "a pointer tells its type");
        check(is(tern_from_data(rows, TERN_SHAPE(2, 2), TERN_DTYPE_DEFAULT, "cpu"), TERN_F32, 10),
              "and rows of arrays");
        check(tern_copy_to_host(d, back, sizeof back) == TERN_OK && back[1] == 2, "and back");
        check(!tern_from_data(reals, TERN_SHAPE(2), TERN_F32, "cpu") &&
                  tern_last_status() == TERN_ERR_DTYPE,
              "another type is refused");
        tern_clear_error();
        const float *pointers[] = {rows[0], rows[1]};
        check(!tern_from_data(pointers, TERN_SHAPE(2, 2), TERN_F32, "cpu") &&
                  tern_last_status() == TERN_ERR_DTYPE,
              "addresses of rows are");
        tern_clear_error();
        check(!tern_from_data("bytes", TERN_SHAPE(1), TERN_DTYPE_DEFAULT, "cpu") &&
                  tern_last_status() == TERN_ERR_DTYPE,
              "char tells none");
        tern_clear_error();
        check(is(tern_from_data("\x02", TERN_SHAPE(1), TERN_U8, "cpu"), TERN_U8, 2) &&
                  is(tern_from_data((const void *)rows, TERN_SHAPE(4), TERN_DTYPE_DEFAULT, "cpu"),
                     TERN_F32, 10),
              "bytes fit what is said");
        check(is(i, TERN_I64, 3), "a range of integers");
        check(is(tern_arange(0.0, 3, 1, TERN_DTYPE_DEFAULT, "cpu"), TERN_F32, 3), "of reals");
        check(is(tern_mul(i, 2), TERN_I64, 6) && is(tern_mul(i, 0.5), TERN_F32, 1.5) &&
                  is(tern_mul(i, TERN_SCALAR(2)), TERN_I64, 6),
              "numbers stand for tensors");
        check(is(tern_where(tern_gt(i, 1), i, 0.5), TERN_F32, 3), "in where, too");
        check(is(tern_full(TERN_SHAPE(2), 7, TERN_DTYPE_DEFAULT, "cpu"), TERN_I64, 14), "in full");
        check(is(mul(i, i), TERN_I64, 5), "the name is still a function's");
    }
}

static void reads_options_as_written(double computed)
{
    tern_adamw_options o = tern_adamw_defaults();
    check(o.weight_decay == 0.01 && o.beta2 == 0.999, "defaults can be read");
    tern_module *m = tern_nn_linear(1, 1, nullptr);
    tern_optimizer *a = tern_optim_adamw(m, 0.1, TERN_DEFAULTS(adamw, .weight_decay = computed));
    o.weight_decay = computed;
    tern_optimizer *b = tern_optim_adamw(m, 0.1, &o);
    check(tern_optim_get_option(a, 0, "weight_decay") == 0 &&
              tern_optim_get_option(b, 0, "weight_decay") == 0 &&
              tern_optim_get_option(a, 0, "beta1") == 0.9,
          "a computed zero is zero");
    tern_optim_free(a);
    tern_optim_free(b);
    tern_nn_free(m);
}

// RAII: leaving by return restores everything.
static void leaves_blocks()
{
    TERN_SCOPE
        TERN_DEVICE ("cpu")
            TERN_NO_GRAD
                TERN_ENABLE_GRAD
    TERN_GRAD_MODE(false)
    if (tern_zeros(TERN_SHAPE(1), TERN_F32, nullptr))
        return;
}

static void records()
{
    TERN_SCOPE {
        tern_graph *graph = tern_graph_new(nullptr);
        tern_tensor *x = tern_ones(TERN_SHAPE(1), TERN_F32, nullptr), *y = nullptr;
        TERN_CAPTURE (graph) {
            TERN_UNRECORDED
                tern_add_(x, tern_ones_like(x));
            y = tern_add(x, x);
        }
        check(tern_graph_replay(graph) == TERN_OK && tern_item(y) == 4, "TERN_CAPTURE");
        tern_graph_free(graph);
    }
}

static void casts()
{
    TERN_SCOPE {
        tern_tensor *x = tern_ones(TERN_SHAPE(2, 2), TERN_F32, "cpu");
        TERN_AUTOCAST ("cpu", TERN_BF16) {
            check(tern_dtype_of(tern_matmul(x, x)) == TERN_BF16, "TERN_AUTOCAST");
            TERN_AUTOCAST_MODE("cpu", TERN_BF16, false)
            check(tern_dtype_of(tern_matmul(x, x)) == TERN_F32, "TERN_AUTOCAST_MODE");
        }
    }
}

static void differentiates()
{
    TERN_SCOPE {
        tern_tensor *x = tern_requires_grad_(tern_ones(TERN_SHAPE(2), TERN_F32, nullptr), true);
        tern_tensor *y = tern_square(x), *ones = tern_ones_like(x), *grad = nullptr;
        const tern_backward_options backward = {.gradient = ones, .retain_graph = true};
        check(tern_backward_with(y, &backward) == TERN_OK, "tern_backward_options");
        tern_tensor *const gradients[] = {ones};
        const tern_autograd_grad_options again = {.gradients = gradients};
        check(tern_autograd_grad(&y, 1, &x, 1, &grad, &again) == TERN_OK,
              "tern_autograd_grad_options");
    }
}

static void has_modules()
{
    tern_linear_options linear = {};
    linear.no_bias = true;
    tern_gelu_options gelu = {};
    tern_leaky_relu_options leaky_relu = {};
    leaky_relu.negative_slope = TERN_ZERO;
    tern_dropout_options dropout = {};
    dropout.p = TERN_ZERO;
    tern_layer_norm_options layer_norm = {};
    tern_embedding_options embedding = {};
    embedding.padding_idx = TERN_SOME(0);
    tern_module *model = tern_nn_sequential(
        tern_nn_linear(4, 3, &linear), tern_nn_gelu(&gelu), tern_nn_leaky_relu(&leaky_relu),
        tern_nn_dropout(&dropout), tern_nn_layer_norm(TERN_SHAPE(3), &layer_norm),
        tern_nn_module("Twice", twice, nullptr));
    tern_module *table = tern_nn_embedding(5, 4, &embedding);
    tern_sgd_options sgd = {};
    sgd.momentum = 0.9;
    tern_adamw_options adam = {};
    adam.beta1 = TERN_ZERO;
    tern_optimizer *optimizers[] = {tern_optim_sgd(model, 0.1, &sgd),
                                    tern_optim_adamw(table, 0.1, &adam)};
    tern_loss_options mse = {};
    mse.reduction = TERN_REDUCTION_SUM;
    tern_cross_entropy_options cross_entropy = {};
    cross_entropy.ignore_index = TERN_SOME(-1);
    tern_embedding_function_options lookup = {};
    tern_scaled_dot_product_attention_options attention = {};
    attention.is_causal = true;
    TERN_SCOPE {
        tern_tensor *x = tern_randn(TERN_SHAPE(2, 4), TERN_F32, nullptr);
        tern_tensor *target = tern_zeros(TERN_SHAPE(2), TERN_I64, nullptr);
        tern_tensor *y = tern_nn_forward(model, tern_nn_forward(table, target));
        tern_tensor *loss = tern_add(tern_cross_entropy(y, target, &cross_entropy),
                                     tern_mse_loss(y, tern_zeros_like(y), &mse));
        check(tern_backward(loss) == TERN_OK, "modules and losses with options");
        for (tern_optimizer *optimizer : optimizers)
            check(tern_optim_step(optimizer) == TERN_OK, "optimizers with options");
        check(tern_embedding(target, x, &lookup) != nullptr, "tern_embedding_function_options");
        tern_tensor *q = tern_unsqueeze(x, 0);
        check(tern_scaled_dot_product_attention(q, q, q, &attention) != nullptr,
              "tern_scaled_dot_product_attention_options");
    }
    for (tern_optimizer *optimizer : optimizers)
        tern_optim_free(optimizer);
    tern_nn_free(table);
    tern_nn_free(model);
}

static void reads_batches()
{
    int64_t live = tern_live_tensors();
    double sum = 0;
    TERN_SCOPE {
        tern_tensor *x = tern_arange(0, 6, 1, TERN_F32, "cpu");
        tern_dataset *data = tern_data_tensor_dataset(x, tern_to_dtype(x, TERN_I64));
        tern_dataset *both = tern_data_concat_dataset(data, data);
        tern_loader_options options = {.batch_size = 4, .num_workers = 1};
        tern_loader *loader = tern_data_loader(both, &options);
        TERN_EACH_BATCH(batch, loader)
        {
            sum += tern_item(tern_sum(batch.tensors[0]));
            if (batch.index == 1)
                break;
        }
        tern_transform_free(tern_transforms_compose(tern_transforms_random_vertical_flip(0.5),
                                                    tern_transforms_to_dtype(TERN_F32, true)));
        tern_loader_free(loader);
        tern_dataset_free(both);
        tern_dataset_free(data);
    }
    check(sum == 16 && tern_live_tensors() == live, "batches are read, and a loop is left");
}

static void launches_kernels()
{
    const char source[] = "__kernel void twice(__global float *x, int n, long m, float a, double b,"
                          " __local float *l)"
                          "{ int i = (int)get_global_id(0); if (i < n) x[i] = a * x[i]; }";
    if (!tern_device_is_available("opencl:0"))
        return;
    tern_kernel *kernel = tern_kernel_compile("opencl:0", source, "twice");
    TERN_SCOPE {
        tern_tensor *x = tern_ones(TERN_SHAPE(10), TERN_F32, "opencl:0");
        check(tern_kernel_launch(kernel, TERN_GRID(10), TERN_ARG_TENSOR(x), TERN_ARG_INT(10),
                                 TERN_ARG_LONG(1), TERN_ARG_FLOAT(2), TERN_ARG_DOUBLE(1),
                                 TERN_ARG_LOCAL(16)) == TERN_OK,
              "tern_kernel_launch");
        const tern_kernel_grid grids[] = {TERN_GRID_GROUP(10, 2), TERN_GRID_2D(5, 2)};
        check(grids[0].group[0] == 2 && grids[1].items[1] == 2, "grids");
        check(tern_item(tern_sum(x)) == 20, "the kernel ran");
    }
    tern_kernel_free(kernel);
}

int main()
{
    tern_device_info info = {};
    tern_memory_stats stats = {};
    tern_rng_state rng = {};
    check(tern_device_get_info("cpu", &info) == TERN_OK && info.type == TERN_DEVICE_CPU, "info");
    check(tern_memory_get_stats("cpu", &stats) == TERN_OK, "stats");
    check(tern_get_rng_state("cpu", &rng) == TERN_OK, "rng");
    makes_tensors();
    tells_types();
    reads_options_as_written(0);
    const long long live = tern_live_tensors();
    leaves_blocks();
    check(tern_live_tensors() == live && tern_is_grad_enabled(), "blocks are left by return");
    casts();
    reads_batches();
    differentiates();
    records();
    has_modules();
    launches_kernels();
    check(tern_zeros(TERN_SHAPE(-1), TERN_F32, nullptr) == nullptr &&
              tern_last_status() == TERN_ERR_SHAPE,
          "an error is an error");
    tern_clear_error();
    check(tern_live_tensors() == 0, "nothing is left over");
    return failures;
}
