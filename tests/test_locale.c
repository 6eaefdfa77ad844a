/* test_locale.c -- numbers in texts have a point for tern, whatever the program's locale writes. */
#include "files.h"
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tern/report.h>

/* German, which is made in a folder of the test's own where the system has none. */
static bool speak_german(void)
{
    char command[700];
    if (setlocale(LC_ALL, "de_DE.UTF-8")) /* musl takes every name, and all are C's */
        return *localeconv()->decimal_point == ',';
    test_make_folder("locales");
    snprintf(command, sizeof command, "localedef -i de_DE -f UTF-8 '%s' >/dev/null 2>&1",
             test_path("locales/de_DE.UTF-8"));
    return system(command) != -1 && setenv("LOCPATH", test_path("locales"), 1) == 0 &&
           setlocale(LC_ALL, "de_DE.UTF-8");
}

/* The first and second derivative of erf and gelu at 0.5: the text of their gradients' rows has numbers. */
static void derivatives(double *first, double *second)
{
    const float half = 0.5F;
    TERN_SCOPE {
        tern_tensor *x = tern_from_data(&half, TERN_SHAPE(1), TERN_F32, NULL), *g, *h;
        tern_requires_grad_(x, true);
        tern_tensor *y = tern_sum(tern_add(tern_gelu(x), tern_erf(x)));
        assert_ok(tern_autograd_grad(&y, 1, &x, 1, &g,
                                     &(tern_autograd_grad_options){.create_graph = true}));
        tern_tensor *sum = tern_sum(g);
        assert_ok(tern_autograd_grad(&sum, 1, &x, 1, &h, NULL));
        *first = tern_item(g);
        *second = tern_item(h);
    }
}

static void gradients_are_those_of_every_locale(void **state)
{
    (void)state;
    double first, second, german_first, german_second;
    setlocale(LC_NUMERIC, "C");
    derivatives(&first, &second);
    setlocale(LC_NUMERIC, "");
    setlocale(LC_NUMERIC, "de_DE.UTF-8");
    assert_int_equal(*localeconv()->decimal_point, ',');
    derivatives(&german_first, &german_second);
    assert_true(first == german_first && second == german_second);
}

static void a_report_is_a_table_of_numbers_with_points(void **state)
{
    (void)state;
    char line[200] = "";
    tern_report *report =
        tern_report_new(test_path("report"), &(tern_report_options){.csv = true, .quiet = true});
    assert_non_null(report);
    assert_ok(tern_report_value(report, "loss", 1, 0.25));
    assert_ok(tern_report_step(report, 1, 1));
    assert_ok(tern_report_close(report));
    FILE *f = fopen(test_path("report/metrics.csv"), "r");
    assert_non_null(f);
    while (fgets(line, sizeof line, f)) {
    }
    fclose(f);
    assert_non_null(strstr(line, ",0.25\n"));
}

static void a_default_that_a_signature_writes_is_read(void **state)
{
    (void)state;
    const float values[] = {-1, 2};
    TERN_SCOPE { /* leaky_relu's negative_slope=0.01 */
        tern_tensor *x = tern_from_data(values, TERN_SHAPE(2), TERN_F32, NULL), *y = NULL;
        tern_value value = tern_value_tensor(NULL, x);
        assert_int_equal(tern_call_by_name("nn.functional.leaky_relu", &value, 1, &y, 1), 1);
        assert_values_close(y, 1e-6, -0.01, 2);
    }
}

static const struct CMUnitTest tests[] = {TEST(gradients_are_those_of_every_locale),
                                          TEST(a_report_is_a_table_of_numbers_with_points),
                                          TEST(a_default_that_a_signature_writes_is_read)};

int main(void)
{
    if (speak_german())
        return test_main(tests, sizeof tests / sizeof *tests);
    printf("SKIP: there is no locale de_DE.UTF-8 with a decimal comma, and localedef (Debian: "
           "locales) makes none\n");
    return 77;
}
