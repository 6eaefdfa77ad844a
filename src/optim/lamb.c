/* lamb.c -- LAMB: Adam's direction, as long as the parameter is (You et al. 2020, algorithm 2;
 * https://arxiv.org/abs/1904.00962). Two launches: the first moves the moments and sums the squares
 * of each chunk, the second walks. */
#include "optim/optimizer.h"
#include <math.h>

static tern_status prepare(tern_optimizer *o, tern_optim_batch *b, tern_optim_columns *c,
                           tern_foreach_call *call)
{
    static const tern_kernel_ref many = {"adam_variants", "lamb_norms"};
    static const tern_kernel_ref few = {"adam_variants", "lamb_norms_few"};
    int64_t room = 2 * tern_foreach_chunks(b->table) + b->count;
    tern_tensor *sums =
        tern_empty(TERN_SHAPE(room), tern_dtype_of(b->numbers), tern_device(b->numbers));
    (void)o;
    for (int i = 0; i < b->count; i++) {
        int64_t from = 2 * tern_foreach_first_chunk(b->table, i) + i;
        int64_t to = 2 * tern_foreach_first_chunk(b->table, i + 1) + i + 1;
        c->state[2][i] = tern_narrow(sums, 0, from, to - from);
        if (!c->state[2][i])
            return tern_last_status();
    }
    tern_foreach_call norms = *call;
    norms.many = &many;
    norms.few = &few;
    norms.writes = false;
    return tern_foreach_launch(b->table, &norms);
}

static const tern_optim_kind lamb = {
    .name = "tern_optim_lamb",
    .many = {"adam_variants", "lamb"},
    .few = {"adam_variants", "lamb_few"},
    .only_wide = true,
    .option = {OPTIM_LR, OPTIM_BETA1, OPTIM_BETA2, OPTIM_EPS, OPTIM_WEIGHT_DECAY},
    .state = {"exp_avg", "exp_avg_sq"},
    .resolve = tern_optim_resolve_moments,
    .prepare = prepare};

static tern_optimizer *finish(tern_optimizer *self, const tern_lamb_options *options)
{
    tern_lamb_options o = options ? *options : (tern_lamb_options){0};
    const double numbers[] = {tern_option(o.beta1, 0.9), tern_option(o.beta2, 0.999),
                              tern_option(o.eps, 1e-6), tern_option(o.weight_decay, 0)};
    return tern_optim_finish(self, numbers, 4, 3, o.maximize ? TERN_OPTIM_MAXIMIZE : 0);
}

OPTIM_CONSTRUCTORS(lamb, tern_lamb_options, lamb, finish)
