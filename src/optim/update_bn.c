/* update_bn.c -- recomputes the running statistics of batch norms after weight averaging, as those
 * of the averaged models do not fit the averaged weights. */
#include "base/error.h"
#include "nn/layers/batch_norm.h"
#include <tern/autograd.h>
#include <tern/optim.h>

/* Sets mean 0 and variance 1, and a cumulative average instead of the exponential one, so that all
 * batches have equal weight. */
static tern_status reset(tern_module *m, void *user)
{
    const uint64_t failures = tern_failures();
    int *found = user;
    if (!tern_batch_norm_tracks(m))
        return TERN_OK;
    ++*found;
    tern_batch_norm_average(m, true);
    tern_zero_(tern_nn_buffer(m, "running_mean"));
    tern_fill_(tern_nn_buffer(m, "running_var"), tern_scalar_int(1));
    tern_zero_(tern_nn_buffer(m, "num_batches_tracked"));
    return tern_failed_since(failures);
}

/* Restores the exponential average. */
static tern_status restore(tern_module *m, void *user)
{
    (void)user;
    if (tern_batch_norm_tracks(m))
        tern_batch_norm_average(m, false);
    return TERN_OK;
}

/* Runs one batch through m. Returns false after the last one or an error. */
static bool pass(tern_module *m, tern_batch_source next, void *user)
{
    bool more = false;
    TERN_SCOPE {
        tern_tensor *x = next(user);
        more = x && tern_nn_forward(m, x);
    }
    return more;
}

tern_status tern_swa_update_bn(tern_module *m, tern_batch_source next, void *user)
{
    int found = 0;
    if (!m || !next)
        return tern_fail_argument_null("tern_swa_update_bn", m ? "next" : "m");
    const uint64_t failures = tern_failures();
    tern_status status = TERN_OK;
    TERN_NO_GRAD {
        status = tern_nn_apply(m, reset, &found);
        if (status == TERN_OK && found > 0) {
            bool training = tern_nn_is_training(m);
            tern_nn_train(m, true);
            while (pass(m, next, user)) {
            }
            tern_nn_train(m, training);
            status = tern_failed_since(failures);
        }
        tern_nn_apply(m, restore, NULL);
    }
    return status;
}
