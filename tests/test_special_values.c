/* test_special_values.c -- functions of one tensor, and their gradients, at NaN, infinities, signed zeros and the ends
 * of their domains: PyTorch's numbers (golden/special_values.py). */
#include "support.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

typedef tern_tensor *(*function)(const char *name, tern_tensor *x);

static tern_tensor *call(const char *name, const tern_value *values, int n)
{
    tern_tensor *out[4];
    return tern_call_by_name(name, values, n, out, 4) >= 1 ? out[0] : NULL;
}

static tern_tensor *of_x(const char *name, tern_tensor *x)
{
    return call(name, &(tern_value){.kind = TERN_VALUE_TENSOR, .as.tensor = x}, 1);
}

static tern_tensor *and_zeros(const char *name, tern_tensor *x)
{
    return call(
        name,
        (tern_value[]){tern_value_tensor(NULL, x), tern_value_tensor(NULL, tern_zeros_like(x))}, 2);
}

static tern_tensor *along_0(const char *name, tern_tensor *x)
{
    return call(name, (tern_value[]){tern_value_tensor(NULL, x), tern_value_int("dim", 0)}, 2);
}

static tern_tensor *with_numbers(const char *name, tern_tensor *x)
{
    (void)name;
    return strcmp(name, "clamp") == 0       ? tern_clamp(x, -1, 1)
           : strcmp(name, "clamp_min") == 0 ? tern_clamp_min_scalar(x, TERN_SCALAR(0))
           : strcmp(name, "clamp_max") == 0 ? tern_clamp_max_scalar(x, TERN_SCALAR(0))
                                            : tern_threshold(x, 0, 1);
}

static const struct {
    function f;
    const char *names;
} forms[] = {
    {of_x, "abs acos acosh asin asinh atan atanh ceil cos cosh deg2rad digamma erf erfc erfinv exp "
           "exp2 expm1 fix floor "
           "frac isfinite isinf isnan isneginf isposinf lgamma log log10 log1p log2 logical_not "
           "logit nan_to_num neg "
           "positive rad2deg reciprocal relu round rsqrt selu sgn sigmoid sign signbit sin sinc "
           "sinh sqrt square tan tanh "
           "trunc nn.functional.celu nn.functional.elu "
           "nn.functional.gelu "
           "nn.functional.hardshrink nn.functional.hardsigmoid nn.functional.hardswish "
           "nn.functional.hardtanh "
           "nn.functional.leaky_relu nn.functional.logsigmoid nn.functional.mish "
           "nn.functional.relu nn.functional.relu6 "
           "nn.functional.selu nn.functional.silu nn.functional.softplus "
           "nn.functional.softshrink "
           "nn.functional.softsign nn.functional.tanhshrink max min amax amin "
           "sum mean prod median "
           "nanmedian nansum nanmean var std norm"},
    {and_zeros,
     "maximum minimum fmax fmin xlogy copysign heaviside atan2 hypot logaddexp logaddexp2"},
    {along_0, "cummax cummin logsumexp softmax"},
    {with_numbers, "clamp clamp_min clamp_max nn.functional.threshold"}};

/* Where tern's number is another one, and why. PyTorch's own vector loops and the rest of a loop disagree on the
 * derivative at NaN of functions that are put together of pieces. */
static const struct {
    const char *name;
    const char *reason;
} chosen[] = {{"digamma.dx",
               "the derivative at a pole is infinite; PyTorch's is the square of a rounding error"},
              {"elu.dx", "at NaN: PyTorch's loops disagree"},
              {"celu.dx", "at NaN: PyTorch's loops disagree"},
              {"selu.dx", "at NaN: PyTorch's loops disagree"},
              {"hardshrink.dx", "at NaN: PyTorch's loops disagree"},
              {"softshrink.dx", "at NaN: PyTorch's loops disagree"},
              {"hardswish.dx", "at NaN: PyTorch's loops disagree"},
              {"softshrink", "the sign of a zero: PyTorch's loops disagree"},
              {"nanmedian", "the sign of a zero: either of two equal ones"},
              {"logit.dx", "the sign of an infinity: PyTorch's loops disagree"},
              {"gelu", "at infinity: PyTorch's vector loop gives NaN, its scalar one infinity"},
              {"hardsigmoid.dx", "PyTorch's 1/6 is float32's in float64 too"},
              {"softsign.dx", "at infinity the derivative is 0; PyTorch divides infinities"},
              {"amax.dx", "one of NaN goes to the NaN, as of max; PyTorch divides 0 by 0"},
              {"amin.dx", "one of NaN goes to the NaN, as of min; PyTorch divides 0 by 0"},
              {"prod.dx", "NaN times 0 is NaN; PyTorch leaves factors out"}};

static bool is_chosen(const char *entry, double x, double got, double want)
{
    char name[96];
    snprintf(name, sizeof name, "%s",
             strncmp(entry, "nn.functional.", 14) == 0 ? entry + 14 : entry);
    char *wide = strstr(name, ".f64");
    if (wide)
        memmove(wide, wide + 4, strlen(wide + 4) + 1);
    for (size_t i = 0; i < sizeof chosen / sizeof *chosen; i++)
        if (strcmp(name, chosen[i].name) == 0)
            return strncmp(chosen[i].reason, "at NaN", 6) == 0         ? isnan(x)
                   : strncmp(chosen[i].reason, "at infinity", 11) == 0 ? isinf(x)
                   : strncmp(chosen[i].reason, "the sign", 8) == 0     ? fabs(got) == fabs(want)
                   : strcmp(name, "hardsigmoid.dx") == 0               ? fabs(got - want) < 1e-7
                                                                       : true;
    return false;
}

/* How many elements differ; each is printed. */
static int differences(test_golden *golden, const char *name, const tern_tensor *got,
                       const tern_tensor *at, double tolerance)
{
    int wrong = 0;
    tern_tensor *want = test_golden_tensor(golden, name, "cpu");
    double *a = test_read(got), *b = test_read(want), *x = test_read(at);
    assert_int_equal(tern_numel(got), tern_numel(want));
    for (int64_t i = 0; i < tern_numel(want); i++) {
        bool same = isnan(a[i]) || isnan(b[i]) ? isnan(a[i]) && isnan(b[i])
                    : isinf(b[i])
                        ? a[i] == b[i]
                        : fabs(a[i] - b[i]) <= tolerance * (1 + fabs(b[i])) &&
                              (b[i] != 0 || signbit(a[i]) == signbit(b[i]) || strstr(name, ".dx"));
        if (!same && !is_chosen(name, x[i], a[i], b[i])) {
            print_error("%s at %g is %.9g, expected %.9g\n", name, tern_numel(want) == 1 ? 0 : x[i],
                        a[i], b[i]);
            wrong++;
        }
    }
    free(a);
    free(b);
    free(x);
    return wrong;
}

static int try_function(test_golden *golden, function f, const char *name, const char *device,
                        const char *suffix)
{
    char entry[96];
    int wrong = 0;
    double tolerance = suffix[0] ? 1e-9 : 2e-6;
    snprintf(entry, sizeof entry, "x%s", suffix);
    tern_tensor *x = tern_requires_grad_(test_golden_tensor(golden, entry, device), true), *dx;
    tern_tensor *y = f(name, x);
    if (!y) {
        print_error("%s: %s\n", name, tern_last_error());
        tern_clear_error();
        return 1;
    }
    snprintf(entry, sizeof entry, "%s%s", name, suffix);
    wrong += differences(golden, entry, y, x, tolerance);
    snprintf(entry, sizeof entry, "%s%s.dx", name, suffix);
    if (test_golden_has(golden, entry)) {
        tern_tensor *sum = tern_sum(y);
        assert_ok(tern_autograd_grad(&sum, 1, &x, 1, &dx, NULL));
        wrong += differences(golden, entry, dx, x, tolerance);
    }
    return wrong;
}

static void values_and_gradients_are_pytorchs(void **state)
{
    (void)state;
    test_golden *golden = test_golden_open("special_values");
    FOR_EACH_DEVICE(device)
    {
        int wrong = 0, tried = 0;
        for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
            char *names = strdup(forms[i].names), *rest = names, *name;
            while ((name = strtok_r(rest, " ", &rest)))
                TERN_SCOPE {
                    wrong += try_function(golden, forms[i].f, name, device, "");
                    if (test_thorough(device))
                        wrong += try_function(golden, forms[i].f, name, device, ".f64");
                    tried++;
                }
            free(names);
        }
        assert_int_equal(wrong, 0);
        assert_true(tried > 100);
    }
    test_golden_close(golden);
}

static const struct CMUnitTest tests[] = {TEST(values_and_gradients_are_pytorchs)};
TEST_MAIN(tests)
