/* test_dist.c -- what a single process sees of jobs: the launcher's environment, sums in the order of ranks, a job of
 * one. Programs of several ranks are in tests/dist. */
#include "dist/dist.h"
#include "environment.h"
#include "support.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static const char *const variables[] = {"OMPI_COMM_WORLD_SIZE",
                                        "OMPI_COMM_WORLD_RANK",
                                        "OMPI_COMM_WORLD_LOCAL_RANK",
                                        "PMI_SIZE",
                                        "PMI_RANK",
                                        "MPI_LOCALRANKID",
                                        "MPI_LOCALNRANKS",
                                        "PMIX_RANK",
                                        "SLURM_STEP_NUM_TASKS",
                                        "SLURM_NTASKS",
                                        "SLURM_PROCID",
                                        "SLURM_LOCALID"};

/* As variables' values, in their order; NULL: not set. */
static tern_dist_launcher with(const char *const values[12])
{
    for (int i = 0; i < 12; i++)
        if (values[i])
            setenv(variables[i], values[i], 1);
        else
            unsetenv(variables[i]);
    return tern_dist_find_launcher();
}

static void launchers_are_known_by_their_environment(void **state)
{
    (void)state;
    static const struct {
        const char *values[12], *family;
        int size, rank, local;
        bool there;
    } cases[] = {
        {{0}, "openmpi", 0, -1, -1, false},
        {{"4", "3", "1"}, "openmpi", 4, 3, 1, true},
        {{NULL, NULL, NULL, "8", "5", "2"}, "abi", 8, 5, 2, true},
        {{NULL, NULL, NULL, NULL, NULL, "2", "4"}, "abi", 0, 2, 2, true},
        {{NULL, NULL, NULL, NULL, NULL, NULL, NULL, "6"}, "openmpi", 0, 6, -1, true},
        /* Slurm: a step, and a batch script, in which nothing was started yet */
        {{NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, "16", "16", "9", "1"},
         "openmpi",
         16,
         9,
         1,
         true},
        {{NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, "16", "0", "0"},
         "openmpi",
         0,
         -1,
         -1,
         false},
        /* mpirun's daemons are started by srun */
        {{"4", "3", "1", NULL, NULL, NULL, NULL, "3", "2", "2", "1", "0"},
         "openmpi",
         4,
         3,
         1,
         true},
        {{"four", "x", "1"}, "openmpi", 0, -1, -1, false},
        {{"-4", "1", "1"}, "openmpi", 0, -1, -1, false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        tern_dist_launcher l = with(cases[i].values);
        assert_int_equal(l.there, cases[i].there);
        assert_string_equal(l.families[0], cases[i].family);
        assert_int_equal(l.size, cases[i].size);
        assert_int_equal(l.rank, cases[i].rank);
        assert_int_equal(l.local_rank, cases[i].local);
    }
    with((const char *const[12]){0});
}

static void halves_are_summed_in_float32(void **state)
{
    (void)state;
    static const tern_dtype halves[] = {TERN_F16, TERN_BF16};
    enum { RANKS = 5, N = 700 };
    for (int k = 0; k < 2; k++)
        TERN_SCOPE {
            tern_manual_seed(3);
            tern_tensor *x = tern_mul_scalar(tern_randn(TERN_SHAPE(RANKS, N), TERN_F32, "cpu"),
                                             TERN_SCALAR(k ? 1e3 : 30.0));
            x = tern_to_dtype(
                tern_mul(x, tern_exp(tern_randn(TERN_SHAPE(RANKS, N), TERN_F32, "cpu"))),
                halves[k]);
            tern_tensor *sum = tern_to_dtype(tern_select(x, 0, 0), TERN_F32);
            for (int r = 1; r < RANKS; r++)
                sum = tern_add(sum, tern_to_dtype(tern_select(x, 0, r), TERN_F32));
            tern_tensor *got = tern_empty(TERN_SHAPE(N), halves[k], "cpu");
            tern_dist_combine(tern_data(got), tern_data(x), RANKS, N, halves[k], TERN_DIST_SUM,
                              RANKS);
            assert_true(tern_equal(got, tern_to_dtype(sum, halves[k])));
            tern_dist_combine(tern_data(got), tern_data(x), RANKS, N, halves[k], TERN_DIST_AVG,
                              RANKS);
            assert_true(tern_equal(
                got, tern_to_dtype(tern_div_scalar(sum, TERN_SCALAR(RANKS)), halves[k])));
        }
}

/* Every float16 and bfloat16 is what it was. */
static void halves_survive(void **state)
{
    (void)state;
    uint16_t all[1 << 16], back[1 << 16];
    for (int i = 0; i < 1 << 16; i++)
        all[i] = (uint16_t)i;
    static const tern_dtype halves[] = {TERN_F16, TERN_BF16};
    for (int k = 0; k < 2; k++) {
        const uint16_t infinity = k ? 0x7f80 : 0x7c00;
        tern_dist_combine(back, all, 1, 1 << 16, halves[k], TERN_DIST_SUM, 1);
        for (int i = 0; i < 1 << 16; i++)
            if ((i & 0x7fff) > infinity)
                assert_true((back[i] & 0x7fff) > infinity);
            else
                assert_int_equal(back[i], i);
    }
    const float nan_first[] = {NAN, 1, 1, NAN};
    float out[2];
    for (int op = TERN_DIST_MIN; op <= TERN_DIST_MAX; op++) {
        tern_dist_combine(out, nan_first, 2, 2, TERN_F32, (tern_dist_op)op, 2);
        assert_true(isnan(out[0]) && isnan(out[1]));
    }
}

static void a_process_alone_is_a_job(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(d)
    {
        with((const char *const[12]){0});
        assert_int_equal(tern_dist_init_process_group(NULL, NULL), TERN_OK);
        assert_true(tern_dist_is_initialized());
        assert_string_equal(tern_dist_get_backend(NULL), "local");
        tern_tensor *x = tern_arange(0, 6, 1, TERN_F32, d),
                    *y = tern_zeros(TERN_SHAPE(6), TERN_F32, d);
        tern_dist_work *work = NULL;
        assert_int_equal(tern_dist_all_reduce(x, &(tern_dist_options){.work = &work}), TERN_OK);
        assert_true(tern_dist_is_completed(work));
        assert_int_equal(tern_dist_wait(work), TERN_OK);
        assert_int_equal(tern_dist_all_gather_into_tensor(y, x, NULL), TERN_OK);
        assert_true(tern_equal(x, y));
        assert_int_equal(tern_dist_barrier(NULL), TERN_OK);
        assert_int_equal(tern_dist_destroy_process_group(), TERN_OK);
        assert_false(tern_dist_is_initialized());
    }
}

static void what_cannot_be_joined_is_refused(void **state)
{
    (void)state;
    with((const char *const[12]){0});
    tern_dist_init_process_group("carrier pigeons", NULL);
    assert_error(TERN_ERR_ARGUMENT, "Unknown backend: 'carrier pigeons'");
    tern_clear_error();
    tern_dist_init_process_group(NULL, &(tern_dist_init_options){.timeout = -1});
    assert_error(TERN_ERR_ARGUMENT, "timeout -1");
    tern_clear_error();
    tern_dist_destroy_process_group();
    assert_error(TERN_ERR_STATE, "no group");
    tern_clear_error();
    with((const char *const[12]){"4", "1", "1"});
    set_variable("TERN_MPI_PLUGIN", "/nowhere/libtern_mpi.so");
    assert_false(tern_dist_is_available());
    tern_dist_init_process_group(NULL, NULL);
    assert_non_null(strstr(tern_last_error(), "/nowhere"));
    assert_error(TERN_ERR_UNSUPPORTED, "OMPI_COMM_WORLD_SIZE is 4: no plugin for its MPI: ");
    tern_clear_error();
    set_variable("TERN_MPI_PLUGIN", NULL);
    with((const char *const[12]){0});
    tern_dist_init_process_group(NULL, &(tern_dist_init_options){.device = "abacus"});
    assert_error(TERN_ERR_DEVICE, "abacus");
    tern_clear_error();
    assert_false(tern_dist_is_initialized());
}

/* Beside a test there is none: the error names each that this launcher's processes can use. */
static void every_plugin_that_was_looked_for_is_named(void **state)
{
    static const struct {
        const char *values[12], *families[3];
    } cases[] = {
        {{"4", "1", "1"}, {"openmpi", "abi"}},
        {{NULL, NULL, NULL, "4", "1", "1"}, {"abi", "mpich"}},
        {{NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, "4", "4", "1", "1"},
         {"openmpi", "mpich", "abi"}},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        with(cases[i].values);
        tern_dist_init_process_group(NULL, NULL);
        for (int k = 0; k < 3 && cases[i].families[k]; k++) {
            char name[32];
            snprintf(name, sizeof name, "libtern_mpi_%s.", cases[i].families[k]);
            assert_non_null(strstr(tern_last_error(), name));
        }
        assert_error(TERN_ERR_UNSUPPORTED, "no plugin for its MPI");
    }
    with((const char *const[12]){0});
}

static const struct CMUnitTest tests[] = {
    TEST(launchers_are_known_by_their_environment),
    TEST(halves_are_summed_in_float32),
    TEST(halves_survive),
    TEST(a_process_alone_is_a_job),
    TEST(what_cannot_be_joined_is_refused),
    TEST(every_plugin_that_was_looked_for_is_named),
};
TEST_MAIN(tests)
