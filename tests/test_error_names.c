/* test_error_names.c -- an error names the function that the program called, whatever that is made of: those of inplace.def
 * and others, in each way in which what they are given may be wrong. */
#include "inplace.h"
#include <stdio.h>

/* ---- functions that have no form in place ---------------------------------------------------- */

#define OTHERS(F)                                                                                  \
    F(greater, y)                                                                                  \
    F(greater_scalar, ONE)                                                                         \
    F(greater_equal, y)                                                                            \
    F(greater_equal_scalar, ONE)                                                                   \
    F(less, y)                                                                                     \
    F(less_scalar, ONE)                                                                            \
    F(less_equal, y)                                                                               \
    F(less_equal_scalar, ONE)                                                                      \
    F(not_equal, y)                                                                                \
    F(not_equal_scalar, ONE)                                                                       \
    F(div_mode, y, TERN_ROUNDING_FLOOR)                                                            \
    F(div_mode_scalar, ONE, TERN_ROUNDING_TRUNC)                                                   \
    F(round_decimals, 2)                                                                           \
    F(clamp_tensor, y, number)                                                                     \
    F(float_power, y)                                                                              \
    F(float_power_scalar, ONE)                                                                     \
    F(sgn)                                                                                         \
    F(index_reduce, 0, index, y, TERN_REDUCE_SUM, true)                                            \
    F(prelu, number)                                                                               \
    F(dot, y)                                                                                      \
    F(inner, y)                                                                                    \
    F(tensordot, y, TERN_SHAPE(1), TERN_SHAPE(1))                                                  \
    F(bilinear, y, y, NULL)                                                                        \
    F(cdist, y, 2)                                                                                 \
    F(cosine_similarity, y, 1, 1e-8)                                                               \
    F(l1_loss, y, NULL)                                                                            \
    F(smooth_l1_loss, y, NULL)                                                                     \
    F(soft_margin_loss, y, NULL)                                                                   \
    F(hinge_embedding_loss, y, NULL)                                                               \
    F(kl_div, y, NULL)
#define FUNCTION(name, ...) OF_OPERANDS(call_##name, tern_##name, __VA_ARGS__)
OTHERS(FUNCTION)
#define NAMED(name, ...) {#name, call_##name},
static const struct {
    const char *name;
    function_of_x call;
} others[] = {OTHERS(NAMED)};

/* ---- what is wrong with x, or with the operands ---------------------------------------------- */

static tern_tensor *plain(const char *device)
{
    return TENSOR(device, TERN_F32, TERN_SHAPE(2, 3), .1, .2, .3, .4, .5, .6);
}

static tern_tensor *none(const char *device, operands *o)
{
    (void)device, (void)o;
    return NULL;
}

static tern_tensor *gone(const char *device, operands *o)
{
    tern_tensor *x = NULL;
    (void)o;
    TERN_SCOPE
        x = plain(device);
    return x;
}

static tern_tensor *a_leaf(const char *device, operands *o)
{
    (void)o;
    return tern_requires_grad_(plain(device), true);
}

static tern_tensor *a_view_of_a_leaf(const char *device, operands *o)
{
    return tern_view(a_leaf(device, o), TERN_SHAPE(2, 3));
}

static tern_tensor *one_of_several_views(const char *device, operands *o)
{
    tern_tensor *parts[2];
    tern_tensor *x = tern_stack((tern_tensor *[]){a_leaf(device, o), o->y}, 2, 0);
    return tern_unbind(x, 0, parts, 2) == 2 ? parts[0] : NULL;
}

static tern_tensor *a_view_without_recording(const char *device, operands *o)
{
    tern_tensor *x = tern_mul_scalar(a_leaf(device, o), ONE);
    TERN_NO_GRAD
        x = tern_view(x, TERN_SHAPE(2, 3));
    return x;
}

static tern_tensor *repeated(const char *device, operands *o)
{
    (void)o;
    return tern_expand(TENSOR(device, TERN_F32, TERN_SHAPE(1, 3), 1, 2, 3), TERN_SHAPE(2, 3));
}

static tern_tensor *overlapping(const char *device, operands *o)
{
    tern_tensor *base = tern_ones(TERN_SHAPE(7), TERN_F32, device);
    o->y = test_view(base, TERN_SHAPE(2, 3), TERN_SHAPE(3, 1), 1);
    return test_view(base, TERN_SHAPE(2, 3), TERN_SHAPE(3, 1), 0);
}

static tern_tensor *of_integers(const char *device, operands *o)
{
    (void)o;
    return tern_ones(TERN_SHAPE(2, 3), TERN_I64, device);
}

static tern_tensor *of_bools(const char *device, operands *o)
{
    (void)o;
    return tern_ones(TERN_SHAPE(2, 3), TERN_BOOL, device);
}

static tern_tensor *of_a_stored_type(const char *device, operands *o)
{
    (void)o;
    return tern_ones(TERN_SHAPE(2, 3), TERN_U64, device);
}

static tern_tensor *without_dims(const char *device, operands *o)
{
    (void)o;
    return TENSOR(device, TERN_F32, TERN_SHAPE_SCALAR, 1);
}

static tern_tensor *operands_that_do_not_fit(const char *device, operands *o)
{
    *o = (operands){.y = tern_ones(TERN_SHAPE(4, 5), TERN_F32, device),
                    .mask = tern_ones(TERN_SHAPE(4), TERN_BOOL, device),
                    .index = tern_ones(TERN_SHAPE(2, 2), TERN_I64, device),
                    .places = tern_ones(TERN_SHAPE(4, 4, 4), TERN_I64, device),
                    .number = tern_ones(TERN_SHAPE(3, 2), TERN_F32, device)};
    return plain(device);
}

static tern_tensor *operands_that_are_larger(const char *device, operands *o)
{
    *o = (operands){.y = tern_ones(TERN_SHAPE(2, 2, 3), TERN_F32, device),
                    .mask = tern_ones(TERN_SHAPE(2, 2, 3), TERN_BOOL, device),
                    .index = TENSOR(device, TERN_I64, TERN_SHAPE(2), 7, 8),
                    .places = tern_full(TERN_SHAPE(2, 3), TERN_SCALAR(9), TERN_I64, device),
                    .number = tern_ones(TERN_SHAPE(1, 3), TERN_F32, device)};
    return plain(device);
}

static tern_tensor *operands_of_other_types(const char *device, operands *o)
{
    *o = (operands){.y = tern_ones(TERN_SHAPE(2, 3), TERN_F64, device),
                    .mask = tern_ones(TERN_SHAPE(2, 3), TERN_F32, device),
                    .index = tern_ones(TERN_SHAPE(2), TERN_F32, device),
                    .places = tern_ones(TERN_SHAPE(2, 3), TERN_F32, device),
                    .number = tern_ones(TERN_SHAPE_SCALAR, TERN_BOOL, device)};
    return of_integers(device, o);
}

static tern_tensor *no_operands(const char *device, operands *o)
{
    *o = (operands){.y = NULL};
    return plain(device);
}

static tern_tensor *operands_that_are_gone(const char *device, operands *o)
{
    TERN_SCOPE
        *o = operands_of(device);
    return plain(device);
}

static tern_tensor *operands_elsewhere(const char *device, operands *o)
{
    *o = operands_of("cpu");
    return plain(device);
}

/* all: there is no function that takes it. */
static const struct {
    const char *what;
    tern_tensor *(*x)(const char *device, operands *o);
    bool all;
} wrongs[] = {
#define WRONG(NAME)                                                                                \
    {                                                                                              \
#NAME, NAME, NAME == none || NAME == gone                                                  \
    }
    WRONG(none),
    WRONG(gone),
    WRONG(a_leaf),
    WRONG(a_view_of_a_leaf),
    WRONG(one_of_several_views),
    WRONG(a_view_without_recording),
    WRONG(repeated),
    WRONG(overlapping),
    WRONG(of_integers),
    WRONG(of_bools),
    WRONG(of_a_stored_type),
    WRONG(without_dims),
    WRONG(operands_that_do_not_fit),
    WRONG(operands_that_are_larger),
    WRONG(operands_of_other_types),
    WRONG(no_operands),
    WRONG(operands_that_are_gone),
    WRONG(operands_elsewhere),
};
enum { N_WRONGS = sizeof wrongs / sizeof *wrongs };

/* ---- names ----------------------------------------------------------------------------------- */

/* The recorded error, which is cleared, is one of tern_NAME, in its message and in what is known of it. */
static bool names(const char *name, const char *what)
{
    char begins[80];
    tern_error_info info;
    int n = snprintf(begins, sizeof begins, "tern_%s: ", name);
    tern_get_error(&info);
    bool right = strncmp(info.message, begins, (size_t)n) == 0 && strcmp(info.operation, name) == 0;
    if (!right)
        print_error("tern_%s, %s: %s (%s)\n", name, what, info.message, info.operation);
    tern_clear_error();
    return right;
}

/* How many functions name another one in their errors; *failed: how many failed. */
static int misnamed(const char *name, function_of_x f, const char *device, int *failed)
{
    int wrong = 0;
    for (int k = 0; k < N_WRONGS; k++)
        TERN_SCOPE {
            operands o = operands_of(device);
            tern_tensor *x = wrongs[k].x(device, &o);
            assert_no_error();
            bool fails = !f(x, &o);
            if (fails)
                wrong += !names(name, wrongs[k].what);
            else if (wrongs[k].all) {
                print_error("tern_%s takes %s\n", name, wrongs[k].what);
                wrong++;
            }
            failed[k] += fails;
        }
    return wrong;
}

static int misnamed_rows(const char *device, bool in_place, int *failed)
{
    int wrong = 0;
    char name[64];
    for (int i = 0; i < N_ROWS; i++) {
        snprintf(name, sizeof name, "%s%s", rows[i].name, in_place ? "_" : "");
        if (in_place || rows[i].makes)
            wrong += misnamed(name, in_place ? rows[i].write : rows[i].makes, device, failed);
    }
    return wrong;
}

static void what_writes_in_place_is_named(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    if (test_thorough(device)) {
        int failed[N_WRONGS] = {0};
        assert_int_equal(misnamed_rows(device, true, failed), 0);
        for (int k = 0; k < N_WRONGS; k++)
            if (failed[k] < 5 && wrongs[k].x != operands_elsewhere)
                fail_msg("%s: refused by %d functions", wrongs[k].what, failed[k]);
    }
}

static void what_makes_a_new_tensor_is_named(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    if (test_thorough(device)) {
        int failed[N_WRONGS] = {0};
        assert_int_equal(misnamed_rows(device, false, failed), 0);
    }
}

static void what_is_made_of_others_is_named(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    if (test_thorough(device)) {
        int failed[N_WRONGS] = {0}, wrong = 0;
        for (size_t i = 0; i < sizeof others / sizeof *others; i++)
            wrong += misnamed(others[i].name, others[i].call, device, failed);
        assert_int_equal(wrong, 0);
    }
}

/* ---- who else fails meanwhile ---------------------------------------------------------------- */

static void fails_on_its_own(const tern_error_info *error, void *user)
{
    *(bool *)user = strcmp(error->operation, "zero_") == 0;
    tern_clear_error();
    tern_exp(NULL);
}

static void what_a_handler_calls_has_its_own_name(void **state)
{
    (void)state;
    bool heard = false;
    operands o = operands_of("cpu");
    assert_ok(tern_set_error_policy(TERN_ERRORS_RECORD, fails_on_its_own, &heard));
    tern_zero_(a_leaf("cpu", &o));
    assert_ok(tern_set_error_policy(TERN_ERRORS_RECORD, NULL, NULL));
    assert_true(heard);
    assert_error(TERN_ERR_ARGUMENT, "tern_exp: input 0 is NULL");
    tern_scope_clear();
}

/* A function made of others warns, and the handler fails. */
static void fails_when_warned(const char *kind, const char *text, void *user)
{
    (void)kind;
    (void)text;
    *(bool *)user = true;
    tern_exp(NULL);
}

static void what_a_handler_of_warnings_calls_has_its_own_name(void **state)
{
    (void)state;
    bool warned = false;
    tern_on_warning(fails_when_warned, &warned);
    TERN_SCOPE {
        tern_tensor *x = tern_ones(TERN_SHAPE(2, 3), TERN_F32, "cpu");
        tern_l1_loss(x, tern_ones(TERN_SHAPE(3), TERN_F32, "cpu"), NULL);
    }
    tern_on_warning(NULL, NULL);
    assert_true(warned);
    assert_error(TERN_ERR_ARGUMENT, "tern_exp: input 0 is NULL");
}

/* A kernel's mistake is found by who waits next, be it within another function. */
static tern_status visit_and_fail(const char *path, tern_tensor *x, void *user)
{
    (void)path;
    (void)user;
    return tern_mm(x, tern_ones(TERN_SHAPE(7, 7), TERN_F32, "cpu")) ? TERN_OK : TERN_ERR_SHAPE;
}

static tern_tensor *no_distance(tern_tensor *x, tern_tensor *y, void *user)
{
    (void)user;
    return tern_mm(x, y);
}

static void what_functions_of_the_program_call_has_its_own_name(void **state)
{
    (void)state;
    tern_module *m = tern_nn_batch_norm1d(3, NULL);
    tern_tensor *x = tern_ones(TERN_SHAPE(2, 3), TERN_F32, "cpu");
    assert_int_equal(tern_nn_each_parameter(m, visit_and_fail, NULL), TERN_ERR_SHAPE);
    assert_error(TERN_ERR_SHAPE, "tern_mm: ");
    assert_int_equal(tern_nn_each_buffer(m, visit_and_fail, NULL), TERN_ERR_SHAPE);
    assert_error(TERN_ERR_SHAPE, "tern_mm: ");
    assert_null(tern_triplet_margin_with_distance_loss(x, x, x, no_distance, NULL, NULL));
    assert_error(TERN_ERR_SHAPE, "tern_mm: ");
    assert_int_equal(tern_nn_each_buffer_with(m, NULL, NULL, NULL), TERN_ERR_ARGUMENT);
    assert_error(TERN_ERR_ARGUMENT, "tern_nn_each_buffer_with: ");
    tern_nn_free(m);
    tern_scope_clear();
}

static void a_mistake_that_is_found_later_keeps_its_name(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    TERN_SCOPE {
        operands o = operands_of(device);
        tern_tensor *indices = TENSOR(device, TERN_I64, TERN_SHAPE(2), 0, 7);
        tern_tensor *x = plain(device);
        tern_embedding(indices, x, NULL);
        tern_masked_scatter_(x, o.mask, o.y);
        assert_error(TERN_ERR_ARGUMENT, "tern_embedding: index out of range in self (index 7");
        tern_exp(NULL);
        assert_error(TERN_ERR_ARGUMENT, "tern_exp: ");
    }
}

/* Whatever waits: the function that launched the kernel is named, not the operation that it is made of. */
static void a_mistake_that_a_kernel_finds_names_who_launched_it(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    TERN_SCOPE {
        tern_tensor *x = plain(device),
                    *places = TENSOR(device, TERN_I64, TERN_SHAPE(2, 3), 9, 9, 9, 9, 9, 9);
        tern_tensor *flat = TENSOR(device, TERN_I64, TERN_SHAPE(1), 9);
        tern_tensor *y = tern_ones(TERN_SHAPE(2, 3), TERN_F32, device);
        tern_tensor *n = tern_ones(TERN_SHAPE(2), TERN_I64, device), *nil = tern_zeros_like(n);
#define FINDS(NAME, ...)                                                                           \
    tern_##NAME(__VA_ARGS__);                                                                      \
    tern_synchronize(device);                                                                      \
    if (tern_last_status() == TERN_OK)                                                             \
        fail_msg("tern_" #NAME " takes it");                                                       \
    assert_true(names(#NAME, "found by a kernel"));
        FINDS(gather, x, 0, places)
        FINDS(take_along_dim, x, places, (tern_optional_int){0})
        FINDS(take, x, places)
        FINDS(index, x, flat)
        FINDS(index_select, x, 0, flat)
        FINDS(scatter, x, 0, places, y, TERN_REDUCE_NONE)
        FINDS(scatter_, x, 0, places, y, TERN_REDUCE_NONE)
        FINDS(scatter_add, x, 0, places, y)
        FINDS(index_add_, x, 0, flat, tern_narrow(y, 0, 0, 1), ONE)
        FINDS(put_, x, places, y, false)
        FINDS(one_hot, places, 3)
        FINDS(floor_divide, n, nil)
        FINDS(floor_divide_, n, nil)
        FINDS(remainder, n, nil)
        FINDS(cross_entropy, x, TENSOR(device, TERN_I64, TERN_SHAPE(2), 7, 7), NULL)
        FINDS(linalg_inv, tern_zeros(TERN_SHAPE(2, 2), TERN_F32, device))
        FINDS(max_unpool1d, x, places, TERN_SHAPE(1), NULL)
#undef FINDS
    }
}

static const struct CMUnitTest tests[] = {
    TEST(what_writes_in_place_is_named),
    TEST(what_makes_a_new_tensor_is_named),
    TEST(what_is_made_of_others_is_named),
    TEST(what_a_handler_calls_has_its_own_name),
    TEST(what_a_handler_of_warnings_calls_has_its_own_name),
    TEST(what_functions_of_the_program_call_has_its_own_name),
    TEST(a_mistake_that_is_found_later_keeps_its_name),
    TEST(a_mistake_that_a_kernel_finds_names_who_launched_it),
};

TEST_MAIN(tests)
