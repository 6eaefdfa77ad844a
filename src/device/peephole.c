/* peephole.c -- peephole optimization of recordings, on devices with work-groups: a sum and the
 * layer norm behind it become one kernel, and results that no command reads are not written. */
#include "device/plan.h"
#include "types_host.h"
#include "shapes.h"

const char tern_file_elementwise[] = "elementwise", tern_file_special[] = "special",
           tern_file_logic[] = "logic", tern_file_copy[] = "copy";
const tern_kernel_ref tern_kernel_add = {tern_file_elementwise, "add"},
                      tern_kernel_sub = {tern_file_elementwise, "sub"},
                      tern_kernel_mul = {tern_file_elementwise, "mul"},
                      tern_kernel_add_mixed = {"fused", "add_mixed"},
                      tern_kernel_layer_norm = {"norm_layer", "layer_norm"},
                      tern_kernel_layer_norm_mixed = {"fused", "layer_norm_mixed"},
                      tern_kernel_batch_norm = {"norm", "batch_norm"},
                      tern_kernel_batch_norm_relu = {"norm_columns", "batch_norm_relu"},
                      tern_kernel_batch_norm_gradient = {"norm", "batch_norm_gradient"},
                      tern_kernel_batch_norm_columns = {"norm_columns", "batch_norm_columns"},
                      tern_kernel_batch_norm_columns_gradient = {"norm_columns",
                                                                 "batch_norm_columns_gradient"};
static const tern_kernel_ref add_layer_norm = {"fused", "add_layer_norm"},
                             add_layer_norm_mixed = {"fused", "add_layer_norm_mixed"};

bool tern_is_row(const tern_kernel_ref *kernel)
{
    return kernel->file == tern_file_elementwise || kernel->file == tern_file_special ||
           kernel->file == tern_file_logic;
}

static bool runs(const tern_command *command, const tern_kernel_ref *kernel)
{
    return command->kind == TERN_COMMAND_KERNEL && command->what.launch.kernel->ref == kernel;
}

/* ---- a sum and the norm behind it -------------------------------------------------------- */

/* The arguments of `first` are (z, x, y, index or n). Argument number `of` of `second`, a layer
 * norm, is z. `fused` takes z, x and y, and then all arguments of `second` but z. */
static const struct {
    const tern_kernel_ref *first, *second, *fused;
    int of;
} pairs[] = {
    {&tern_kernel_add, &tern_kernel_layer_norm, &add_layer_norm, 3},
    {&tern_kernel_add_mixed, &tern_kernel_layer_norm_mixed, &add_layer_norm_mixed, 4},
};
enum { PAIRS = sizeof pairs / sizeof *pairs };

/* Returns the number of elements that a sum computes, from its argument `index or n`; -1 if they do
 * not lie side by side. */
static int64_t elements_of(const tern_arg *arg)
{
    if (arg->type != TERN_TYPE_tern_nd_index)
        return arg->value.i64;
    const tern_nd_index *w = arg->value.data;
    return w->rows == 1 && w->form == TERN_ND_UNIT ? w->inner : -1;
}

/* Returns whether the fused kernel may write the norm of a row before it computes the sums of the
 * next row. a are the arguments of the sum, b those of the norm. A result of the norm may have the
 * memory of an operand that was freed in between, if each element has the place of the operand's
 * element. The norm's weight and bias must not be the sum. External memory is not allowed, because
 * other buffers may have the same memory. */
static bool go_by_rows(const tern_arg *a, const tern_arg *b, int of)
{
    if (((const tern_block *)(const void *)a[0].buffer)->external)
        return false;
    for (int i = 0; i < of; i++)
        for (int k = 1; k < 3; k++)
            if ((b[i].buffer == a[k].buffer || tern_block_of(a[k].buffer)->is_idle) &&
                tern_buffers_meet(b[i].buffer, a[k].buffer) &&
                (i >= of - 2 || b[i].buffer->handle != a[k].buffer->handle || b[i].at != a[k].at ||
                 b[i].bytes != a[k].bytes))
                return false;
    for (int i = of + 1; i < of + 3; i++)
        if (b[i].role == TERN_ROLE_IN && b[i].buffer == a[0].buffer)
            return false;
    return true;
}

bool tern_record_pair(tern_graph *graph, const tern_command *command, tern_pair *pair)
{
    const tern_graph_node *last = graph->n_nodes ? graph->nodes[graph->n_nodes - 1] : NULL;
    const tern_arg *b = command->what.launch.args;
    const int n = command->what.launch.n;
    int p = 0;
    while (p < PAIRS &&
           !(last && runs(command, pairs[p].second) && runs(&last->command, pairs[p].first)))
        p++;
    if (p == PAIRS)
        return false;
    const tern_arg *a = last->command.what.launch.args, *norm = b + pairs[p].of;
    if (last->command.what.launch.kernel->dtype != command->what.launch.kernel->dtype ||
        norm->buffer != a[0].buffer || norm->at != a[0].at ||
        elements_of(&a[3]) != norm[3].value.i64 * norm[4].value.i64 ||
        !go_by_rows(a, b, pairs[p].of))
        return false;
    pair->kernel = pairs[p].fused;
    for (pair->n = 0; pair->n < 3; pair->n++)
        pair->args[pair->n] = a[pair->n];
    for (int i = 0; i < n; i++)
        if (i != pairs[p].of)
            pair->args[pair->n++] = b[i];
    tern_free(graph->nodes[--graph->n_nodes]);
    return true;
}

/* ---- results that are not read ----------------------------------------------------------- */

/* Results that a kernel need not write: it leaves out argument number `out` if its last argument
 * has the flag. */
static const struct {
    const tern_kernel_ref *kernel;
    int out, flag;
} unread[] = {
    {&tern_kernel_batch_norm_relu, 1, TERN_NORM_UNREAD},
    {&tern_kernel_layer_norm_mixed, 0, TERN_NORM_HALVES_ALONE},
    {&add_layer_norm_mixed, 3, TERN_NORM_HALVES_ALONE},
};

void tern_leave_unread(const tern_graph *graph, tern_command *command)
{
    for (size_t i = 0; i < sizeof unread / sizeof *unread; i++) {
        if (!runs(command, unread[i].kernel))
            continue;
        tern_arg *args = (void *)(uintptr_t)command->what.launch.args; /* the node's own copies */
        tern_arg *what = &args[command->what.launch.n - 1], *out = &args[unread[i].out];
        if (out->role != TERN_ROLE_OUT || !tern_block_is_inner(graph, tern_block_of(out->buffer)) ||
            tern_block_of(out->buffer)->last >= 0)
            continue;
        out->role = TERN_ROLE_UNUSED;
        out->buffer = args[unread[i].out + 1].buffer; /* any buffer will do */
        out->at = 0;
        what->value.i32 |= unread[i].flag;
    }
}
