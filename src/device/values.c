/* values.c -- the values of a recording: each block of its pool has one value, from the first
 * command that uses the block to the last. */
#include "device/recording.h"

/* ---- buffers of commands ----------------------------------------------------------------- */

typedef void use_function(void *user, const tern_buffer *buffer, tern_role role);

static void use_args(const tern_arg *args, int n, use_function *use, void *user)
{
    for (int i = 0; i < n; i++)
        if (args[i].buffer)
            use(user, args[i].buffer, args[i].role);
}

static void use_all(const tern_buffer *const *buffers, int n, tern_role role, use_function *use,
                    void *user)
{
    for (int i = 0; i < n; i++)
        if (buffers[i])
            use(user, buffers[i], role);
}

static void use_attention(const tern_attention *a, use_function *use, void *user)
{
    const tern_role result = a->gradient ? TERN_ROLE_IN : TERN_ROLE_OUT;
    const tern_buffer *in[] = {a->q.buffer,    a->k.buffer,    a->v.buffer,
                               a->dout.buffer, a->mask.buffer, a->state.buffer};
    const tern_buffer *results[] = {a->out.buffer, a->sums.buffer};
    const tern_buffer *out[] = {a->dq.buffer, a->dk.buffer, a->dv.buffer, a->scratch};
    use_all(in, 6, TERN_ROLE_IN, use, user);
    use_all(results, 2, result, use, user);
    use_all(out, 4, TERN_ROLE_OUT, use, user);
}

static void use_convolution(const tern_convolution *c, use_function *use, void *user)
{
    const tern_buffer *buffers[] = {c->y.buffer, c->x.buffer, c->weight.buffer};
    for (int i = 0; i < 3; i++)
        use_all(&buffers[i], 1, i == (int)c->pass ? TERN_ROLE_OUT : TERN_ROLE_IN, use, user);
    use_all((const tern_buffer *[]){c->bias.buffer}, 1, TERN_ROLE_IN, use, user);
    use_all(&c->scratch, 1, TERN_ROLE_OUT, use, user);
}

void tern_command_uses(const tern_command *command, use_function *use, void *user)
{
    const tern_gemm *g = command->what.gemm;
    switch (command->kind) {
    case TERN_COMMAND_KERNEL:
    case TERN_COMMAND_USER:
        use_args(command->what.launch.args, command->what.launch.n, use, user);
        return;
    case TERN_COMMAND_GEMM:
        use_all((const tern_buffer *[]){g->a.buffer, g->b.buffer, g->bias}, 3, TERN_ROLE_IN, use,
                user);
        use_all((const tern_buffer *[]){g->c.buffer, g->bias_grad, g->mask}, 3, TERN_ROLE_OUT, use,
                user);
        return;
    case TERN_COMMAND_CONVOLUTION:
        use_convolution(command->what.convolution, use, user);
        return;
    case TERN_COMMAND_ATTENTION:
        use_attention(command->what.attention, use, user);
        return;
    case TERN_COMMAND_COPY:
        use_all(&command->what.copy.from, 1, TERN_ROLE_IN, use, user);
        use_all(&command->what.copy.to, 1, TERN_ROLE_OUT, use, user);
        return;
    case TERN_COMMAND_ZERO:
        use_all(&command->what.copy.to, 1, TERN_ROLE_OUT, use, user);
        return;
    default:
        return;
    }
}

/* ---- results that are not read ----------------------------------------------------------- */

/* How many buffers a command writes, and how many of them are used later. */
typedef struct results {
    const tern_graph *graph;
    int written, wanted;
} results;

static void look(void *user, const tern_buffer *buffer, tern_role role)
{
    results *r = user;
    if (role == TERN_ROLE_IN || role == TERN_ROLE_UNUSED)
        return;
    const tern_block *block = tern_block_of(buffer);
    r->written++;
    r->wanted += !tern_block_is_inner(r->graph, block) || block->last >= 0;
}

bool tern_command_has_addresses(const tern_command *command)
{
    if (command->kind == TERN_COMMAND_USER || command->kind == TERN_COMMAND_CALL)
        return true;
    for (int i = 0; command->kind == TERN_COMMAND_KERNEL && i < command->what.launch.n; i++) {
        const uint8_t type = command->what.launch.args[i].type;
        if (type == TERN_TYPE_tern_foreach_row || type == TERN_TYPE_tern_foreach_chunk)
            return true;
    }
    return false;
}

static bool is_dead(const tern_graph *graph, const tern_command *command)
{
    results r = {graph, 0, 0};
    if (tern_command_has_addresses(command))
        return false;
    tern_command_uses(command, look, &r);
    return r.written > 0 && r.wanted == 0;
}

/* ---- first and last commands ------------------------------------------------------------- */

typedef struct visit {
    tern_graph *graph;
    int64_t at;
} visit;

static void note(void *user, const tern_buffer *buffer, tern_role role)
{
    const visit *w = user;
    tern_block *block = tern_block_of(buffer);
    (void)role;
    if (block->pool != w->graph)
        return;
    block->first = w->at;
    block->last = block->last < 0 ? w->at : block->last;
}

void tern_values_note(tern_graph *graph)
{
    for (tern_block *block = graph->pool; block; block = block->of_pool)
        block->first = block->last = -1;
    for (int64_t i = graph->n_nodes - 1; i >= 0; i--)
        tern_command_uses(&graph->nodes[i]->command, note, &(visit){graph, i});
}

/* The loop begins with the last command, so that a command whose results only removed commands read
 * is removed too. */
void tern_values_find(tern_graph *graph)
{
    int64_t kept = graph->n_nodes;
    for (tern_block *block = graph->pool; block; block = block->of_pool)
        block->first = block->last = -1;
    for (int64_t i = graph->n_nodes - 1; i >= 0; i--) {
        tern_graph_node *node = graph->nodes[i];
        if (is_dead(graph, &node->command)) {
            tern_free(node);
            continue;
        }
        if (node->command.kind == TERN_COMMAND_KERNEL)
            tern_leave_unread(graph, &node->command);
        tern_command_uses(&node->command, note, &(visit){graph, i});
        graph->nodes[--kept] = node;
    }
    graph->n_unread = kept;
    graph->n_nodes -= kept;
    for (int64_t i = 0; i < graph->n_nodes; i++)
        graph->nodes[i] = graph->nodes[i + kept];
    for (tern_block *block = graph->pool; block; block = block->of_pool)
        block->is_kept = !tern_block_is_inner(graph, block);
    tern_values_note(graph);
}
