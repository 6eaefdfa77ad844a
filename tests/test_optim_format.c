/* test_optim_format.c -- optimizers of parameters that are channels_last: each kernel goes through memory as it lies, without
 * copies, and computes what it does in rows. */
#include "support.h"
#include "base/memory.h"
#include <stdio.h>

/* Every optimizer that takes such parameters, with all of its states. */
#define OPTIMIZER(NAME, FAMILY, KERNEL, DTYPES, PARTS)                                             \
    __attribute__((unused)) static tern_optimizer *make_##NAME(tern_tensor *const *x, int n,       \
                                                               double lr, const void *options)     \
    {                                                                                              \
        return tern_optim_##NAME##_of(x, n, lr, options);                                          \
    }
#include "optimizers.def"
#define WITH(name, ...)                                                                            \
    &(const tern_##name##_options)                                                                 \
    {                                                                                              \
        __VA_ARGS__                                                                                \
    }
static const struct {
    const char *name;
    tern_optimizer *(*make)(tern_tensor *const *x, int n, double lr, const void *options);
    const void *options;
} variants[] = {
    {"sgd", make_sgd, NULL},
    {"sgd with momentum", make_sgd, WITH(sgd, .momentum = 0.9)},
    {"adam", make_adam, WITH(adam, .amsgrad = true)},
    {"adamw", make_adamw, WITH(adamw, .amsgrad = true)},
    {"adamax", make_adamax, NULL},
    {"nadam", make_nadam, NULL},
    {"radam", make_radam, NULL},
    {"rmsprop", make_rmsprop, WITH(rmsprop, .centered = true, .momentum = 0.5)},
    {"adagrad", make_adagrad, NULL},
    {"adadelta", make_adadelta, NULL},
    {"rprop", make_rprop, NULL},
    {"asgd", make_asgd, NULL},
    {"lamb", make_lamb, NULL},
};
enum { VARIANTS = sizeof variants / sizeof *variants };

enum { IMAGES = 4 };

/* Numbers in the shapes of weights and a bias, in rows or, where they have channels, channels_last. */
static tern_tensor *image(const char *device, tern_dtype dtype, int i, bool last, uint64_t seed)
{
    const tern_shape shapes[IMAGES] = {TERN_SHAPE(5, 3, 2, 2), TERN_SHAPE(2, 3, 2, 2, 3),
                                       TERN_SHAPE(7), TERN_SHAPE(40, 7, 5, 4)};
    tern_tensor *x = test_uniform(device, dtype, shapes[i], -1, 1, seed * IMAGES + (uint64_t)i);
    return last && i != 2 ? tern_to_memory_format(x, (tern_memory_format)(shapes[i].ndim - 3)) : x;
}

static void make_images(const char *device, tern_dtype dtype, bool last, tern_tensor **x)
{
    for (int i = 0; i < IMAGES; i++)
        x[i] = tern_requires_grad_(image(device, dtype, i, last, 1), true);
}

static void give_images(tern_tensor *const *x, bool last, uint64_t seed)
{
    for (int i = 0; i < IMAGES; i++)
        assert_ok(
            tern_set_grad(x[i], image(tern_device(x[i]), tern_dtype_of(x[i]), i, last, seed)));
}

static void assert_images(tern_tensor *const *x, bool last, tern_tensor *const *wanted,
                          double tolerance)
{
    for (int i = 0; i < IMAGES; i++) {
        assert_close(x[i], wanted[i], .abs = tolerance);
        if (i != 2)
            assert_true(tern_is_contiguous(x[i]) != last);
    }
}

static uint64_t launches_of_step(tern_optimizer *o, const char *device)
{
    uint64_t before = launches(device);
    assert_ok(tern_optim_step(o));
    return launches(device) - before;
}

static void channels_last_steps_as_it_lies(void **state)
{
    static const tern_dtype dtypes[] = {TERN_F32, TERN_BF16};
    (void)state;
    FOR_EACH_DEVICE(device)
    for (int v = 0; v < 2 * VARIANTS; v++)
        TERN_SCOPE {
            tern_tensor *x[IMAGES], *y[IMAGES];
            const char *name = variants[v / 2].name;
            const bool half = v % 2;
            if (half && !test_thorough(device) && strcmp(name, "adamax") != 0)
                continue;
            make_images(device, dtypes[half], false, x);
            make_images(device, dtypes[half], true, y);
            tern_optimizer *rows = variants[v / 2].make(x, IMAGES, 0.1, variants[v / 2].options);
            tern_optimizer *last = variants[v / 2].make(y, IMAGES, 0.1, variants[v / 2].options);
            for (uint64_t t = 0; t < 3; t++) {
                give_images(x, false, 2 + t);
                give_images(y, true, 2 + t);
                uint64_t wanted = launches_of_step(rows, device),
                         found = launches_of_step(last, device);
                if (t && found != wanted)
                    fail_msg("%s: %d launches, not %d", name, (int)found, (int)wanted);
            }
            const bool sums = strncmp(name, "lamb", 4) == 0; /* whose order is another */
            assert_images(y, true, x, sums ? half ? 1e-2 : 1e-6 : 0);
            tern_state_dict *dict = tern_optim_state_dict(last);
            for (int k = 0; k < tern_state_dict_count(dict); k++) {
                tern_tensor *value = tern_state_dict_at(dict, k);
                const int format = tern_dim(value) - 3;
                if (format > 0 && !tern_is_contiguous_format(value, (tern_memory_format)format))
                    fail_msg("%s: %s is in rows", name, tern_state_dict_key_at(dict, k));
            }
            tern_state_dict_free(dict);
            tern_optim_free(rows);
            tern_optim_free(last);
        }
}

/* Another format for all parameters, or the states of an optimizer of the other, between steps. */
static void states_follow_into_another_format(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    TERN_SCOPE {
        tern_tensor *x[IMAGES], *y[IMAGES], *z[IMAGES];
        make_images(device, TERN_F32, false, x);
        make_images(device, TERN_F32, false, y);
        tern_optimizer *rows = tern_optim_adamw_of(x, IMAGES, 0.1, WITH(adamw, .amsgrad = true));
        tern_optimizer *moves = tern_optim_adamw_of(y, IMAGES, 0.1, WITH(adamw, .amsgrad = true));
        for (uint64_t t = 0; t < 8; t++) { /* two steps in each */
            const bool last = t / 2 % 2, matches = t % 2;
            for (int i = 0; i < IMAGES && t && !matches; i++)
                if (i != 2)
                    assert_non_null(tern_set_data_(
                        y[i], tern_to_memory_format(tern_detach(y[i]),
                                                    last ? (tern_memory_format)(tern_dim(y[i]) - 3)
                                                         : 0)));
            give_images(x, false, 2 + t);
            give_images(y, last == matches, 2 + t); /* the gradients of the first lie otherwise */
            uint64_t wanted = launches_of_step(rows, device);
            uint64_t found = launches_of_step(moves, device);
            if (matches)
                assert_int_equal(found, wanted);
            assert_images(y, last, x, 0);
        }
        for (int way = 0; way < 2; way++) {
            tern_optimizer *from = way ? moves : rows;
            tern_state_dict *dict = tern_optim_state_dict(from);
            for (int i = 0; i < IMAGES; i++) {
                tern_tensor *copy = tern_clone(tern_detach(y[i]));
                z[i] = tern_requires_grad_(
                    i == 2 || way
                        ? copy
                        : tern_to_memory_format(copy, (tern_memory_format)(tern_dim(copy) - 3)),
                    true);
            }
            tern_optimizer *to = tern_optim_adamw_of(z, IMAGES, 0.1, WITH(adamw, .amsgrad = true));
            assert_ok(tern_optim_load_state_dict(to, dict));
            tern_state_dict_free(dict);
            tern_optimizer *both[] = {from, to};
            tern_tensor **of[] = {way ? y : x, z};
            for (int k = 0; k < 2; k++) {
                give_images(of[k], false, 9 + (uint64_t)way);
                assert_ok(tern_optim_step(both[k]));
            }
            assert_images(z, !way, of[0], 0);
            if (!way) { /* y too, from where it was */
                give_images(y, false, 9);
                assert_ok(tern_optim_step(moves));
            }
            tern_optim_free(to);
        }
        tern_optim_free(rows);
        tern_optim_free(moves);
    }
}

/* A parameter of another shape, as many numbers, and a move that fails half way: states are all where they were. */
static void states_follow_into_another_shape(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    TERN_SCOPE {
        const tern_shape rows = TERN_SHAPE(2, 12), image = TERN_SHAPE(2, 3, 2, 2);
        tern_tensor *x[2], *y[2], **both[] = {x, y};
        tern_optimizer *o[2];
        for (int k = 0; k < 2; k++) {
            both[k][0] = tern_requires_grad_(
                test_uniform(device, TERN_F32, TERN_SHAPE(5, 3, 2, 2), -1, 1, 2), true);
            both[k][1] = tern_requires_grad_(test_uniform(device, TERN_F32, rows, -1, 1, 3), true);
            o[k] = tern_optim_adamw_of(both[k], 2, 0.1, NULL);
        }
        for (uint64_t t = 0; t < 6; t++) {
            const tern_shape shape = t == 2 || t == 3 ? image : rows; /* and back */
            if (t == 2 || t == 4) {
                assert_non_null(tern_set_data_(
                    y[0],
                    tern_to_memory_format(tern_detach(y[0]),
                                          t == 2 ? TERN_CHANNELS_LAST : TERN_CONTIGUOUS_FORMAT)));
                tern_tensor *as = tern_reshape(tern_detach(y[1]), shape);
                assert_non_null(tern_set_data_(
                    y[1], t == 2 ? tern_to_memory_format(as, TERN_CHANNELS_LAST) : as));
            }
            for (int k = 0; k < 2; k++)
                for (int i = 0; i < 2; i++)
                    assert_ok(tern_set_grad(
                        both[k][i],
                        tern_reshape(test_uniform(device, TERN_F32, i ? rows : TERN_SHAPE(60), -1,
                                                  1, 10 + 2 * t + (uint64_t)i),
                                     tern_shape_of(both[k][i]))));
            assert_ok(tern_optim_step(o[0]));
            tern_memory_fail_at(t == 2 || t == 4 ? 30 : 0); /* within the move */
            if (tern_optim_step(o[1]) != TERN_OK) {
                tern_memory_fail_at(0);
                tern_clear_error();
                assert_ok(tern_optim_step(o[1]));
            }
            tern_memory_fail_at(0);
            for (int i = 0; i < 2; i++)
                assert_close(tern_reshape(tern_detach(y[i]), tern_shape_of(x[i])),
                             tern_detach(x[i]), .abs = 1e-6);
        }
        tern_optim_free(o[0]);
        tern_optim_free(o[1]);
    }
}

/* What is done to gradients and averages: as many launches as in rows, and the same numbers. */
static void channels_last_is_clipped_and_averaged_as_it_lies(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    TERN_SCOPE {
        tern_tensor *x[2][IMAGES], *means[IMAGES];
        uint64_t most[2][4];
        for (int last = 0; last < 2; last++) {
            make_images(device, TERN_F32, last, x[last]);
            tern_module *m = tern_nn_module("M", NULL, NULL);
            for (int i = 0; i < IMAGES; i++) {
                char name[16];
                snprintf(name, sizeof name, "p%d", i);
                tern_nn_add_parameter(m, name, x[last][i]);
            }
            tern_optimizer *o = tern_optim_sgd(m, 0.1, NULL);
            tern_averaged_model *mean = tern_swa_averaged_model(m, NULL);
            tern_scaler *s = tern_amp_grad_scaler(&(tern_grad_scaler_options){.init_scale = 4});
            tern_amp_scale(s, x[last][0]);
            for (int twice = 0; twice < 2; twice++) { /* states and tables are made first */
                uint64_t at[5];
                give_images(x[last], last, 3);
                at[0] = launches(device);
                assert_ok(tern_amp_unscale_(s, o));
                at[1] = launches(device);
                assert_true(tern_nn_clip_grad_norm_(m, 0.5) > 0);
                at[2] = launches(device);
                assert_ok(tern_nn_clip_grad_value_(m, 0.01));
                at[3] = launches(device);
                assert_ok(tern_swa_update(mean));
                at[4] = launches(device);
                for (int k = 0; k < 4; k++)
                    most[last][k] = at[k + 1] - at[k];
                assert_ok(tern_amp_step(s, o));
                assert_ok(tern_amp_update(s));
            }
            for (int i = 0; i < IMAGES; i++) {
                if (last) {
                    assert_close(tern_grad(x[1][i]), tern_grad(x[0][i]), .abs = 1e-7);
                    assert_close(tern_swa_parameter(mean, i), means[i], .abs = 1e-6);
                }
                means[i] = tern_clone(tern_swa_parameter(mean, i));
            }
            tern_swa_free(mean);
            tern_amp_free(s);
            tern_optim_free(o);
            tern_nn_free(m);
        }
        assert_memory_equal(most[0], most[1], sizeof *most);
    }
}

static const struct CMUnitTest tests[] = {
    TEST(channels_last_steps_as_it_lies),
    TEST(states_follow_into_another_format),
    TEST(states_follow_into_another_shape),
    TEST(channels_last_is_clipped_and_averaged_as_it_lies),
};
TEST_MAIN(tests)
