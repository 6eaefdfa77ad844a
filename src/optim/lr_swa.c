/* lr_swa.c -- a learning rate annealed to a constant one, for averaging weights
 * (torch.optim.swa_utils.SWALR). */
#include "optim/lr_scheduler.h"

typedef struct swa {
    double *rates; /* one for each group */
    int64_t epochs;
    bool linear;
} swa;

/* Returns the fraction of the way from the initial rate to swa_lr after t epochs: linear or half a
 * cosine. */
static double progress(const swa *a, int64_t t)
{
    double part = (double)t / (double)(a->epochs > 0 ? a->epochs : 1);
    part = part < 0 ? 0 : part > 1 ? 1 : part;
    return a->linear ? part : (1 - cos(3.14159265358979323846 * part)) / 2;
}

/* Steps are counted apart from epochs, as in PyTorch: a step to a given epoch also counts as
 * one. */
static void advance(tern_lr_scheduler *s, const int64_t *epoch)
{
    s->at.last_epoch = epoch ? *epoch : s->at.last_epoch + 1;
    s->at.t_cur = !epoch && s->at.last_epoch == 0 ? 1 : s->at.t_cur + 1; /* the first step */
}

/* rate = swa_lr s(t) + first (1 - s(t)), with s the progress. The first rate is computed from the
 * current one, which another scheduler or the program may have changed. */
static double swa_next(const tern_lr_scheduler *s, int group, double lr)
{
    const swa *a = s->data;
    int64_t t = s->at.t_cur - 1;
    if (a->epochs == 0 && t < 1)
        t = 1;
    double rate = a->rates[group], gone = progress(a, t - 1), now = progress(a, t);
    double first = gone == 1 ? rate : (lr - gone * rate) / (1 - gone);
    return rate * now + first * (1 - now);
}

static void free_rates(void *data)
{
    swa *a = data;
    tern_free(a->rates);
}

static const tern_lr_kind kind = {.name = "tern_lr_scheduler_swa_lr",
                                  .next = swa_next,
                                  .advance = advance,
                                  .counts_steps = true,
                                  .free_data = free_rates};

tern_lr_scheduler *tern_lr_scheduler_swa_lr(tern_optimizer *optimizer, double swa_lr,
                                            const tern_swa_lr_options *options)
{
    tern_swa_lr_options o = tern_read_swa_lr(options);
    swa a = {.epochs = o.anneal_epochs.value, .linear = o.anneal_strategy == TERN_ANNEAL_LINEAR};
    if (!optimizer) {
        tern_fail_argument_null(kind.name, "optimizer");
        return NULL;
    }
    if (a.epochs < 0)
        return tern_fail_null(TERN_ERR_ARGUMENT,
                              "%s: anneal_epochs must be equal or greater than 0, got %lld",
                              kind.name, (long long)a.epochs);
    if (tern_check_enum(kind.name, "anneal_strategy", (int)o.anneal_strategy, TERN_ANNEAL_LINEAR,
                        "tern_anneal_strategy") != TERN_OK)
        return NULL;
    a.rates = tern_lr_numbers(o.swa_lrs, swa_lr, optimizer->n_groups);
    tern_lr_scheduler *s = a.rates ? tern_lr_new(&kind, optimizer, &a, sizeof a) : NULL;
    if (!s)
        free_rates(&a);
    return tern_lr_start(s);
}
