/* test_programs.c -- programs for devices: how many a training takes, those that are compiled ahead, packs. Those are states of a process, so each is a child
 * that runs this program again. */
#include "rerun.h"

/* ---- scenarios: what a child prints ------------------------------------------------------ */

static void print_counts(const char *device)
{
    tern_memory_stats stats = {0};
    tern_memory_get_stats(device, &stats);
    printf("built %d loaded %d ", (int)stats.programs_built, (int)stats.programs_loaded);
}

static tern_module *model_of(void)
{
    return tern_nn_sequential(tern_nn_linear(8, 16, NULL), tern_nn_gelu(NULL),
                              tern_nn_layer_norm(TERN_SHAPE(16), NULL),
                              tern_nn_linear(16, 4, NULL));
}

/* A training step; how its programs came about. */
static int step(void)
{
    tern_set_default_device("opencl:0");
    tern_module *model = model_of();
    tern_optimizer *optimizer = tern_optim_adamw(model, 1e-3, NULL);
    tern_tensor *x = tern_randn(TERN_SHAPE(6, 8), TERN_F32, NULL);
    tern_tensor *y = tern_zeros(TERN_SHAPE(6), TERN_I64, NULL);
    tern_tensor *loss = tern_cross_entropy(tern_nn_forward(model, x), y, NULL);
    tern_backward(loss);
    tern_optim_step(optimizer);
    double value = tern_item(loss);
    tern_device_info info = {0};
    tern_device_get_info("opencl:0", &info);
    print_counts("opencl:0");
    printf("right %d on %s %s", value > 0.1 && value < 10, info.platform, tern_last_error());
    tern_optim_free(optimizer);
    tern_nn_free(model);
    return 0;
}

/* The same after its kernels were compiled ahead: those of the module, and what goes with them. */
static int ahead(void)
{
    static const tern_shape shapes[] = {{2, {6, 8}}};
    const char *device = getenv("DEVICE");
    tern_set_default_device(device);
    tern_module *model = model_of();
    tern_synchronize(device);
    tern_memory_stats before = {0}, after = {0}, used = {0};
    tern_memory_get_stats(device, &before);
    tern_status status = tern_compile_ahead(model, shapes, 1, NULL);
    tern_memory_get_stats(device, &after);
    tern_tensor *x = tern_ones(TERN_SHAPE(6, 8), TERN_F32, NULL);
    tern_backward(tern_sum(tern_nn_forward(model, x)));
    tern_synchronize(device);
    tern_memory_get_stats(device, &used);
    printf("status %d launches %d ahead %d later %d gradients %d %s", status,
           (int)(after.launches - before.launches),
           (int)(after.programs_built - before.programs_built),
           (int)(used.programs_built - after.programs_built),
           tern_grad(tern_nn_parameter(model, "0.weight")) != NULL, tern_last_error());
    tern_nn_free(model);
    return 0;
}

static void count(const tern_compile_progress *p, void *user)
{
    int *calls = user;
    calls[0]++;
    calls[1] += p->done > p->total || !strstr(p->kernel, "kernel ") || !*p->device;
    calls[2] = (int)p->done;
    calls[3] += strstr(p->kernel, ", for its first launch") != NULL;
}

/* A handler hears twice of each program, and of each kernel that PoCL compiles at its first launch where that takes long. */
static int told(void)
{
    int calls[4] = {0};
    tern_on_compile(count, calls);
    tern_set_default_device("opencl:0");
    tern_tensor *x = tern_ones(TERN_SHAPE(6, 8), TERN_F32, NULL);
    tern_item(tern_sum(tern_mul(tern_add(x, x), x)));
    tern_memory_stats stats = {0};
    tern_memory_get_stats("opencl:0", &stats);
    const int programs = calls[0] - calls[3];
    printf("all %d wrong %d",
           programs == 2 * (int)stats.programs_built && programs > 0 && calls[0] == 2 * calls[2],
           calls[1]);
    tern_on_compile(NULL, NULL);
    return 0;
}

static int once(void)
{
    tern_tensor *x = tern_ones(TERN_SHAPE(8), TERN_F32, "opencl:0");
    double sum = tern_item(tern_sum(tern_add(x, x)));
    printf("sum %g %s", sum, tern_last_error());
    return 0;
}

/* Save what a step took. */
static int save(void)
{
    if (step() != 0)
        return 1;
    tern_status status = tern_programs_save("opencl:0", getenv("PACK"));
    printf(" saved %d %s", status, tern_last_error());
    return 0;
}

/* Load a pack; a step with it where it could be loaded. */
static int load(void)
{
    int programs = (int)tern_programs_load("opencl:0", getenv("PACK"));
    printf("loaded %d %s|", programs, tern_last_error());
    tern_clear_error();
    return getenv("STEP") ? step() : 0;
}

static const scenario scenarios[] = {{"step", step}, {"ahead", ahead}, {"told", told},
                                     {"once", once}, {"save", save},   {"load", load}};

/* ---- tests ------------------------------------------------------------------------------- */

/* How many lines a command prints. */
static int lines_of(const char *format, const char *path)
{
    char command[512];
    int lines = 0, c;
    snprintf(command, sizeof command, format, path);
    FILE *f = popen(command, "r");
    assert_non_null(f);
    while ((c = fgetc(f)) != EOF)
        lines += c == '\n';
    assert_int_equal(pclose(f), 0);
    return lines;
}

/* PoCL keeps machine code in a file for each kernel and each shape of work-groups that it was compiled for: one, as a launch
 * wants it. Another, which takes as long, would come of asking for a program's binary, or of a launch with other groups. */
static void kernels_of_a_training_come_together(void **state)
{
    (void)state;
    char drivers[1024], own[1024];
    int built = 0, loaded = 0;
    if (tern_device_count("opencl") == 0)
        skip();
    snprintf(drivers, sizeof drivers, "POCL_CACHE_DIR=%s/driver", folder);
    snprintf(own, sizeof own, "TERN_CACHE_DIR=%s/step", folder);
    assert_int_equal(mkdir(strchr(drivers, '=') + 1, 0700), 0);
    const char *output =
        RUN("step", drivers, own, "TERN_OPENCL_FORM=cpu", "POCL_WORK_GROUP_SPECIALIZATION");
    assert_int_equal(sscanf(output, "built %d loaded %d", &built, &loaded), 2);
    assert_non_null(strstr(output, "right 1 "));
    if (!strstr(output, "Portable Computing Language"))
        skip(); /* others compile all that is in a program */
    assert_int_equal(loaded, 0);
    if (built > 6)
        fail_msg("a step takes %d programs", built);
    int compiled = lines_of("find '%s' -name '*.so'", drivers + 15);
    int kernels =
        lines_of("find '%s' -name '*.so' | sed 's,/[^/]*/[^/]*$,,' | sort -u", drivers + 15);
    if (kernels < 8 || kernels > 15)
        fail_msg("a step launches %d kernels", kernels);
    if (compiled != kernels)
        fail_msg("%d kernels were compiled %d times", kernels, compiled);
}

/* PoCL compiles by way of files: files stand here where it wants folders. */
static void a_folder_that_the_driver_cannot_write_is_told(void **state)
{
    (void)state;
    if (tern_device_count("opencl") == 0)
        skip();
    char drivers[1024], file[1024];
    snprintf(drivers, sizeof drivers, "POCL_CACHE_DIR=%s/blocked", folder);
    const char *path = strchr(drivers, '=') + 1;
    assert_int_equal(mkdir(path, 0700), 0);
    for (int i = 0; i < 256; i++) {
        snprintf(file, sizeof file, "%s/%c%c", path, 'A' + i / 16, 'A' + i % 16);
        FILE *f = fopen(file, "w");
        assert_non_null(f);
        fclose(f);
    }
    const char *output = RUN("once", drivers, "TERN_CACHE_DIR=/dev/null");
    if (strstr(output, "sum 16"))
        skip(); /* another driver, or one that names its folders otherwise */
    assert_non_null(strstr(output, "does not build"));
    assert_non_null(strstr(output, "POCL_CACHE_DIR"));
}

/* The device that compiles one kernel at a time is the stand-in for CUDA's. */
static void a_model_is_compiled_ahead(void **state)
{
    (void)state;
    char cache[1024];
    int status, launches, early, later, gradients;
    for (int i = 0; i < 2; i++) {
        const char *device = i == 0 ? "opencl:0" : "cuda:0";
        char variable[64];
        if (!tern_device_is_available(device))
            continue;
        snprintf(variable, sizeof variable, "DEVICE=%s", device);
        snprintf(cache, sizeof cache, "TERN_CACHE_DIR=%s/ahead%d", folder, i);
        const char *output = RUN("ahead", variable, cache, NULL);
        if (sscanf(output, "status %d launches %d ahead %d later %d gradients %d", &status,
                   &launches, &early, &later, &gradients) != 5)
            fail_msg("%s: %s", device, output);
        assert_int_equal(status, TERN_OK);
        assert_int_equal(launches, 0);
        assert_int_equal(gradients, 1);
        assert_true(early > 0);
        if (i == 1) /* the sum at the end is no part of the model */
            assert_true(later <= 2);
    }
    assert_ok(tern_compile_ahead(NULL, NULL, 0, NULL) == TERN_ERR_ARGUMENT ? TERN_OK
                                                                           : TERN_ERR_STATE);
    tern_clear_error();
}

static void the_cpu_has_nothing_to_compile(void **state)
{
    (void)state;
    tern_module *model = model_of();
    assert_ok(tern_compile_ahead(model, (const tern_shape[]){{2, {6, 8}}}, 1, NULL));
    assert_null(tern_grad(tern_nn_parameter(model, "0.weight")));
    assert_int_equal(tern_compile_ahead(model, NULL, 1, NULL), TERN_ERR_ARGUMENT);
    tern_clear_error();
    assert_ok(tern_compile_begin("cpu"));
    assert_true(tern_item(tern_ones(TERN_SHAPE(1), TERN_F32, "cpu")) == 1);
    assert_ok(tern_compile_end());
    assert_int_equal(tern_compile_end(), TERN_ERR_STATE);
    tern_clear_error();
    tern_nn_free(model);
}

static void a_handler_hears_of_compilers(void **state)
{
    (void)state;
    char cache[1024];
    if (tern_device_count("opencl") == 0)
        skip();
    snprintf(cache, sizeof cache, "TERN_CACHE_DIR=%s/told", folder);
    assert_string_equal(RUN("told", cache, "TERN_OPENCL_FORM=cpu", NULL), "all 1 wrong 0");
}

/* ---- packs ------------------------------------------------------------------------------- */

static char pack[1024], cache[1024], other[1024];

static void write_file(const char *path, const void *data, size_t bytes)
{
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(data, 1, bytes, f), bytes);
    fclose(f);
}

static unsigned char *read_pack(size_t *bytes)
{
    FILE *f = fopen(pack + 5, "rb");
    assert_non_null(f);
    fseek(f, 0, SEEK_END);
    *bytes = (size_t)ftell(f);
    rewind(f);
    unsigned char *data = malloc(*bytes);
    assert_int_equal(fread(data, 1, *bytes, f), *bytes);
    fclose(f);
    return data;
}

/* What loading says of a file with these bytes. */
static const char *loading(const void *data, size_t bytes)
{
    snprintf(other, sizeof other, "PACK=%s/other.pack", folder);
    write_file(other + 5, data, bytes);
    return RUN("load", cache, other, "TERN_WARN=1");
}

static void a_pack_serves_another_cache(void **state)
{
    (void)state;
    if (tern_device_count("opencl") == 0)
        skip();
    snprintf(pack, sizeof pack, "PACK=%s/programs.pack", folder);
    snprintf(cache, sizeof cache, "TERN_CACHE_DIR=%s/packed", folder);
    int built, there, ready, made = 0, taken = 0;
    const char *form = "TERN_OPENCL_FORM=cpu", *output;
    output = RUN("save", cache, pack, form, "TERN_COMPILE_THREADS=0"); /* what is used, alone */
    assert_non_null(strstr(output, " saved 0"));
    assert_int_equal(sscanf(output, "built %d loaded %d", &built, &there), 2);
    snprintf(cache, sizeof cache, "TERN_CACHE_DIR=%s/unpacked", folder);
    output = RUN("load", cache, pack, form, "STEP=1");
    assert_int_equal(sscanf(output, "loaded %d |built %d loaded %d", &ready, &made, &taken), 3);
    assert_int_equal(ready, built + there);
    assert_int_equal(made, 0);
    assert_int_equal(taken, built + there);
    assert_non_null(strstr(output, "right 1 "));
    snprintf(cache, sizeof cache, "TERN_CACHE_DIR=/dev/null/none");
    output = RUN("load", cache, pack, form, "STEP=1"); /* kept in memory */
    assert_int_equal(sscanf(output, "loaded %d |built %d loaded %d", &ready, &made, &taken), 3);
    assert_int_equal(made, 0);
}

static void a_damaged_pack_is_refused_whole(void **state)
{
    (void)state;
    size_t bytes, at[40];
    if (tern_device_count("opencl") == 0 || !*pack)
        skip();
    snprintf(cache, sizeof cache, "TERN_CACHE_DIR=%s/damaged", folder);
    unsigned char *data = read_pack(&bytes);
    for (size_t i = 0; i < 40; i++) /* each word of the head, then anywhere */
        at[i] = i < 8 ? 6 * i + 1 : 48 + (bytes - 49) * (i - 8) / 31;
    for (size_t i = 0; i < 40; i += i < 8 ? 1 : 6) {
        data[at[i]] ^= 0x40;
        if (!strstr(loading(data, bytes), "loaded -1 tern_programs_load: "))
            fail_msg("byte %zu may be any: %s", at[i], loading(data, bytes));
        data[at[i]] ^= 0x40;
    }
    for (size_t cut = 0; cut < 5; cut++) {
        const size_t left[] = {0, 7, 47, 300, bytes - 1};
        if (!strstr(loading(data, left[cut]), "loaded -1 tern_programs_load: "))
            fail_msg("%zu bytes are enough", left[cut]);
    }
    free(data);
    assert_non_null(strstr(RUN("load", cache, "PACK=/dev/null"), "it is no file"));
    assert_non_null(strstr(RUN("load", cache, "PACK=/nowhere/pack"), "can't be read"));
}

/* Of another driver: the text changed, and the hash made right. */
static void a_stale_pack_is_told_and_passed_over(void **state)
{
    (void)state;
    size_t bytes;
    if (tern_device_count("opencl") == 0 || !*pack)
        skip();
    unsigned char *data = read_pack(&bytes);
    data[50] ^= 1;
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    for (size_t i = 48; i < bytes; i++)
        hash = (hash ^ data[i]) * UINT64_C(0x100000001b3);
    memcpy(data + 40, &hash, sizeof hash);
    const char *output = loading(data, bytes);
    assert_non_null(strstr(output, "loaded 0 |"));
    assert_non_null(strstr(output, ", this is "));
    free(data);
}

int main(int argc, char **argv)
{
    int done = rerun_scenario(argc, argv, scenarios, sizeof scenarios / sizeof *scenarios);
    if (done >= 0)
        return done;
    const struct CMUnitTest tests[] = {TEST(kernels_of_a_training_come_together),
                                       TEST(a_folder_that_the_driver_cannot_write_is_told),
                                       TEST(a_model_is_compiled_ahead),
                                       TEST(the_cpu_has_nothing_to_compile),
                                       TEST(a_handler_hears_of_compilers),
                                       TEST(a_pack_serves_another_cache),
                                       TEST(a_damaged_pack_is_refused_whole),
                                       TEST(a_stale_pack_is_told_and_passed_over)};
    const struct CMUnitTest few[] = {TEST(a_model_is_compiled_ahead)};
    done = getenv("TERN_CUDA_PATH") ? cmocka_run_group_tests(few, NULL, NULL)
                                    : cmocka_run_group_tests(tests, NULL, NULL);
    remove_folder();
    return done;
}
