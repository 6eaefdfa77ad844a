/* run.c -- runs modules; training and evaluation mode. */
#include "base/callback.h"
#include "nn/running_modules.h"
#include "tensor/scope.h"
#include <stdio.h>

/* Calls m's forward or call; results may be NULL. */
static tern_status run_own(tern_module *m, tern_tensor *const *in, int n, tern_tensor **out, int k)
{
    if (m->call)
        return m->call(m, in, n, out, k);
    if (!m->forward)
        return tern_fail(TERN_ERR_ARGUMENT,
                         "tern_nn_call: Module [%s] is missing the required \"forward\" function",
                         m->name);
    if (n != 1 || k != 1)
        return tern_fail(TERN_ERR_ARGUMENT,
                         "tern_nn_call: %s takes one tensor and gives one, not %d and %d", m->name,
                         n, k);
    if (!in[0])
        return tern_fail_argument_null("tern_nn_forward", "x");
    out[0] = m->forward(m, in[0]);
    return TERN_OK;
}

/* Computes m's computed parameters, then calls its forward or call. */
static tern_status run(tern_module *m, tern_tensor *const *in, int n, tern_tensor **out, int k)
{
    if (!m->computes)
        return run_own(m, in, n, out, k);
    const uint64_t failures = tern_failures();
    tern_status status = tern_nn_compute_members(m);
    if (status == TERN_OK)
        status = run_own(m, in, n, out, k);
    if (status == TERN_OK)
        status = tern_nn_check_result(m, out, k, failures);
    return tern_nn_settle_members(m, status);
}

static tern_status run_with_hooks(tern_module *m, tern_tensor *const *in, int n, tern_tensor **out,
                                  int k)
{
    return m->hooks ? tern_nn_run_hooked(m, run, in, n, out, k) : run(m, in, n, out, k);
}

/* In anomaly detection the report has the path to the module: "Sequential > 0:Linear". */
static tern_status run_labelled(tern_module *m, tern_tensor *const *in, int n, tern_tensor **out,
                                int k)
{
    char label[96];
    const char *name = NULL;
    for (int i = 0; m->parent && i < m->parent->count; i++)
        if (m->parent->members[i].child == m)
            name = m->parent->members[i].name;
    snprintf(label, sizeof label, "%s%s%s", name ? name : "", name ? ":" : "", m->name);
    tern_status status = TERN_OK;
    TERN_ANOMALY_LABEL (label)
        status = run_with_hooks(m, in, n, out, k);
    return status;
}

static tern_status run_around(tern_module *m, tern_tensor *const *in, int n, tern_tensor **out,
                              int k)
{
    const tern_module_run how = tern_thread.mode.anomaly.on ? run_labelled : run_with_hooks;
    return m->around ? m->around->call(m, how, in, n, out, k) : how(m, in, n, out, k);
}

/* Runs the outermost module inside of autocast. */
static tern_status run_cast(tern_module *m, tern_tensor *const *in, int n, tern_tensor **out, int k)
{
    TERN_TRY(tern_from_amp->casts_begin(m));
    tern_status status = run_around(m, in, n, out, k);
    if (status == TERN_OK)
        tern_from_amp->casts_end(m);
    return status;
}

tern_status tern_nn_call(tern_module *m, tern_tensor *const *in, int n, tern_tensor **out, int k)
{
    TERN_NAMED_IN_ERRORS;
    TERN_MODULE_GIVEN(m, __func__);
    if (!m || (!in && n > 0) || (!out && k > 0))
        return tern_fail_argument_null(__func__, !m ? "m" : !in && n > 0 ? "in" : "out");
    for (int i = 0; i < k; i++)
        out[i] = NULL;
    const tern_callback before = tern_callback_begin();
    const bool casts = tern_thread.casts.depth > 0 && !before.running.modules.outermost.module;
    tern_nn_runs(m);
    tern_scope_block scope = tern_call_scope_enter(m->name);
    tern_status status = casts ? run_cast(m, in, n, out, k) : run_around(m, in, n, out, k);
    if (status == TERN_OK)
        status = tern_nn_check_result(m, out, k, before.failures);
    tern_call_scope_leave(&scope, out, status == TERN_OK ? k : 0);
    status = TERN_CALLBACK_END(&before, status, "tern_nn_call: %s failed", m->name);
    for (int i = 0; i < k && status != TERN_OK; i++)
        out[i] = NULL;
    return status;
}

tern_tensor *tern_nn_forward(tern_module *m, tern_tensor *x)
{
    TERN_NAMED_IN_ERRORS;
    TERN_MODULE_GIVEN(m, __func__);
    tern_tensor *y = NULL;
    if (!m || !x) {
        tern_fail_argument_null(__func__, m ? "x" : "m");
        return NULL;
    }
    return tern_nn_call(m, &x, 1, &y, 1) == TERN_OK ? y : NULL;
}

tern_tensor *tern_nn_loss(tern_module *criterion, tern_tensor *input, tern_tensor *target)
{
    TERN_NAMED_IN_ERRORS;
    TERN_MODULE_GIVEN(criterion, __func__);
    tern_tensor *loss = NULL, *in[2] = {input, target};
    if (!criterion || !input || !target) {
        tern_fail_argument_null(__func__, !criterion ? "criterion" : !input ? "input" : "target");
        return NULL;
    }
    return tern_nn_call(criterion, in, 2, &loss, 1) == TERN_OK ? loss : NULL;
}

static tern_status set_training(tern_module *m, void *user)
{
    m->training = *(const bool *)user;
    return TERN_OK;
}

tern_module *tern_nn_train(tern_module *m, bool training)
{
    TERN_NAMED_IN_ERRORS;
    return tern_nn_apply(m, set_training, &training) == TERN_OK ? m : NULL;
}

tern_module *tern_nn_eval(tern_module *m)
{
    TERN_NAMED_IN_ERRORS;
    return tern_nn_train(m, false);
}

bool tern_nn_is_training(const tern_module *m)
{
    TERN_MODULE_GIVEN(m, "tern_nn_is_training");
    return m && m->training;
}
