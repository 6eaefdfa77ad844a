/* test_loader_end.c -- a program that ends within a loop, with workers at work. */
#include "rerun.h"
#include <time.h>

static tern_status slow(tern_dataset *d, int64_t i, tern_tensor **item)
{
    (void)d, (void)i;
    nanosleep(&(struct timespec){0, 2000000}, NULL);
    item[0] = tern_rand(TERN_SHAPE(64), TERN_F32, NULL);
    return TERN_OK;
}

static int leave(void)
{
    tern_dataset *d = tern_data_dataset("slow", 1000, 1, slow, NULL);
    tern_loader *loader = tern_data_loader(
        d, &(tern_loader_options){.batch_size = 8, .num_workers = 2, .device = test_device(0)});
    TERN_EACH_BATCH(batch, loader) if (batch.index == 4) return 0;
    puts(tern_last_error());
    return 1;
}

/* Nothing is freed; workers are in items, and batches on their way to the device. */
static void a_program_may_end_in_a_loop(void **state)
{
    (void)state;
    for (int i = 0; i < 3; i++)
        assert_string_equal(RUN("leave", NULL), "");
}

int main(int argc, char **argv)
{
    static const scenario scenarios[] = {{"leave", leave}};
    int result = rerun_scenario(argc, argv, scenarios, 1);
    if (result >= 0)
        return result;
    const struct CMUnitTest tests[] = {TEST(a_program_may_end_in_a_loop)};
    result = test_main(tests, 1);
    remove_folder();
    return result;
}
