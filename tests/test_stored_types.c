/* test_stored_types.c -- types that are only stored: promoted, converted, compared, moved and printed as PyTorch
 * does (golden/stored_types.txt), and refused by all else. */
#include "tensor/fields.h"
#include "tensor/shape.h"
#include "support.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define SHAPE TERN_SHAPE
enum { CAPACITY = 8192, FIRST = TERN_I8, LAST = TERN_F8_E5M2 };

static tern_dtype called(const char *name)
{
    for (int t = TERN_F32; t <= LAST; t++)
        if (strcmp(tern_dtype_name((tern_dtype)t), name) == 0)
            return (tern_dtype)t;
    fail_msg("no dtype is called %s", name);
    return TERN_DTYPE_DEFAULT;
}

static bool has_type(const char *device, tern_dtype dtype)
{
    tern_device_info info = {0};
    assert_ok(tern_device_get_info(device, &info));
    return dtype != TERN_F64 || info.has_f64;
}

static size_t from_hex(const char *text, unsigned char *bytes)
{
    unsigned byte;
    size_t n = 0;
    for (; sscanf(text + 2 * n, "%2x", &byte) == 1; n++)
        bytes[n] = (unsigned char)byte;
    return n;
}

static tern_tensor *tensor_of(const char *hex, tern_dtype dtype, const char *device)
{
    unsigned char bytes[CAPACITY / 2];
    size_t n = from_hex(hex, bytes);
    tern_tensor *x =
        tern_from_data((void *)bytes, SHAPE((int64_t)(n / tern_dtype_size(dtype))), dtype, device);
    assert_non_null(x);
    return x;
}

/* Every NaN is as good as another. */
static void same_bytes(tern_tensor *x, const char *hex, const char *what)
{
    unsigned char wanted[CAPACITY / 2], bytes[CAPACITY / 2];
    size_t n = from_hex(hex, wanted), size = tern_dtype_size(tern_dtype_of(x));
    assert_ok(tern_copy_to_host(x, (void *)bytes, n));
    for (size_t i = 0; i < n / size; i++) {
        double a = tern_scalar_to_real(tern_element(wanted, tern_dtype_of(x), (int64_t)i));
        double b = tern_scalar_to_real(tern_element(bytes, tern_dtype_of(x), (int64_t)i));
        if (memcmp(wanted + i * size, bytes + i * size, size) != 0 && !(isnan(a) && isnan(b)))
            fail_msg("%s: element %zu is %g, expected %g", what, i, b, a);
    }
}

/* The lines of the golden file that begin with a word, one after the other. */
typedef struct lines {
    FILE *file;
    char word[16], a[16], b[128], first[CAPACITY], second[CAPACITY];
} lines;

static bool next(lines *l)
{
    static char line[3 * CAPACITY];
    l->second[0] = '\0';
    while (fgets(line, sizeof line, l->file))
        if (line[0] != '#')
            return sscanf(line, "%15s %15s %127s %8191s %8191s", l->word, l->a, l->b, l->first,
                          l->second) >= 4;
    return false;
}

static lines *open_lines(void)
{
    lines *l = calloc(1, sizeof *l);
    assert_non_null(l);
    l->file = fopen(TEST_FOLDER "/golden/stored_types.txt", "r");
    assert_non_null(l->file);
    return l;
}

static void close_lines(lines *l)
{
    fclose(l->file);
    free(l);
}

static void every_pair_promotes_as_in_pytorch(void **state)
{
    (void)state;
    int pairs = 0;
    lines *l = open_lines();
    while (next(l) && strcmp(l->word, "promote") == 0) {
        tern_dtype a = called(l->a), b = called(l->b);
        bool none = strcmp(l->first, "none") == 0;
        if (tern_promote_types(a, b) != (none ? TERN_DTYPE_DEFAULT : called(l->first)))
            fail_msg("%s with %s is %s", l->a, l->b, l->first);
        if (none)
            assert_error(TERN_ERR_DTYPE, a >= TERN_F8_E4M3FN || b >= TERN_F8_E4M3FN
                                             ? "Promotion for Float8 Types is not supported"
                                             : "Promotion for uint16, uint32, uint64 types");
        pairs++;
    }
    close_lines(l);
    assert_int_equal(pairs, 15 * 15);
}

static void every_conversion_is_pytorchs(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    {
        int pairs = 0;
        lines *l = open_lines();
        while (next(l))
            TERN_SCOPE {
                tern_dtype a = called(l->a);
                if (strcmp(l->word, "convert") == 0 && has_type(device, a) &&
                    has_type(device, called(l->b))) {
                    char what[48];
                    snprintf(what, sizeof what, "%.15s to %.15s on %.9s", l->a, l->b, device);
                    tern_dtype b = called(l->b);
                    tern_tensor *x = tensor_of(l->first, a, device);
                    same_bytes(tern_to_dtype(x, b), l->second, what);
                    /* with strides on both sides */
                    tern_tensor *wide = tern_expand(tern_unsqueeze(x, 1), SHAPE(tern_numel(x), 3));
                    tern_tensor *apart = tern_zeros(SHAPE(tern_numel(x), 3), b, device);
                    tern_copy_(tern_narrow(apart, 1, 1, 2), tern_narrow(wide, 1, 0, 2));
                    same_bytes(tern_contiguous(tern_select(apart, 1, 2)), l->second, what);
                    pairs++;
                }
            }
        close_lines(l);
        assert_true(pairs >= (test_has(device, TERN_F64) ? 150 : 120));
    }
}

static void comparisons_read_the_values(void **state)
{
    static const struct {
        const char *name;
        tern_tensor *(*compare)(tern_tensor *, tern_tensor *);
    } all[] = {{"eq", (tern_eq)}, {"ne", (tern_ne)}, {"lt", (tern_lt)},
               {"le", (tern_le)}, {"gt", (tern_gt)}, {"ge", (tern_ge)}};
    (void)state;
    int n = 0;
    FOR_EACH_DEVICE(device)
    {
        lines *l = open_lines();
        while (next(l))
            TERN_SCOPE
                for (size_t i = 0; i < sizeof all / sizeof *all; i++)
                    if (strcmp(l->word, all[i].name) == 0) {
                        tern_tensor *both = tensor_of(l->first, called(l->a), device);
                        tern_tensor *x[2];
                        assert_int_equal(tern_chunk(both, 2, 0, x, 2), 2);
                        same_bytes(all[i].compare(x[0], x[1]), l->second, l->a);
                        n++;
                    }
        close_lines(l);
    }
    assert_true(n >= 42);
}

static void they_print_as_in_pytorch(void **state)
{
    (void)state;
    int n = 0;
    lines *l = open_lines();
    while (next(l))
        TERN_SCOPE
            if (strcmp(l->word, "print") == 0) {
                char *text = tern_to_text(tensor_of(l->b, called(l->a), "cpu"));
                assert_non_null(text);
                for (char *c = text; *c; c++)
                    *c = *c == '\n' ? '|' : *c == ' ' ? '_' : *c;
                assert_string_equal(text, l->first);
                tern_free_text(text);
                n++;
            }
    close_lines(l);
    assert_int_equal(n, LAST - FIRST + 1);
}

/* ---- movement ---------------------------------------------------------------------------- */

/* Each as it moves rows of bytes: x is (4, 6) of a type, or (4, 6, size of the type) of uint8. */
static tern_tensor *index_of(tern_tensor *x)
{
    return tern_from_data((int64_t[]){2, 0, 3}, SHAPE(3), TERN_I64, tern_device(x));
}
static tern_tensor *by_index_select(tern_tensor *x)
{
    return tern_index_select(x, 0, index_of(x));
}
static tern_tensor *by_index(tern_tensor *x)
{
    return tern_index_list(x, (tern_tensor *[]){index_of(x), index_of(x)}, 2);
}
static tern_tensor *by_gather(tern_tensor *x)
{
    tern_shape shape = tern_shape_of(x), ones = shape;
    shape.dims[0] = 3;
    for (int d = 1; d < ones.ndim; d++)
        ones.dims[d] = 1;
    ones.dims[0] = 3;
    return tern_gather(x, 0, tern_expand(tern_view(index_of(x), ones), shape));
}
static tern_tensor *by_cat(tern_tensor *x)
{
    return tern_cat((tern_tensor *[]){x, tern_slice(x, 1, 1, 6, 2)}, 2, 1);
}
static tern_tensor *by_stack(tern_tensor *x)
{
    return tern_stack((tern_tensor *[]){x, x}, 2, 0);
}
static tern_tensor *by_flip(tern_tensor *x)
{
    return tern_flip(x, TERN_DIMS(0, 1));
}
static tern_tensor *by_roll(tern_tensor *x)
{
    return tern_roll(x, TERN_SHAPE(1, 4), TERN_DIMS(0, 1));
}
static tern_tensor *by_transposing(tern_tensor *x)
{
    return tern_contiguous(tern_transpose(x, 0, 1));
}
static tern_tensor *by_large_tiles(tern_tensor *x)
{
    tern_shape shape = tern_shape_of(x);
    shape.dims[0] = 16, shape.dims[1] = 12, shape.dims[2] = 1;
    return tern_contiguous(tern_transpose(tern_repeat(x, shape), 0, 1));
}
static tern_tensor *by_where(tern_tensor *x)
{
    bool which[4] = {true, false, false, true};
    tern_shape shape = {.ndim = tern_dim(x), .dims = {4, 1, 1}};
    tern_tensor *condition = tern_from_data(which, shape, TERN_BOOL, tern_device(x));
    return tern_where(condition, x, tern_flip(x, TERN_DIMS(0)));
}
static tern_tensor *by_mask(tern_tensor *x)
{
    bool which[4] = {true, false, false, true};
    tern_tensor *mask = tern_from_data(which, SHAPE(4), TERN_BOOL, tern_device(x));
    return tern_index(x, mask);
}
static tern_tensor *by_index_put(tern_tensor *x)
{
    return tern_index_put(x, (tern_tensor *[]){index_of(x)}, 1, tern_narrow(x, 0, 1, 3), false);
}
static tern_tensor *by_padding(tern_tensor *x)
{
    tern_shape sizes = tern_dim(x) == 2 ? TERN_DIMS(1, 2) : TERN_DIMS(0, 0, 1, 2);
    return tern_pad(x, sizes, NULL);
}

static void elements_move_as_their_bytes(void **state)
{
    static tern_tensor *(*const moves[])(tern_tensor *) = {
        by_index_select, by_index,       by_gather, by_cat,  by_stack,     by_flip,   by_roll,
        by_transposing,  by_large_tiles, by_where,  by_mask, by_index_put, by_padding};
    unsigned char bytes[4 * 6 * 8];
    static unsigned char out[2][65536];
    (void)state;
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (unsigned char)(i * 2654435761u >> 7 | (i % 3 == 1 ? 0x7c : 0)); /* NaNs too */
    FOR_EACH_DEVICE(device)
    for (int type = FIRST; type <= LAST; type++)
        for (size_t m = 0; m < sizeof moves / sizeof *moves; m++)
            TERN_SCOPE {
                int64_t size = (int64_t)tern_dtype_size((tern_dtype)type);
                tern_tensor *x =
                    tern_from_data((void *)bytes, SHAPE(4, 6), (tern_dtype)type, device);
                tern_tensor *b = tern_from_data(bytes, SHAPE(4, 6, size), TERN_U8, "cpu");
                tern_tensor *y = moves[m](x), *wanted = moves[m](b);
                assert_non_null(y);
                size_t n = (size_t)tern_numel(wanted);
                assert_int_equal(tern_dtype_of(y), type);
                assert_int_equal(tern_numel(y) * size, n);
                assert_ok(tern_copy_to_host(y, (void *)out[0], n));
                assert_ok(tern_copy_to_host(wanted, out[1], n));
                assert_memory_equal(out[0], out[1], n);
            }
}

/* ---- numbers and refusals ---------------------------------------------------------------- */

static void numbers_fill_and_are_compared(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    TERN_SCOPE {
        for (int type = FIRST; type <= LAST; type++) {
            tern_tensor *x = tern_ones(SHAPE(3, 2), (tern_dtype)type, device);
            assert_true(tern_item(tern_select(tern_select(x, 0, 2), 0, 1)) == 1);
            tern_fill_(tern_select(x, 1, 1), TERN_SCALAR(5));
            assert_int_equal(tern_item_int(tern_sum(tern_eq_scalar(x, TERN_SCALAR(5)))), 3);
            assert_int_equal(tern_item_int(tern_sum(tern_lt_scalar(x, TERN_SCALAR(5)))), 3);
            assert_int_equal(tern_item_int(tern_sum(tern_gt_scalar(x, TERN_SCALAR(1)))), 3);
            assert_true(tern_equal(x, tern_clone(x)));
            assert_false(tern_equal(x, tern_zeros_like(x)));
        }
        tern_tensor *most = tern_full(SHAPE(1), TERN_SCALAR(-1), TERN_U64, device);
        assert_true(tern_item(most) == 0x1p64);
        assert_true((uint64_t)tern_item_int(most) == UINT64_MAX);
        assert_true(tern_item_int(tern_eq_scalar(most, TERN_SCALAR(-1))) == 1);
        assert_true(tern_item_int(tern_gt_scalar(most, TERN_SCALAR(7))) == 1);
        most = tern_full(SHAPE(1), TERN_SCALAR(1e19), TERN_U64, device);
        assert_true(tern_item_int(tern_to_dtype(most, TERN_I64)) == (int64_t)10000000000000000000u);
        tern_tensor *one = tern_ones(SHAPE(1), TERN_F8_E4M3FN, device);
        assert_true(tern_item_int(tern_eq_scalar(one, TERN_SCALAR(1.01))) == 1); /* rounded */
        assert_true(tern_item(tern_full(SHAPE(1), TERN_SCALAR(1e6), TERN_F8_E4M3FN, device)) ==
                    448);
        assert_null(tern_full(SHAPE(1), TERN_SCALAR(300), TERN_I8, device));
        assert_error(TERN_ERR_ARGUMENT, "value cannot be converted to type int8 without overflow");
        assert_null(tern_full(SHAPE(1), TERN_SCALAR(-70000), TERN_U16, device));
        assert_error(TERN_ERR_ARGUMENT, "uint16 without overflow");
        assert_true(tern_item(tern_select(tern_arange(3, 9, 2, TERN_I16, device), 0, 2)) == 7);
    }
}

static void reals_and_wider_integers_take_them_in(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    TERN_SCOPE {
        tern_tensor *x = tern_full(SHAPE(2), TERN_SCALAR(3), TERN_I8, device);
        tern_tensor *y = tern_full(SHAPE(2), TERN_SCALAR(70000), TERN_I32, device);
        assert_int_equal(tern_dtype_of(tern_add(x, y)), TERN_I32);
        assert_values(tern_add(x, y), 70003, 70003);
        assert_int_equal(tern_dtype_of(tern_add_scalar(x, TERN_SCALAR(0.5))), TERN_F32);
        assert_int_equal(tern_dtype_of(tern_sin(x)), TERN_F32);
        tern_tensor *u = tern_full(SHAPE(2), TERN_SCALAR(200), TERN_U8, device);
        assert_int_equal(tern_dtype_of(tern_cat((tern_tensor *[]){x, u}, 2, 0)), TERN_I16);
        assert_int_equal(tern_item_int(tern_sum(tern_lt(x, u))), 2);
        tern_add_(y, x);
        assert_values(y, 70003, 70003);
        tern_tensor *reals = TENSOR(device, TERN_F32, SHAPE(2), 5, 1);
        tern_tensor *three = tern_full(TERN_SHAPE_SCALAR, TERN_SCALAR(3), TERN_U16, device);
        assert_values(tern_l1_loss(reals, three, NULL), 2);
    }
}

static void all_else_is_refused_by_name(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    for (int type = FIRST; type <= LAST; type++)
        TERN_SCOPE {
            tern_tensor *x = tern_ones(SHAPE(2, 2), (tern_dtype)type, device);
            tern_tensor *flags = tern_zeros(SHAPE(2, 2), TERN_BOOL, device);
            const char *part = "can be copied, compared and indexed: convert it (tern_to_dtype)";
            tern_values_indices both;
            assert_null(tern_add(x, x));
            assert_error(TERN_ERR_DTYPE, part);
            assert_null(tern_mul_scalar(x, TERN_SCALAR(2)));
            assert_error(TERN_ERR_DTYPE, part);
            assert_null(tern_sum(x));
            assert_error(TERN_ERR_DTYPE, part);
            assert_null(tern_matmul(x, x));
            assert_error(TERN_ERR_DTYPE, part);
            assert_int_equal(tern_sort(x, 0, false, &both), TERN_ERR_DTYPE);
            assert_error(TERN_ERR_DTYPE, part);
            assert_null(tern_neg_(x));
            assert_error(TERN_ERR_DTYPE, part);
            assert_null(tern_scatter_add(x, 0, tern_zeros(SHAPE(1, 2), TERN_I64, device), x));
            assert_error(TERN_ERR_DTYPE, part);
            assert_null(tern_max_pool2d(tern_view(x, SHAPE(1, 2, 2)), SHAPE(1, 1), NULL));
            assert_error(TERN_ERR_DTYPE, "");
            if (type >= TERN_U16) {
                assert_null(tern_add(x, tern_zeros(SHAPE(2, 2), TERN_I32, device)));
                assert_error(TERN_ERR_DTYPE, "attempted to promote");
                assert_null(tern_eq(x, flags));
                assert_error(TERN_ERR_DTYPE, "attempted to promote");
            }
        }
}

static const struct CMUnitTest tests[] = {
    TEST(every_pair_promotes_as_in_pytorch),     TEST(every_conversion_is_pytorchs),
    TEST(comparisons_read_the_values),           TEST(they_print_as_in_pytorch),
    TEST(elements_move_as_their_bytes),          TEST(numbers_fill_and_are_compared),
    TEST(reals_and_wider_integers_take_them_in), TEST(all_else_is_refused_by_name),
};

TEST_MAIN(tests)
