/* test_cudnn_engines.c -- whether NVIDIA's own cuDNN has engines for tern's graphs, where it is installed. It needs no
 * GPU: it is told of one, and looks for engines, writes their kernels and compiles them. Loading these needs a driver; the
 * toolkit's stub of one refuses, and that is as far as it goes. Nothing here ran. */
#include "device/cuda/convolution.h"
#include "device/cuda/dnn_attention.h"
#include "support.h"
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

enum { DEVICEPROP_DESCRIPTOR = 38, JSON = 2702, CHARACTERS = 24, NO_DRIVER = 5001 };

static void (*last_error)(char *, size_t);

static bool load(void)
{
    const char *path = getenv("TERN_CUDNN");
    void *library = path ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL;
    size_t (*version)(void) = NULL;
    if (!library)
        return false;
#define X(RESULT, NAME, PARAMETERS)                                                                \
    {                                                                                              \
        void *found = dlsym(library, #NAME);                                                       \
        memcpy(&tern_cuda.NAME, &found, sizeof found);                                             \
    }
#include "device/cuda/cudnn_graph.def"
#undef X
    void *found = dlsym(library, "cudnnGetVersion"),
         *error = dlsym(library, "cudnnGetLastErrorString");
    memcpy(&version, &found, sizeof found);
    memcpy(&last_error, &error, sizeof error);
    printf("cuDNN %zu\n", version ? version() : 0);
    return version && last_error && tern_cuda.cudnnBackendExecute && version() >= 91900;
}

/* As cuDNN writes down a GPU: what differs between those of data centres. */
static const struct {
    const char *name;
    int compute, multiprocessors, shared;
} gpus[] = {{"A100-SXM4-80GB", 800, 108, 166912},
            {"NVIDIA H100 80GB HBM3", 900, 132, 232448},
            {"NVIDIA B200", 1000, 148, 232448}};

static cudnnBackendDescriptor_t gpu(int i)
{
    char text[1024];
    cudnnBackendDescriptor_t d = NULL;
    snprintf(
        text, sizeof text,
        "{\"deviceName\": \"%s\", \"deviceVer\": %d, \"multiProcessorCount\": %d, "
        "\"maxSharedMemoryPerBlockOptin\": %d, \"maxGridSize\": [2147483647, 65535, 65535], "
        "\"maxBlockSize\": [1024, 1024, 64], \"regsPerBlock\": 65536, \"warpSize\": 32, "
        "\"smClockRateKHz\": 1980000, \"memClockRateKHz\": 2619000, \"l2CacheSize\": 52428800, "
        "\"maxSharedMemoryPerBlock\": 49152, \"reservedSharedMemoryPerBlock\": 1024, "
        "\"oversizedSharedMemoryPerBlock\": 0, \"maxRegistersPerSM\": 65536, "
        "\"pciDeviceId\": 9, \"maxCtasPerSM\": 32, \"maxThreadsPerBlock\": 1024, "
        "\"maxThreadsPerSM\": 2048, \"isTccDriver\": 0, \"supportCoopLaunch\": 1, "
        "\"totalGlobalMem\": 85520809984, \"cudaDeviceId\": 0, \"driverVer\": 13000, "
        "\"smCountOrigin\": 0}",
        gpus[i].name, gpus[i].compute, gpus[i].multiprocessors, gpus[i].shared);
    if (tern_cuda.cudnnBackendCreateDescriptor(DEVICEPROP_DESCRIPTOR, &d) != 0 ||
        tern_cuda.cudnnBackendSetAttribute(d, JSON, CHARACTERS, (int64_t)strlen(text) + 1, text) !=
            0 ||
        tern_cuda.cudnnBackendFinalize(d) != 0)
        return NULL;
    return d;
}

/* q, k and v side by side, as a layer has them, or each dense. */
static tern_dnn_problem problem(bool gradient, bool causal, bool lower_right, bool packed,
                                tern_dtype dtype, int64_t width)
{
    tern_dnn_problem p = {.count = {16, 12},
                          .queries = lower_right ? 500 : 1024,
                          .keys = 1024,
                          .width = width,
                          .value_width = width,
                          .dtype = (int32_t)dtype,
                          .gradient = gradient,
                          .causal = causal,
                          .lower_right = lower_right};
    for (int i = 0; i < TERN_DNN_MATRICES; i++) {
        bool of_keys = i == TERN_DNN_K || i == TERN_DNN_V || i == TERN_DNN_DK || i == TERN_DNN_DV;
        int64_t rows = of_keys ? p.keys : p.queries;
        bool alone = !packed || i == TERN_DNN_OUT || i == TERN_DNN_DOUT;
        p.strides[i][0] = rows * 12 * width * (alone ? 1 : 3);
        p.strides[i][1] = packed ? width : rows * width;
        p.strides[i][2] = !packed ? width : 12 * width * (alone ? 1 : 3);
    }
    return p;
}

static void its_engines_take_the_graphs(void **state)
{
    static const struct {
        int gpu;
        bool gradient, causal, lower_right, packed;
        tern_dtype dtype;
        int64_t width;
    } cases[] = {
        {1, false, true, false, true, TERN_BF16, 64}, {1, true, true, false, true, TERN_BF16, 64},
        {1, false, true, true, false, TERN_F16, 72},  {1, true, false, false, false, TERN_F16, 40},
        {0, true, true, false, true, TERN_F16, 64},   {2, true, true, true, false, TERN_BF16, 128},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        tern_dnn_graph g = {.device = gpu(cases[i].gpu)};
        cudnnBackendDescriptor_t device = g.device;
        char why[1024] = "";
        assert_non_null(device);
        tern_dnn_problem p = problem(cases[i].gradient, cases[i].causal, cases[i].lower_right,
                                     cases[i].packed, cases[i].dtype, cases[i].width);
        tern_dnn_attention(&g, &p);
        last_error(why, sizeof why);
        printf("%s: %s%s%s of %s, %lld wide: %lld engines, %s\n", gpus[cases[i].gpu].name,
               cases[i].causal ? "causal " : "",
               cases[i].lower_right ? "from the lower right " : "",
               cases[i].gradient ? "gradients" : "attention", tern_dtype_name(cases[i].dtype),
               (long long)cases[i].width, (long long)g.offered,
               g.plan ? "a plan" : "compiled, and no driver to load it");
        if (g.offered < 1 || (g.code != 0 && g.code != NO_DRIVER))
            fail_msg("%s gave %u: %s", g.call ? g.call : "", g.code, why);
        tern_dnn_clear(&g);
        tern_cuda.cudnnBackendDestroyDescriptor(device);
    }
}

/* Layers of ResNet-50, in each pass, and what else tern may give: rows, groups, TensorFloat-32, three dims. */
static const struct {
    const char *what;
    tern_conv_shape shape;
    tern_dtype dtype;
    bool last, bias;
} convolutions[] = {
#define SQUARE(N, C, IN, O, OUT, K, S, P, G)                                                       \
    {                                                                                              \
        .n = N, .c = C, .o = O, .in = {1, IN, IN}, .out = {1, OUT, OUT}, .window = {1, K, K},      \
        .stride = {1, S, S}, .padding = {0, P, P}, .dilation = {1, 1, 1}, .groups = G              \
    }
    {"3 x 3", SQUARE(128, 256, 14, 256, 14, 3, 1, 1, 1), TERN_BF16, true, false},
    {"3 x 3 with bias", SQUARE(128, 256, 14, 256, 14, 3, 1, 1, 1), TERN_BF16, true, true},
    {"1 x 1, stride 2", SQUARE(128, 256, 56, 512, 28, 1, 2, 0, 1), TERN_F16, true, false},
    {"7 x 7 of 3 channels", SQUARE(128, 3, 224, 64, 112, 7, 2, 3, 1), TERN_F16, true, true},
    {"3 x 3 in rows", SQUARE(128, 256, 14, 256, 14, 3, 1, 1, 1), TERN_F16, false, true},
    {"TensorFloat-32", SQUARE(32, 64, 56, 64, 56, 3, 1, 1, 1), TERN_F32, true, true},
    {"two groups", SQUARE(32, 64, 28, 64, 28, 3, 1, 1, 2), TERN_F16, true, true},
    {"three dims",
     {.n = 4,
      .c = 16,
      .o = 32,
      .in = {8, 16, 16},
      .out = {8, 16, 16},
      .window = {3, 3, 3},
      .stride = {1, 1, 1},
      .padding = {1, 1, 1},
      .dilation = {1, 1, 1},
      .groups = 1},
     TERN_BF16,
     true,
     true},
#undef SQUARE
};
enum { CONVOLUTIONS = sizeof convolutions / sizeof *convolutions };

static void its_engines_take_convolutions(void **state)
{
    static const char *const passes[] = {"y", "dx", "dw"};
    (void)state;
    for (int i = 0; i < 3 * 3 * CONVOLUTIONS; i++) {
        const int pass = i / 3 % 3, row = i / 9, which = i % 3;
        tern_dnn_graph g = {.device = gpu(which)};
        cudnnBackendDescriptor_t device = g.device;
        char why[1024] = "";
        assert_non_null(device);
        const tern_cuda_conv_key k = {.shape = convolutions[row].shape,
                                      .pass = pass,
                                      .dtype = (int32_t)convolutions[row].dtype,
                                      .channels_last = convolutions[row].last,
                                      .bias = convolutions[row].bias && pass == TERN_CONV_Y};
        tern_dnn_convolution(&g, &k);
        last_error(why, sizeof why);
        printf("%s: %s of %s, %s: %lld engines, %s\n", gpus[which].name, passes[pass],
               convolutions[row].what, tern_dtype_name(convolutions[row].dtype),
               (long long)g.offered, g.plan ? "a plan" : "compiled, and no driver to load it");
        if (g.offered < 1 || (g.code != 0 && g.code != NO_DRIVER))
            fail_msg("%s gave %u: %s", g.call ? g.call : "", g.code, why);
        /* What is given by default must not wait for a compiler. */
        if (!g.plan && convolutions[row].last && convolutions[row].dtype != TERN_F32 &&
            convolutions[row].shape.groups == 1 && convolutions[row].shape.in[0] == 1)
            fail_msg("its first engine is compiled when it is asked for");
        tern_dnn_clear(&g);
        tern_cuda.cudnnBackendDestroyDescriptor(device);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {TEST(its_engines_take_convolutions),
                                       TEST(its_engines_take_the_graphs)};
    if (!load()) {
        puts("SKIP: no cuDNN from 9.19 on: nobody was asked whether it has engines for tern's "
             "graphs");
        return 77;
    }
    cudnnBackendDescriptor_t d = gpu(1);
    if (!d) {
        puts("SKIP: this cuDNN is told of GPUs in other words");
        return 77;
    }
    tern_cuda.cudnnBackendDestroyDescriptor(d);
    return test_main(tests, sizeof tests / sizeof *tests);
}
