/* chains.c -- finds the chains of a recording: rows that follow each other, over the same elements,
 * each of which reads what an earlier one of them reads or makes; and the kernels with a place for
 * such rows in what they store. */
#include "base/env.h"
#include "base/error.h"
#include "base/warning.h"
#include "device/builds.h"
#include "device/chain_kernels.h"
#include "device/plan.h"
#include "types_host.h"
#include <string.h>

#include "shapes.h"

/* A chain under way. */
typedef struct finding {
    tern_graph *graph;
    tern_chain chain;
    tern_arg tensors[TERN_CHAIN_TENSORS]; /* arguments */
    int made_by[TERN_CHAIN_TENSORS];      /* the last row that writes it, -1: none does */
    bool stored[TERN_CHAIN_TENSORS];
    const tern_work *slot; /* the kernel with the chain's slot; NULL: none */
    int64_t work, first;   /* the number of its first command */
    tern_dtype dtype;
    char name[160];
} finding;

static const char full[] = "a command has no room for more";
static const char enough[] = "16 texts were compiled already";
static const char under_way[] = "another thread compiles its text";

/* ---- slots ----------------------------------------------------------------------------- */

static const tern_chain_slot slots[] = {
    {"norm", "batch_norm", .stores = 1, .arg = 0, .sizes = {10, 11, 12}},
    {"norm", "batch_norm_gradient", .arg = 4, .sizes = {9, 10, 11}, .parts = 12, .pieces = 64},
};

/* Elements of the slot's tensor. */
static int64_t slot_elements(const tern_chain_slot *slot, const tern_arg *args)
{
    int64_t n = 1;
    for (size_t i = 0; i < sizeof slot->sizes; i++)
        n *= args[slot->sizes[i]].value.i64;
    return n;
}

/* Whether the kernel and rows round a number in one way wherever it lies: halves of bfloat16 have
 * two, of fours and of others, which give NaN other bits. */
static bool rounds_alike(const tern_work *work, const tern_chain_slot *slot)
{
    const tern_arg *args = work->what.launch.args;
    if (work->what.launch.kernel->dtype != TERN_BF16)
        return true;
    for (int i = 0; i < work->what.launch.n; i++)
        if (args[i].buffer && args[i].role != TERN_ROLE_UNUSED && args[i].at % 4 != 0)
            return false;
    return args[slot->sizes[sizeof slot->sizes - 1]].value.i64 % 4 == 0;
}

/* Whether the launch reads the slot's tensor from its beginning, and is not the one that goes on
 * from what another found of it. */
static bool reads_first(const tern_work *work, const tern_chain_slot *slot)
{
    const tern_arg *args = work->what.launch.args;
    return args[slot->parts].value.i64 == 1 ||
           (args[work->what.launch.n - 1].value.i32 & slot->pieces) != 0;
}

/* The slot that a chain may have in this launch, which begins it (stores) or ends it. */
static const tern_chain_slot *slot_of(const tern_graph *graph, const tern_work *work, bool stores)
{
    if (work->kind != TERN_WORK_KERNEL || graph->place->synchronous)
        return NULL;
    const tern_kernel_ref *ref = work->what.launch.kernel->ref;
    for (size_t i = 0; i < sizeof slots / sizeof *slots; i++) {
        const tern_chain_slot *s = &slots[i];
        if ((s->stores != 0) == stores && strcmp(ref->name, s->name) == 0 &&
            strcmp(ref->file, s->file) == 0 &&
            work->what.launch.args[s->arg].role != TERN_ROLE_UNUSED && rounds_alike(work, s))
            return stores || reads_first(work, s) ? s : NULL;
    }
    return NULL;
}

/* ---- rows ------------------------------------------------------------------------------ */

/* A row of numbers that are computed in the type in which they lie, or rounded to it. */
static const tern_nd_index *index_of(const tern_work *work)
{
    const tern_arg *args = work->what.launch.args;
    if (work->kind != TERN_WORK_KERNEL || !tern_is_row(work->what.launch.kernel->ref) ||
        args[0].type != (uint8_t)work->what.launch.kernel->dtype)
        return NULL;
    for (int i = 1; i < work->what.launch.n; i++) {
        if (args[i].type == TERN_TYPE_tern_nd_index)
            return args[i].value.data;
        if (!args[i].buffer || args[i].type != args[0].type)
            return NULL;
    }
    return NULL;
}

/* The step of each tensor of a row over n elements in a line; false: it is none. */
static bool steps_of(const tern_nd_index *w, int n, uint8_t *step)
{
    for (int k = 0; k < n; k++) {
        if (w->rows != 1 || (w->form != TERN_ND_UNIT && w->step[k] != 0 && w->step[k] != 1))
            return false;
        step[k] = w->form == TERN_ND_UNIT || w->step[k] == 1;
    }
    return n <= 1 + TERN_CHAIN_INPUTS && step[0];
}

/* The chain's number of a tensor, which is added where it is new; -1: there is no room. */
static int tensor_of(finding *f, const tern_arg *arg, uint8_t step)
{
    tern_chain *c = &f->chain;
    for (int i = 0; i < c->tensors; i++)
        if (f->tensors[i].buffer == arg->buffer && f->tensors[i].at == arg->at &&
            c->step[i] == step)
            return i;
    if (c->tensors == TERN_CHAIN_TENSORS)
        return -1;
    f->tensors[c->tensors] = *arg;
    f->made_by[c->tensors] = -1;
    c->step[c->tensors] = step;
    return c->tensors++;
}

/* Whether the plan of memory finds places for all blocks that were given back. */
static bool moves(const tern_graph *graph)
{
    return !graph->options.no_plan && !graph->stays;
}

/* Whether two tensors of which one is written may share memory otherwise than element by element.
 * Where a block was given back and does not move, others may be. */
static bool collide(const tern_graph *graph, const tern_arg *a, const tern_arg *b)
{
    const tern_block *p = tern_block_of(a->buffer), *q = tern_block_of(b->buffer);
    return p == q || p->external || q->external || (!moves(graph) && (p->is_idle || q->is_idle));
}

/* Likewise what the kernel with the slot has beside the chain's tensors, of which other elements
 * may be read or written at any time. */
static bool is_apart_from_slot(const finding *f)
{
    for (int i = 0; f->slot && i < f->slot->what.launch.n; i++) {
        const tern_arg *arg = &f->slot->what.launch.args[i];
        if (!arg->buffer || arg->role == TERN_ROLE_UNUSED || i == f->chain.slot->arg)
            continue;
        for (int t = 0; t < f->chain.tensors; t++)
            if ((f->made_by[t] >= 0 || arg->role == TERN_ROLE_OUT) &&
                collide(f->graph, &f->tensors[t], arg))
                return false;
    }
    return true;
}

static bool is_apart(const finding *f)
{
    for (int a = 0; a < f->chain.tensors; a++)
        for (int b = 0; b < f->chain.tensors; b++)
            if (a != b && f->made_by[a] >= 0 && collide(f->graph, &f->tensors[a], &f->tensors[b]))
                return false;
    return is_apart_from_slot(f);
}

/* Begin with a kernel that has a slot in what it stores; false: this is none. */
static bool begin_with_slot(finding *f, const tern_work *work)
{
    tern_chain *c = &f->chain;
    const tern_chain_slot *slot = slot_of(f->graph, work, true);
    if (!slot)
        return false;
    c->slot = slot;
    c->n = slot_elements(slot, work->what.launch.args);
    c->row[0] = (tern_chain_row){
        .file = slot->file, .name = slot->name, .made = work->what.launch.made};
    c->row[0].out = (int8_t)tensor_of(f, &work->what.launch.args[slot->arg], 1);
    c->rows = 1;
    f->made_by[0] = 0;
    f->slot = work;
    f->dtype = work->what.launch.kernel->dtype;
    f->work = work->what.launch.grid->work;
    return true;
}

/* Append a row; *joins: it reads what an earlier one reads or makes. Else why it is left out, and
 * the finding may be of no use. */
static const char *append(finding *f, const tern_work *work, bool *joins)
{
    tern_chain *c = &f->chain;
    const tern_nd_index *w = index_of(work);
    const tern_arg *args = work->what.launch.args;
    const tern_resolved *kernel = work->what.launch.kernel;
    uint8_t step[1 + TERN_CHAIN_INPUTS];
    int n = 0;
    while (w && args[n].buffer)
        n++;
    if (!w)
        return tern_works_by_rows(work) ? "types are mixed" : "what follows is not elementwise";
    if (n < 2 || !steps_of(w, n, step))
        return "elements do not lie next to each other";
    if (c->rows > 0 && (w->inner != c->n || kernel->dtype != f->dtype))
        return "what follows has another size or type";
    if (c->rows == TERN_CHAIN_ROWS)
        return full;
    const int known = c->tensors;
    tern_chain_row *row = &c->row[c->rows];
    *row = (tern_chain_row){.file = kernel->ref->file,
                            .name = kernel->ref->name,
                            .made = work->what.launch.made,
                            .n = (uint8_t)(n - 1)};
    for (int k = 1; k < n; k++) {
        const int t = tensor_of(f, &args[k], step[k]);
        if (t < 0)
            return full;
        *joins |= t < known;
        row->in[k - 1] = (uint8_t)(f->made_by[t] >= 0 ? TERN_CHAIN_TENSORS + f->made_by[t] : t);
    }
    if (work->what.launch.n > n + 1 + 2)
        return "more than two numbers";
    for (int k = n + 1; k < work->what.launch.n; k++)
        row->number[row->numbers++] = args[k].value.u64;
    const int out = tensor_of(f, &args[0], 1);
    if (out < 0)
        return full;
    row->out = (int8_t)out;
    f->made_by[out] = c->rows++;
    c->n = w->inner;
    f->dtype = kernel->dtype;
    f->work += work->what.launch.grid->work;
    return is_apart(f) ? NULL : "memory may be shared";
}

/* End with a kernel that has a slot in what it loads, if the chain makes that; else why not. No
 * tensor may be read and written, as the kernel may do both again. */
static const char *end_with_slot(finding *f, const tern_work *work)
{
    tern_chain *c = &f->chain;
    const tern_chain_slot *slot = slot_of(f->graph, work, false);
    if (!slot || c->slot || c->rows == TERN_CHAIN_ROWS)
        return "what follows is not elementwise";
    if (slot_elements(slot, work->what.launch.args) != c->n ||
        work->what.launch.kernel->dtype != f->dtype)
        return "what follows has another size or type";
    const int known = c->tensors, t = tensor_of(f, &work->what.launch.args[slot->arg], 1);
    if (t < 0 || t >= known || f->made_by[t] < 0)
        return "what follows does not read it";
    c->row[c->rows++] = (tern_chain_row){.file = slot->file,
                                         .name = slot->name,
                                         .made = work->what.launch.made,
                                         .n = 1,
                                         .in = {(uint8_t)(TERN_CHAIN_TENSORS + f->made_by[t])},
                                         .out = -1};
    c->slot = slot;
    f->slot = work;
    f->work += work->what.launch.grid->work;
    for (int i = 0; i < c->rows; i++)
        for (int k = 0; k < c->row[i].n; k++)
            if (c->row[i].in[k] < TERN_CHAIN_TENSORS && f->made_by[c->row[i].in[k]] >= 0)
                return "it is written over what it reads";
    return is_apart(f) ? NULL : "memory may be shared";
}

/* ---- what is written ------------------------------------------------------------------- */

static int last_reader(const tern_chain *c, int row)
{
    int last = -1;
    for (int i = row + 1; i < c->rows; i++)
        for (int k = 0; k < c->row[i].n; k++)
            last = c->row[i].in[k] == TERN_CHAIN_TENSORS + row ? i : last;
    return last;
}

/* A result that is written once more, or that no command behind the chain has, is not. */
static void leave_out(finding *f, int64_t end)
{
    tern_chain *c = &f->chain;
    for (int i = 0; i < c->rows; i++) {
        const int t = c->row[i].out;
        if (t < 0)
            continue;
        const tern_block *block = tern_block_of(f->tensors[t].buffer);
        if (f->made_by[t] != i || (tern_block_is_inner(f->graph, block) && block->last < end))
            c->row[i].out = -1;
    }
}

/* Only tensors that are read or written stay, in the order that they had. */
static void renumber(finding *f)
{
    tern_chain *c = &f->chain;
    int number[TERN_CHAIN_TENSORS], n = 0;
    bool used[TERN_CHAIN_TENSORS] = {false};
    for (int i = 0; i < c->rows; i++) {
        for (int k = 0; k < c->row[i].n; k++)
            if (c->row[i].in[k] < TERN_CHAIN_TENSORS)
                used[c->row[i].in[k]] = true;
        if (c->row[i].out >= 0)
            used[c->row[i].out] = f->stored[c->row[i].out] = true;
    }
    for (int t = 0; t < c->tensors; t++) {
        number[t] = n;
        if (!used[t])
            continue;
        f->tensors[n] = f->tensors[t];
        f->tensors[n].role = f->stored[t] ? TERN_ROLE_OUT : TERN_ROLE_IN;
        c->step[n++] = c->step[t];
    }
    c->tensors = n;
    for (int i = 0; i < c->rows; i++) {
        for (int k = 0; k < c->row[i].n; k++)
            if (c->row[i].in[k] < TERN_CHAIN_TENSORS)
                c->row[i].in[k] = (uint8_t)number[c->row[i].in[k]];
        if (c->row[i].out >= 0)
            c->row[i].out = (int8_t)number[c->row[i].out];
    }
}

/* Slots of results, of which a row's operands and its result have different ones. */
static bool give_slots(tern_chain *c)
{
    int until[TERN_CHAIN_LIVE];
    memset(until, -1, sizeof until);
    for (int i = 0; i < c->rows; i++) {
        int s = 0;
        while (s < TERN_CHAIN_LIVE && until[s] >= i)
            s++;
        if (s == TERN_CHAIN_LIVE)
            return false;
        const int last = last_reader(c, i);
        c->row[i].slot = (uint8_t)s;
        until[s] = last > i ? last : i;
    }
    return true;
}

/* ---- commands -------------------------------------------------------------------------- */

/* What a chain's command is called, "add+gelu". */
static void name_chain(finding *f)
{
    size_t at = 0;
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

/* What the rows alone would have read and written more. */
static size_t saved_by(const finding *f)
{
    int64_t moved = -(int64_t)f->chain.tensors;
    for (int i = 0; i < f->chain.rows; i++)
        moved += 1 + f->chain.row[i].n;
    return moved > 0 ? (size_t)(moved * f->chain.n) * tern_dtype_size(f->dtype) : 0;
}

static tern_made_chain *keep(finding *f)
{
    tern_graph *graph = f->graph;
    tern_made_chain *made = tern_alloc(sizeof *made);
    if (!made)
        return NULL;
    memcpy(made->name, f->name, sizeof f->name);
    made->ref = (tern_kernel_ref){"chain", made->name};
    made->kernel = tern_alloc(sizeof *made->kernel);
    if (!made->kernel) {
        tern_free(made);
        return NULL;
    }
    made->kernel->ref = &made->ref;
    made->kernel->dtype = f->dtype;
    made->chain = f->chain;
    made->saved = saved_by(f);
    made->next = graph->chains;
    graph->chains = made;
    return made;
}

/* Its tensor is among the chain's, if any has it. */
static void leave_slot(const finding *f, tern_arg *arg)
{
    arg->role = TERN_ROLE_UNUSED;
    arg->buffer = f->tensors[0].buffer;
    arg->at = 0;
}

/* The arguments of a chain's kernel: the tensors, n, the numbers; on the host the chain itself
 * before them. In another kernel: the tensors, the numbers, and what it has. */
static int arguments_of(const finding *f, tern_arg *args)
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

/* Why a device has no command for a chain. A driver that refuses the text of one of rows alone is
 * asked for no other, and the commands of its chains stay apart, as without fusion. */
static tern_status refuse_chains(tern_place *place, const tern_chain *chain, tern_status status,
                                 const char *why)
{
    if (status != TERN_ERR_ARGUMENT && status != TERN_ERR_DEVICE)
        return tern_fail(status, "%s", why);
    if (chain->slot)
        return TERN_OK;
    atomic_store(&place->refuses_chains, true);
    tern_warn("slow", "tern_graph_capture_end",
              "elementwise operations of recordings on %s are launches of their own, because the "
              "driver does not compile the kernel that joins them: %.*s",
              tern_place_info(place)->device, (int)strcspn(why, "\n"), why);
    return TERN_OK;
}

/* The chain's kernel, if it was wanted and is there; else why it is not. */
static tern_status resolve_chain(const finding *f, void **made, const char **why)
{
    tern_place *place = f->graph->place;
    const char *error;
    *made = NULL;
    *why = "the device has no such command";
    if (atomic_load(&place->refuses_chains))
        return TERN_OK;
    tern_chain_kernel *kernel = tern_chain_kernel_of(place, &f->chain, f->dtype);
    if (!kernel)
        return TERN_ERR_MEMORY;
    if (!tern_chain_kernel_is_done(kernel)) {
        *why = tern_chain_kernel_is_under_way(kernel) ? under_way : enough;
        return TERN_OK;
    }
    const tern_status status = tern_chain_kernel_get(kernel, made, &error);
    return status == TERN_OK ? TERN_OK : refuse_chains(place, &f->chain, status, error);
}

/* As its kernel has it; false: there are too many results. */
static bool complete(finding *f, int64_t end)
{
    leave_out(f, end);
    renumber(f);
    return give_slots(&f->chain);
}

/* The chain as one command, or *why there is none. */
static tern_status record_chain(finding *f, int64_t end, bool *made, const char **why)
{
    enum { MOST = 2 + TERN_CHAIN_TENSORS + 2 * TERN_CHAIN_ROWS + TERN_CHAIN_SLOT_ARGS };
    tern_arg args[MOST];
    void *kernel = NULL;
    *made = false;
    *why = full;
    if (!complete(f, end))
        return TERN_OK;
    const int n = arguments_of(f, args);
    TERN_TRY(resolve_chain(f, &kernel, why));
    if (!kernel)
        return TERN_OK;
    for (int t = 0; t < n; t++)
        f->graph->moves_all |= args[t].buffer && args[t].role != TERN_ROLE_UNUSED &&
                               moves(f->graph) && tern_block_of(args[t].buffer)->is_idle;
    name_chain(f);
    tern_made_chain *chain = keep(f);
    if (!chain)
        return TERN_ERR_MEMORY;
    tern_grid grid = f->slot ? *f->slot->what.launch.grid : (tern_grid){.count = f->chain.n};
    grid.work = f->work;
    const tern_work work = {
        .kind = TERN_WORK_KERNEL,
        .what.launch = {
            .kernel = chain->kernel, .made = kernel, .grid = &grid, .args = args, .n = n}};
    *made = true;
    TERN_TRY(tern_record_work(f->graph, &work));
    f->graph->nodes[f->graph->n_nodes - 1]->is_chain = true;
    return TERN_OK;
}

/* ---- finding --------------------------------------------------------------------------- */

/* The longest chain from command i on; how many commands it has, and why no more. */
static int find(finding *f, tern_graph *graph, tern_graph_node *const *nodes, int64_t i, int64_t n,
                const char **why)
{
    *why = "nothing follows";
    *f = (finding){.graph = graph, .first = i};
    for (int64_t k = i + begin_with_slot(f, &nodes[i]->work); k < n; k++) {
        finding longer = *f;
        bool joins = k == i;
        *why = append(&longer, &nodes[k]->work, &joins);
        if (!*why && !joins)
            *why = "what follows does not read it";
        if (*why) {
            longer = *f;
            if (k > i && !end_with_slot(&longer, &nodes[k]->work))
                *f = longer;
            break;
        }
        *f = longer;
    }
    return f->chain.rows;
}

/* A row that is a command of its own, for tern_graph_text. */
static void note_apart(tern_graph *graph, const tern_work *work, const char *why)
{
    int i = 0;
    while (i < TERN_MOST_REASONS - 1 && graph->apart[i].why && graph->apart[i].why != why)
        i++;
    if (!tern_works_by_rows(work))
        return;
    graph->apart[i].why = why;
    graph->apart[i].n++;
}

/* In place of commands i to *end, or they stay; where they would be in a kernel with a slot, all
 * behind that may be a chain of its own. */
static tern_status chain_up(tern_graph *graph, finding *f, int rows, tern_graph_node **nodes,
                            int64_t i, int64_t *end, const char *why)
{
    bool made = false;
    if (rows > 1)
        TERN_TRY(record_chain(f, *end, &made, &why));
    if (!made && f->slot)
        *end = i + 1;
    for (int64_t k = i; k < *end && !made; k++)
        note_apart(graph, &nodes[k]->work, why);
    for (int64_t k = i; k < *end && !made; k++)
        TERN_TRY(tern_record_node(graph, nodes[k]));
    return TERN_OK;
}

static bool fuses(const tern_graph *graph)
{
    return !graph->options.no_fusion && tern_env_flag(TERN_ENV_FUSE, true);
}

static bool is_waited_for(const tern_graph *graph, const tern_chain_kernel *kernel)
{
    for (int i = 0; i < graph->n_waits; i++)
        if (graph->waits[i] == kernel)
            return true;
    return false;
}

tern_status tern_chains_want(tern_graph *graph)
{
    tern_place *place = graph->place;
    const unsigned long long built = atomic_load(&place->built);
    const char *why;
    finding f;
    int texts = 0;
    for (int64_t i = 0, rows; i < graph->n_nodes && fuses(graph); i += rows > 1 ? rows : 1) {
        rows = find(&f, graph, graph->nodes, i, graph->n_nodes, &why);
        if (rows < 2 || !complete(&f, i + rows) || atomic_load(&place->refuses_chains))
            continue;
        tern_chain_kernel *kernel = tern_chain_kernel_of(place, &f.chain, f.dtype);
        if (!kernel)
            return TERN_ERR_MEMORY;
        if (tern_chain_kernel_is_done(kernel) || is_waited_for(graph, kernel) ||
            texts++ >= TERN_MOST_TEXTS)
            continue;
        if (!graph->options.check && atomic_load(&place->built) > built &&
            tern_builds_add_chain(place, kernel))
            graph->waits[graph->n_waits++] = kernel;
        else
            tern_chain_kernel_make(kernel);
    }
    return TERN_OK;
}

tern_status tern_chains_make(tern_graph *graph)
{
    tern_graph_node **nodes = graph->nodes;
    const int64_t n = graph->n_nodes;
    const char *why;
    finding f;
    for (int64_t i = 0; i < n && !fuses(graph); i++)
        note_apart(graph, &nodes[i]->work, "fusion is turned off");
    if (!fuses(graph))
        return TERN_OK;
    for (int64_t i = 0; i < n; i++)
        nodes[i]->is_fused = true; /* until it is recorded again */
    graph->before = nodes;
    graph->n_before = n;
    graph->nodes = NULL;
    graph->n_nodes = graph->capacity = 0;
    for (int64_t i = 0; i < n;) {
        const int rows = find(&f, graph, nodes, i, n, &why);
        int64_t end = i + (rows > 1 ? rows : 1);
        TERN_TRY(chain_up(graph, &f, rows, nodes, i, &end, why));
        i = end;
    }
    tern_values_note(graph);
    return TERN_OK;
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
    tern_chains_end(graph);
    tern_values_note(graph);
}

void tern_chains_end(tern_graph *graph)
{
    for (tern_made_chain *next, *chain = graph->chains; chain; chain = next) {
        next = chain->next;
        tern_free(chain->kernel);
        tern_free(chain);
    }
    graph->chains = NULL;
    memset(graph->apart, 0, sizeof graph->apart);
}
