/* anomaly.c -- anomaly detection: finds the operation that computed a NaN. */
#include "base/from_nn.h"
#include "base/text.h"
#include "base/warning.h"
#include "tensor/from_ops.h"
#include "tensor/node.h"
#include <ctype.h>
#include <stdio.h>
#include <string.h>

/* ---- the mode ---------------------------------------------------------------------------- */

void tern_autograd_set_detect_anomaly(bool mode, const tern_detect_anomaly_options *options)
{
    tern_thread.mode.anomaly =
        (tern_anomaly_state){.on = mode,
                             .gradients = mode && !(options && options->no_check_nan),
                             .results = mode && options && options->check_forward};
}

bool tern_is_anomaly_enabled(void)
{
    return tern_thread.mode.anomaly.on;
}

tern_anomaly_block tern_anomaly_block_enter(bool mode, const tern_detect_anomaly_options *options)
{
    const tern_anomaly_state *now = &tern_thread.mode.anomaly;
    tern_anomaly_block block = {.active = 1,
                                .saved = now->on | now->gradients << 1 | now->results << 2};
    tern_autograd_set_detect_anomaly(mode, options);
    return block;
}

void tern_anomaly_block_leave(tern_anomaly_block *block)
{
    tern_thread.mode.anomaly = (tern_anomaly_state){
        .on = block->saved & 1, .gradients = block->saved & 2, .results = block->saved & 4};
}

/* ---- labels ------------------------------------------------------------------------------ */

tern_anomaly_label_block tern_anomaly_label_enter(const char *label)
{
    tern_labels *labels = &tern_thread.labels;
    tern_anomaly_label_block block = {.active = 1, .depth = labels->depth};
    if (labels->depth < TERN_MOST_LABELS)
        labels->open[labels->depth] = label ? label : "?";
    labels->depth++;
    return block;
}

void tern_anomaly_label_leave(tern_anomaly_label_block *block)
{
    tern_thread.labels.depth = block->depth;
}

tern_status tern_anomaly_where(char **where)
{
    const tern_labels *labels = &tern_thread.labels;
    tern_text text = {0};
    for (int i = 0; i < labels->depth && i < TERN_MOST_LABELS; i++)
        tern_text_add(&text, "%s%s", i ? " > " : "", labels->open[i]);
    if (text.failed) {
        tern_text_free(&text);
        return TERN_ERR_MEMORY;
    }
    *where = text.data;
    return TERN_OK;
}

/* ---- checks ------------------------------------------------------------------------------ */

/* Sets *has_nan to whether x has a NaN. Anomaly detection is off meanwhile. */
static tern_status look(tern_tensor *x, bool *has_nan)
{
    *has_nan = false;
    if (!x || !tern_dtype_is_floating_point(x->dtype) || x->numel == 0)
        return TERN_OK;
    tern_thread_mode outer = tern_thread_enter();
    tern_thread.mode.anomaly = (tern_anomaly_state){0};
    tern_thread.mode.op = "isnan";
    tern_status status = tern_from_ops->has_nan(x, has_nan);
    tern_thread_leave(&outer);
    return status;
}

/* Adds the name of an operation's node in PyTorch: CrossEntropyBackward0 for "cross_entropy". */
static void add_function(tern_text *text, const char *op)
{
    for (bool up = true; *op; op++) {
        if (!(up && *op == '_') && *op != '_')
            tern_text_add(text, "%c", up ? toupper((unsigned char)*op) : *op);
        up = *op == '_';
    }
    tern_text_add(text, "Backward0");
}

static tern_status blame(const tern_node *node, int i, bool came_in)
{
    tern_text text = {0};
    const char *where = node->where ? node->where : node->inner ? node->inner->where : NULL;
    tern_text_add(&text, "tern_backward: Function '");
    add_function(&text, node->inner ? node->inner->op->name : node->op->name);
    tern_text_add(&text, "' returned nan values in its %dth output.", i);
    if (came_in)
        tern_text_add(&text, " The gradient it was given had nan values already.");
    if (where)
        tern_text_add(&text, " Its forward was called in %s", where);
    else
        tern_text_add(&text, " Where its forward was called is not known: detect anomalies there, "
                             "and give it a label");
    tern_status status = text.failed ? TERN_ERR_MEMORY : tern_fail(TERN_ERR_STATE, "%s", text.data);
    tern_text_free(&text);
    return status;
}

tern_status tern_anomaly_check_gradients(const tern_node *node, tern_tensor *const *dout,
                                         tern_tensor *const *din, const bool *needs)
{
    for (int i = 0; i < node->n_in; i++) {
        bool has_nan = false, came_in = false;
        if (needs[i])
            TERN_TRY(look(din[i], &has_nan));
        if (!has_nan)
            continue;
        for (int k = 0; k < node->n_out && !came_in; k++)
            TERN_TRY(look(dout[k], &came_in));
        return blame(node, i, came_in);
    }
    return TERN_OK;
}

static void warn_of_nan(const tern_call *call, int i)
{
    char operation[64], path[128], type[128], where[300] = "";
    const tern_running *running = &tern_thread.running;
    snprintf(operation, sizeof operation, "tern_%s", call->op->name);
    if (tern_module_path(&running->modules, path, type, sizeof path))
        snprintf(where, sizeof where, ", in the module %s (%s)", path, type);
    tern_warn("nan", operation, "made NaN in its %dth output of inputs without NaN%s%s%s", i, where,
              running->backward ? ", in the backward of " : "",
              running->backward ? running->backward : "");
}

/* Returns whether the call's results are checked for new NaNs: the call is not part of another
 * operation, its values can be read now, and it writes no given number (fill, masked_fill). */
static bool looks_for_new(const tern_call *call)
{
    return call->n_in > 0 && !tern_thread.mode.op && !tern_thread.graph && tern_warns() &&
           !strstr(call->op->name, "fill");
}

static tern_status came_in(const tern_call *call, bool *has_nan)
{
    *has_nan = false;
    for (int k = 0; k < call->n_in && !*has_nan; k++)
        TERN_TRY(look(call->in[k], has_nan));
    return TERN_OK;
}

static bool is_in_place(const tern_call *call)
{
    for (int k = 0; k < call->n_in; k++)
        if (call->in[k] == call->out[0])
            return true;
    return false;
}

bool tern_anomaly_came_in(const tern_call *call)
{
    bool has_nan = false;
    return looks_for_new(call) && is_in_place(call) && came_in(call, &has_nan) == TERN_OK &&
           has_nan;
}

static tern_status look_for_new(const tern_call *call, bool had_nan)
{
    for (int i = 0; !had_nan && i < call->n_out && looks_for_new(call); i++) {
        bool has_nan = false;
        TERN_TRY(look(call->out[i], &has_nan));
        if (has_nan && !is_in_place(call))
            TERN_TRY(came_in(call, &had_nan));
        if (has_nan && !had_nan)
            warn_of_nan(call, i);
    }
    return TERN_OK;
}

tern_status tern_anomaly_check_results(const tern_call *call, bool had_nan)
{
    if (!tern_thread.mode.anomaly.results)
        return look_for_new(call, had_nan);
    for (int i = 0; i < call->n_out && call->n_in > 0; i++) {
        bool has_nan = false;
        TERN_TRY(look(call->out[i], &has_nan));
        if (!has_nan)
            continue;
        int from = -1;
        for (int k = 0; k < call->n_in && from < 0; k++) {
            TERN_TRY(look(call->in[k], &has_nan));
            from = has_nan ? k : -1;
        }
        tern_text text = {0};
        char *where = NULL;
        TERN_TRY(tern_anomaly_where(&where));
        tern_text_add(&text, "tern_%s: returned nan values in its %dth output", call->op->name, i);
        if (from >= 0)
            tern_text_add(&text, "; its input %d had nan values already", from);
        if (where)
            tern_text_add(&text, ". It was called in %s", where);
        tern_free(where);
        tern_status status =
            text.failed ? TERN_ERR_MEMORY : tern_fail(TERN_ERR_STATE, "%s", text.data);
        tern_text_free(&text);
        return status;
    }
    return TERN_OK;
}
