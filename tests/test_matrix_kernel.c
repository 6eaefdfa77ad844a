/* test_matrix_kernel.c -- what is kept of the trial of a kernel for matrix units. */
#include "device/matrix_kernel.h"
#include "device/device.h"
#include "environment.h"
#include "support.h"

static tern_status build_gives, try_gives;
static bool try_is_right;

static tern_status build_nothing(tern_place *place, const tern_matrix_variant *of,
                                 const tern_matrix_source *source, void **made)
{
    (void)place, (void)of, (void)source;
    *made = build_gives == TERN_OK ? &build_gives : NULL;
    return build_gives;
}

static void free_nothing(void *made)
{
    (void)made;
}

static tern_status try_nothing(void *user, bool *right)
{
    (void)user;
    *right = try_is_right;
    return try_gives;
}

/* A device without memory says so without an error's text, at a build as in a trial. */
static void what_could_not_be_tried_is_tried_again(void **state)
{
    (void)state;
    static const tern_matrix_family family = {
        "gemm_matrix.cl", "gemm_matrix", "tern_matmul", "products", {NULL}};
    static const tern_matrix_backend backend = {build_nothing, free_nothing};
    tern_matrix_kernels kernels = {&backend, NULL};
    tern_matrix_variant of[] = {{&family, TERN_F16, TERN_MATRIX_MMA, 32, 1, {0}},
                                {&family, TERN_F16, TERN_MATRIX_PLAIN, 32, 1, {0}}};
    const tern_matrix_call call = {of, 2, try_nothing, NULL};
    tern_place *place = tern_place_find("cpu", "test");
    tern_matrix_kernel *found[2];
    bool usable = true;
    build_gives = TERN_ERR_MEMORY, try_gives = TERN_OK, try_is_right = true;
    assert_int_equal(tern_matrix_prepare(place, &kernels, &call, found, &usable), TERN_ERR_MEMORY);
    assert_error(TERN_ERR_MEMORY, "no memory for the kernels of gemm_matrix.cl");
    assert_false(usable);
    build_gives = TERN_OK, try_gives = TERN_ERR_MEMORY;
    assert_int_equal(tern_matrix_prepare(place, &kernels, &call, found, &usable), TERN_ERR_MEMORY);
    assert_error(TERN_ERR_MEMORY, "no memory for the kernels of gemm_matrix.cl");
    assert_false(usable);
    try_gives = TERN_OK;
    assert_ok(tern_matrix_prepare(place, &kernels, &call, found, &usable));
    assert_true(usable && found[0]->state == TERN_MATRIX_RIGHT);
    of[0].numbers[0] = 1; /* another, which is wrong: what it was tried with is right */
    try_is_right = false;
    assert_ok(tern_matrix_prepare(place, &kernels, &call, found, &usable));
    assert_true(!usable && found[0]->state == TERN_MATRIX_WRONG);
    assert_int_equal(found[1]->state, TERN_MATRIX_RIGHT);
    tern_matrix_kernels_free(&kernels);
}

static const struct CMUnitTest tests[] = {
    TEST(what_could_not_be_tried_is_tried_again),
};
TEST_MAIN(tests)
