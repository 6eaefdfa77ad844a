/* test_device.c -- device strings, defaults, questions; what is refused, and in which words. */
#include "environment.h"
#include "support.h"
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

static const struct {
    const char *text, *message;
} refused[] = {
    {"", "Device string must not be empty"},
    {"gpu", "device type at start of device string: gpu"},
    {"CPU", "device type at start of device string: CPU"},
    {"cpu0", "device type at start of device string: cpu0"},
    {"auto:0", "device type at start of device string: auto"},
    {":0", "device type at start of device string: "},
    {" cpu", "Invalid device string: ' cpu'"},
    {"cpu ", "Invalid device string: 'cpu '"},
    {"cpu:", "Invalid device string: 'cpu:'"},
    {"cpu:-1", "Invalid device string: 'cpu:-1'"},
    {"cpu:1", "Invalid device string: 'cpu:1': there is one cpu device"},
    {"cpu:00", "Invalid device string: 'cpu:00'"},
    {"cpu:99999999999", "Could not parse device index '99999999999' in device string "
                        "'cpu:99999999999'"},
    {"cuda:99999999999999999999", ""},
#ifdef TERN_WITH_OPENCL
    {"opencl:", "Invalid device string: 'opencl:'"},
    {"opencl::0", "Invalid device string: 'opencl::0'"},
    {"opencl:0:0", "Invalid device string: 'opencl:0:0'"},
    {"opencl:01", "Invalid device string: 'opencl:01'"},
    {"opencl:+1", "Invalid device string: 'opencl:+1'"},
    {"opencl:-1", "Invalid device string: 'opencl:-1'"},
    {"opencl:1.5", "Invalid device string: 'opencl:1.5'"},
    {"opencl:x", "Invalid device string: 'opencl:x'"},
    {"opencl:0 ", "Invalid device string: 'opencl:0 '"},
    {"opencl:128000", "Could not parse device index '128000'"},
    {"opencl:99", ""}, /* how many there are depends on the machine */
    {"opencl:nobody makes this", ""},
#endif
};

static void bad_strings_are_refused_with_a_reason(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        assert_int_equal(tern_set_default_device(refused[i].text), TERN_ERR_DEVICE);
        assert_error(TERN_ERR_DEVICE, refused[i].message);
        assert_null(tern_zeros(TERN_SHAPE(1), TERN_F32, refused[i].text));
        assert_error(TERN_ERR_DEVICE, "tern_zeros: ");
        assert_false(tern_device_is_available(refused[i].text));
        assert_no_error();
        assert_string_equal(tern_default_device(), "cpu");
    }
}

/* What others call a device, and what is typed wrongly; what was meant: "gpu" for the first that is not cpu, or cpu. */
static const struct {
    const char *text, *meant;
} mistaken[] = {
    {"CPU", "cpu"},
    {"Cpu", "cpu"},
    {"cpu0", "cpu"},
    {"cpu:1", "cpu"},
    {" cpu", "cpu"},
    {"cpu ", "cpu"},
    {"cpu:", "cpu"},
    {"cp", "cpu"},
    {"host", "cpu"},
    {"AUTO", "auto"},
    {"aut", "auto"},
    {"auto:0", "auto"},
    {"nonsense", "auto"},
    {"", "auto"},
    {"gpu", "gpu"},
    {"GPU", "gpu"},
    {"gpu:0", "gpu"},
    {"gpu0", "gpu"},
    {"mps", "gpu"},
    {"mps:0", "gpu"},
    {"metal", "gpu"},
    {"xpu", "gpu"},
    {"hip:0", "gpu"},
    {"rocm", "gpu"},
    {"vulkan", "gpu"},
    {"OPENCL", "opencl:0"},
    {"OPENCL:0", "opencl:0"},
    {"OpenCL:0", "opencl:0"},
    {"opencl0", "opencl:0"},
    {"opencl-0", "opencl:0"},
    {"opncl:0", "opencl:0"},
    {"openc1:0", "opencl:0"},
    {"opencl:", "opencl:0"},
    {"opencl:9", "opencl:0"},
    {"opencl:0:0", "opencl:0"},
    {"opencl:00", "opencl:0"},
    {"ocl:0", "opencl:0"},
    {"cl", "opencl:0"},
    {"opencl:x", "opencl:0"},
    {"opencl:-1", "opencl:0"},
};

/* A message names the argument's function or the variable, lists what there is and guesses. */
static void a_wrong_name_is_told_with_what_there_is(void **state)
{
    (void)state;
    bool opencl = tern_device_count("opencl") > 0;
    const char *gpu = tern_device_count("cuda") > 0 ? "cuda:0" : opencl ? "opencl:0" : NULL;
    for (size_t i = 0; i < sizeof mistaken / sizeof *mistaken; i++) {
        const char *meant = mistaken[i].meant;
        char guess[64], variable[64];
        if (strcmp(meant, "gpu") == 0)
            meant = gpu;
        if (!opencl && strcmp(mistaken[i].text, "opencl:9") == 0)
            continue; /* no mistake where there is no device at all */
        if (!meant || (strcmp(meant, "opencl:0") == 0 && !opencl))
            meant = ""; /* there is none: any guess will do */
        snprintf(guess, sizeof guess, "; did you mean \"%s", meant);
        assert_null(tern_zeros(TERN_SHAPE(1), TERN_F32, mistaken[i].text));
        if (!strstr(tern_last_error(), guess) ||
            strncmp(tern_last_error(), "tern_zeros: ", 12) != 0 ||
            !strstr(tern_last_error(), "; there ") || !strstr(tern_last_error(), " cpu"))
            fail_msg("\"%s\": %s", mistaken[i].text, tern_last_error());
        assert_error(TERN_ERR_DEVICE, opencl ? "opencl:0 (" : "");
        if (!*mistaken[i].text)
            continue;
        set_variable("TERN_DEVICE", mistaken[i].text);
        tern_set_default_device(NULL);
        assert_null(tern_zeros(TERN_SHAPE(1), TERN_F32, NULL));
        snprintf(variable, sizeof variable,
                 "TERN_DEVICE=\"%s\" in the environment: ", mistaken[i].text);
        if (strncmp(tern_last_error(), variable, strlen(variable)) != 0 ||
            !strstr(tern_last_error(), guess))
            fail_msg("TERN_DEVICE=%s: %s", mistaken[i].text, tern_last_error());
        assert_error(TERN_ERR_DEVICE, "");
        set_variable("TERN_DEVICE", NULL);
        tern_set_default_device(NULL);
        assert_false(tern_device_is_available(mistaken[i].text));
        assert_no_error();
    }
}

static void cpu_is_there_under_its_names(void **state)
{
    (void)state;
    static const char *const names[] = {"cpu", "cpu:0", NULL};
    for (int i = 0; i < 3; i++)
        assert_string_equal(tern_device_canonical(names[i]), "cpu");
    assert_non_null(tern_device_canonical("auto"));
    assert_int_equal(tern_device_count("cpu"), 1);
    assert_int_equal(tern_device_count("nothing"), 0);
    assert_int_equal(tern_device_count(NULL), 0);
    assert_true(tern_device_is_available("cpu"));
    assert_false(tern_device_is_available(NULL));
    assert_non_null(tern_device_notes("nothing"));
    assert_string_equal(tern_current_device("cpu"), "cpu");
    assert_null(tern_current_device("nothing"));
    assert_error(TERN_ERR_DEVICE, "nothing");
}

static void availability_keeps_an_error_that_is_recorded(void **state)
{
    (void)state;
    assert_null(tern_zeros(TERN_SHAPE(-1), TERN_F32, NULL));
    assert_true(tern_device_is_available("cpu"));
    assert_false(tern_device_is_available("gpu"));
    assert_error(TERN_ERR_SHAPE, "negative dimension");
}

static void count_error(const tern_error_info *error, void *user)
{
    (void)error;
    ++*(int *)user;
}

static void availability_is_a_question_and_no_failure(void **state)
{
    (void)state;
    int told = 0;
    tern_set_error_policy(TERN_ERRORS_CALL, count_error, &told);
    assert_false(tern_device_is_available("opencl:99"));
    assert_false(tern_device_is_available("gpu"));
    assert_null(tern_zeros(TERN_SHAPE(1), TERN_F32, "gpu"));
    assert_false(tern_device_is_available("gpu"));
    tern_set_error_policy(TERN_ERRORS_RECORD, NULL, NULL);
    assert_int_equal(told, 1);
    assert_error(TERN_ERR_DEVICE, "tern_zeros");
}

static void info_is_complete(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    {
        tern_device_info info = {0};
        assert_ok(tern_device_get_info(device, &info));
        assert_string_equal(info.device, device);
        assert_string_equal(info.name, tern_device_name(device));
        assert_true(*info.name && info.vendor && *info.platform && info.driver);
        assert_in_range(info.type, TERN_DEVICE_CPU, TERN_DEVICE_ACCELERATOR);
        assert_true(info.compute_units > 0);
        assert_true(info.memory_total >= info.memory_free && info.memory_free > 0);
        assert_true(*info.uuid == '\0' || strlen(info.uuid) == 36);
        assert_int_equal(info.capability_major > 0, strncmp(device, "cuda", 4) == 0);
        assert_ok(tern_synchronize(device));
    }
    assert_int_equal(tern_device_get_info("cpu", NULL), TERN_ERR_ARGUMENT);
    assert_error(TERN_ERR_ARGUMENT, "tern_device_get_info: info is NULL");
    tern_device_info info = {0};
    assert_int_equal(tern_device_get_info("gpu", &info), TERN_ERR_DEVICE);
    assert_error(TERN_ERR_DEVICE, "tern_device_get_info: ");
}

static void a_part_of_the_name_is_enough(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    {
        if (strncmp(device, "opencl", 6) != 0) /* only OpenCL devices have such names */
            continue;
        tern_device_info info;
        char text[64];
        assert_ok(tern_device_get_info(device, &info));
        snprintf(text, sizeof text, "opencl:%.4s", info.platform[0] ? info.platform : info.name);
        for (char *c = text + 7; *c; c++)
            *c = (char)(*c >= 'a' && *c <= 'z' ? *c - 32 : *c);
        const char *found = tern_device_canonical(text);
        if (found)
            assert_string_equal(found, device);
        else
            assert_error(TERN_ERR_DEVICE, "matches"); /* several: the message lists them */
        assert_null(tern_device_canonical("opencl:po"));
        assert_error(TERN_ERR_DEVICE, "Invalid device string");
    }
}

static void set_device_sets_what_the_bare_kind_means(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    {
        char kind[16];
        snprintf(kind, sizeof kind, "%.*s", (int)strcspn(device, ":"), device);
        assert_ok(tern_set_device(device));
        assert_string_equal(tern_current_device(kind), device);
        assert_string_equal(tern_device_canonical(kind), device);
    }
    assert_string_equal(tern_default_device(), "cpu");
    assert_int_equal(tern_set_device(NULL), TERN_ERR_ARGUMENT);
    assert_error(TERN_ERR_ARGUMENT, "device is NULL");
}

static void default_device_is_where_null_puts_tensors(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device) TERN_SCOPE
    {
        assert_ok(tern_set_default_device(device));
        assert_string_equal(tern_default_device(), device);
        assert_string_equal(tern_device(tern_zeros(TERN_SHAPE(2), TERN_F32, NULL)), device);
        assert_ok(tern_set_default_device(NULL));
        assert_string_equal(tern_default_device(), "cpu");
    }
}

static void *look_at_default(void *out)
{
    snprintf(out, 32, "%s", tern_default_device());
    return NULL;
}

static void default_device_is_per_thread(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    {
        pthread_t thread;
        char seen[32];
        assert_ok(tern_set_default_device(device));
        assert_int_equal(pthread_create(&thread, NULL, look_at_default, seen), 0);
        assert_int_equal(pthread_join(thread, NULL), 0);
        assert_string_equal(seen, "cpu");
        assert_ok(tern_set_default_device(NULL));
    }
}

static void environment_sets_the_default(void **state)
{
    (void)state;
    set_variable("TERN_DEVICE", "cpu:0");
    tern_set_default_device(NULL);
    assert_string_equal(tern_default_device(), "cpu");
    FOR_EACH_DEVICE(device)
    {
        set_variable("TERN_DEVICE", device);
        tern_set_default_device(NULL);
        assert_string_equal(tern_default_device(), device);
    }
    set_variable("TERN_DEVICE", "gpu");
    tern_set_default_device(NULL);
    assert_null(tern_default_device());
    assert_error(TERN_ERR_DEVICE, "device type at start of device string: gpu");
    assert_null(tern_zeros(TERN_SHAPE(1), TERN_F32, NULL));
    assert_error(TERN_ERR_DEVICE, "TERN_DEVICE=\"gpu\" in the environment: Expected one of cpu");
    set_variable("TERN_DEVICE", "");
    assert_string_equal(tern_default_device(), "cpu");
    set_variable("TERN_DEVICE", NULL);
    tern_set_default_device(NULL);
}

static void cpu_works_in_a_forked_child(void **state)
{
    (void)state;
    TERN_SCOPE {
        tern_tensor *x = test_uniform("cpu", TERN_F32, TERN_SHAPE(300000), 0, 1, 1);
        tern_tensor *twice = tern_add(x, x); /* the thread pool exists before the fork */
        IN_CHILD
        assert_same(tern_add(x, x), twice);
    }
}

static const struct CMUnitTest tests[] = {
    TEST(bad_strings_are_refused_with_a_reason),
    TEST(a_wrong_name_is_told_with_what_there_is),
    TEST(cpu_is_there_under_its_names),
    TEST(availability_keeps_an_error_that_is_recorded),
    TEST(availability_is_a_question_and_no_failure),
    TEST(info_is_complete),
    TEST(a_part_of_the_name_is_enough),
    TEST(set_device_sets_what_the_bare_kind_means),
    TEST(default_device_is_where_null_puts_tensors),
    TEST(default_device_is_per_thread),
    TEST(environment_sets_the_default),
    TEST(cpu_works_in_a_forked_child),
};
TEST_MAIN(tests)
