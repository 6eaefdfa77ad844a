/* beside.c -- finds launches of one kernel in a recording that may run side by side. No launch
 * reads or writes memory that another one writes, and the launches before the last can be moved
 * there, because no command in between uses memory that they write or writes memory that they
 * read. */
#include "device/beside.h"
#include "device/chain_find.h"

const tern_kernel_ref tern_beside_kernels[TERN_BESIDE_KERNELS] = {
    [TERN_BESIDE_LAYER_NORM_SUMS] = {"fused", "layer_norm_sums"},
    [TERN_BESIDE_SUM_COLUMNS] = {"reduce", "sum_columns"},
    [TERN_BESIDE_SUM_COLUMNS_PART] = {"reduce", "sum_columns_part"},
    [TERN_BESIDE_SUM_COLUMNS_MERGE] = {"reduce", "sum_columns_merge"},
    [TERN_BESIDE_DEVIATION_COLUMNS] = {"reduce", "deviation_columns"},
    [TERN_BESIDE_INDEX_SELECT] = {"index", "index_select"},
    [TERN_BESIDE_SCATTER_ADD] = {"index", "scatter_add"}};

/* MOST_WORK: a launch with more work takes longer than the host takes to launch it, and keeps the
 * memory that it reads in use longer if it is moved. MOST_BYTES: the bytes of arguments that every
 * OpenCL device allows; a tensor takes two words. */
enum { MOST_WORK = 1 << 20, MOST_BYTES = 1024, TENSOR_BYTES = 16 };

/* Returns the bytes of the arguments; 0 if the command may not run side by side with others. */
static int bytes_of(const tern_graph *graph, const tern_command *command)
{
    const tern_resolved *kernel = command->what.launch.kernel;
    int k = 0, bytes = 0;
    if (command->kind != TERN_COMMAND_KERNEL || graph->place->synchronous ||
        command->what.launch.grid->work > MOST_WORK ||
        (command->what.launch.compiled != kernel->compiled[TERN_BUILD_NARROW] &&
         command->what.launch.compiled != kernel->compiled[TERN_BUILD_WIDE]))
        return 0;
    while (k < TERN_BESIDE_KERNELS && kernel->ref != &tern_beside_kernels[k])
        k++;
    for (int i = 0; i < command->what.launch.n; i++)
        bytes += command->what.launch.args[i].buffer ? TENSOR_BYTES : (int)sizeof(int64_t);
    return k < TERN_BESIDE_KERNELS ? bytes : 0;
}

typedef struct launches {
    const tern_graph *graph;
    const int64_t *members;
    int n;
    bool meet; /* a command writes memory that a member uses, or uses memory that a member writes */
} launches;

/* Returns whether the buffer has the device's fault words, which all launches may write. */
static bool is_faults(const tern_graph *graph, const tern_buffer *buffer)
{
    return tern_block_of(buffer) == atomic_load(&graph->place->fault.block);
}

static void look(void *user, const tern_buffer *buffer, tern_role role)
{
    launches *l = user;
    for (int m = 0; m < l->n && role != TERN_ROLE_UNUSED && !is_faults(l->graph, buffer); m++) {
        const tern_command *command = &l->graph->nodes[l->members[m]]->command;
        for (int i = 0; i < command->what.launch.n; i++) {
            const tern_arg *arg = &command->what.launch.args[i];
            if (arg->buffer && arg->role != TERN_ROLE_UNUSED &&
                (arg->role == TERN_ROLE_OUT || role == TERN_ROLE_OUT))
                l->meet |= tern_buffers_collide(l->graph, buffer, arg->buffer);
        }
    }
}

int tern_beside_find(const tern_graph *graph, int64_t i, int64_t members[TERN_CHAIN_ROWS])
{
    const tern_command *first = &graph->nodes[i]->command;
    const int bytes = bytes_of(graph, first);
    launches l = {graph, members, 1, false};
    members[0] = i;
    while (++i < graph->n_nodes && bytes && l.n < TERN_CHAIN_ROWS &&
           (l.n + 1) * bytes <= MOST_BYTES) {
        const tern_command *command = &graph->nodes[i]->command;
        if (tern_command_has_addresses(command))
            break;
        tern_command_uses(command, look, &l);
        if (l.meet)
            break;
        if (!graph->nodes[i]->is_fused && bytes_of(graph, command) == bytes &&
            command->what.launch.compiled == first->what.launch.compiled &&
            command->what.launch.grid->groups == first->what.launch.grid->groups)
            members[l.n++] = i;
    }
    return bytes ? l.n : 0;
}
