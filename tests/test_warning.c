/* test_warning.c -- warnings reach the handler once for each place, and record nothing. */
#include "environment.h"
#include "support.h"
#include "heard.h"
#include "base/warning.h"
#include "device/cache.h"
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static void a_place_is_told_once(void **state)
{
    (void)state;
    heard h = {0};
    tern_on_warning(hear, &h);
    for (int i = 0; i < 3; i++)
        tern_warn("slow", "tern_f", "turn %d", i);
    assert_int_equal(h.count, 1);
    assert_string_equal(h.kind, "slow");
    assert_string_equal(h.text, "tern_f: turn 0");
    tern_warn("slow", "tern_g", "turn %d", 0);
    tern_warn("other", "tern_f", "turn %d", 0);
    tern_warn("slow", "tern_f", "another reason");
    assert_int_equal(h.count, 4);
    tern_on_warning(hear, &h); /* hears of all places again */
    tern_warn("slow", "tern_f", "turn %d", 0);
    assert_int_equal(h.count, 5);
    tern_on_warning(NULL, NULL);
    assert_false(tern_warns());
    tern_warn("slow", "tern_f", "to nobody");
    tern_on_warning(hear, &h);
    tern_warn("slow", "tern_f", "to nobody");
    assert_int_equal(h.count, 6); /* what nobody heard was not told */
    tern_on_warning(NULL, NULL);
    assert_no_error();
}

static void very_many_places_are_cut_off(void **state)
{
    (void)state;
    heard h = {0};
    char name[32];
    tern_on_warning(hear, &h);
    for (int turn = 0; turn < 2; turn++)
        for (int i = 0; i < 5000; i++) {
            snprintf(name, sizeof name, "tern_%d", i);
            tern_warn("slow", name, "x");
        }
    assert_in_range(h.count, 500, 4999);
    tern_on_warning(NULL, NULL);
}

static void a_condition_of_bytes_is_told(void **state)
{
    (void)state;
    heard h = {0};
    tern_on_warning(hear, &h);
    TERN_SCOPE {
        tern_tensor *c = TENSOR("cpu", TERN_U8, TERN_SHAPE(3), 2, 0, 1);
        assert_values(tern_where(c, 1, 2), 1, 2, 1);
        assert_int_equal(h.count, 1);
        assert_string_equal(h.kind, "dtype");
        assert_non_null(strstr(h.text, "where received a uint8 condition tensor"));
        assert_null(tern_where(tern_to_dtype(c, TERN_I32), 1, 2));
        assert_error(TERN_ERR_DTYPE, "expected condition to be a boolean tensor");
    }
    tern_on_warning(NULL, NULL);
}

static void warn_again(const char *kind, const char *text, void *user)
{
    ++*(int *)user;
    tern_warn(kind, "tern_handler", "%s", text);
}

static void what_is_odd_in_a_handler_is_not_told(void **state)
{
    (void)state;
    int count = 0;
    tern_on_warning(warn_again, &count);
    tern_warn("slow", "tern_f", "x");
    tern_warn("slow", "tern_g", "x");
    assert_int_equal(count, 2);
    tern_on_warning(NULL, NULL);
}

static void *warn_elsewhere(void *unused)
{
    (void)unused;
    for (int i = 0; i < 100; i++)
        tern_warn("slow", "tern_elsewhere", "x");
    return NULL;
}

static void count_atomically(const char *kind, const char *text, void *user)
{
    (void)kind;
    (void)text;
    __atomic_add_fetch((int *)user, 1, __ATOMIC_RELAXED);
}

static void threads_share_the_places(void **state)
{
    (void)state;
    int count = 0;
    pthread_t thread[4];
    tern_on_warning(count_atomically, &count);
    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&thread[i], NULL, warn_elsewhere, NULL), 0);
    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_join(thread[i], NULL), 0);
    assert_int_equal(count, 1);
    tern_on_warning(NULL, NULL);
}

/* ---- losses that broadcast --------------------------------------------------------------- */

typedef tern_tensor *(*loss_call)(tern_tensor *input, tern_tensor *target);

static tern_tensor *mse(tern_tensor *input, tern_tensor *target)
{
    return tern_mse_loss(input, target, NULL);
}
static tern_tensor *mse_none(tern_tensor *input, tern_tensor *target)
{
    return tern_mse_loss(input, target, &(tern_loss_options){.reduction = TERN_REDUCTION_NONE});
}
static tern_tensor *l1(tern_tensor *input, tern_tensor *target)
{
    return tern_l1_loss(input, target, NULL);
}
static tern_tensor *smooth_l1(tern_tensor *input, tern_tensor *target)
{
    return tern_smooth_l1_loss(input, target, NULL);
}
static tern_tensor *smooth_l1_of_0(tern_tensor *input, tern_tensor *target)
{
    return tern_smooth_l1_loss(input, target, &(tern_smooth_l1_loss_options){.beta = TERN_ZERO});
}
static tern_tensor *huber(tern_tensor *input, tern_tensor *target)
{
    return tern_huber_loss(input, target, NULL);
}

static const struct {
    loss_call call;
    const char *function;
} losses[] = {{mse, "tern_mse_loss: "},
              {mse_none, "tern_mse_loss: "},
              {l1, "tern_l1_loss: "},
              {smooth_l1, "tern_smooth_l1_loss: "},
              {smooth_l1_of_0, "tern_l1_loss: "},
              {huber, "tern_huber_loss: "}};

static void losses_that_broadcast_warn(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    for (size_t i = 0; i < sizeof losses / sizeof *losses; i++)
        TERN_SCOPE {
            heard h = {0};
            tern_tensor *x = tern_ones(TERN_SHAPE(2, 4), TERN_F32, device);
            tern_tensor *y = tern_ones(TERN_SHAPE(2, 1), TERN_F32, device);
            tern_on_warning(hear, &h);
            assert_non_null(losses[i].call(x, x));
            assert_int_equal(h.count, 0);
            for (int turn = 0; turn < 3; turn++)
                assert_non_null(losses[i].call(x, y));
            assert_int_equal(h.count, 1);
            assert_string_equal(h.kind, "broadcast");
            assert_ptr_equal(strstr(h.text, losses[i].function), h.text);
            assert_non_null(strstr(h.text, "target size ([2, 1]) that is different to the input "
                                           "size ([2, 4])"));
            tern_on_warning(NULL, NULL);
            assert_no_error();
        }
}

/* ---- others ------------------------------------------------------------------------------ */

static void assert_heard_once(heard *h, const char *kind, const char *words)
{
    assert_int_equal(h->count, 1);
    assert_string_equal(h->kind, kind);
    assert_non_null(strstr(h->text, words));
    *h = (heard){0};
    tern_on_warning(NULL, NULL);
    assert_no_error();
}

static void a_scheduler_before_its_optimizer_warns(void **state)
{
    (void)state;
    for (int right = 0; right < 2; right++)
        TERN_SCOPE {
            heard h = {0};
            tern_tensor *x = tern_requires_grad_(tern_ones(TERN_SHAPE(2), TERN_F32, NULL), true);
            tern_optimizer *o = tern_optim_sgd_of(&x, 1, 0.1, NULL);
            tern_lr_scheduler *s = tern_lr_scheduler_step_lr(o, 1, 0.5);
            tern_on_warning(hear, &h);
            if (right)
                assert_ok(tern_optim_step(o));
            for (int i = 0; i < 3; i++)
                assert_ok(tern_lr_scheduler_step(s));
            if (right)
                assert_int_equal(h.count, 0);
            else
                assert_heard_once(&h, "order", "tern_lr_scheduler_step: called before");
            tern_on_warning(NULL, NULL);
            tern_lr_scheduler_free(s);
            tern_optim_free(o);
        }
}

static void a_cache_that_cannot_be_written_warns(void **state)
{
    (void)state;
    heard h = {0};
    const char *folder = getenv("TERN_CACHE_DIR");
    char before[512];
    snprintf(before, sizeof before, "%s", folder ? folder : "");
    set_variable("TERN_CACHE_DIR", "/dev/null/cache");
    tern_on_warning(hear, &h);
    tern_cache_key key = tern_cache_key_start("test");
    for (int i = 0; i < 2; i++)
        tern_cache_store(&key, "x", 1);
    assert_heard_once(&h, "cache", "compiled programs are not kept in /dev/null/cache: ");
    if (folder)
        set_variable("TERN_CACHE_DIR", before);
    else
        set_variable("TERN_CACHE_DIR", NULL);
}

static void options_that_do_nothing_or_something_else_warn(void **state)
{
    (void)state;
    TERN_SCOPE {
        heard h = {0};
        tern_tensor *x = tern_ones(TERN_SHAPE(2, 4), TERN_F32, NULL);
        tern_on_warning(hear, &h);
        assert_non_null(
            tern_kl_div(x, x, &(tern_kl_div_options){.reduction = TERN_REDUCTION_BATCHMEAN}));
        assert_int_equal(h.count, 0);
        assert_non_null(tern_kl_div(x, x, NULL));
        assert_heard_once(&h, "reduction", "tern_kl_div: the mean");
        tern_on_warning(hear, &h);
        tern_module *two = tern_nn_lstm(4, 4, &(tern_rnn_options){.num_layers = 2, .dropout = 0.5});
        assert_int_equal(h.count, 0);
        tern_module *one = tern_nn_lstm(4, 4, &(tern_rnn_options){.dropout = 0.5});
        assert_heard_once(&h, "dropout", "dropout=0.5 drops nothing");
        tern_nn_free(one);
        tern_nn_free(two);
    }
}

static void slow_ways_warn(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    TERN_SCOPE {
        heard h = {0};
        tern_tensor *q = tern_ones(TERN_SHAPE(1, 1024, 4), TERN_F32, device);
        tern_tensor *mask = tern_zeros(TERN_SHAPE(1024, 1024), TERN_F32, device);
        tern_scaled_dot_product_attention_options o = {.attn_mask = mask};
        tern_on_warning(hear, &h);
        assert_non_null(tern_scaled_dot_product_attention(q, q, q, &o));
        assert_int_equal(h.count, 0);
        tern_requires_grad_(mask, true);
        assert_non_null(tern_scaled_dot_product_attention(q, q, q, &o));
        assert_heard_once(&h, "slow", "tern_scaled_dot_product_attention: query [1, 1024, 4]");
        bool no_cudnn = strncmp(device, "cuda", 4) == 0 && getenv("TERN_STANDIN_CUDNN");
        tern_tensor *image = tern_ones(TERN_SHAPE(1, 1, 4, 4), TERN_F32, device);
        tern_on_warning(hear, &h);
        assert_non_null(tern_conv2d(image, image, NULL, NULL));
        if (no_cudnn)
            assert_heard_once(&h, "slow", "convolutions on cuda:0 are products");
        else
            assert_int_equal(h.count, 0);
        tern_on_warning(NULL, NULL);
    }
}

/* ---- the environment --------------------------------------------------------------------- */

/* What three warnings of one place write to stderr in a process of this environment. */
static void written_with(const char *value, char *text, size_t bytes)
{
    FILE *file = tmpfile();
    assert_non_null(file);
    IN_CHILD
    {
        if (value)
            set_variable("TERN_WARN", value);
        else
            set_variable("TERN_WARN", NULL);
        fflush(stderr);
        assert_int_equal(dup2(fileno(file), 2), 2);
        for (int i = 0; i < 3; i++)
            tern_warn("slow", "tern_f", "turn %d", i);
        fflush(stderr);
    }
    rewind(file);
    text[fread(text, 1, bytes - 1, file)] = '\0';
    fclose(file);
}

/* The first of all: the environment is read once. */
static void stderr_hears_if_the_environment_asks_for_it(void **state)
{
    (void)state;
    char text[256];
#ifdef _WIN32
    skip(); /* nothing is forked */
#endif
    written_with(NULL, text, sizeof text);
    assert_string_equal(text, "");
    written_with("0", text, sizeof text);
    assert_string_equal(text, "");
    written_with("1", text, sizeof text);
    assert_string_equal(text, "tern: warning: tern_f: turn 0 [slow]\n");
}

static const struct CMUnitTest tests[] = {
    TEST(stderr_hears_if_the_environment_asks_for_it),
    TEST(a_place_is_told_once),
    TEST(a_condition_of_bytes_is_told),
    TEST(very_many_places_are_cut_off),
    TEST(what_is_odd_in_a_handler_is_not_told),
    TEST(threads_share_the_places),
    TEST(losses_that_broadcast_warn),
    TEST(a_scheduler_before_its_optimizer_warns),
    TEST(a_cache_that_cannot_be_written_warns),
    TEST(options_that_do_nothing_or_something_else_warn),
    TEST(slow_ways_warn),
};
TEST_MAIN(tests)
