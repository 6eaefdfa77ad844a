/* tensor_parallel.c -- layers that the ranks of a group share out, against the same layers in one process.
 *
 *   mpirun -n N tensor_parallel RANKS [DEVICE] */
#include "tensor_parallel.h"

/* ---- ways between ranks ----------------------------------------------------------------------------- */

typedef tern_tensor *(*way)(tern_tensor *x, int dim, tern_dist_group *group);

static tern_tensor *copy_way(tern_tensor *x, int dim, tern_dist_group *group)
{
    return (void)dim, tern_dist_copy_to_group(x, group);
}

static tern_tensor *reduce_way(tern_tensor *x, int dim, tern_dist_group *group)
{
    return (void)dim, tern_dist_reduce_from_group(x, group);
}

/* What comes out of rank r's numbers, and what gradients of rank r's come to: by their meaning, all in one process. */
static void ways(void)
{
    static const struct {
        way go;
        bool cuts, adds, gathers; /* there; back is the other way */
        bool back_adds;
        const char *name;
    } rows[] = {{copy_way, false, false, false, true, "copy"},
                {reduce_way, false, true, false, false, "reduce"},
                {tern_dist_gather_from_group, false, false, true, false, "gather"},
                {tern_dist_scatter_to_group, true, false, false, false, "scatter"},
                {tern_dist_all_gather_to_group, false, false, true, true, "all_gather"},
                {tern_dist_reduce_scatter_from_group, true, true, false, false, "reduce_scatter"}};
    for (int w = 0; w < 6; w++)
        for (int dim = -1; dim < 2; dim++)
            TERN_SCOPE {
                tern_tensor *in[8], *sum = NULL, *want;
                tern_manual_seed(5);
                for (int r = 0; r < ranks; r++) {
                    in[r] = made(TERN_SHAPE(4, 4 * ranks));
                    sum = sum ? tern_add(sum, in[r]) : in[r];
                }
                tern_tensor *x = tern_requires_grad_(tern_clone(in[rank]), true);
                tern_tensor *y = rows[w].go(x, dim, NULL);
                want = rows[w].adds ? sum : in[rank];
                if (dim == 0 && rows[w].cuts && 4 % ranks) {
                    tern_clear_error();
                    continue;
                }
                if (rows[w].cuts)
                    want = part_of(want, dim, NULL);
                if (rows[w].gathers)
                    want = tern_cat(in, ranks, dim);
                CHECK(y && tern_same_shape(y, want) && apart(tern_detach(y), want) < 1e-5, "%s %d",
                      rows[w].name, dim);
                tern_tensor *out[8], *all = NULL; /* gradients: rank r's are out[r] */
                for (int r = 0; r < ranks; r++) {
                    out[r] = made(tern_shape_of(y));
                    all = all ? tern_add(all, out[r]) : out[r];
                }
                tern_backward(tern_sum(tern_mul(y, out[rank])));
                want = rows[w].back_adds ? all : out[rank];
                if (rows[w].gathers)
                    want = part_of(want, dim, NULL);
                if (rows[w].cuts)
                    want = tern_cat(out, ranks, dim);
                CHECK(apart(tern_grad(x), want) < 1e-5, "gradient of %s %d", rows[w].name, dim);
            }
    TERN_SCOPE
        if (ranks > 1)
            REFUSED(tern_dist_scatter_to_group(made(TERN_SHAPE(2 * ranks + 1)), 0, NULL),
                    TERN_ERR_SHAPE, "no multiple");
}

/* ---- a language model -------------------------------------------------------------------------------- */

/* All of it on all ranks, and back. */
static void full_states(tern_module *m, tern_module *whole)
{
    tern_state_dict *wanted = tern_nn_state_dict(whole), *dict = tern_dist_full_state_dict(m);
    CHECK(dict && tern_state_dict_count(dict) == tern_state_dict_count(wanted), "full state");
    for (int i = 0; i < tern_state_dict_count(wanted); i++) {
        const char *key = tern_state_dict_key_at(wanted, i);
        tern_tensor *x = tern_state_dict_get(dict, key),
                    *y = tern_to(tern_detach(tern_state_dict_at(wanted, i)), "cpu");
        CHECK(x && tern_same_shape(x, y) && apart(x, y) < 2e-5, "full state of %s", key);
    }
    tern_tensor *x = tern_nn_parameter(m, "1.3.weight");
    tern_tensor *before = tern_clone(tern_detach(x));
    TERN_NO_GRAD
        tern_zero_(x);
    CHECK(tern_dist_load_full_state_dict(m, dict, NULL) == TERN_OK, "load");
    CHECK(apart(tern_detach(x), before) == 0, "loaded");
    tern_state_dict_set(dict, "1.3.weight", tern_zeros(TERN_SHAPE(WIDTH + 64, HIDDEN), 0, "cpu"));
    REFUSED(tern_dist_load_full_state_dict(m, dict, NULL), TERN_ERR_SHAPE, "size mismatch");
    CHECK(apart(tern_detach(x), before) == 0, "not loaded");
    tern_state_dict_set(dict, "1.3.weight", tern_nn_parameter(whole, "1.3.weight"));
    tern_state_dict_set(dict, "0.weight", tern_zeros(TERN_SHAPE(WORDS + 1, WIDTH), 0, "cpu"));
    REFUSED(tern_dist_load_full_state_dict(m, dict, NULL), TERN_ERR_SHAPE,
            "0.weight: [12, 8], in the model [11, 8], of which rank"); /* where the part fits too */
    tern_state_dict_free(dict);
    tern_state_dict_free(wanted);
}

static double mean_over(tern_tensor *loss, tern_dist_group *group)
{
    tern_tensor *x = tern_clone(tern_to(tern_detach(loss), "cpu"));
    CHECK(tern_dist_all_reduce(x, &(tern_dist_options){.op = TERN_DIST_AVG, .group = group}) ==
              TERN_OK,
          "loss");
    return tern_item(x);
}

/* Three steps with clipping. `rows`: the group that shares out rows of the batch, by DistributedDataParallel, or by
 * tern_dist_fully_shard; NULL: none. */
static void train(bool tied, bool sequence, tern_dist_group *group, tern_dist_group *rows,
                  bool sharded)
{
    tern_module *m = net(tied), *whole = net(tied), *inner = m;
    const tern_vocab_parallel_cross_entropy_options o = {
        .group = group, .label_smoothing = 0.1, .classes = WORDS};
    const tern_cross_entropy_options plain = {.label_smoothing = 0.1};
    share_out(m, sequence, group);
    if (tied && ranks > 1)
        CHECK(tern_nn_parameter(m, "0.weight") == tern_nn_parameter(m, "3.weight"), "still tied");
    if (sharded) {
        const tern_fully_shard_options f = {.group = rows};
        if (tern_dist_get_world_size(group) > 1)
            REFUSED(tern_dist_fully_shard(m, &(tern_fully_shard_options){.group = group}),
                    TERN_ERR_ARGUMENT, "has another part of '");
        if (!tied)
            CHECK(tern_dist_fully_shard(tern_nn_child_at(m, 0), &f), "table");
        CHECK(tern_dist_fully_shard(tern_nn_child_at(m, 1), &f), "block");
        CHECK(tern_dist_fully_shard(m, &f) == m, "all");
    } else if (rows)
        m = tern_nn_distributed_data_parallel(
            m, &(tern_distributed_data_parallel_options){.group = rows});
    tern_optimizer *a = tern_optim_adamw(m, 0.02, NULL), *b = tern_optim_adamw(whole, 0.02, NULL);
    const int64_t parts = rows ? tern_dist_get_world_size(rows) : 1;
    const int64_t all = BATCH * parts, at = rows ? tern_dist_get_rank(rows) * BATCH : 0;
    tern_manual_seed(17);
    for (int step = 0; step < 3; step++)
        TERN_SCOPE {
            tern_tensor *words =
                tern_to(tern_randint(0, WORDS, TERN_SHAPE(all, LENGTH), TERN_I64, "cpu"), device);
            tern_tensor *target =
                tern_to(tern_randint(0, WORDS, TERN_SHAPE(all, LENGTH), TERN_I64, "cpu"), device);
            if (!rows) /* means of means are not the mean where words are left out */
                tern_fill_(tern_narrow(target, 1, 0, 1), TERN_SCALAR(-100));
            tern_tensor *own = tern_narrow(words, 0, at, BATCH);
            tern_tensor *loss = tern_vocab_parallel_cross_entropy(
                tern_nn_forward(m, own), tern_narrow(target, 0, at, BATCH), &o);
            tern_tensor *logits =
                tern_reshape(tern_nn_forward(whole, words), TERN_SHAPE(-1, WORDS));
            tern_tensor *wanted =
                tern_cross_entropy(logits, tern_reshape(target, TERN_SHAPE(-1)), &plain);
            CHECK(loss, "loss");
            const double mean = rows ? mean_over(loss, rows) : tern_item(loss);
            CHECK(fabs(mean - tern_item(wanted)) < 1e-5, "loss %g, %g", mean, tern_item(wanted));
            tern_optim_zero_grad(a);
            tern_optim_zero_grad(b);
            CHECK(tern_backward(loss) == TERN_OK, "backward");
            tern_backward(wanted);
            same_numbers(inner, whole, group, sharded ? rows : NULL, true, step);
            double norm = tern_nn_clip_grad_norm_(m, 0.1);
            CHECK(fabs(norm - tern_nn_clip_grad_norm_(whole, 0.1)) < 1e-5, "norm over all parts");
            tern_optim_step(a);
            tern_optim_step(b);
            same_numbers(inner, whole, group, sharded ? rows : NULL, false, step);
        }
    TERN_SCOPE
        full_states(inner, whole);
    tern_optim_free(a);
    tern_optim_free(b);
    tern_nn_free(m);
    tern_nn_free(whole);
}

/* ---- single layers ------------------------------------------------------------------------------------- */

/* Whole in, whole out, through a colwise and a rowwise layer of sizes that the ranks don't divide evenly; tables. */
static void layers(void)
{
    const tern_linear_options o = {.device = device};
    const tern_embedding_options e = {.device = device};
    const tern_parallel_options gathered = {.output = TERN_LAYOUT_REPLICATE},
                                split = {.input = TERN_LAYOUT_REPLICATE};
    TERN_SCOPE {
        tern_module *m[4], *whole[4];
        for (int time = 0; time < 2; time++) {
            tern_manual_seed(time ? 8 : 8 + (uint64_t)rank); /* all take the first rank's values */
            tern_module **list = time ? whole : m;
            list[0] = tern_nn_linear(5, 4 * ranks, &o);
            list[1] = tern_nn_linear(2 * ranks, 3, &o);
            list[2] = tern_nn_embedding(7, 2 * ranks, &e);
            list[3] = tern_nn_embedding(ranks > 1 ? ranks - 1 : 1, 3, &e); /* some have no word */
        }
        CHECK(tern_nn_colwise_parallel(m[0], &gathered) == m[0] &&
                  tern_nn_rowwise_parallel(m[1], &split) == m[1] &&
                  tern_nn_colwise_parallel(m[2], &gathered) == m[2] &&
                  tern_nn_rowwise_parallel(m[3], NULL) == m[3],
              "made");
        tern_manual_seed(9);
        const int64_t words[] = {0, 3, 6, 0}, few[] = {0, ranks > 1 ? ranks - 2 : 0, 0, 0};
        tern_tensor *x[] = {made(TERN_SHAPE(3, 5)), made(TERN_SHAPE(3, 2 * ranks)),
                            tern_from_data(words, TERN_SHAPE(4), TERN_I64, device),
                            tern_from_data(few, TERN_SHAPE(4), TERN_I64, device)};
        for (int i = 0; i < 4; i++) {
            tern_tensor *in[2] = {tern_clone(x[i]), tern_clone(x[i])}, *y[2];
            for (int k = 0; k < 2; k++) {
                if (i < 2)
                    tern_requires_grad_(in[k], true);
                y[k] = tern_nn_forward(k ? whole[i] : m[i], in[k]);
            }
            CHECK(y[0] && apart(tern_detach(y[0]), tern_detach(y[1])) < 1e-5, "layer %d", i);
            tern_tensor *w = made(tern_shape_of(y[1]));
            for (int k = 0; k < 2; k++)
                CHECK(tern_backward(tern_sum(tern_mul(y[k], w))) == TERN_OK, "backward of %d", i);
            if (i < 2)
                CHECK(apart(tern_grad(in[0]), tern_grad(in[1])) < 1e-5, "dx of %d", i);
            const int dim = i == 0 || i == 3 ? 0 : 1;
            tern_tensor *dw = tern_grad(tern_nn_parameter(m[i], "weight"));
            tern_tensor *want =
                part_of(tern_grad(tern_nn_parameter(whole[i], "weight")), dim, NULL);
            CHECK(tern_numel(want) == 0 || apart(dw, want) < 1e-5, "dw of %d", i);
        }
        REFUSED(tern_nn_colwise_parallel(m[0], NULL), TERN_ERR_ARGUMENT, "ColwiseParallelLinear");
        tern_module *norm = tern_nn_layer_norm(TERN_SHAPE(3), NULL);
        REFUSED(tern_nn_rowwise_parallel(norm, NULL), TERN_ERR_ARGUMENT, "LayerNorm");
        const tern_parallel_plan nowhere = {"7.*", TERN_PARALLEL_COLWISE, 0, 0};
        REFUSED(tern_nn_parallelize_module(whole[0], &nowhere, 1, NULL), TERN_ERR_ARGUMENT,
                "no module is at '7.*'");
        const tern_parallel_options wrong = {.output = TERN_LAYOUT_SHARD};
        REFUSED(tern_nn_rowwise_parallel(whole[1], &wrong), TERN_ERR_ARGUMENT, "no layouts");
        tern_nn_free(norm);
        for (int i = 0; i < 4; i++) {
            tern_nn_free(m[i]);
            tern_nn_free(whole[i]);
        }
    }
}

static void losses(void)
{
    TERN_SCOPE {
        tern_tensor *logits = made(TERN_SHAPE(2, 5 * ranks)),
                    *target = tern_zeros(TERN_SHAPE(2), TERN_I64, device);
        tern_tensor *half = tern_requires_grad_(
            tern_to_dtype(tern_mul_scalar(part_of(logits, 1, NULL), TERN_SCALAR(100)), TERN_F16),
            true);
        tern_vocab_parallel_cross_entropy_options o = {.reduction = TERN_REDUCTION_NONE};
        tern_tensor *each = tern_vocab_parallel_cross_entropy(half, target, &o);
        CHECK(each && tern_dtype_of(each) == TERN_F16 && tern_numel(each) == 2, "halves");
        o.classes = 6 * ranks;
        REFUSED(tern_vocab_parallel_cross_entropy(part_of(logits, 1, NULL), target, &o),
                TERN_ERR_SHAPE, "classes");
        REFUSED(tern_vocab_parallel_cross_entropy(
                    logits, tern_zeros(TERN_SHAPE(3), TERN_I64, device), NULL),
                TERN_ERR_SHAPE, "without their last dim");
    }
}

/* ---- snapshots -------------------------------------------------------------------------------------------- */

static tern_snapshot *snapshot_of(tern_module *m)
{
    tern_snapshot *s = tern_snapshot_new();
    CHECK(tern_snapshot_add_module(s, "model", m) == TERN_OK, "added");
    return s;
}

static void wait_for_all(void)
{
    CHECK(tern_dist_barrier(NULL) == TERN_OK, "barrier");
}

/* A model of other sizes is refused on all ranks, also where this rank's part would fit; a file that one rank finds damaged too. */
static void refuse_others(tern_module *m)
{
    const tern_linear_options no_bias = {.no_bias = true, .device = device};
    char own[96];
    tern_module *other = net(false);
    CHECK(tern_nn_set_child(other, "3", tern_nn_linear(WIDTH, WORDS + 1, &no_bias)),
          "another head");
    share_out(other, false, NULL);
    tern_snapshot *s = snapshot_of(other);
    snprintf(own, sizeof own, "model.3.weight: [11, 8], in the model [12, 8], of which rank %d has",
             rank);
    REFUSED(tern_snapshot_load(s, "parts"), TERN_ERR_SHAPE, own);
    tern_snapshot_free(s);
    tern_nn_free(other);
    if (ranks == 1)
        return;
    tern_tensor *before = tern_clone(tern_detach(tern_nn_parameter(m, "1.1.weight")));
    TERN_NO_GRAD
        tern_zero_(tern_nn_parameter(m, "1.1.weight"));
    wait_for_all();
    snprintf(own, sizeof own, "parts/step-1.shards/%05d-of-%05d.safetensors", 2, ranks);
    if (rank == 0)
        CHECK(truncate(own, 64) == 0, "truncated");
    wait_for_all();
    s = snapshot_of(m);
    if (rank == 1)
        REFUSED(tern_snapshot_load(s, "parts"), TERN_ERR_IO, "00002-of-");
    else
        REFUSED(tern_snapshot_load(s, "parts"), TERN_ERR_PEER, "rank 1 failed");
    CHECK(tern_item(tern_max(tern_abs(tern_nn_parameter(m, "1.1.weight")))) == 0, "not loaded");
    TERN_NO_GRAD
        tern_copy_(tern_nn_parameter(m, "1.1.weight"), before);
    tern_snapshot_free(s);
}

/* Layers of a group, and a table of all ranks: nobody would know which file has what. */
static void refuse_no_mesh(void)
{
    tern_dist_group *groups[2];
    if (ranks % 2 || ranks < 4)
        return;
    CHECK(tern_dist_init_device_mesh(TERN_SHAPE(ranks / 2, 2), groups) == TERN_OK, "mesh");
    tern_module *m = net(false);
    CHECK(tern_nn_rowwise_parallel(tern_nn_child_at(m, 0), NULL), "table");
    CHECK(tern_nn_colwise_parallel(tern_nn_child_at(m, 3),
                                   &(tern_parallel_options){.group = groups[1]}),
          "head");
    tern_snapshot *s = snapshot_of(m);
    REFUSED(tern_snapshot_save(s, "none", NULL), TERN_ERR_UNSUPPORTED, "not those of one mesh");
    CHECK(!tern_snapshot_latest("none"), "nothing is there");
    tern_snapshot_free(s);
    tern_nn_free(m);
}

/* In one folder, into the same layers; whole, into the whole model and back into parts. */
static void snapshots(void)
{
    tern_module *m[2] = {net(false), net(false)}, *whole = net(false);
    for (int i = 0; i < 2; i++) {
        share_out(m[i], false, NULL);
        tern_snapshot *s = snapshot_of(m[i]);
        if (i)
            TERN_NO_GRAD {
                tern_zero_(tern_nn_parameter(m[1], "1.1.weight"));
                tern_zero_(tern_nn_parameter(m[1], "1.3.weight"));
            }
        CHECK((i ? tern_snapshot_load(s, "parts") : tern_snapshot_save(s, "parts", NULL)) ==
                  TERN_OK,
              "snapshot");
        tern_snapshot_free(s);
    }
    same_numbers(m[1], whole, NULL, NULL, false, 0);
    tern_module *read = net(false);
    TERN_NO_GRAD
        for (int i = 0; i < 9; i++)
            tern_zero_(tern_nn_parameter(read, parameters[i].path));
    tern_snapshot *s = snapshot_of(read);
    CHECK(tern_snapshot_load(s, "parts") == TERN_OK, "by one that shares nothing out");
    for (int i = 0; i < 9; i++) {
        const char *path = parameters[i].path;
        CHECK(apart(tern_detach(tern_nn_parameter(read, path)),
                    tern_detach(tern_nn_parameter(whole, path))) == 0,
              "whole %s", path);
    }
    if (rank == 0)
        CHECK(tern_snapshot_save(s, "whole", NULL) == TERN_OK, "whole");
    wait_for_all();
    tern_snapshot_free(s);
    s = snapshot_of(m[1]);
    TERN_NO_GRAD
        tern_zero_(tern_nn_parameter(m[1], "1.3.weight"));
    CHECK(tern_snapshot_load(s, "whole") == TERN_OK, "parts of what is whole");
    same_numbers(m[1], whole, NULL, NULL, false, 0);
    tern_snapshot_free(s);
    refuse_others(m[1]);
    refuse_no_mesh();
    tern_nn_free(m[0]);
    tern_nn_free(m[1]);
    tern_nn_free(read);
    tern_nn_free(whole);
}

static void meshes(void)
{
    tern_dist_group *groups[2];
    for (int columns = 1; columns <= ranks; columns *= 2) {
        if (ranks % columns)
            continue;
        CHECK(tern_dist_init_device_mesh(TERN_SHAPE(ranks / columns, columns), groups) == TERN_OK,
              "mesh");
        CHECK(tern_dist_get_world_size(groups[0]) == ranks / columns &&
                  tern_dist_get_world_size(groups[1]) == columns &&
                  tern_dist_get_rank(groups[0]) == rank / columns &&
                  tern_dist_get_rank(groups[1]) == rank % columns,
              "place in the mesh");
        if (LENGTH % columns == 0)
            for (int sharded = 0; sharded < 2; sharded++) {
                train(false, true, groups[1], groups[0], sharded);
                train(true, false, groups[1], groups[0], sharded);
            }
    }
    REFUSED(tern_dist_init_device_mesh(TERN_SHAPE(ranks + 1), groups), TERN_ERR_SHAPE, "the mesh");
}

int main(int argc, char **argv)
{
    leave_pid();
    if (argc > 2)
        device = argv[2];
    CHECK(tern_dist_init_process_group(NULL, &(tern_dist_init_options){.timeout = 60}) == TERN_OK,
          "init");
    rank = tern_dist_get_rank(NULL);
    ranks = tern_dist_get_world_size(NULL);
    CHECK(argc > 1 && ranks == atoi(argv[1]), "there are %d", ranks);
    TERN_SCOPE {
        ways();
        layers();
        losses();
        for (int tied = 0; tied < 2; tied++)
            for (int sequence = 0; sequence < (LENGTH % ranks ? 1 : 2); sequence++)
                train(tied, sequence, NULL, NULL, false);
        snapshots();
        meshes();
    }
    CHECK(tern_last_status() == TERN_OK, "no error is left");
    CHECK(tern_dist_destroy_process_group() == TERN_OK, "destroy");
    if (rank == 0)
        printf("%d ranks on %s: layers as of one\n", ranks, device);
    return 0;
}
