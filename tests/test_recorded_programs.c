/* test_recorded_programs.c -- random programs, recorded, planned and fused or not: results, replays and what is checked of them
 * have the bits of the same program that is not recorded.
 *
 * TERN_TEST_CALLS=N: programs are recorded until they have N operations; TERN_TEST_FIRST: from which program on. With
 * TERN_TEST_ALL N is a million on the cpu and a fifth of that elsewhere: minutes. On devices each chain is a text that is
 * compiled, and a process keeps what it knows of each: so a program comes several times then, with other tensors and other
 * sizes. */
#include "recorded_programs.h"
#include <stdlib.h>

enum { REPEATS = 256, CPU_REPEATS = 8, CALLS = 200000, CPU_CALLS = 1000000 };

static uint64_t number_of(const char *name, uint64_t otherwise)
{
    const char *text = getenv(name);
    return text ? strtoull(text, NULL, 10) : otherwise;
}

static void random_programs_have_their_bits(void **state)
{
    (void)state;
    static const tern_dtype dtypes[] = {TERN_F32, TERN_BF16, TERN_F16, TERN_I32, TERN_F64};
    const uint64_t first = number_of("TERN_TEST_FIRST", 0);
    FOR_EACH_DEVICE(device)
    {
        const bool cpu = strcmp(device, "cpu") == 0, all = getenv("TERN_TEST_ALL");
        const uint64_t most = number_of("TERN_TEST_CALLS", !all  ? 0
                                                           : cpu ? CPU_CALLS
                                                                 : CALLS),
                       repeats = !most ? 1
                                 : cpu ? CPU_REPEATS
                                       : REPEATS;
        const bool thorough = most || test_thorough(device);
        const uint64_t n = most       ? most /* each has some */
                           : thorough ? 1000
                           : test_pocl_gpu_form(device) || strncmp(device, "cuda", 4) == 0 ? 12
                                                                                           : 40;
        uint64_t calls = 0, i = 0;
        for (; i < n && (!most || calls < most); i++) {
            const uint64_t k = first + i / repeats;
            const recorded_program p = {device, dtypes[thorough ? k % 5 : k % 8 == 7], k,
                                        first + i};
            const tern_graph_options options = {
                .check = i % 2, .no_plan = i % 4 == 2, .no_fusion = i % 8 == 4};
            if (test_has(device, p.dtype))
                calls += (uint64_t)check_program(&p, &options);
        }
        if (most)
            print_message("%s: %llu programs, %llu calls\n", device, (unsigned long long)i,
                          (unsigned long long)calls);
    }
}

static const struct CMUnitTest tests[] = {TEST(random_programs_have_their_bits)};
TEST_MAIN(tests)
