/* test_opencl_mask.c -- mistakes in TERN_OPENCL_VISIBLE_DEVICES are explained. */
#include "rerun.h"

static int list(void)
{
    printf("%d|%s|", tern_device_count("opencl"), tern_device_notes("opencl"));
    return 0;
}

static const scenario scenarios[] = {{"list", list}};

/* The element that is no number of a device is named, with the numbers that there are and the one that was probably meant. */
static void a_mistake_in_a_mask_is_explained(void **state)
{
    (void)state;
    static const struct {
        const char *mask, *element, *meant; /* element NULL: the mask is right */
    } rows[] = {
        {"abc", "abc", "0"},
        {"opencl:0", "opencl:0", "0"},
        {"opencl:1", "opencl:1", "1"},
        {"gpu0", "gpu0", "0"},
        {"pthread", "pthread", "0"},
        {"0,7", "7", "0"},
        {"1,opencl:0", "opencl:0", "0"},
        {"0,0", "0", "0"},
        {"0,", "", "0"},
        {"1,0", NULL, NULL},
        {"-1", NULL, NULL},
        {"0,-1,1", NULL, NULL},
        {"", NULL, NULL},
    };
    if (atoi(RUN("list", "POCL_DEVICES=pthread pthread", NULL)) != 2)
        skip();
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char mask[64], element[64], meant[64];
        snprintf(mask, sizeof mask, "TERN_OPENCL_VISIBLE_DEVICES=%s", rows[i].mask);
        snprintf(element, sizeof element, "its element \"%s\" is ",
                 rows[i].element ? rows[i].element : "");
        snprintf(meant, sizeof meant, "; did you mean \"%s\"?", rows[i].meant ? rows[i].meant : "");
        const char *output = RUN("list", "POCL_DEVICES=pthread pthread", mask, "TERN_WARN=1", NULL);
        bool right = !rows[i].element
                         ? !strstr(output, "its element") && !strstr(output, "warning")
                         : strstr(output, element) && strstr(output, meant) &&
                               strstr(output, "; there are 0 (") && strstr(output, ", 1 (") &&
                               strstr(output, "tern: warning: TERN_OPENCL_VISIBLE_DEVICES: ");
        if (!right)
            fail_msg("%s: %s", mask, output);
    }
}

int main(int argc, char **argv)
{
    int code = rerun_scenario(argc, argv, scenarios, sizeof scenarios / sizeof *scenarios);
    if (code >= 0)
        return code;
    const struct CMUnitTest tests[] = {TEST(a_mistake_in_a_mask_is_explained)};
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    remove_folder();
    return failed;
}
