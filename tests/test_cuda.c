/* test_cuda.c -- the cuda backend on the stand-in for NVIDIA's libraries (tests/standin): what it
 * says when something is missing or fails, several devices, users' kernels. Nothing here is a
 * result of a GPU. */
#include "again.h"
#include "device/cuda/cuda.h"
#include "support.h"
#include "temporary.h"

/* ---- a stream of the application's --- */

/* The application's work and tern's are in one order; convolutions follow too. */
static void work_goes_to_the_applications_stream(void **state)
{
    (void)state;
    cudaStream_t mine;
    tern_device_handles own;
    TERN_SCOPE {
        tern_tensor *x = tern_ones(TERN_SHAPE(1, 1, 4, 4), TERN_F32, "cuda:0");
        tern_tensor *w = tern_ones(TERN_SHAPE(1, 1, 2, 2), TERN_F32, "cuda:0");
        assert_true(tern_item(tern_sum(tern_conv2d(x, w, NULL, NULL))) == 36);
        assert_ok(tern_device_get_handles("cuda:0", &own));
        assert_int_equal(own.index, 0);
        assert_int_equal(tern_cuda.cudaStreamCreateWithFlags(&mine, cudaStreamNonBlocking), 0);
        assert_ok(tern_device_set_handles("cuda:0", &(tern_device_handles){.queue = mine}));
        tern_tensor *sum = tern_add(x, x);
        tern_memory_handle memory;
        float out[16] = {0};
        assert_ok(tern_get_memory_handle(sum, &memory));
        assert_int_equal(
            tern_cuda.cudaMemcpyAsync(out, memory.memory, sizeof out, cudaMemcpyDeviceToHost, mine),
            0);
        assert_int_equal(tern_cuda.cudaStreamSynchronize(mine), 0);
        assert_true(out[0] == 2 && out[15] == 2);
        assert_true(tern_item(tern_sum(tern_conv2d(x, w, NULL, NULL))) == 36);
        assert_ok(tern_device_set_handles("cuda:0", &own));
        assert_true(tern_item(tern_sum(sum)) == 32);
    }
}

/* ---- what is there ----------------------------------------------------------------------- */

static void the_stand_in_says_what_it_is(void **state)
{
    (void)state;
    tern_device_info info;
    assert_ok(tern_device_get_info("cuda:0", &info));
    assert_non_null(strstr(info.name, "stand-in"));
    assert_string_equal(tern_device_canonical("cuda"), "cuda:0");
    assert_string_equal(tern_device_canonical("auto"), "cuda:0");
    assert_string_equal(info.uuid, "a0a1a2a3-a4a5-a6a7-a8a9-aaabacadaeaf");
    assert_int_equal(info.capability_major, 9);
    assert_int_equal(info.capability_minor, 0);
    assert_true(info.has_f64 && info.type == TERN_DEVICE_GPU && info.memory_total > 0);
}

static void masked(void **state)
{
    (void)state;
    assert_int_equal(tern_device_count("cuda"), 0);
    assert_non_null(strstr(tern_device_notes("cuda"), "CUDA_VISIBLE_DEVICES=\"-1\""));
    assert_null(tern_zeros(TERN_SHAPE(2), TERN_F32, "cuda:0"));
    assert_error(TERN_ERR_DEVICE, "CUDA_VISIBLE_DEVICES=\"-1\"");
}

static void a_mask_that_leaves_nothing_is_quoted(void **state)
{
    (void)state;
    again("masked", "CUDA_VISIBLE_DEVICES", "-1");
}

/* A folder with links to some of the stand-in's libraries. */
static void make_folder(char *folder, const char *const *names)
{
    const char *all = getenv("TERN_CUDA_PATH");
    assert_non_null(mkdtemp(temporary(folder, "tern-cuda-XXXXXX")));
    for (int i = 0; names[i]; i++) {
        char from[512], to[512];
        snprintf(from, sizeof from, "%s/libtern_standin.so", all);
        snprintf(to, sizeof to, "%s/%s", folder, names[i]);
        assert_int_equal(symlink(from, to), 0);
    }
}

static void remove_folder(const char *folder, const char *const *names)
{
    for (int i = 0; names[i]; i++) {
        char path[512];
        snprintf(path, sizeof path, "%s/%s", folder, names[i]);
        unlink(path);
    }
    rmdir(folder);
}

static void nothing_there(void **state)
{
    (void)state; /* only what the machine itself has is found */
    if (tern_device_count("cuda") == 0)
        assert_true(strlen(tern_device_notes("cuda")) > 0);
}

static void only_a_driver(void **state)
{
    (void)state;
    const char *notes = tern_device_notes("cuda");
    assert_true(*notes || tern_device_count("cuda") > 0);
    if (strstr(notes, "but not CUDA's libraries"))
        assert_true(strstr(notes, "libcudart.so.12") && strstr(notes, "TERN_CUDA_PATH"));
    else
        print_message("real CUDA libraries are installed: their absence is not tried\n");
}

/* A file that does not load is the reason, not that the loader finds none elsewhere. */
static void a_broken_driver(void **state)
{
    char path[512];
    (void)state;
    snprintf(path, sizeof path, "%s/libcuda.so.1", getenv("TERN_CUDA_PATH"));
    if (tern_device_count("cuda") > 0)
        test_skipped("a broken driver in TERN_CUDA_PATH: a real one is installed");
    else if (!strstr(tern_device_notes("cuda"), path) ||
             !strstr(tern_device_notes("cuda"), "NVIDIA's driver cannot be loaded"))
        fail_msg("%s is broken, but the notes say: %s", path, tern_device_notes("cuda"));
}

static void no_products(void **state)
{
    (void)state;
    if (!strstr(tern_device_notes("cuda"), "libcublasLt.so.13"))
        print_message("a real cuBLASLt is installed: its absence is not tried\n");
    else
        TERN_SCOPE {
            tern_tensor *x = tern_ones(TERN_SHAPE(2, 2), TERN_F32, "cuda:0");
            assert_values(tern_matmul(x, x), 2, 2, 2, 2);
        }
}

static void what_is_missing_is_said_by_name(void **state)
{
    static const char *const driver[] = {"libcuda.so.1", NULL};
    static const char *const most[] = {"libcuda.so.1", "libcudart.so.13", "libnvrtc.so.13", NULL};
    char folder[TEMPORARY_BYTES];
    (void)state;
    again("nothing_there", "TERN_CUDA_PATH", "/nowhere");
    make_folder(folder, (const char *const[]){NULL});
    char path[TEMPORARY_BYTES + 16];
    snprintf(path, sizeof path, "%s/libcuda.so.1", folder);
    FILE *file = fopen(path, "w");
    assert_true(file && fputs("no library", file) >= 0 && fclose(file) == 0);
    again("a_broken_driver", "TERN_CUDA_PATH", folder);
    remove_folder(folder, driver);
    make_folder(folder, driver);
    again("only_a_driver", "TERN_CUDA_PATH", folder);
    remove_folder(folder, driver);
    make_folder(folder, most);
    again("no_products", "TERN_CUDA_PATH", folder);
    remove_folder(folder, most);
}

static void volta(void **state)
{
    (void)state;
    assert_null(tern_ones(TERN_SHAPE(2), TERN_F32, "cuda:0"));
    assert_error(TERN_ERR_UNSUPPORTED, "NVRTC 13 does not know sm_70");
}

static void newer(void **state)
{
    (void)state;
    TERN_SCOPE
        assert_values(tern_ones(TERN_SHAPE(2), TERN_F32, "cuda:0"), 1, 1);
}

static void a_device_older_than_nvrtc_is_named(void **state)
{
    (void)state;
    again("volta", "TERN_STANDIN_COMPUTE", "70");
    again("newer", "TERN_STANDIN_COMPUTE", "103"); /* than the stand-in's NVRTC: PTX */
}

/* ---- failures ---------------------------------------------------------------------------- */

static void lost(void **state)
{
    (void)state;
    TERN_SCOPE {
        tern_tensor *x = tern_ones(TERN_SHAPE(2), TERN_F32, "cuda:0");
        assert_ok(tern_synchronize("cuda:0"));
        assert_int_equal(tern_synchronize("cuda:0"), TERN_ERR_DEVICE_LOST);
        assert_error(TERN_ERR_DEVICE_LOST, "restart the program");
        assert_null(tern_add(x, x));
        assert_error(TERN_ERR_DEVICE_LOST, "was lost earlier");
    }
    assert_int_equal(tern_synchronize("cuda:0"), TERN_ERR_DEVICE_LOST);
    tern_clear_error();
}

/* Codes after which CUDA's documentation says that the process must be started again. */
static void a_lost_device_answers_at_once(void **state)
{
    static const int codes[] = {214, 220, 226, 700, 702, 703, 708, 714, 719, 721};
    (void)state;
    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++) {
        char plan[32];
        snprintf(plan, sizeof plan, "kernel:2:%d", codes[i]);
        again("lost", "TERN_STANDIN_FAIL", plan);
    }
}

static void no_start(void **state)
{
    (void)state;
    assert_int_equal(tern_device_count("cuda"), 0);
    assert_non_null(strstr(tern_device_notes("cuda"), "cuInit gave"));
    assert_non_null(strstr(tern_device_notes("cuda"), "(802)"));
}

static void a_driver_that_does_not_start_says_its_own_code(void **state)
{
    (void)state;
    again("no_start", "TERN_STANDIN_FAIL", "cuInit:1:802");
}

static void little_memory(void **state)
{
    (void)state;
    TERN_SCOPE {
        tern_tensor *x = tern_ones(TERN_SHAPE(1 << 20), TERN_F32, "cuda:0");
        assert_non_null(x);
        TERN_SCOPE
            assert_non_null(tern_empty(TERN_SHAPE(9 << 20), TERN_F32, "cuda:0"));
        /* The block above is in the cache, which is emptied for this one. */
        assert_non_null(tern_empty(TERN_SHAPE(12 << 20), TERN_F32, "cuda:0"));
        assert_null(tern_empty(TERN_SHAPE(12 << 20), TERN_F32, "cuda:0"));
        assert_error(TERN_ERR_MEMORY, "cuda:0");
        assert_values(tern_sum(x), 1 << 20);
    }
}

static void memory_that_runs_out_is_an_error(void **state)
{
    (void)state;
    again("little_memory", "TERN_STANDIN_MEMORY", "67108864");
}

static void steps(void **state)
{
    (void)state;
    for (int step = 0; step < 8; step++) {
        tern_clear_error();
        TERN_SCOPE {
            tern_tensor *x = tern_ones(TERN_SHAPE(4, 4), TERN_F32, "cuda:0");
            tern_tensor *y = tern_sum(tern_matmul(x, tern_zeros_like(x)));
            double sum = tern_item(y);
            if (step == 7)
                assert_true(y && sum == 0);
        }
    }
}

/* Each fails once: an error, and a later step works. */
static void any_call_may_fail(void **state)
{
    static const char *const calls[] = {"cudaMemcpyAsync",  "cuLaunchKernel",
                                        "cudaMalloc",       "cudaMemsetAsync",
                                        "cuModuleLoadData", "cuModuleGetFunction",
                                        "cublasLtMatmul",   "cublasLtMatmulDescCreate",
                                        "cudaHostAlloc",    "cudaStreamSynchronize",
                                        "cudaSetDevice",    "cublasLtMatmulAlgoGetHeuristic"};
    (void)state;
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
        for (int nth = 1; nth < 8; nth += 3) {
            char plan[96];
            snprintf(plan, sizeof plan, "%s:%d:999", calls[i], nth);
            again("steps", "TERN_STANDIN_FAIL", plan);
        }
}

/* ---- pinned memory ----------------------------------------------------------------------- */

static uint64_t driver_calls(void)
{
    tern_memory_stats stats;
    assert_ok(tern_memory_get_stats("cpu", &stats));
    return stats.driver_calls;
}

static tern_tensor *pinned_of(double value)
{
    return tern_pin_memory(tern_full(TERN_SHAPE(1000), TERN_SCALAR(value), TERN_F32, "cpu"));
}

/* The stand-in copies when something waits, and so shows who did not wait. */
static void a_pinned_tensor_is_copied_later_and_lives_until_then(void **state)
{
    (void)state;
    TERN_SCOPE {
        tern_tensor *x = pinned_of(1), *first = tern_to_non_blocking(x, "cuda:0"), *second = NULL;
        tern_fill_(x, TERN_SCALAR(2.0));
        assert_true(tern_item(tern_mean(first)) == 2);
        TERN_SCOPE
            second = tern_escape(tern_to_non_blocking(pinned_of(4), "cuda:0"));
        tern_tensor *other = pinned_of(5); /* not in the memory of the one that is on its way */
        assert_true(tern_item(tern_mean(second)) == 4);
        TERN_SCOPE /* what pinned_of needs besides */
            tern_full(TERN_SHAPE(1000), TERN_SCALAR(0), TERN_F32, "cpu");
        uint64_t before = driver_calls();
        assert_true(tern_is_pinned(other) && tern_is_pinned(pinned_of(6)));
        assert_int_equal(driver_calls() - before, 0); /* but after it has arrived */
    }
    assert_ok(tern_synchronize("cuda:0"));
    assert_ok(tern_empty_cache("cpu"));
}

static void pinning(void **state)
{
    int failures = 0;
    (void)state;
    for (int step = 0; step < 3; step++)
        TERN_SCOPE {
            tern_tensor *y = tern_to_non_blocking(pinned_of(step), "cuda:0");
            bool ok = y && tern_item(tern_mean(y)) == step;
            if (!ok)
                assert_error(strstr(getenv("TERN_STANDIN_FAIL"), "HostAlloc") ? TERN_ERR_MEMORY
                                                                              : TERN_ERR_DEVICE,
                             "cuda");
            failures += !ok;
        }
    assert_int_equal(failures, 1);
}

static void pinning_may_fail(void **state)
{
    (void)state;
    again("pinning", "TERN_STANDIN_FAIL", "cudaHostAlloc:1:2");
    again("pinning", "TERN_STANDIN_FAIL", "cudaEventRecord:1:999");
    again("pinning", "TERN_STANDIN_FAIL", "cudaEventCreateWithFlags:2:999");
}

/* ---- several devices --------------------------------------------------------------------- */

static void two(void **state)
{
    (void)state;
    TERN_SCOPE {
        assert_int_equal(tern_device_count("cuda"), 2);
        tern_tensor *x = tern_arange(0, 6, 1, TERN_F32, "cuda:0");
        tern_tensor *y = tern_to(tern_mul(x, x), "cuda:1");
        assert_string_equal(tern_device(y), "cuda:1");
        assert_values(y, 0, 1, 4, 9, 16, 25);
        tern_tensor *back = tern_to(tern_add(y, y), "cuda:0");
        assert_values(tern_add(back, x), 0, 3, 10, 21, 36, 55);
        assert_null(tern_add(x, y));
        assert_error(TERN_ERR_DEVICE, "cuda:0 and cuda:1");
        assert_ok(tern_set_device("cuda:1"));
        assert_string_equal(tern_device_canonical("cuda"), "cuda:1");
    }
}

static void tensors_move_between_devices(void **state)
{
    (void)state;
    again("two", "TERN_STANDIN_DEVICES", "2");
}

/* ---- users' kernels ---------------------------------------------------------------------- */

static const char reverse[] =
    "/* reverse, block by block */\n"
    "__kernel void reverse(__global const float *in, __global float *out, __local float *tile,\n"
    "                      const int n)\n"
    "{\n"
    "    int i = get_global_id(0), l = get_local_id(0), size = get_local_size(0);\n"
    "    tile[l] = i < n ? in[i] : 0.0f;\n"
    "    barrier(CLK_LOCAL_MEM_FENCE);\n"
    "    if (i < n) out[i] = tile[size - 1 - l];\n"
    "}\n";

static bool has_compiler(void)
{
    return system("c++ --version > /dev/null 2>&1") == 0;
}

static void a_kernel_in_opencl_c_runs(void **state)
{
    (void)state;
    if (!has_compiler())
        skip();
    TERN_SCOPE {
        tern_kernel *k = tern_kernel_compile("cuda:0", reverse, "reverse");
        assert_non_null(k);
        tern_tensor *x = TENSOR("cuda:0", TERN_F32, TERN_SHAPE(8), 0, 1, 2, 3, 4, 5, 6, 7);
        tern_tensor *y = tern_zeros_like(x);
        assert_ok(tern_kernel_launch(k, TERN_GRID_GROUP(8, 4), TERN_ARG_TENSOR(x),
                                     TERN_ARG_TENSOR(y), TERN_ARG_LOCAL(16), TERN_ARG_INT(8)));
        assert_values(y, 3, 2, 1, 0, 7, 6, 5, 4);
        assert_int_equal(tern_kernel_launch(k, TERN_GRID(8), TERN_ARG_TENSOR(x)),
                         TERN_ERR_ARGUMENT);
        assert_error(TERN_ERR_ARGUMENT, "takes 4 arguments, 1 were given");
        assert_int_equal(tern_kernel_launch(k, TERN_GRID_GROUP(8, 4), TERN_ARG_TENSOR(x),
                                            TERN_ARG_TENSOR(y), TERN_ARG_LOCAL(1 << 20),
                                            TERN_ARG_INT(8)),
                         TERN_ERR_ARGUMENT);
        assert_error(TERN_ERR_ARGUMENT, "bytes of local memory");
        tern_kernel_free(k);
    }
}

static void a_kernel_that_does_not_compile_shows_the_log(void **state)
{
    (void)state;
    assert_null(tern_kernel_compile("cuda:0", "__kernel void f(int n) { no_such_thing(n); }", "f"));
    assert_error(TERN_ERR_ARGUMENT, has_compiler() ? "no_such_thing" : "does not build");
    assert_null(tern_kernel_compile("cuda:0", "__kernel void f(int n) { }", "g"));
    assert_error(TERN_ERR_ARGUMENT, "no kernel called \"g\"");
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest scenarios[] = {
        TEST(masked),        TEST(nothing_there), TEST(a_broken_driver),
        TEST(only_a_driver), TEST(no_products),   TEST(volta),
        TEST(newer),         TEST(lost),          TEST(little_memory),
        TEST(steps),         TEST(two),           TEST(pinning),
        TEST(no_start),
    };
    const struct CMUnitTest tests[] = {
        TEST(the_stand_in_says_what_it_is),
        TEST(work_goes_to_the_applications_stream),
        TEST(a_mask_that_leaves_nothing_is_quoted),
        TEST(what_is_missing_is_said_by_name),
        TEST(a_device_older_than_nvrtc_is_named),
        TEST(a_lost_device_answers_at_once),
        TEST(a_driver_that_does_not_start_says_its_own_code),
        TEST(memory_that_runs_out_is_an_error),
        TEST(any_call_may_fail),
        TEST(a_pinned_tensor_is_copied_later_and_lives_until_then),
        TEST(pinning_may_fail),
        TEST(tensors_move_between_devices),
        TEST(a_kernel_in_opencl_c_runs),
        TEST(a_kernel_that_does_not_compile_shows_the_log),
    };
    return again_main(argc, argv, scenarios, sizeof scenarios / sizeof *scenarios, tests,
                      sizeof tests / sizeof *tests);
}
