/* test_names.c -- operations by name: every signature can be read, values are bound as in Python,
 * and what does not fit is refused with the reason. */
#include "support.h"
#include <stdlib.h>

static tern_tensor *sample(const char *device)
{
    return TENSOR(device, TERN_F32, TERN_SHAPE(2, 3), 1, 5, 3, 4, 2, 6);
}

static void every_signature_can_be_read(void **state)
{
    (void)state;
    const tern_named_op *op;
    int n = 0;
    for (; (op = tern_named_op_at(n)); n++) {
        tern_parameter parameters[TERN_MAX_PARAMETERS];
        const char *name = tern_named_op_name(op), *signature = tern_named_op_signature(op);
        int count = tern_named_op_parameters(op, parameters, TERN_MAX_PARAMETERS);
        if (count < 0)
            print_error("%s: %s\n", signature, tern_last_error());
        assert_true(count >= 0);
        assert_int_equal(strncmp(signature, name, strlen(name)), 0);
        assert_non_null(strstr(signature, ") -> "));
        assert_non_null(tern_op_by_name(name));
        for (int i = 0; i < count; i++) {
            assert_true(parameters[i].name[0] != '\0' && parameters[i].kind != 0);
            assert_true(parameters[i].required == (parameters[i].value[0] == '\0'));
        }
    }
    assert_true(n > 150);
    assert_null(tern_op_by_name("no_such_operation"));
    assert_null(tern_named_op_at(-1));
}

static void parameters_say_what_the_signature_says(void **state)
{
    (void)state;
    tern_parameter p[TERN_MAX_PARAMETERS];
    const tern_named_op *op = tern_op_by_name("sum");
    assert_string_equal(tern_named_op_signature(op),
                        "sum(Tensor input, int[1]? dim=None, bool keepdim=False, *, ScalarType? "
                        "dtype=None) -> Tensor");
    assert_int_equal(tern_named_op_parameters(op, p, TERN_MAX_PARAMETERS), 4);
    assert_true(p[0].kind == TERN_PARAMETER_TENSOR && p[0].required && !p[0].optional);
    assert_true(p[1].kind == TERN_PARAMETER_INTS && p[1].length == 1 && p[1].optional);
    assert_true(p[2].kind == TERN_PARAMETER_BOOL && !p[2].by_name);
    assert_string_equal(p[2].value, "False");
    assert_true(p[3].kind == TERN_PARAMETER_DTYPE && p[3].by_name);
    assert_string_equal(p[3].name, "dtype");
    op = tern_op_by_name("nn.functional.mse_loss");
    assert_int_equal(tern_named_op_parameters(op, p, 3), 3);
    assert_true(p[2].kind == TERN_PARAMETER_TEXT);
    assert_string_equal(p[2].value, "mean");
}

/* Arguments for an operation of tensors and integers, by kind; how many, 0 for what is not tried. */
static int simple_values(const tern_named_op *op, const tern_parameter *p, int n,
                         tern_value *values)
{
    int count = 0;
    (void)op;
    for (int i = 0; i < n; i++) {
        if (p[i].kind == TERN_PARAMETER_TENSOR && !p[i].optional)
            values[count++] = tern_value_tensor(p[i].name, sample("cpu"));
        else if (p[i].kind == TERN_PARAMETER_INT && (p[i].required || !p[i].optional))
            values[count++] =
                tern_value_int(p[i].name, p[i].required ? 0 : strtoll(p[i].value, NULL, 10));
        else if (p[i].kind == TERN_PARAMETER_INT)
            values[count++] = tern_value_int(p[i].name, 0);
        else if (p[i].required)
            return 0;
    }
    return count;
}

/* No integer argument may be cut down to an int: 2^32 is not 0. */
static void integers_are_not_truncated(void **state)
{
    (void)state;
    const tern_named_op *op;
    int tried = 0, wrong = 0;
    for (int i = 0; (op = tern_named_op_at(i)); i++)
        TERN_SCOPE {
            tern_parameter p[TERN_MAX_PARAMETERS];
            tern_value values[TERN_MAX_PARAMETERS];
            tern_tensor *out[64], *other[64];
            int n =
                simple_values(op, p, tern_named_op_parameters(op, p, TERN_MAX_PARAMETERS), values);
            int results = n ? tern_named_op_call(op, values, n, out, 64) : -1;
            tern_clear_error();
            for (int k = 0; results > 0 && k < n; k++) {
                if (values[k].kind != TERN_VALUE_SCALAR || values[k].name[0] == '_' ||
                    tern_numel(out[0]) == 0) /* not looked at; or nothing to tell by */
                    continue;
                tern_scalar was = values[k].as.scalar;
                values[k].as.scalar.value.integer += INT64_C(1) << 32;
                int again = tern_named_op_call(op, values, n, other, 64);
                bool same = again == results && tern_last_status() == TERN_OK;
                for (int r = 0; same && r < results; r++)
                    same = tern_equal(out[r], other[r]);
                if (same && strcmp(tern_named_op_name(op), "rot90") != 0) { /* its turns repeat */
                    print_error("%s: %s of 2^32 more is the same\n", tern_named_op_signature(op),
                                values[k].name);
                    wrong++;
                }
                assert_true(again < 0 || tern_last_status() == TERN_OK);
                tern_clear_error();
                values[k].as.scalar = was;
                tried++;
            }
        }
    assert_true(tried > 50);
    assert_int_equal(wrong, 0);
}

static void values_go_by_position_and_by_name(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    {
        tern_tensor *out[2];
        const int64_t dims[] = {0, 1};
        tern_value values[] = {tern_value_tensor(NULL, sample(device)), tern_value_int("dim", 1),
                               tern_value_bool("keepdim", true)};
        assert_int_equal(tern_call_by_name("sum", values, 3, out, 2), 1);
        assert_shape(out[0], 2, 1);
        assert_values(out[0], 9, 12);
        values[1] = tern_value_ints(NULL, dims, 2);
        assert_int_equal(tern_call_by_name("sum", values, 2, out, 2), 1);
        assert_values(out[0], 21);
        values[1] = tern_value_none("dim");
        assert_int_equal(tern_call_by_name("sum", values, 2, out, 2), 1);
        assert_values(out[0], 21);
    }
}

/* The other factor of both is alpha, in the type of the sum. */
static void alpha_is_multiplied_in_the_type_of_the_result(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    TERN_SCOPE {
        tern_tensor *out[2], *bytes = TENSOR(device, TERN_U8, TERN_SHAPE(2), 4, 200);
        tern_tensor *ints = TENSOR(device, TERN_I32, TERN_SHAPE(2), -1, 2);
        tern_tensor *large = TENSOR(device, TERN_I32, TERN_SHAPE(1), 0x1p30);
        tern_tensor *longs = TENSOR(device, TERN_I64, TERN_SHAPE(1), 0);
        tern_value values[] = {tern_value_tensor("input", ints), tern_value_tensor("other", bytes),
                               tern_value_int("alpha", -1)};
        assert_int_equal(tern_call_by_name("add", values, 3, out, 2), 1);
        assert_values(out[0], -5, -198);
        values[0] = tern_value_tensor("input", longs);
        values[1] = tern_value_tensor("other", large);
        values[2] = tern_value_int("alpha", 8);
        assert_int_equal(tern_call_by_name("add", values, 3, out, 2), 1);
        assert_values(out[0], 0x1p33);
        assert_int_equal(tern_call_by_name("sub", values, 3, out, 2), 1);
        assert_values(out[0], -0x1p33);
        values[0] = tern_value_tensor("input", tern_to_dtype(longs, TERN_F32));
        assert_int_equal(tern_call_by_name("add", values, 3, out, 2), 1);
        assert_values(out[0], 0x1p33);
    }
}

static void an_overload_is_chosen_by_what_is_given(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    {
        tern_tensor *out[2];
        tern_value values[] = {tern_value_tensor("input", sample(device)),
                               tern_value_int("dim", 0)};
        assert_int_equal(tern_call_by_name("max", values, 1, out, 2), 1);
        assert_values(out[0], 6);
        assert_int_equal(tern_call_by_name("max", values, 2, out, 2), 2);
        assert_values(out[0], 4, 5, 6);
        assert_values(out[1], 1, 0, 1);
        values[1] = tern_value_tensor("other", sample(device));
        assert_int_equal(tern_call_by_name("max", values, 2, out, 2), 1);
        assert_shape(out[0], 2, 3);
        values[1] = tern_value_real("other", 0.5);
        assert_int_equal(tern_call_by_name("mul", values, 2, out, 2), 1);
        assert_values(out[0], 0.5, 2.5, 1.5, 2, 1, 3);
    }
}

static void a_text_is_one_of_the_choices(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    {
        tern_tensor *out[1], *x = sample(device);
        tern_value values[] = {tern_value_tensor("input", x), tern_value_tensor("target", x),
                               tern_value_text("reduction", "none")};
        assert_int_equal(tern_call_by_name("nn.functional.mse_loss", values, 3, out, 1), 1);
        assert_shape(out[0], 2, 3);
        values[2] = tern_value_text("reduction", "average");
        assert_int_equal(tern_call_by_name("nn.functional.mse_loss", values, 3, out, 1), -1);
        assert_error(TERN_ERR_ARGUMENT, "average is not a valid value for reduction");
    }
    tern_tensor *out[1], *x = sample(NULL);
    tern_value sizes[] = {tern_value_tensor("input", x), tern_value_tensor("other", x),
                          tern_value_text("rounding_mode", "floor")};
    assert_int_equal(tern_call_by_name("div", sizes, 3, out, 1), 1);
    sizes[2] = tern_value_none("rounding_mode");
    assert_int_equal(tern_call_by_name("div", sizes, 3, out, 1), 1);
    sizes[2] = tern_value_text("rounding_mode", "up");
    assert_int_equal(tern_call_by_name("div", sizes, 3, out, 1), -1);
    assert_error(TERN_ERR_ARGUMENT, "up is not a valid value for rounding_mode");
}

static void what_does_not_fit_is_refused_with_the_reason(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    {
        tern_tensor *out[1], *x = sample(device);
        tern_value values[] = {tern_value_tensor("input", x), tern_value_text("dim", "first"),
                               tern_value_tensor("index", x), tern_value_int("extra", 1)};
        assert_int_equal(tern_call_by_name("gather", values, 3, out, 1), -1);
        assert_error(TERN_ERR_ARGUMENT, "argument 'dim' (position 2) must be int, not str");
        assert_int_equal(tern_call_by_name("gather", values, 1, out, 1), -1);
        assert_error(TERN_ERR_ARGUMENT, "missing argument 'dim'");
        values[1] = values[3];
        assert_int_equal(tern_call_by_name("gather", values, 2, out, 1), -1);
        assert_error(TERN_ERR_ARGUMENT, "unexpected argument 'extra'");
        values[1] = values[0];
        assert_int_equal(tern_call_by_name("gather", values, 2, out, 1), -1);
        assert_error(TERN_ERR_ARGUMENT, "argument 'input' is given twice");
        assert_int_equal(tern_call_by_name("gathers", values, 1, out, 1), -1);
        assert_error(TERN_ERR_ARGUMENT, "there is no operation 'gathers'");
        values[1] = tern_value_int("split_size", 1);
        assert_int_equal(tern_call_by_name("max", values, 1, out, 0), -1);
        assert_error(TERN_ERR_ARGUMENT, "1 results do not fit into 0");
        tern_tensor *two[] = {x, x};
        values[0] = tern_value_tensors("tensors", two, 2);
        assert_int_equal(tern_call_by_name("atleast_2d", values, 1, out, 1), -1);
        assert_error(TERN_ERR_ARGUMENT, "2 results do not fit into 1");
        tern_value cut[] = {tern_value_tensor("input", x), tern_value_int("dim", 0),
                            tern_value_tensor("start", x), tern_value_int("length", 1)};
        assert_int_equal(tern_call_by_name("narrow", cut, 4, out, 1), -1);
        assert_error(TERN_ERR_SHAPE, "start must be a tensor of one element, not of 6");
        values[0] = tern_value_tensor("input", NULL);
        assert_int_equal(tern_call_by_name("max", values, 1, out, 1), -1);
        assert_error(TERN_ERR_ARGUMENT, "input");
    }
}

static void gradients_flow_through_calls_by_name(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    {
        tern_tensor *x = tern_requires_grad_(sample(device), true), *out[1];
        tern_value value = tern_value_tensor("input", x);
        assert_int_equal(tern_call_by_name("square", &value, 1, out, 1), 1);
        value = tern_value_tensor("input", out[0]);
        assert_int_equal(tern_call_by_name("sum", &value, 1, out, 1), 1);
        assert_ok(tern_backward(out[0]));
        assert_values(tern_grad(x), 2, 10, 6, 8, 4, 12);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(every_signature_can_be_read),
        TEST(integers_are_not_truncated),
        TEST(parameters_say_what_the_signature_says),
        TEST(values_go_by_position_and_by_name),
        TEST(alpha_is_multiplied_in_the_type_of_the_result),
        TEST(an_overload_is_chosen_by_what_is_given),
        TEST(a_text_is_one_of_the_choices),
        TEST(what_does_not_fit_is_refused_with_the_reason),
        TEST(gradients_flow_through_calls_by_name),
    };
    return test_main(tests, sizeof tests / sizeof *tests);
}
