/* shard.c -- fully_shard among the ranks that a launcher started, against the whole model and batch on one of them.
 *
 *   mpirun -n N shard RANKS [DEVICE]
 *   mpirun -n N shard RANKS DEVICE kept     one rank leaves a step out; those that keep their parameters write result.RANK */
#include "shard.h"

/* ---- training -------------------------------------------------------------------------------------- */

static void steps(const options *o, tern_dtype dtype, double tolerance, const char *what)
{
    const tern_adamw_options adamw = {.weight_decay = 0.1};
    tern_module *m = net(5 + rank, dtype), *whole = net(5, dtype);
    shard(m, o);
    CHECK(tern_size(tern_nn_parameter(m, "1.0.weight"), 0) ==
              tern_size(rows_of(tern_nn_parameter(whole, "1.0.weight")), 0),
          "%s: rows", what);
    compare(m, whole, 0, what, false);
    tern_optimizer *both[2] = {tern_optim_adamw(m, 0.01, &adamw),
                               tern_optim_adamw(whole, 0.01, &adamw)};
    for (int step = 0; step < 5; step++) {
        backward(m, whole, step, dtype);
        if (step == 1) /* of two steps */
            backward(m, whole, 10 + step, dtype);
        compare(m, whole, tolerance, what, true);
        const double norm = tern_nn_clip_grad_norm_(m, 0.1);
        const double wanted = tern_nn_clip_grad_norm_(whole, 0.1);
        CHECK(fabs(norm / wanted - 1) < tolerance * 10 + 1e-12, "%s: norm %g, not %g", what, norm,
              wanted);
        for (int i = 0; i < 2; i++) {
            tern_optim_step(both[i]);
            tern_optim_zero_grad_with(both[i], step != 2);
        }
        compare(m, whole, 2 * tolerance, what, false);
        TERN_NO_GRAD {
            tern_tensor *x = numbers(2, WIDTH, dtype);
            tern_tensor *out = tern_nn_forward(m, x);
            CHECK(out && apart(out, tern_nn_forward(whole, x)) <= 4 * tolerance, "%s: eval", what);
        }
    }
    for (int i = 0; i < 2; i++)
        tern_optim_free(both[i]);
    tern_nn_free(m);
    tern_nn_free(whole);
}

/* ZeRO-1 of one unit; blocks alone; a group of this rank alone, over copies of which is averaged. */
static void layouts(void)
{
    for (int layout = 0; layout < 3; layout++) {
        tern_module *m = net(3 + rank, TERN_F32), *whole = net(3, TERN_F32);
        if (layout == 0) {
            CHECK(tern_dist_fully_shard(m, NULL), "one");
        } else {
            CHECK(tern_dist_fully_shard(tern_nn_child_at(m, 1), NULL), "a block");
            CHECK(tern_dist_fully_shard(tern_nn_child_at(m, 0), NULL), "a block");
            if (layout == 2)
                CHECK(tern_dist_fully_shard(tern_nn_child_at(m, 3), NULL), "the last");
            else
                CHECK(tern_dist_fully_shard(m, NULL), "all");
        }
        for (int step = 0; step < 3; step++)
            backward(m, whole, step, TERN_F32);
        compare(m, whole, 3e-6, "layout", true);
        tern_nn_free(m);
        tern_nn_free(whole);
    }
}

/* Gradients that wait for the last of three steps; parameters that stay whole, also when they are written by others. */
static void micro_batches(void)
{
    for (int stays = 0; stays < 2; stays++) {
        tern_module *m = net(3 + rank, TERN_F32), *whole = net(3, TERN_F32);
        shard(m, &(options){.keep_whole = stays});
        for (int step = 0; step < 6; step++) {
            CHECK(tern_dist_set_requires_gradient_sync(m, step % 3 == 2) == TERN_OK, "sync");
            backward(m, whole, step, TERN_F32);
            CHECK(!tern_grad(tern_nn_parameter(m, "0.0.weight")) == (step % 3 < 2), "waits");
            if (step % 3 < 2)
                continue;
            compare(m, whole, 4e-6, "micro-batches", true);
            tern_nn_zero_grad(m);
            tern_nn_zero_grad(whole);
            TERN_NO_GRAD {
                tern_tensor *x = tern_nn_parameter(m, "1.2.weight");
                if (tern_numel(x))
                    tern_mul_scalar_(x, TERN_SCALAR(0.5));
                tern_mul_scalar_(tern_nn_parameter(whole, "1.2.weight"), TERN_SCALAR(0.5));
            }
        }
        tern_nn_free(m);
        tern_nn_free(whole);
    }
}

static void hybrid(void)
{
    if (ranks != 4)
        return;
    tern_dist_group *mine = NULL, *copies = NULL;
    for (int i = 0; i < 2; i++) {
        const int part[2] = {2 * i, 2 * i + 1}, copy[2] = {i, i + 2};
        tern_dist_group *a = tern_dist_new_group(part, 2, 0), *b = tern_dist_new_group(copy, 2, 0);
        CHECK(a && b, "groups");
        mine = rank / 2 == i ? a : mine;
        copies = rank % 2 == i ? b : copies;
    }
    tern_module *m = net(3 + rank, TERN_F32), *whole = net(3, TERN_F32);
    shard(m, &(options){.group = mine, .replicate = copies});
    backward(m, whole, 1, TERN_F32);
    const int all = ranks, own = rank;
    ranks = 2;
    rank %= 2;
    compare(m, whole, 2e-6, "hybrid", true);
    ranks = all;
    rank = own;
    const double norm = tern_nn_clip_grad_norm_(m, 1e9);
    CHECK(fabs(norm - tern_nn_clip_grad_norm_(whole, 1e9)) < 1e-5, "norm");
    tern_nn_free(m);
    tern_nn_free(whole);
}

static void norms(void)
{
    tern_module *m = net(4, TERN_F32), *whole = net(4, TERN_F32);
    shard(m, NULL);
    backward(m, whole, 1, TERN_F32);
    const double p[] = {1, 3, INFINITY, -1, -0.5, -INFINITY};
    for (int i = 0; i < 6; i++) {
        const tern_clip_grad_norm_options o = {.norm_type = p[i]};
        const double a = tern_nn_clip_grad_norm_with_(m, 1e9, &o);
        const double b = tern_nn_clip_grad_norm_with_(whole, 1e9, &o);
        CHECK(fabs(a / b - 1) < (p[i] < 0 ? 1e-3 : 1e-5), "norm %g: %g, not %g", p[i], a, b);
    }
    if (rank == 0)
        tern_fill_(tern_grad(tern_nn_parameter(m, "0.0.weight")), TERN_SCALAR(NAN));
    CHECK(isnan(tern_nn_clip_grad_norm_(m, 1)), "NaN of one rank");
    tern_nn_free(m);
    tern_nn_free(whole);
}

/* An infinity on one rank: all skip. */
static void all_skip(void)
{
    tern_module *m = net(4, TERN_F32);
    shard(m, NULL);
    tern_optimizer *o = tern_optim_sgd(m, 0.1, NULL);
    tern_scaler *scaler = tern_amp_grad_scaler(&(tern_grad_scaler_options){.init_scale = 8});
    for (int step = 0; step < 2; step++) {
        tern_tensor *was = tern_clone(tern_nn_parameter(m, "1.2.bias"));
        tern_tensor *y = NULL, *x = numbers(2, WIDTH, TERN_F32);
        TERN_AUTOCAST (device, TERN_BF16)
            y = tern_sum(tern_nn_forward(m, x));
        tern_backward(tern_amp_scale(scaler, y));
        if (step == 0 && rank == (ranks < 4 ? ranks : 4) - 1) /* the last that has rows of eight */
            tern_fill_(tern_grad(tern_nn_parameter(m, "1.0.weight")), TERN_SCALAR(INFINITY));
        CHECK(tern_amp_step(scaler, o) == TERN_OK, "step");
        CHECK(tern_amp_update(scaler) == TERN_OK, "update");
        CHECK(tern_amp_get_scale(scaler) == 4, "scale %g", tern_amp_get_scale(scaler));
        tern_tensor *now = tern_nn_parameter(m, "1.2.bias");
        CHECK(tern_numel(now) == 0 || (apart(was, now) > 0) == (step == 1), "skipped");
        tern_optim_zero_grad(o);
    }
    tern_amp_free(scaler);
    tern_optim_free(o);
    tern_nn_free(m);
}

/* ---- which parameters ------------------------------------------------------------------------------ */

/* Frozen ones: of a unit of their own, whose input still has a gradient; beside others; all that comes first. */
static void frozen(void)
{
    static const char *const all[] = {"0.0.weight", "0.0.bias",   "1.0.weight",
                                      "1.0.bias",   "1.2.weight", "1.2.bias"};
    for (int from = 0; from < 6; from += 2)
        for (int to = from + 1; to <= 6; to += 5) {
            tern_module *m = net(3, TERN_F32), *whole = net(3, TERN_F32);
            for (int i = from; i < to && i < 6; i++) {
                tern_requires_grad_(tern_nn_parameter(m, all[i]), false);
                tern_requires_grad_(tern_nn_parameter(whole, all[i]), false);
            }
            shard(m, NULL);
            backward(m, whole, 1, TERN_F32);
            backward(m, whole, 2, TERN_F32);
            compare(m, whole, 2e-6, "frozen", true);
            tern_requires_grad_(tern_nn_parameter(m, all[from]), true);
            tern_requires_grad_(tern_nn_parameter(whole, all[from]), true);
            backward(m, whole, 3, TERN_F32);
            compare(m, whole, 4e-6, "trained again", true);
            tern_nn_free(m);
            tern_nn_free(whole);
        }
}

static tern_tensor *by_rank(tern_module *self, tern_tensor *x)
{
    tern_tensor *y = tern_mul(x, tern_nn_parameter(self, "all"));
    return rank == ranks - 1 ? tern_add(y, tern_nn_parameter(self, "last")) : y;
}

static void unused_parameters(void)
{
    static const char *const names[] = {"all", "last", "none"};
    tern_module *m = tern_nn_module("Own", by_rank, NULL);
    for (int i = 0; i < 3; i++)
        tern_nn_add_parameter(m, names[i], tern_ones(TERN_SHAPE(2), TERN_F32, device));
    CHECK(tern_dist_fully_shard(m, NULL), "own");
    for (int step = 0; step < 2; step++) {
        tern_nn_zero_grad(m);
        tern_tensor *x = tern_full(TERN_SHAPE(2), TERN_SCALAR(rank + 1.0), TERN_F32, device);
        CHECK(tern_backward(tern_sum(tern_nn_forward(m, x))) == TERN_OK, "unused");
        const double wanted[] = {(ranks + 1) / 2.0, 1.0 / ranks};
        for (int i = 0; i < 2; i++) {
            tern_tensor *grad = tern_grad(tern_nn_parameter(m, names[i]));
            CHECK(grad, "%s", names[i]);
            CHECK(tern_numel(grad) == 0 ||
                      fabs(tern_item(tern_select(grad, 0, 0)) - wanted[i]) < 1e-6,
                  "%s", names[i]);
        }
        CHECK(!tern_grad(tern_nn_parameter(m, "none")), "none");
    }
    tern_nn_free(m);
}

/* One tensor in two places of a unit. */
static void tied(void)
{
    const tern_linear_options o = {.device = device, .no_bias = true};
    tern_module *both[2];
    for (int i = 0; i < 2; i++) {
        tern_manual_seed(3);
        both[i] = tern_nn_sequential(tern_nn_linear(WIDTH, WIDTH, &o), tern_nn_tanh(),
                                     tern_nn_linear(WIDTH, WIDTH, &o), tern_nn_linear(5, 2, &o));
        tern_nn_set_parameter(both[i], "2.weight", tern_nn_parameter(both[i], "0.weight"));
    }
    REFUSED(tern_dist_fully_shard(tern_nn_child_at(both[0], 0), NULL), TERN_ERR_STATE,
            "also outside");
    CHECK(tern_dist_fully_shard(both[0], NULL), "tied");
    CHECK(tern_nn_parameter(both[0], "2.weight") == tern_nn_parameter(both[0], "0.weight"),
          "tied still");
    backward(both[0], both[1], 1, TERN_F32);
    backward(both[0], both[1], 2, TERN_F32);
    compare(both[0], both[1], 3e-6, "tied", true);
    tern_nn_free(both[0]);
    tern_nn_free(both[1]);
}

static void two_types(void)
{
    tern_module *both[2];
    for (int i = 0; i < 2; i++) {
        both[i] = net(3, TERN_F32);
        tern_nn_set_parameter(both[i], "3.bias",
                              tern_zeros(TERN_SHAPE(2), TERN_F64, device)); /* promotes */
    }
    CHECK(tern_dist_fully_shard(both[0], NULL), "two types");
    for (int i = 0; i < 2; i++) {
        tern_manual_seed(1);
        tern_tensor *x = numbers(4, WIDTH, TERN_F32);
        tern_tensor *y = tern_nn_forward(both[i], x);
        if (!y) { /* the device has no such product */
            tern_clear_error();
            break;
        }
        CHECK(tern_backward(tern_sum(tern_mul(y, y))) == TERN_OK, "backward");
        if (i)
            compare(both[0], both[1], 2e-6, "two types", true);
    }
    tern_nn_free(both[0]);
    tern_nn_free(both[1]);
}

/* ---- graphs of other kinds -------------------------------------------------------------------------- */

static tern_status run_block(void *block, tern_tensor *const *in, int n, tern_tensor **out, int k)
{
    return tern_nn_call(block, in, n, out, k);
}

/* A checkpoint around a module that it owns. */
static tern_status checkpointed(tern_module *self, tern_tensor *const *in, int n, tern_tensor **out,
                                int k)
{
    return tern_checkpoint(run_block, tern_nn_child_at(self, 0), in, n, out, k, NULL);
}

static void checkpoints(void)
{
    for (int inside = 0; inside < 2; inside++) {
        tern_module *m = net(3, TERN_F32), *whole = net(3, TERN_F32);
        tern_module *around = tern_nn_module_with_call("Checkpointed", checkpointed, NULL);
        CHECK(tern_nn_wrap(m, "1", around, "inner"), "wrapped");
        tern_module *block = inside ? around : tern_nn_child_at(around, 0);
        CHECK(tern_dist_fully_shard(block, NULL) && tern_dist_fully_shard(m, NULL), "sharded");
        for (int step = 0; step < 3; step++)
            backward(m, whole, step, TERN_F32);
        tern_tensor *dx = tern_grad(tern_nn_parameter(m, "1.inner.0.weight"));
        tern_tensor *dy = tern_grad(tern_nn_parameter(whole, "1.0.weight"));
        CHECK(dx && apart(dx, rows_of(dy)) < 3e-6, "checkpoint %d", inside);
        tern_nn_free(m);
        tern_nn_free(whole);
    }
}

/* Two forwards for one backward, a graph that is kept, a written result, autograd_grad. */
static void graphs(const options *o)
{
    tern_module *m = net(3, TERN_F32), *whole = net(3, TERN_F32);
    shard(m, o);
    tern_manual_seed(7);
    tern_tensor *x = numbers(4, WIDTH, TERN_F32), *z = numbers(3, WIDTH, TERN_F32);
    tern_module *both[2] = {m, whole};
    for (int i = 0; i < 2; i++) {
        tern_tensor *a = tern_nn_forward(both[i], x), *b = tern_nn_forward(both[i], z);
        tern_tensor *loss = tern_add(tern_sum(tern_mul(tern_relu_(a), a)), tern_sum(b));
        CHECK(tern_backward_with(loss, &(tern_backward_options){.retain_graph = true}) == TERN_OK,
              "kept");
        CHECK(tern_backward(loss) == TERN_OK, "again");
    }
    compare(m, whole, 1e-4, "graphs", true);
    tern_tensor *leaf[2], *dx[2], *dw[2];
    for (int i = 0; i < 2; i++) {
        leaf[i] = tern_requires_grad_(tern_clone(x), true);
        tern_tensor *y = tern_sum(tern_nn_forward(both[i], leaf[i]));
        tern_tensor *inputs[2] = {leaf[i], tern_nn_parameter(both[i], "1.0.weight")}, *grads[2];
        CHECK(tern_autograd_grad(&y, 1, inputs, 2, grads, NULL) == TERN_OK, "autograd_grad");
        dx[i] = grads[0];
        dw[i] = grads[1];
    }
    CHECK(apart(dx[0], dx[1]) < 1e-6 && apart(dw[0], rows_of(dw[1])) < 1e-5, "autograd_grad");
    compare(m, whole, 1e-4, "gradients are left alone", true);
    tern_tensor *y = tern_sum(tern_nn_forward(m, x));
    REFUSED(tern_backward_with(y, &(tern_backward_options){.create_graph = true}),
            TERN_ERR_UNSUPPORTED, "second derivatives");
    backward(m, whole, 3, TERN_F32);
    compare(m, whole, 1e-4, "after a refusal", true);
    REFUSED(tern_nn_copy(m), TERN_ERR_UNSUPPORTED, "sharded over ranks");
    tern_nn_free(m);
    tern_nn_free(whole);
}

/* ---- states ----------------------------------------------------------------------------------------- */

static void states(void)
{
    tern_module *m = net(3, TERN_F32), *whole = net(3, TERN_F32), *other = net(11, TERN_F32);
    shard(m, NULL);
    shard(other, NULL);
    tern_state_dict *dict = tern_dist_full_state_dict(m), *wanted = tern_nn_state_dict(whole);
    CHECK(dict && tern_state_dict_count(dict) == tern_state_dict_count(wanted), "dict");
    for (int i = 0; i < tern_state_dict_count(wanted); i++) {
        tern_tensor *x = tern_state_dict_get(dict, tern_state_dict_key_at(wanted, i));
        CHECK(x && strcmp(tern_device(x), "cpu") == 0, "key %d", i);
        CHECK(apart(x, tern_state_dict_at(wanted, i)) == 0, "whole %d", i);
    }
    CHECK(tern_dist_load_full_state_dict(other, dict, NULL) == TERN_OK, "load");
    compare(other, whole, 0, "loaded", false);
    tern_state_dict_set(dict, "3.bias", tern_zeros(TERN_SHAPE(3), TERN_F32, "cpu"));
    REFUSED(tern_dist_load_full_state_dict(other, dict, NULL), TERN_ERR_SHAPE, "size mismatch");
    compare(other, whole, 0, "not loaded", false);
    tern_state_dict *own = tern_nn_state_dict(m);
    CHECK(tern_nn_load_state_dict(other, own, NULL) == TERN_OK, "parts");
    tern_state_dict_free(own);
    tern_state_dict_free(dict);
    tern_state_dict_free(wanted);
    tern_nn_free(m);
    tern_nn_free(other);
    tern_nn_free(whole);
}

static tern_optimizer *adamw(tern_module *m, void *user)
{
    return tern_optim_adamw(m, *(const double *)user, NULL);
}

/* PyTorch's name: states in parts, parameters whole. */
static void zero_redundancy(void)
{
    double lr = 0.01;
    tern_module *m = net(6, TERN_F32), *whole = net(6, TERN_F32);
    REFUSED(tern_dist_zero_redundancy_optimizer(m, NULL, NULL), TERN_ERR_ARGUMENT, "make");
    tern_optimizer *a = tern_dist_zero_redundancy_optimizer(m, adamw, &lr);
    tern_optimizer *b = tern_optim_adamw(whole, lr, NULL);
    CHECK(a, "made");
    for (int step = 0; step < 3; step++)
        TERN_SCOPE {
            tern_optim_zero_grad(a);
            tern_optim_zero_grad(b);
            backward(m, whole, 70 + step, TERN_F32);
            compare(m, whole, 3e-6, "zero redundancy", true);
            CHECK(tern_optim_step(a) == TERN_OK, "step");
            tern_optim_step(b);
            compare(m, whole, 3e-6, "zero redundancy, stepped", false);
        }
    tern_optim_free(a);
    tern_optim_free(b);
    tern_nn_free(m);
    tern_nn_free(whole);
}

static void refusals(void)
{
    tern_module *m = net(1, TERN_F32);
    REFUSED(tern_dist_fully_shard(NULL, NULL), TERN_ERR_ARGUMENT, "module");
    REFUSED(tern_dist_fully_shard(m, &(options){.param_dtype = TERN_I32}), TERN_ERR_DTYPE,
            "param_dtype is int32");
    CHECK(tern_dist_fully_shard(m, NULL), "once");
    REFUSED(tern_dist_fully_shard(m, NULL), TERN_ERR_STATE, "sharded already");
    REFUSED(tern_optim_muon(m, 0.1, NULL), TERN_ERR_UNSUPPORTED, "whole parameters");
    tern_nn_free(m);
    m = tern_nn_module("Own", by_rank, NULL);
    tern_nn_add_parameter(m, "one", tern_ones(TERN_SHAPE_SCALAR, TERN_F32, device));
    REFUSED(tern_dist_fully_shard(m, NULL), TERN_ERR_SHAPE, "scalar parameters");
    tern_nn_free(m);
    if (ranks == 1)
        return;
    m = net(1, TERN_F32);
    if (rank == ranks - 1)
        tern_nn_set_parameter(m, "1.0.bias", tern_ones(TERN_SHAPE(9), TERN_F32, device));
    char named[64];
    snprintf(named, sizeof named, "rank %d has another model", ranks - 1);
    REFUSED(tern_dist_fully_shard(m, NULL), TERN_ERR_PEER, named);
    CHECK(tern_size(tern_nn_parameter(m, "0.0.weight"), 0) == 7, "whole still");
    tern_nn_free(m);
}

/* A rank that does something else is an error of the others, whose parameters are as they were. */
static int kept(void)
{
    tern_module *m = net(3, TERN_F32), *whole = net(3, TERN_F32);
    shard(m, NULL);
    backward(m, whole, 1, TERN_F32);
    if (rank == ranks - 1)
        tern_dist_barrier(NULL);
    else
        tern_nn_forward(m, numbers(2, WIDTH, TERN_F32));
    CHECK(tern_last_status() == TERN_ERR_PEER && strstr(tern_last_error(), "of unit"), "peer");
    tern_clear_error();
    compare(m, whole, 1e-6, "kept", true);
    tern_nn_free(m);
    tern_nn_free(whole);
    write_result(rank, "kept");
    await_results(ranks, ranks - 1);
    return 0;
}

int main(int argc, char **argv)
{
    leave_pid();
    CHECK(argc > 1, "usage: shard RANKS [DEVICE [kept]]");
    tern_dist_init_process_group(
        NULL, &(tern_dist_init_options){.timeout = 60, .device = argc > 2 ? argv[2] : NULL});
    rank = tern_dist_get_rank(NULL);
    ranks = tern_dist_get_world_size(NULL);
    CHECK(tern_last_status() == TERN_OK && ranks == atoi(argv[1]), "%d ranks", ranks);
    device = tern_default_device();
    if (argc > 3)
        return kept();
    const int64_t live = tern_live_tensors();
    const bool all = strcmp(device, "cpu") == 0; /* elsewhere kernels of fewer kinds are compiled */
    TERN_SCOPE {
        steps(NULL, TERN_F32, 3e-6, "float32");
        norms();
        graphs(NULL);
        states();
        if (all) {
            steps(&(options){.no_reshard_after_forward = true}, TERN_F32, 3e-6, "kept");
            steps(&(options){.keep_whole = true}, TERN_F32, 3e-6, "whole");
            steps(NULL, TERN_F64, 1e-12, "float64");
            steps(&(options){.reduce_dtype = TERN_F32}, TERN_BF16, 5e-2, "bfloat16");
            steps(&(options){.param_dtype = TERN_BF16, .reduce_dtype = TERN_F32}, TERN_F32, 5e-2,
                  "in bfloat16");
            layouts();
            micro_batches();
            hybrid();
            all_skip();
            frozen();
            unused_parameters();
            tied();
            two_types();
            checkpoints();
            graphs(&(options){.no_reshard_after_forward = true});
            graphs(&(options){.keep_whole = true});
            zero_redundancy();
            refusals();
        }
    }
    CHECK(tern_last_status() == TERN_OK, "at the end");
    CHECK(tern_live_tensors() == live, "%lld tensors are left",
          (long long)(tern_live_tensors() - live));
    CHECK(tern_dist_destroy_process_group() == TERN_OK, "destroy");
    return 0;
}
