/* test_env.c -- the variables of the environment: empty ones, unknown ones, values that are
 * none, and that each is read once. */
#include "environment.h"
#include "rerun.h"

static const struct {
    const char *setting, *text; /* text NULL: there is no warning */
} settings[] = {
    {"TERN_DEVCE=cpu", "TERN_DEVCE: tern has no such variable; did you mean TERN_DEVICE?"},
    {"TERN_DEVICES=cpu", "TERN_DEVICES: tern has no such variable; did you mean TERN_DEVICE?"},
    {"TERN_debug=1", "TERN_debug: tern has no such variable; did you mean TERN_DEBUG?"},
    {"TERN_CUDNN_CONVOLUTIONS=1", "did you mean TERN_CUDNN_CONVOLUTION?"},
    {"TERN_OPENCL_VISIBLE_DEVICE=0", "did you mean TERN_OPENCL_VISIBLE_DEVICES?"},
    {"TERN_NUM_THREADS=1", "TERN_NUM_THREADS: tern has no such variable [environment]"},
    {"TERN_X=", "TERN_X: tern has no such variable [environment]"},
    {"TERN_DEBUG=yes", "TERN_DEBUG: \"yes\" is neither 0 nor 1, and counts as 1"},
    {"TERN_DEBUG=OFF", "TERN_DEBUG: \"OFF\" is neither 0 nor 1, and counts as 0"},
    {"TERN_PROGRESS=2", "TERN_PROGRESS: \"2\" is neither 0 nor 1, and counts as 1"},
    {"TERN_NCCL=false", "TERN_NCCL: \"false\" is neither 0 nor 1, and counts as 0"},
    {"TERN_COMPILE_THREADS=many", "TERN_COMPILE_THREADS: \"many\" is not a whole number from 0 on"},
    {"TERN_COMPILE_THREADS=-1", "TERN_COMPILE_THREADS: \"-1\" is not a whole number from 0 on"},
    {"TERN_OPENCL_FORM=GPU", "\"GPU\" is none of cpu or gpu; did you mean \"gpu\"?"},
    {"TERN_OPENCL_FORM=vector", "\"vector\" is none of cpu or gpu [environment]"},
    {"TERN_OPENCL_GEMM=clblas", "did you mean \"clblast\"?"},
    {"TERN_OPENCL_GEMM=tile:8", "none of portable, own, clblast, gpu, tiles:* or matrix:*"},
    {"TERN_CPU_ISA=x86_64-v3", "did you mean \"x86-64-v3\"?"},
    {"TERN_CPU_ISA=", NULL},
    {"TERN_DEBUG=", NULL},
    {"TERN_COMPILE_THREADS=", NULL},
    {"TERN_OPENCL_FORM=", NULL},
    {"TERN_OPENCL_GEMM=", NULL},
    {"TERN_DEBUG=0", NULL},
    {"TERN_COMPILE_THREADS=0", NULL},
    {"TERN_OPENCL_FORM=gpu", NULL},
    {"TERN_OPENCL_GEMM=tiles:8x8x4x4x16x4", NULL},
    {"TERN_CPU_ISA=generic", NULL},
    {"TERN_CACHE_DIR=/dev/null", NULL},
    {"TERN_TEST_SOMETHING=1", NULL},
    {"TERN_STANDIN_DEVICES=2", NULL},
    {"TERNARY=1", NULL},
};

static int use_the_default_device(void)
{
    TERN_SCOPE
        tern_zeros(TERN_SHAPE(1), TERN_F32, NULL);
    return 0;
}

/* Sets what was read before, and what was not. */
static int set_too_late(void)
{
    setenv("TERN_COMPILE_THREADS", "3", 1);
    puts(tern_env(TERN_ENV_COMPILE_THREADS));
    setenv("TERN_COMPILE_THREADS", "5", 1);
    puts(tern_env(TERN_ENV_COMPILE_THREADS));
    unsetenv("TERN_COMPILE_THREADS");
    puts(tern_env(TERN_ENV_COMPILE_THREADS));
    return 0;
}

static const scenario scenarios[] = {
    {"default", use_the_default_device},
    {"late", set_too_late},
};

static void what_is_wrong_is_a_warning(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++) {
        const char *output = RUN("default", settings[i].setting, "TERN_WARN=1", "TERN_DEVICE");
        if (!strstr(output, settings[i].text ? settings[i].text : "[environment]") ==
            !!settings[i].text)
            fail_msg("%s: %s", settings[i].setting, output);
        output = RUN("default", settings[i].setting, "TERN_WARN=0", "TERN_DEVICE");
        assert_string_equal(output, "");
    }
}

static void a_variable_is_read_once(void **state)
{
    (void)state;
    assert_string_equal(RUN("late", "TERN_COMPILE_THREADS"), "3\n3\n3\n");
}

/* What a table row is said to take is no problem, and each row is described. */
static void every_variable_is_listed(void **state)
{
    (void)state;
    tern_env_info info;
    int n = 0, flags = 0;
    for (; tern_env_at(n, &info) && *info.description; n++) {
        assert_memory_equal(info.name, "TERN_", 5);
        assert_true(*info.values && *info.by_default);
        if (strcmp(info.values, "0|1") != 0)
            continue;
        for (const char *v = "0\0001\0yes\0"; *v; v += strlen(v) + 1) {
            const char *before = info.value;
            char kept[256];
            snprintf(kept, sizeof kept, "%s", before ? before : "");
            set_variable(info.name, v);
            assert_true(tern_env_at(n, &info));
            assert_string_equal(info.value, v);
            assert_int_equal(*info.problem != '\0', strcmp(v, "yes") == 0);
            set_variable(info.name, *kept ? kept : NULL);
            flags++;
        }
    }
    assert_int_equal(n, TERN_ENV_VARIABLES);
    assert_true(flags >= 9);
    setenv("TERN_NO_SUCH_THING", "7", 1);
    bool found = false;
    for (int i = n; tern_env_at(i, &info); i++)
        if (strcmp(info.name, "TERN_NO_SUCH_THING") == 0) {
            assert_string_equal(info.value, "7");
            assert_non_null(strstr(info.problem, "no such variable"));
            found = true;
        }
    assert_true(found);
    unsetenv("TERN_NO_SUCH_THING");
    assert_false(tern_env_at(-1, &info));
    assert_false(tern_env_at(100000, &info));
    assert_string_equal(info.name, "");
    assert_false(tern_env_at(0, NULL));
    assert_no_error();
}

/* Empty is as not set, but for the list of devices. */
static void an_empty_variable_is_not_set(void **state)
{
    (void)state;
    tern_env_info info;
    for (int i = 0; i < TERN_ENV_VARIABLES; i++) {
        assert_true(tern_env_at(i, &info));
        char name[64], kept[4096];
        snprintf(name, sizeof name, "%s", info.name);
        snprintf(kept, sizeof kept, "%s", info.value ? info.value : "");
        bool was_set = info.value != NULL;
        set_variable(name, "");
        if (i == TERN_ENV_OPENCL_VISIBLE_DEVICES)
            assert_string_equal(tern_env((tern_env_variable)i), "");
        else
            assert_null(tern_env((tern_env_variable)i));
        set_variable(name, was_set ? kept : NULL);
    }
}

int main(int argc, char **argv)
{
    int code = rerun_scenario(argc, argv, scenarios, sizeof scenarios / sizeof *scenarios);
    if (code >= 0)
        return code;
    const struct CMUnitTest tests[] = {
        TEST(what_is_wrong_is_a_warning),
        TEST(a_variable_is_read_once),
        TEST(every_variable_is_listed),
        TEST(an_empty_variable_is_not_set),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    remove_folder();
    return failed;
}
