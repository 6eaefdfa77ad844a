/* test_opencl_state.c -- what the opencl backend makes of installations, masks, caches and forks:
 * states of a process, so each is a child that runs this program again. */
#include "device/opencl/opencl.h"
#include "rerun.h"
#include <dirent.h>
#include <fcntl.h>

/* ---- scenarios: what a child prints ------------------------------------------------------ */

static int list(void)
{
    printf("%d|%s|", tern_device_count("opencl"), tern_device_notes("opencl"));
    tern_status status = TERN_OK;
    if (!tern_device_is_available("opencl:0"))
        status = tern_set_default_device("opencl:0");
    printf("%d %s", status, tern_last_error());
    return 0;
}

/* x + x in float32 on opencl:0 against cpu, and how its programs came about. */
static int add(void)
{
    int different = -1;
    TERN_SCOPE {
        tern_tensor *x = tern_linspace(-3, 5, 1000, TERN_F32, "cpu");
        tern_tensor *there = tern_to(x, "opencl:0"), *sum = tern_add(there, there);
        tern_tensor *expected = tern_add(x, x);
        float a[1000], b[1000];
        if (tern_copy_to_host(sum, a, sizeof a) == TERN_OK &&
            tern_copy_to_host(expected, b, sizeof b) == TERN_OK)
            different = memcmp(a, b, sizeof a) != 0;
    }
    tern_memory_stats stats = {0};
    tern_memory_get_stats("opencl:0", &stats);
    printf("different %d built %d loaded %d launches %d %s", different, (int)stats.programs_built,
           (int)stats.programs_loaded, (int)stats.launches, tern_last_error());
    return 0;
}

/* Two devices that look alike stay two; data goes from one to the other. */
static int two(void)
{
    double sum = 0;
    TERN_SCOPE {
        tern_tensor *x = tern_full(TERN_SHAPE(7), TERN_SCALAR(3), TERN_F32, "opencl:0");
        tern_tensor *y = tern_to(x, "opencl:1");
        float values[7] = {0};
        tern_copy_to_host(tern_add(y, y), values, sizeof values);
        sum = values[6];
    }
    printf("%d|%g|%s", tern_device_count("opencl"), sum, tern_last_error());
    return 0;
}

/* The device in a parent and its forked child. */
static int forked(void)
{
    tern_tensor *x = tern_ones(TERN_SHAPE(4), TERN_F32, "opencl:0");
    tern_tensor *y = tern_add(x, x);
    tern_synchronize("opencl:0");
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        test_limit(30);
        tern_tensor *z = tern_add(x, y);
        bool refused = !z && tern_last_status() == TERN_ERR_DEVICE;
        printf("refused %d: %s", refused, tern_last_error());
        tern_clear_error();
        tern_tensor *one = tern_ones(TERN_SHAPE(1), TERN_F32, "cpu");
        printf(" cpu %g", tern_item(tern_add(one, one)));
        exit(0); /* its handlers must not wait for the driver */
    }
    int status = 1;
    waitpid(child, &status, 0);
    float values[4] = {0};
    tern_copy_to_host(tern_add(x, y), values, sizeof values);
    printf(" child %d parent %g", status, (double)values[3]);
    return 0;
}

/* The device in a child alone. */
static int fresh(void)
{
    tern_tensor *x = tern_ones(TERN_SHAPE(300000), TERN_F32, "cpu"); /* of the pool's size */
    tern_add(x, x);
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        test_limit(60);
        tern_tensor *y = tern_to(x, "opencl:0");
        printf("sum %g %s", tern_item(tern_sum(tern_add(y, y))), tern_last_error());
        exit(0);
    }
    int status = 1;
    waitpid(child, &status, 0);
    printf(" child %d parent %g", status, tern_item(tern_sum(tern_to(x, "opencl:0"))));
    return 0;
}

/* One small product with a bias and an odd shape, all of it. */
static int product(void)
{
    TERN_SCOPE {
        float a[6 * 5], b[7 * 5], c[6 * 7], bias[7];
        for (int i = 0; i < 35; i++)
            b[i] = (float)(i % 9) - 4;
        for (int i = 0; i < 30; i++)
            a[i] = (float)(i % 7) - 3;
        for (int i = 0; i < 7; i++)
            bias[i] = (float)i;
        tern_tensor *x = tern_from_data(a, TERN_SHAPE(6, 5), TERN_F32, "opencl:0");
        tern_tensor *w = tern_from_data(b, TERN_SHAPE(7, 5), TERN_F32, "opencl:0");
        tern_tensor *v = tern_from_data(bias, TERN_SHAPE(7), TERN_F32, "opencl:0");
        tern_copy_to_host(tern_linear(x, w, v), c, sizeof c);
        for (int i = 0; i < 42; i++)
            printf("%g ", (double)c[i]);
        printf("%s", tern_last_error());
    }
    return 0;
}

/* The process ends while the driver compiles what was launched last. */
static int leave(void)
{
    tern_tensor *x = tern_ones(TERN_SHAPE(1, 1, 4, 4), TERN_F32, "opencl:0");
    tern_avg_pool2d(x, TERN_DIMS(2), NULL);
    printf("left %s", tern_last_error());
    return 0;
}

static const scenario scenarios[] = {{"list", list},     {"add", add},     {"two", two},
                                     {"forked", forked}, {"fresh", fresh}, {"product", product},
                                     {"leave", leave}};

/* ---- tests ------------------------------------------------------------------------------- */

static bool no_device(void)
{
    static int devices = -1;
    if (devices < 0)
        devices = atoi(RUN("list", NULL));
    return devices == 0;
}

static void an_absent_driver_is_explained(void **state)
{
    (void)state;
    char empty[1024], missing[1024], broken[1024], other[1024];
    snprintf(empty, sizeof empty, "OCL_ICD_VENDORS=%s", folder);
    snprintf(missing, sizeof missing, "OCL_ICD_VENDORS=%s/nowhere", folder);
    snprintf(broken, sizeof broken, "OCL_ICD_VENDORS=%s/broken", folder);
    snprintf(other, sizeof other, "OCL_ICD_VENDORS=%s/other", folder);
    file_with("broken/gone.icd", "libnowhere-to-be-found.so.7\n");
    file_with("other/libc.icd", "libc.so.6\n");
    file_with("other/void.icd", "");
    const struct {
        const char *variable, *part;
    } rows[] = {{empty, "lists no driver"},
                {empty, "pocl-opencl-icd"},
                {missing, "/nowhere lists no driver"},
                {broken, "gone.icd: its driver cannot be loaded"},
                {broken, "libnowhere-to-be-found.so.7"},
                {other, "libc.so.6 is not an OpenCL driver"},
                {other, "void.icd names no driver"}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const char *output = RUN("list", rows[i].variable, NULL);
        assert_int_equal(atoi(output), 0);
        if (!strstr(output, rows[i].part))
            fail_msg("%s: \"%s\" is not in: %s", rows[i].variable, rows[i].part, output);
        /* and using it says the same */
        assert_non_null(strstr(output, "4 tern_set_default_device: no opencl device"));
    }
}

static void a_broken_driver_beside_a_good_one_is_mentioned(void **state)
{
    (void)state;
    if (no_device())
        skip();
    DIR *d = opendir("/etc/OpenCL/vendors");
    char variable[1024], to[1024], from[1024];
    snprintf(variable, sizeof variable, "OCL_ICD_VENDORS=%s/both", folder);
    file_with("both/broken.icd", "libnowhere-to-be-found.so.7\n");
    for (struct dirent *e; d && (e = readdir(d));)
        if (strstr(e->d_name, ".icd")) {
            snprintf(to, sizeof to, "%s/both/%s", folder, e->d_name);
            snprintf(from, sizeof from, "/etc/OpenCL/vendors/%s", e->d_name);
            assert_int_equal(symlink(from, to), 0);
        }
    if (d)
        closedir(d);
    const char *output = RUN("list", variable, NULL);
    assert_true(atoi(output) > 0);
    assert_non_null(strstr(output, "broken.icd: its driver cannot be loaded"));
}

static void a_platform_without_devices_is_passed_over(void **state)
{
    (void)state;
    const char *output = RUN("list", "POCL_DEVICES=bogus", NULL);
    if (!strstr(output, "has no device"))
        skip(); /* no PoCL here */
    assert_non_null(strstr(output, "POCL_DEVICES=bogus"));
}

static void masks_are_read_as_the_cuda_driver_reads_them(void **state)
{
    (void)state;
    static const struct {
        const char *mask, *seen;
    } rows[] = {{"", ""},
                {"-1", ""},
                {"abc", ""},
                {",", ""},
                {"0,,2", "0"},
                {"2,1", "21"},
                {"0,0", ""},
                {"1,2,1", ""},
                {"0,99", "0"},
                {" 1 , 2 ", "12"},
                {"7", "7"},
                {"8", ""},
                {"0,2,-1,1", "02"},
                {"1gpu2,2ampere", "12"},
                {"3,", "3"},
                {"99999999999999999999", ""},
                {"0,1,2,3,4,5,6,7", "01234567"}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        int order[8];
        char seen[9] = "";
        int n = tern_cl_mask(rows[i].mask, 8, order);
        for (int j = 0; j < n; j++)
            seen[j] = (char)('0' + order[j]);
        if (strcmp(seen, rows[i].seen) != 0)
            fail_msg("mask \"%s\" shows \"%s\", not \"%s\"", rows[i].mask, seen, rows[i].seen);
    }
    if (no_device())
        return;
    const char *output = RUN("list", "TERN_OPENCL_VISIBLE_DEVICES=", NULL);
    assert_int_equal(atoi(output), 0);
    assert_non_null(strstr(output, "TERN_OPENCL_VISIBLE_DEVICES=\"\" leaves 0 of"));
}

static void devices_of_one_platform_are_never_merged(void **state)
{
    (void)state;
    const char *output = RUN("two", "POCL_DEVICES=pthread pthread", NULL);
    if (atoi(output) != 2)
        skip(); /* no PoCL, or others beside it */
    assert_string_equal(output, "2|6|");
    output = RUN("list", "POCL_DEVICES=pthread pthread", "TERN_OPENCL_VISIBLE_DEVICES=1,0", NULL);
    assert_int_equal(atoi(output), 2);
    output = RUN("list", "POCL_DEVICES=pthread pthread", "TERN_OPENCL_VISIBLE_DEVICES=1,5", NULL);
    assert_int_equal(atoi(output), 1);
}

/* The scenario `add` on a driver that is not known, so that its programs are kept in that cache: those of PoCL are in PoCL's
 * own, where each kernel is for itself. */
static const char *add_with(const char *cache, const char *more)
{
    return RUN("add", cache, "TERN_OPENCL_FORM=cpu", "OCL_ICD_VENDORS=" TEST_SHIM_VENDORS,
               "TERN_SHIM_LIMITS=no_name", more, NULL);
}

static void a_second_process_builds_nothing(void **state)
{
    (void)state;
    if (no_device())
        skip();
    char cache[1024];
    snprintf(cache, sizeof cache, "TERN_CACHE_DIR=%s/deep/cache", folder);
    assert_non_null(strstr(add_with(cache, NULL), "different 0 built 1 loaded 0"));
    assert_non_null(strstr(add_with(cache, NULL), "different 0 built 0 loaded 1"));
}

static void each_file(const char *path, void (*spoil)(const char *file))
{
    char file[1024];
    DIR *d = opendir(path);
    assert_non_null(d);
    for (struct dirent *e; (e = readdir(d));)
        if (e->d_name[0] != '.') {
            snprintf(file, sizeof file, "%s/%s", path, e->d_name);
            spoil(file);
        }
    closedir(d);
}

static void cut(const char *file)
{
    struct stat status;
    assert_int_equal(stat(file, &status), 0);
    assert_int_equal(status.st_mode & 0777, 0600);
    assert_int_equal(truncate(file, status.st_size / 2), 0);
}

static void flip(const char *file)
{
    FILE *f = fopen(file, "r+");
    assert_non_null(f);
    fseek(f, 500, SEEK_SET);
    int byte = fgetc(f);
    fseek(f, 500, SEEK_SET);
    fputc(byte ^ 1, f);
    fclose(f);
}

static void a_spoiled_or_missing_cache_is_no_error(void **state)
{
    (void)state;
    if (no_device())
        skip();
    char path[1024], cache[1100];
    snprintf(path, sizeof path, "%s/spoiled", folder);
    snprintf(cache, sizeof cache, "TERN_CACHE_DIR=%s", path);
    add_with(cache, NULL);
    each_file(path, cut);
    assert_non_null(strstr(add_with(cache, NULL), "different 0 built 1 loaded 0"));
    each_file(path, flip);
    assert_non_null(strstr(add_with(cache, NULL), "different 0 built 1 loaded 0"));
    assert_non_null(
        strstr(add_with("TERN_CACHE_DIR=/dev/null/no", NULL), "different 0 built 1 loaded 0"));
}

static void make_fifo(const char *file)
{
    assert_int_equal(unlink(file), 0);
    assert_int_equal(mkfifo(file, 0600), 0);
}

static void make_link(const char *file)
{
    char other[1024];
    snprintf(other, sizeof other, "%s/linked", folder);
    assert_int_equal(rename(file, other), 0);
    assert_int_equal(symlink(other, file), 0);
}

static void let_all_write(const char *file)
{
    assert_int_equal(chmod(file, 0620), 0);
}

static void give_away(const char *file)
{
    assert_int_equal(chown(file, 12345, (gid_t)-1), 0);
}

static void what_others_may_have_written_is_not_run(void **state)
{
    (void)state;
    if (no_device())
        skip();
    void (*const spoil[])(const char *file) = {make_fifo, make_link, let_all_write, give_away};
    char path[1024], cache[1100];
    const char *output;
    snprintf(path, sizeof path, "%s/foreign", folder);
    snprintf(cache, sizeof cache, "TERN_CACHE_DIR=%s", path);
    add_with(cache, NULL);
    for (size_t i = 0; i < sizeof spoil / sizeof *spoil - (geteuid() != 0); i++) {
        each_file(path, spoil[i]);
        assert_non_null(strstr(add_with(cache, NULL), "different 0 built 1 loaded 0"));
        assert_non_null(strstr(add_with(cache, NULL), "different 0 built 0 loaded 1"));
    }
    assert_int_equal(chmod(path, 0770), 0);
    output = add_with(cache, "TERN_WARN=1");
    assert_non_null(strstr(output, "different 0 built 1 loaded 0"));
    assert_non_null(strstr(output, "which others may write to (chmod go-w) [cache]"));
    assert_int_equal(chmod(path, 0700), 0);
    assert_non_null(strstr(add_with(cache, NULL), "different 0 built 0 loaded 1"));
    if (geteuid() == 0) {
        give_away(path);
        assert_non_null(strstr(add_with(cache, NULL), "different 0 built 1 loaded 0"));
    }
}

static void both_forms_compute_what_the_cpu_does(void **state)
{
    (void)state;
    if (no_device())
        skip();
    const char *output = RUN("add", "TERN_OPENCL_FORM=gpu", NULL);
    assert_non_null(strstr(output, "different 0"));
    assert_non_null(strstr(output, "launches 1"));
}

static void every_way_to_a_product_gives_the_same(void **state)
{
    (void)state;
    if (no_device())
        skip();
    char own[MAX_OUTPUT];
    snprintf(own, sizeof own, "%s", RUN("product", "TERN_OPENCL_GEMM=own", NULL));
    assert_int_equal(atoi(own), 20); /* (-3 -2 -1 0 1) . (-4 -3 -2 -1 0), and bias 0 */
    assert_string_equal(RUN("product", "TERN_OPENCL_GEMM=portable", NULL), own);
    assert_string_equal(RUN("product", "TERN_OPENCL_GEMM=clblast", NULL), own);
}

static void a_tuning_file_is_read_when_a_device_is_opened(void **state)
{
    (void)state;
    char variable[1100], own[MAX_OUTPUT];
    if (no_device())
        skip();
    snprintf(own, sizeof own, "%s", RUN("product", "TERN_OPENCL_TUNING=", NULL));
    snprintf(variable, sizeof variable, "TERN_OPENCL_TUNING=%s",
             file_with("tuning/good", "route gemv n=1\nroute own\n"));
    assert_string_equal(RUN("product", variable, NULL), own);
    snprintf(variable, sizeof variable, "TERN_OPENCL_TUNING=%s",
             file_with("tuning/bad", "route own\nroute it\n"));
    assert_non_null(strstr(RUN("product", variable, NULL), "tuning/bad:2: route: \"it\""));
    snprintf(variable, sizeof variable, "XDG_CONFIG_HOME=%s", folder);
    file_with("tern/opencl.tuning", "\n\nfoo\n");
    const char *output = RUN("product", "TERN_OPENCL_TUNING", variable, NULL);
    assert_non_null(strstr(output, "tern/opencl.tuning:3: \"foo\" is none of"));
}

static void a_tuning_file_without_an_end_is_refused(void **state)
{
    (void)state;
    char variable[1100], path[1024];
    if (no_device())
        skip();
    snprintf(path, sizeof path, "%s/fifo", folder);
    assert_int_equal(mkfifo(path, 0600), 0);
    snprintf(variable, sizeof variable, "TERN_OPENCL_TUNING=%s", path);
    assert_non_null(strstr(RUN("product", variable, NULL), "it is not a regular file"));
    assert_non_null(
        strstr(RUN("product", "TERN_OPENCL_TUNING=/dev/zero", NULL), "it is not a regular file"));
    assert_int_equal(atoi(RUN("product", "TERN_OPENCL_TUNING=/dev/null", NULL)), 20);
}

static void a_forked_child_may_be_the_first_to_use_a_device(void **state)
{
    (void)state;
    if (no_device())
        skip();
    assert_string_equal(RUN("fresh", NULL), "sum 600000  child 0 parent 300000");
}

static void a_forked_child_gets_an_error_and_ends(void **state)
{
    (void)state;
    if (no_device())
        skip();
    const char *output = RUN("forked", NULL);
    assert_non_null(strstr(output, "refused 1"));
    assert_non_null(strstr(output, "posix_spawn()"));
    assert_non_null(strstr(output, "cpu 2"));
    assert_non_null(strstr(output, "child 0 parent 3"));
}

static void a_process_may_end_while_the_driver_compiles(void **state)
{
    (void)state;
    if (no_device())
        skip();
    char pocl[1024], drivers[1024];
    snprintf(pocl, sizeof pocl, "POCL_CACHE_DIR=%s/pocl", folder);
    snprintf(drivers, sizeof drivers, "XDG_CACHE_HOME=%s/drivers", folder);
    assert_string_equal(RUN("leave", pocl, drivers, "TERN_CACHE_DIR=/dev/null"), "left ");
}

int main(int argc, char **argv)
{
    int code = rerun_scenario(argc, argv, scenarios, sizeof scenarios / sizeof *scenarios);
    if (code >= 0)
        return code;
    const struct CMUnitTest tests[] = {
        TEST(an_absent_driver_is_explained),
        TEST(a_broken_driver_beside_a_good_one_is_mentioned),
        TEST(a_platform_without_devices_is_passed_over),
        TEST(masks_are_read_as_the_cuda_driver_reads_them),
        TEST(devices_of_one_platform_are_never_merged),
        TEST(a_second_process_builds_nothing),
        TEST(a_spoiled_or_missing_cache_is_no_error),
        TEST(what_others_may_have_written_is_not_run),
        TEST(both_forms_compute_what_the_cpu_does),
        TEST(every_way_to_a_product_gives_the_same),
        TEST(a_tuning_file_is_read_when_a_device_is_opened),
        TEST(a_tuning_file_without_an_end_is_refused),
        TEST(a_forked_child_may_be_the_first_to_use_a_device),
        TEST(a_forked_child_gets_an_error_and_ends),
        TEST(a_process_may_end_while_the_driver_compiles),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    remove_folder();
    return failed;
}
