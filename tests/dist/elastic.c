/* elastic.c -- a training that goes on from its newest snapshot, with another number of ranks.
 *
 *   mpirun -n N elastic RUN [DIE]     RUN numbers the start; rank N - 1 dies behind step DIE
 *   elastic compare ONE OTHER         two models: how far they are apart, at most 1e-5
 *
 * A step is BATCH rows of the epoch's order, whoever takes them. log.<run>.<rank> gets "run step row" for each, and
 * "start run step"; what a run did behind the snapshot that the next began with is forgotten. */
#include "ranks.h"
#include <math.h>
#include <signal.h>

enum { ROWS = 60, BATCH = 12, EPOCHS = 4, EVERY = 3 }; /* EVERY: steps from snapshot to snapshot */

static tern_module *net(void)
{
    tern_manual_seed(11);
    return tern_nn_sequential(tern_nn_linear(3, 16, NULL), tern_nn_tanh(),
                              tern_nn_linear(16, 1, NULL));
}

static tern_status add_gradient(const char *path, tern_tensor *x, void *user)
{
    (void)user;
    return tern_dist_all_reduce(tern_grad(x), &(tern_dist_options){.label = path});
}

/* The row's number is its first column. */
static tern_dataset *rows(void)
{
    tern_tensor *x = tern_zeros(TERN_SHAPE(ROWS, 3), TERN_F32, "cpu");
    for (int i = 0; i < ROWS; i++)
        for (int k = 0; k < 3; k++)
            ((float *)tern_data(x))[3 * i + k] = k ? (float)sin(i * k * 0.7) : (float)i;
    tern_tensor *y = tern_sin(tern_sum_dim(x, TERN_DIMS(1), true));
    return tern_data_tensor_dataset(x, y);
}

static void step(tern_module *model, tern_optimizer *optimizer, const tern_batch *batch)
{
    TERN_SCOPE {
        tern_tensor *x = tern_mul_scalar(batch->tensors[0], TERN_SCALAR(1.0 / ROWS));
        tern_tensor *loss = tern_mse_loss(tern_nn_forward(model, x), batch->tensors[1],
                                          &(tern_loss_options){.reduction = TERN_REDUCTION_SUM});
        tern_optim_zero_grad(optimizer);
        tern_backward(tern_div_scalar(loss, TERN_SCALAR(BATCH)));
        tern_nn_each_parameter(model, add_gradient, NULL);
        tern_optim_step(optimizer);
    }
}

static void train(int run, int die, int rank, int ranks)
{
    int64_t done = 0;
    char path[64];
    snprintf(path, sizeof path, "log.%d.%d", run, rank);
    FILE *log = fopen(path, "w");
    CHECK(log, "%s", path);
    tern_module *model = net();
    tern_optimizer *optimizer = tern_optim_adam(model, 0.01, NULL);
    tern_dataset *data = rows();
    tern_loader *loader = tern_data_loader(
        data, &(tern_loader_options){.batch_size = BATCH / ranks,
                                     .sampler = tern_data_distributed_sampler(ranks, rank, NULL)});
    tern_snapshot *snapshot = tern_snapshot_new();
    tern_snapshot_add_module(snapshot, "model", model);
    tern_snapshot_add_optimizer(snapshot, "optimizer", optimizer);
    tern_snapshot_add_loader(snapshot, "loader", loader);
    tern_snapshot_add_int(snapshot, "done", &done);
    if (tern_snapshot_latest("snapshots"))
        tern_snapshot_load(snapshot, "snapshots");
    CHECK(tern_last_status() == TERN_OK, "begin");
    if (rank == 0)
        fprintf(log, "start %d %lld\n", run, (long long)done);
    while (done < EPOCHS * ROWS / BATCH && tern_last_status() == TERN_OK)
        TERN_EACH_BATCH(batch, loader)
        {
            const float *x = tern_data(batch.tensors[0]);
            for (int64_t i = 0; i < batch.size; i++)
                fprintf(log, "%d %lld %g\n", run, (long long)done, x[3 * i]);
            fflush(log);
            step(model, optimizer, &batch);
            if (tern_last_status() != TERN_OK)
                break;
            done++;
            if (done % EVERY == 0) {
                if (rank == 0)
                    tern_snapshot_save(snapshot, "snapshots",
                                       &(tern_snapshot_options){.step = done, .keep_last = 2});
                tern_dist_barrier(NULL); /* nobody goes on before it is there */
            }
            if (done == die && rank == ranks - 1)
                raise(SIGKILL);
        }
    if (rank == 0 && tern_last_status() == TERN_OK)
        tern_nn_save(model, "model.safetensors", NULL);
    fclose(log);
    tern_snapshot_free(snapshot);
    tern_loader_free(loader);
    tern_dataset_free(data);
    tern_optim_free(optimizer);
    tern_nn_free(model);
}

static int compare(const char *one, const char *other)
{
    tern_state_dict *a = tern_load(one, NULL), *b = tern_load(other, NULL);
    double apart = 0;
    for (int i = 0; a && b && i < tern_state_dict_count(a); i++) {
        const char *name = tern_state_dict_key_at(a, i);
        tern_tensor *x = tern_state_dict_get(a, name), *y = tern_state_dict_get(b, name);
        apart = fmax(apart, tern_item(tern_max(tern_abs(tern_sub(x, y)))));
    }
    printf("apart %.1e %s\n", apart, tern_last_error());
    tern_state_dict_free(a);
    tern_state_dict_free(b);
    return tern_last_status() == TERN_OK && apart < 1e-5 ? 0 : 1;
}

int main(int argc, char **argv)
{
    if (argc > 3 && strcmp(argv[1], "compare") == 0)
        return compare(argv[2], argv[3]);
    CHECK(argc > 1, "usage: elastic RUN [DIE]");
    leave_pid();
    tern_dist_init_process_group(NULL, &(tern_dist_init_options){.timeout = 30});
    const int rank = tern_dist_get_rank(NULL), ranks = tern_dist_get_world_size(NULL);
    CHECK(BATCH % ranks == 0, "%d ranks", ranks);
    TERN_SCOPE {
        train(atoi(argv[1]), argc > 2 ? atoi(argv[2]) : -1, rank, ranks);
    }
    if (tern_last_status() == TERN_OK)
        tern_dist_destroy_process_group();
    if (tern_last_status() != TERN_OK)
        fprintf(stderr, "rank %d: %s\n", rank, tern_last_error());
    return tern_last_status() == TERN_OK ? 0 : 7;
}
