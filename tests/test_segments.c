/* test_segments.c -- memory of large blocks: parts of segments, which are split, joined and given back. On the cpu, which has none,
 * the same blocks are allocations of their own: all but the counts holds there too. */
#include "support.h"
#include "faults/source.h"
#include "device/segments.h"

enum { MB = 1 << 20 };

static tern_memory_stats stats_of(const char *device)
{
    tern_memory_stats stats = {0};
    assert_ok(tern_memory_get_stats(device, &stats));
    return stats;
}

static tern_place *empty_place(const char *device)
{
    tern_place *place = tern_place_find(device, "test");
    assert_non_null(place);
    assert_ok(tern_empty_cache(device));
    return place;
}

static tern_block *take(tern_place *place, size_t bytes)
{
    tern_block *block = tern_block_alloc(place, bytes, "test");
    assert_non_null(block);
    return block;
}

/* ---- split and joined -------------------------------------------------------------------- */

static void what_one_size_gave_up_serves_others(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    {
        tern_place *place = empty_place(device);
        if (!tern_segments_serve(place, 8 * MB))
            continue;
        tern_block_free(take(place, 32 * MB));
        const tern_memory_stats before = stats_of(device);
        for (int turn = 0; turn < 3; turn++) {
            /* 3 + 5 + 24, freed in another order each time, and then the whole. */
            tern_block *blocks[3] = {take(place, 3 * MB), take(place, 5 * MB),
                                     take(place, 24 * MB)};
            for (int i = 0; i < 3; i++)
                tern_block_free(blocks[(i + turn) % 3]);
            tern_block_free(take(place, 32 * MB));
            assert_int_equal(stats_of(device).driver_calls, before.driver_calls);
            assert_int_equal(stats_of(device).reserved, before.reserved);
        }
        assert_ok(tern_empty_cache(device));
        assert_true(stats_of(device).reserved <= before.reserved - 32 * MB);
    }
}

/* A segment with growth gives back what nobody has between blocks that are in use, and uses that memory elsewhere. */
static void memory_between_blocks_is_given_back(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    {
        tern_place *place = empty_place(device);
        if (!tern_segments_serve(place, 8 * MB))
            continue;
        const uint64_t before = stats_of(device).reserved;
        tern_block *blocks[5];
        for (int i = 0; i < 5; i++)
            blocks[i] = take(place, 8 * MB);
        for (int i = 1; i < 5; i += 2)
            tern_block_free(blocks[i]);
        assert_ok(tern_empty_cache(device));
        assert_true(stats_of(device).reserved - before <= 26 * MB);
        blocks[1] = take(place, 16 * MB);
        assert_true(stats_of(device).reserved - before <= 42 * MB);
        for (int i = 0; i < 5; i++)
            if (i != 3)
                tern_block_free(blocks[i]);
        assert_ok(tern_empty_cache(device));
        assert_int_equal(stats_of(device).reserved, before);
    }
}

/* x has this number everywhere, and is released. */
/* A small block in what a large one gave up does not keep the rest of it. */
static void a_small_block_keeps_little(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    {
        tern_place *place = empty_place(device);
        if (!place->backend->growth || !place->backend->growth->most(place))
            continue;
        const uint64_t before = stats_of(device).reserved;
        tern_block_free(take(place, (size_t)300 * MB));
        assert_true(stats_of(device).reserved - before >= (uint64_t)300 * MB);
        tern_block *small = take(place, 2 * MB);
        assert_ok(tern_empty_cache(device));
        assert_true(stats_of(device).reserved - before <= 64 * MB);
        tern_block_free(small);
        assert_ok(tern_empty_cache(device));
        assert_int_equal(stats_of(device).reserved, before);
    }
}

static void end_of(tern_tensor *x, double number)
{
    TERN_SCOPE {
        assert_true(tern_item(tern_min(x)) == number);
        assert_true(tern_item(tern_max(x)) == number);
    }
    tern_release(x);
}

/* Each block holds a number of its own from its beginning to its end for as long as it lives. */
static void blocks_share_no_bytes(void **state)
{
    (void)state;
    enum { MOST = 24, TURNS = 400 };
    FOR_EACH_DEVICE(device)
    TERN_SCOPE {
        tern_place *place = empty_place(device);
        const tern_memory_stats before = stats_of(device);
        struct {
            tern_tensor *x;
            int64_t n;
        } live[MOST] = {{NULL, 0}};
        uint32_t random = 7;
        for (int turn = 0; turn < TURNS; turn++) {
            random = random * 1664525 + 1013904223;
            const int i = (int)(random >> 16) % MOST;
            if (live[i].x) {
                end_of(live[i].x, i);
                live[i].x = NULL;
                continue;
            }
            /* From half a megabyte, of classes, to four; sizes that are not a multiple of anything. */
            live[i].n = 131000 + (int64_t)(random >> 8) % 917000;
            TERN_SCOPE
                live[i].x =
                    tern_keep(tern_full(TERN_SHAPE(live[i].n), TERN_SCALAR(i), TERN_F32, device));
            assert_non_null(live[i].x);
            if (turn % 100 == 99)
                assert_ok(tern_empty_cache(device));
        }
        for (int i = 0; i < MOST; i++)
            if (live[i].x) {
                end_of(live[i].x, i);
            }
        assert_ok(tern_empty_cache(device));
        assert_int_equal(stats_of(device).allocated, before.allocated);
        if (tern_segments_serve(place, 8 * MB))
            assert_true(stats_of(device).reserved < before.reserved + 4 * MB);
    }
}

/* ---- recordings -------------------------------------------------------------------------- */

/* A chain whose results die one after the other: their memory is used again within the recording, in parts of other sizes, and by nobody
 * else while the recording lives. */
static void a_recording_keeps_its_memory(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    TERN_SCOPE {
        tern_place *place = empty_place(device);
        const tern_memory_stats before = stats_of(device);
        tern_tensor *x = tern_full(TERN_SHAPE(1 << 20), TERN_SCALAR(1), TERN_F32, device),
                    *sum = NULL;
        tern_graph *graph = tern_graph_new(device);
        for (int i = 0; i < 2; i++) /* the first one builds kernels */
            TERN_SCOPE {
                if (i)
                    assert_ok(tern_graph_capture_begin(graph));
                tern_tensor *a = tern_keep(tern_add(x, 1.0)), *b = tern_keep(tern_mul(a, 3.0));
                tern_scope_clear(); /* gives up what the scope has */
                tern_release(a);
                tern_tensor *half = tern_keep(tern_add(tern_narrow(b, 0, 0, 1 << 19), 5.0));
                tern_tensor *rest = tern_keep(tern_add(tern_narrow(b, 0, 1 << 19, 1 << 19), 7.0));
                tern_scope_clear();
                tern_release(b);
                sum = tern_keep(tern_add(tern_sum(tern_mul(half, rest)), 0.0));
                tern_scope_clear();
                tern_release(half);
                tern_release(rest);
                if (i)
                    assert_ok(tern_graph_capture_end(graph));
                else
                    tern_release(sum);
            }
        assert_true(stats_of(device).recorded > before.recorded);
        for (int i = 0; i < 3; i++) {
            TERN_SCOPE {
                /* Others' blocks lie elsewhere. */
                tern_tensor *other =
                    tern_full(TERN_SHAPE(3 << 20), TERN_SCALAR(-1), TERN_F32, device);
                tern_tensor *small =
                    tern_full(TERN_SHAPE(300000), TERN_SCALAR(-2), TERN_F32, device);
                tern_fill_(x, TERN_SCALAR(i));
                assert_ok(tern_graph_replay(graph));
                const double y = 3.0 * (i + 1);
                assert_true(tern_item(sum) == (y + 5) * (y + 7) * (1 << 19));
                assert_true(tern_item(tern_max(other)) == -1);
                assert_true(tern_item(tern_max(small)) == -2);
            }
            assert_ok(tern_empty_cache(device));
        }
        tern_graph_free(graph);
        assert_true(tern_item(sum) > 0); /* what a tensor has outlives the recording */
        tern_release(sum);
        assert_int_equal(stats_of(device).recorded, before.recorded);
        (void)place;
    }
}

/* ---- limits and failures ----------------------------------------------------------------- */

static void a_limit_is_kept(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    {
        tern_place *place = empty_place(device);
        const uint64_t reserved = stats_of(device).reserved;
        assert_ok(tern_set_memory_limit(device, reserved + 20 * MB));
        tern_block *small = take(place, 4000), *large = take(place, 10 * MB);
        const uint64_t with_both = stats_of(device).reserved;
        assert_null(tern_block_alloc(place, (size_t)200 * MB, "test"));
        assert_error(TERN_ERR_MEMORY, "bytes that tern_set_memory_limit allows");
        assert_int_equal(stats_of(device).reserved, with_both); /* nothing was begun */
        assert_null(tern_block_alloc(place, 12 * MB, "test"));
        assert_error(TERN_ERR_MEMORY, "bytes that tern_set_memory_limit allows");
        tern_block_free(large);
        large = take(place, 12 * MB); /* the cache is emptied for it */
        assert_true(stats_of(device).reserved <= reserved + 20 * MB);
        tern_block_free(large);
        tern_block_free(small);
        assert_ok(tern_set_memory_limit(device, 0));
        tern_block_free(take(place, 30 * MB));

        assert_true(tern_get_per_process_memory_fraction(device) == 1);
        assert_ok(tern_set_per_process_memory_fraction(0.25, device));
        assert_true(tern_get_per_process_memory_fraction(device) > 0.24 &&
                    tern_get_per_process_memory_fraction(device) < 0.26);
        const double wrong[] = {-0.1, 1.5, 0.0 / 0.0};
        for (int i = 0; i < 3; i++) {
            assert_int_equal(tern_set_per_process_memory_fraction(wrong[i], device),
                             TERN_ERR_ARGUMENT);
            assert_error(TERN_ERR_ARGUMENT, "must be between 0 and 1");
        }
        assert_ok(tern_set_per_process_memory_fraction(1, device));
    }
}

/* Blocks are taken between others while the n-th allocation, or call of the driver, fails: an error or a block, and
 * afterwards all is as it was. */
static void fail_each(const char *device, const char *point)
{
    tern_place *place = empty_place(device);
    const tern_memory_stats before = stats_of(device);
    for (unsigned long long n = 1; n < 40; n++) {
        const source s = {.point = point, .n = n};
        tern_block *blocks[6];
        arm(&s);
        for (int i = 0; i < 6; i++) {
            blocks[i] =
                tern_block_alloc(place, (size_t)(i == 4 ? 140 : i % 3 + 1) * MB + 100, "test");
            if (i == 2) {
                tern_block_free(blocks[1]);
                blocks[1] = NULL;
            }
        }
        const unsigned long long calls = disarm(&s);
        for (int i = 0; i < 6; i++)
            tern_block_free(blocks[i]);
        tern_clear_error();
        assert_ok(tern_empty_cache(device));
        assert_int_equal(stats_of(device).allocated, before.allocated);
        assert_int_equal(stats_of(device).reserved, before.reserved);
        if (calls < n)
            break;
    }
}

static void a_failure_leaves_nothing_behind(void **state)
{
    (void)state;
    const bool drivers = load_driver();
    static const char *const points[] = {
        "cuMemAddressReserve", "cuMemCreate",    "cuMemMap",
        "cuMemSetAccess",      "clCreateBuffer", "clCreateSubBuffer"};
    FOR_EACH_DEVICE(device)
    {
        fail_each(device, NULL);
        for (size_t i = 0; drivers && i < sizeof points / sizeof *points; i++)
            fail_each(device, points[i]);
    }
}

static const struct CMUnitTest tests[] = {
    TEST(what_one_size_gave_up_serves_others), TEST(memory_between_blocks_is_given_back),
    TEST(a_small_block_keeps_little),          TEST(blocks_share_no_bytes),
    TEST(a_recording_keeps_its_memory),        TEST(a_limit_is_kept),
    TEST(a_failure_leaves_nothing_behind),
};
TEST_MAIN(tests)
