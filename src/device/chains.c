/* chains.c -- replaces the chains of a recording by commands, once their kernels are compiled. */
#include "base/env.h"
#include "base/error.h"
#include "base/warning.h"
#include "device/beside.h"
#include "device/builds.h"
#include "device/chain_find.h"
#include "device/chain_kernels.h"
#include "device/plan.h"
#include "device/signature.h"
#include <stdio.h>
#include <string.h>

static const char enough[] = "16 texts were compiled already";
static const char turned_off[] = "fusion is turned off";
static const char stopped[] = "compilers are stopped";
static const char under_way[] = "another thread compiles its text";

/* ---- commands -------------------------------------------------------------------------- */

/* Writes the name of a chain's command: "add+gelu", or for launches side by side
 * "layer_norm_sums x 9". */
static void name_chain(tern_finding *f)
{
    size_t at = 0;
    if (f->chain.is_beside) {
        snprintf(f->name, sizeof f->name, "%s x %d", f->chain.row[0].name, f->chain.rows);
        return;
    }
    for (int i = 0; i < f->chain.rows; i++) {
        const char *name = f->chain.row[i].name;
        const size_t n = strlen(name);
        if (at + n + 2 > sizeof f->name)
            break;
        if (i)
            f->name[at++] = '+';
        memcpy(f->name + at, name, n + 1);
        at += n;
    }
}

/* Returns how many bytes more the rows would read and write as separate commands. */
static size_t saved_by(const tern_finding *f)
{
    const tern_chain *c = &f->chain;
    const int64_t size = (int64_t)tern_dtype_size(f->dtype);
    int64_t moved = 0; /* bytes an element */
    if (c->is_beside)
        return 0;
    for (int t = 0; t < c->tensors; t++)
        moved -= c->wide[t] ? 4 : size;
    for (int i = 0; i < c->rows; i++) {
        if (i == 0 || !tern_chain_is_slot(c, i))
            moved += c->row[i].wide ? 4 : size;
        for (int k = 0; k < c->row[i].n; k++) {
            const int in = c->row[i].in[k], row = in - TERN_CHAIN_TENSORS;
            moved += (row < 0 ? c->wide[in] : c->row[row].wide) ? 4 : size;
        }
    }
    return moved > 0 ? (size_t)(moved * c->n) : 0;
}

static tern_fused_chain *keep(tern_finding *f)
{
    tern_graph *graph = f->graph;
    tern_fused_chain *kept = tern_alloc(sizeof *kept);
    if (!kept)
        return NULL;
    memcpy(kept->name, f->name, sizeof f->name);
    kept->ref = (tern_kernel_ref){"chain", kept->name};
    kept->kernel = tern_alloc(sizeof *kept->kernel);
    if (!kept->kernel) {
        tern_free(kept);
        return NULL;
    }
    kept->kernel->ref = &kept->ref;
    kept->kernel->dtype = f->dtype;
    kept->chain = f->chain;
    kept->saved = saved_by(f);
    kept->next = graph->chains;
    graph->chains = kept;
    return kept;
}

/* Sets the slot's argument to another buffer that the kernel does not use: the slot's tensor is one
 * of the chain's tensors, if it is written or read at all. */
static void leave_slot(const tern_finding *f, tern_arg *arg)
{
    arg->role = TERN_ROLE_UNUSED;
    arg->buffer = f->tensors[0].buffer;
    arg->at = 0;
}

/* Writes the arguments of a chain's kernel: the tensors, n and the numbers; on the host the chain
 * itself before them. With a slot: the tensors, the numbers, and the arguments of the kernel with
 * the slot. Returns their number. */
static int arguments_of(const tern_finding *f, tern_arg *args)
{
    const tern_chain *c = &f->chain;
    int n = 0;
    if (f->graph->place->synchronous)
        args[n++] = (tern_arg){
            .bytes = sizeof *c, .role = TERN_ROLE_VALUE, .by_reference = true, .value.data = c};
    for (int t = 0; t < c->tensors; t++)
        args[n++] = f->tensors[t];
    if (!c->slot)
        args[n++] = tern_arg_i64(c->n);
    for (int i = 0; i < c->rows; i++)
        for (int k = 0; k < c->row[i].numbers; k++) {
            args[n] = tern_arg_real(f->dtype, 0);
            args[n++].value.u64 = c->row[i].number[k];
        }
    for (int i = 0; c->slot && i < f->slot->what.launch.n; i++)
        args[n++] = f->slot->what.launch.args[i];
    if (c->slot)
        leave_slot(f, &args[n - f->slot->what.launch.n + c->slot->arg]);
    return n;
}

/* Handles an error of the compilation of a chain. An error of the driver leaves the commands
 * separate: *why is the error if the chain has a slot or is_beside; for a chain of rows alone the
 * device gets no chains any more, and a warning says so. Other errors are returned. */
static tern_status refuse_chains(tern_place *place, const tern_chain *chain, tern_status status,
                                 const char *error, const char **why)
{
    if (status != TERN_ERR_ARGUMENT && status != TERN_ERR_DEVICE)
        return tern_fail(status, "%s", error);
    if (chain->slot || chain->is_beside) {
        *why = error;
        return TERN_OK;
    }
    atomic_store(&place->refuses_chains, true);
    tern_warn("slow", "tern_graph_capture_end",
              "elementwise operations of recordings on %s are launches of their own, because the "
              "driver does not compile the kernel that joins them: %.*s",
              tern_place_info(place)->device, (int)strcspn(error, "\n"), error);
    return TERN_OK;
}

/* Sets *compiled to a chain's kernel, or to NULL and *why to the reason. */
static tern_status kernel_of(tern_place *place, const tern_chain *chain, tern_chain_kernel *kernel,
                             void **compiled, const char **why)
{
    const char *error;
    *compiled = NULL;
    if (!tern_chain_kernel_is_done(kernel)) {
        *why = tern_chain_kernel_is_under_way(kernel) ? under_way : enough;
        return TERN_OK;
    }
    *why = "the device has no such command";
    const tern_status status = tern_chain_kernel_get(kernel, compiled, &error);
    if (status == TERN_ERR_STATE) /* tern_build_allowed */
        *why = stopped;
    return status == TERN_OK || status == TERN_ERR_STATE
               ? TERN_OK
               : refuse_chains(place, chain, status, error, why);
}

/* The same for the chain that was found. */
static tern_status resolve_chain(const tern_finding *f, void **compiled, const char **why)
{
    tern_place *place = f->graph->place;
    *compiled = NULL;
    *why = "the device has no such command";
    if (atomic_load(&place->refuses_chains))
        return TERN_OK;
    tern_chain_kernel *kernel = tern_chain_kernel_of(place, &f->chain, f->dtype);
    return kernel ? kernel_of(place, &f->chain, kernel, compiled, why) : TERN_ERR_MEMORY;
}

/* Appends the command of the chain to the recording. */
static tern_status record(tern_finding *f, void *compiled, const tern_grid *grid,
                          const tern_arg *args, int n)
{
    for (int t = 0; t < n; t++)
        f->graph->moves_all |= args[t].buffer && args[t].role != TERN_ROLE_UNUSED &&
                               tern_graph_moves(f->graph) && tern_block_of(args[t].buffer)->is_idle;
    name_chain(f);
    tern_fused_chain *chain = keep(f);
    if (!chain)
        return TERN_ERR_MEMORY;
    const tern_command command = {
        .kind = TERN_COMMAND_KERNEL,
        .what.launch = {
            .kernel = chain->kernel, .compiled = compiled, .grid = grid, .args = args, .n = n}};
    TERN_TRY(tern_record_command(f->graph, &command));
    f->graph->nodes[f->graph->n_nodes - 1]->is_chain = true;
    return TERN_OK;
}

/* Appends the chain as one command and sets *made to true, or to false and *why to the reason. */
static tern_status record_chain(tern_finding *f, int64_t end, bool *made, const char **why)
{
    enum { MOST = 2 + TERN_CHAIN_TENSORS + 2 * TERN_CHAIN_ROWS + TERN_CHAIN_SLOT_ARGS };
    tern_arg args[MOST];
    void *kernel = NULL;
    *made = false;
    *why = tern_chain_is_full;
    if (!tern_chain_complete(f, end))
        return TERN_OK;
    const int n = arguments_of(f, args);
    TERN_TRY(resolve_chain(f, &kernel, why));
    if (!kernel)
        return TERN_OK;
    tern_grid grid = f->slot ? *f->slot->what.launch.grid : (tern_grid){.count = f->chain.n};
    grid.work = f->work;
    *made = true;
    return record(f, kernel, &grid, args, n);
}

/* Counts n rows that are separate commands, or separate from a kernel with a slot, for the reason
 * `why`, which tern_graph_text prints. */
static void note_rows(tern_graph *graph, int n, const char *why)
{
    int i = 0;
    while (i < TERN_MOST_REASONS - 1 && graph->apart[i].why && graph->apart[i].why != why)
        i++;
    graph->apart[i].why = why;
    graph->apart[i].n += n;
}

static void note_apart(tern_graph *graph, const tern_command *command, const char *why)
{
    if (tern_is_row_command(command))
        note_rows(graph, 1, why);
}

/* Finds the chain from command i on, sets *end to the command behind it, and appends the chain as
 * one command, or else its commands. If a kernel with a slot would be part of the chain and is not
 * compiled, tries the rows without it. */
static tern_status chain_up(tern_graph *graph, tern_graph_node **nodes, int64_t i, int64_t n,
                            int64_t *end)
{
    const char *why;
    tern_finding f;
    bool made = false, again = true;
    for (int in_slots = 1; in_slots >= 0 && again; in_slots--) {
        const int rows = tern_chain_find(&f, graph, nodes, i, n, in_slots, &why);
        *end = i + (rows > 1 ? rows : 1);
        if (rows > 1)
            TERN_TRY(record_chain(&f, *end, &made, &why));
        again = !made && rows > 1 && f.slot;
        if (again && why != under_way && why != enough && why != stopped) /* the device refuses */
            note_rows(graph, rows - 1, why);
    }
    for (int64_t k = i; k < *end && !made; k++)
        note_apart(graph, &nodes[k]->command, why);
    for (int64_t k = i; k < *end && !made; k++)
        TERN_TRY(tern_record_node(graph, nodes[k]));
    return TERN_OK;
}

static bool fuses(const tern_graph *graph)
{
    return !graph->apart_as && !graph->options.no_fusion && tern_env_flag(TERN_ENV_FUSE, true);
}

/* ---- side by side -------------------------------------------------------------------------- */

/* Finds launches that may run side by side with command i, and returns how many, with command i. */
static int find_sides(tern_finding *f, tern_graph *graph, int64_t i,
                      int64_t members[TERN_CHAIN_ROWS])
{
    const tern_command *command = &graph->nodes[i]->command;
    const int n = tern_beside_find(graph, i, members);
    if (n < 2)
        return n;
    const tern_resolved *kernel = command->what.launch.kernel;
    *f = (tern_finding){.graph = graph, .dtype = kernel->dtype};
    f->chain.is_beside = true;
    f->chain.rows = n;
    f->chain.n = command->what.launch.compiled == kernel->compiled[TERN_BUILD_WIDE] ? INT64_MAX : 0;
    for (int k = 0; k < n; k++)
        f->chain.row[k] = (tern_chain_row){.file = kernel->ref->file,
                                           .name = kernel->ref->name,
                                           .compiled = command->what.launch.compiled,
                                           .out = -1};
    return n;
}

/* Replaces the last of the launches by one command for all, if the device has a kernel for it, and
 * marks the launches as fused. */
static tern_status join_sides(tern_finding *f, const int64_t *members)
{
    tern_graph *graph = f->graph;
    const int sides = f->chain.rows;
    tern_arg args[TERN_MOST_PARAMETERS];
    tern_grid grid = *graph->nodes[members[0]]->command.what.launch.grid;
    void *kernel;
    const char *why;
    int n = 0;
    TERN_TRY(resolve_chain(f, &kernel, &why));
    if (!kernel)
        return TERN_OK;
    for (int m = 1; m <= sides; m++) {
        const tern_command *command = &graph->nodes[members[m % sides]]->command;
        const tern_grid *own = command->what.launch.grid;
        memcpy(args + n, command->what.launch.args, sizeof *args * (size_t)command->what.launch.n);
        n += command->what.launch.n;
        grid.count = own->count > grid.count ? own->count : grid.count;
        grid.work = own->work > grid.work ? own->work : grid.work;
    }
    grid.sides = sides;
    TERN_TRY(record(f, kernel, &grid, args, n));
    for (int m = 0; m < sides; m++)
        graph->nodes[members[m]]->is_fused = true;
    graph->nodes[members[sides - 1]] = graph->nodes[--graph->n_nodes];
    return TERN_OK;
}

static bool is_waited_for(const tern_graph *graph, const tern_chain_kernel *kernel)
{
    for (int i = 0; i < graph->n_waits; i++)
        if (graph->waits[i] == kernel)
            return true;
    return false;
}

/* Compiles the kernel of a chain, or has another thread do so if a compiler has run since `built`.
 * Sets *comes to true if the kernel is compiled or will be. */
static tern_status want(tern_finding *f, int64_t end, unsigned long long built, bool *comes)
{
    tern_graph *graph = f->graph;
    tern_place *place = graph->place;
    const char *why;
    void *compiled = NULL;
    if (!tern_chain_complete(f, end) || atomic_load(&place->refuses_chains))
        return TERN_OK;
    tern_chain_kernel *kernel = tern_chain_kernel_of(place, &f->chain, f->dtype);
    if (!kernel)
        return TERN_ERR_MEMORY;
    *comes = is_waited_for(graph, kernel);
    if (!*comes && !tern_chain_kernel_is_done(kernel) && graph->n_texts < TERN_MOST_TEXTS) {
        graph->n_texts++;
        *comes = !graph->options.check && atomic_load(&place->built) > built &&
                 tern_builds_add_chain(place, kernel);
        if (*comes)
            graph->waits[graph->n_waits++] = kernel;
        else
            tern_chain_kernel_make(kernel);
    }
    if (!*comes)
        TERN_TRY(kernel_of(place, &f->chain, kernel, &compiled, &why));
    *comes |= compiled != NULL;
    return TERN_OK;
}

/* For launches side by side: joins them to one command if joins is true and their kernel is
 * compiled; else requests their kernels (see want). */
static tern_status each_of_sides(tern_graph *graph, bool joins, unsigned long long built)
{
    tern_finding f;
    tern_status status = TERN_OK;
    int64_t members[TERN_CHAIN_ROWS], kept = 0;
    bool comes;
    for (int64_t i = 0; i < graph->n_nodes && status == TERN_OK; i++) {
        const int n = graph->nodes[i]->is_fused ? 0 : find_sides(&f, graph, i, members);
        if (n > 1)
            status = joins ? join_sides(&f, members) : want(&f, 0, built, &comes);
        for (int m = 0; m < n && !joins; m++)
            graph->nodes[members[m]]->is_fused = true;
    }
    for (int64_t i = 0; i < graph->n_nodes; i++) {
        graph->nodes[i]->is_fused &= joins;
        if (!graph->nodes[i]->is_fused)
            graph->nodes[kept++] = graph->nodes[i];
    }
    graph->n_nodes = kept;
    tern_values_note(graph);
    return status;
}

tern_status tern_chains_want(tern_graph *graph)
{
    const unsigned long long built = atomic_load(&graph->place->built);
    const char *why;
    tern_finding f;
    for (int64_t i = 0, next; i < graph->n_nodes && fuses(graph); i = next) {
        bool comes = false, again = true;
        for (int in_slots = 1; in_slots >= 0 && again; in_slots--) {
            const int rows =
                tern_chain_find(&f, graph, graph->nodes, i, graph->n_nodes, in_slots, &why);
            next = i + (rows > 1 ? rows : 1);
            if (rows > 1)
                TERN_TRY(want(&f, next, built, &comes));
            again = !comes && rows > 1 && f.slot;
        }
    }
    return fuses(graph) ? each_of_sides(graph, false, built) : TERN_OK;
}

tern_status tern_chains_make(tern_graph *graph)
{
    tern_graph_node **nodes = graph->nodes;
    const int64_t n = graph->n_nodes;
    for (int64_t i = 0; i < n && !fuses(graph); i++)
        note_apart(graph, &nodes[i]->command, graph->apart_as ? graph->apart_as : turned_off);
    if (!fuses(graph))
        return TERN_OK;
    for (int64_t i = 0; i < n; i++)
        nodes[i]->is_fused = true; /* until tern_record_node adds the node again */
    graph->before = nodes;
    graph->n_before = n;
    graph->nodes = NULL;
    graph->n_nodes = graph->capacity = 0;
    for (int64_t i = 0; i < n;)
        TERN_TRY(chain_up(graph, nodes, i, n, &i));
    return each_of_sides(graph, true, 0);
}

void tern_chains_undo(tern_graph *graph)
{
    for (int64_t i = 0; i < graph->n_nodes; i++)
        if (graph->nodes[i]->is_chain)
            tern_free(graph->nodes[i]);
    for (int64_t i = 0; i < graph->n_before; i++)
        graph->before[i]->is_fused = false;
    tern_free(graph->nodes);
    graph->nodes = graph->before;
    graph->n_nodes = graph->capacity = graph->n_before;
    graph->before = NULL;
    graph->n_before = 0;
    graph->moves_all = false; /* unless a plan has freed the memory from the recording */
    for (const tern_block *block = graph->pool; block; block = block->of_pool)
        graph->moves_all |= block->is_planned;
    tern_chains_end(graph);
    tern_values_note(graph);
}

void tern_chains_end(tern_graph *graph)
{
    for (tern_fused_chain *next, *chain = graph->chains; chain; chain = next) {
        next = chain->next;
        tern_free(chain->kernel);
        tern_free(chain);
    }
    graph->chains = NULL;
    memset(graph->apart, 0, sizeof graph->apart);
}
