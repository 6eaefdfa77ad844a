/* rounds.c -- how many rounds of messages collectives take: one of what is small, two of what is not.
 *
 *   TERN_MPI_PLUGIN=libdist_counting.so TERN_COUNTED_PLUGIN=libtern_mpi_openmpi.so mpirun -n N rounds */
#include "ranks.h"
#include <dlfcn.h>

static int (*counted)(void);

/* None begins one after another rank has ended it. */
#define ROUNDS(wanted, call)                                                                       \
    do {                                                                                           \
        const int before = counted();                                                              \
        CHECK((call) == TERN_OK, "%s", #call);                                                     \
        CHECK(counted() - before == (wanted), "%d rounds, not %d", counted() - before, (wanted));  \
    } while (0)

static tern_status step(tern_module *m, tern_tensor *x)
{
    tern_status status = TERN_ERR_STATE;
    tern_nn_zero_grad(m);
    TERN_SCOPE
        status = tern_backward(tern_sum(tern_nn_forward(m, x)));
    return status;
}

int main(void)
{
    leave_pid();
    CHECK(tern_dist_init_process_group(NULL, &(tern_dist_init_options){.timeout = 60}) == TERN_OK,
          "init");
    void *plugin = dlopen(getenv("TERN_MPI_PLUGIN"), RTLD_NOW | RTLD_NOLOAD);
    CHECK(plugin, "%s", dlerror());
    *(void **)&counted = dlsym(plugin, "counted");
    TERN_SCOPE {
        tern_tensor *few = tern_ones(TERN_SHAPE(64), TERN_F32, "cpu");
        tern_tensor *more = tern_ones(TERN_SHAPE(65), TERN_F32, "cpu");
        tern_tensor *whole = tern_ones(TERN_SHAPE(2), TERN_I64, "cpu");
        tern_tensor *all =
            tern_zeros(TERN_SHAPE(64 * tern_dist_get_world_size(NULL)), TERN_F32, "cpu");
        ROUNDS(1, tern_dist_barrier(NULL));
        ROUNDS(1, tern_dist_all_reduce(few, NULL));
        ROUNDS(1, tern_dist_reduce(few, 0, NULL));
        ROUNDS(1, tern_dist_broadcast(few, 1, NULL));
        ROUNDS(1, tern_dist_broadcast(whole, 0, NULL));
        ROUNDS(1, tern_dist_all_gather_into_tensor(all, few, NULL));
        ROUNDS(2, tern_dist_all_reduce(more, NULL));
        ROUNDS(2, tern_dist_all_reduce(whole, NULL));
        ROUNDS(2, tern_dist_broadcast(more, 0, NULL));
        tern_use_deterministic(true);
        ROUNDS(1, tern_dist_all_reduce(few, NULL));
        ROUNDS(3, tern_dist_all_reduce(more, NULL));
        tern_use_deterministic(false);
        tern_module *m = tern_nn_distributed_data_parallel(tern_nn_linear(65, 3, NULL), NULL);
        tern_tensor *x = tern_ones(TERN_SHAPE(2, 65), TERN_F32, "cpu");
        CHECK(step(m, x) == TERN_OK && step(m, x) == TERN_OK, "buckets are sorted");
        ROUNDS(3, step(m, x)); /* a bucket's two, and what ranks tell beside */
        tern_nn_free(m);
    }
    CHECK(tern_dist_destroy_process_group() == TERN_OK, "destroy");
    return 0;
}
