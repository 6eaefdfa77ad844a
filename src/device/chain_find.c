/* chain_find.c -- finds the chains of a recording: consecutive rows with the same number of
 * elements, each of which reads a tensor that an earlier row reads or computes; and kernels with a
 * slot for such rows in place of a store or a load. */
#include "device/chain_find.h"
#include "device/plan.h"
#include "types_host.h"
#include "shapes.h"
#include <string.h>

const char tern_chain_is_full[] = "a command has no room for more";

/* ---- slots ----------------------------------------------------------------------------- */

static const tern_chain_slot slots[] = {
    {&tern_kernel_batch_norm, .stores = 1, .arg = 0, .sizes = {10, 11, 12}},
    {&tern_kernel_batch_norm_columns, .stores = 1, .arg = 1, .sizes = {11, 13, 12}},
    {&tern_kernel_batch_norm_gradient, .arg = 4, .sizes = {9, 10, 11}, .parts = 12,
     .pieces = TERN_NORM_PIECES},
    {&tern_kernel_batch_norm_columns_gradient, .arg = 5, .sizes = {10, 12, 11}, .parts = 13,
     .pieces = TERN_NORM_PIECES},
};

/* Returns the number of elements of the slot's tensor. */
static int64_t slot_elements(const tern_chain_slot *slot, const tern_arg *args)
{
    int64_t n = 1;
    for (size_t i = 0; i < sizeof slot->sizes; i++)
        n *= args[slot->sizes[i]].value.i64;
    return n;
}

/* Returns whether the kernel and rows round all numbers in the same way. Code for bfloat16 rounds
 * vectors of 4 or 8 elements in another way than single elements, which gives NaN other bits. */
static bool rounds_alike(const tern_command *command, const tern_chain_slot *slot)
{
    const tern_arg *args = command->what.launch.args;
    if (command->what.launch.kernel->dtype != TERN_BF16)
        return true;
    for (int i = 0; i < command->what.launch.n; i++)
        if (args[i].buffer && args[i].role != TERN_ROLE_UNUSED && args[i].at % 8 != 0)
            return false;
    return args[slot->sizes[sizeof slot->sizes - 1]].value.i64 % 4 == 0 &&
           slot_elements(slot, args) % 8 == 0;
}

/* Returns whether the launch is the first of two: it computes partial results for parts of the
 * slot's tensor, from which the second one continues. */
static bool is_piece(const tern_command *command, const tern_chain_slot *slot)
{
    const tern_arg *args = command->what.launch.args;
    return (args[command->what.launch.n - 1].value.i32 & slot->pieces) != 0;
}

/* Returns whether the launch is the first one that reads the slot's tensor, and not the second of
 * two. */
static bool reads_first(const tern_command *command, const tern_chain_slot *slot)
{
    return command->what.launch.args[slot->parts].value.i64 == 1 || is_piece(command, slot);
}

/* Returns the slot of this launch, if the launch may begin (stores) or end a chain; else NULL. */
static const tern_chain_slot *slot_of(const tern_graph *graph, const tern_command *command,
                                      bool stores)
{
    if (command->kind != TERN_COMMAND_KERNEL || graph->place->synchronous)
        return NULL;
    const tern_kernel_ref *ref = command->what.launch.kernel->ref;
    for (size_t i = 0; i < sizeof slots / sizeof *slots; i++) {
        const tern_chain_slot *s = &slots[i];
        if ((s->stores != 0) == stores && ref == s->kernel &&
            command->what.launch.args[s->arg].role != TERN_ROLE_UNUSED && rounds_alike(command, s))
            return stores || reads_first(command, s) ? s : NULL;
    }
    return NULL;
}

/* ---- rows ------------------------------------------------------------------------------ */

static bool is_half(int type)
{
    return type == TERN_F16 || type == TERN_BF16;
}

/* Returns whether the command is a cast between float32 and half precision, on a device whose rows
 * compute with both as float32. */
static bool is_cast(const tern_graph *graph, const tern_command *command)
{
    const tern_arg *args = command->what.launch.args;
    return command->kind == TERN_COMMAND_KERNEL && !graph->place->synchronous &&
           command->what.launch.kernel->ref->file == tern_file_copy &&
           command->what.launch.n == 3 && args[2].type == TERN_TYPE_tern_nd_index &&
           (args[0].type == TERN_F32 ? is_half(args[1].type)
                                     : is_half(args[0].type) && args[1].type == TERN_F32);
}

/* Returns whether the float32 row has the same text as the half precision row, and so gives the
 * same bits in a chain of half precision. */
static bool is_exact(const tern_kernel_ref *kernel)
{
    return kernel == &tern_kernel_add || kernel == &tern_kernel_sub || kernel == &tern_kernel_mul;
}

/* Returns the index of a row whose tensors all have the dtype in which the row computes, or to
 * which its results are rounded, or of a cast; NULL if the command is neither. */
static const tern_nd_index *index_of(const tern_graph *graph, const tern_command *command)
{
    const tern_arg *args = command->what.launch.args;
    if (is_cast(graph, command))
        return args[2].value.data;
    if (command->kind != TERN_COMMAND_KERNEL || !tern_is_row(command->what.launch.kernel->ref) ||
        args[0].type != (uint8_t)command->what.launch.kernel->dtype)
        return NULL;
    for (int i = 1; i < command->what.launch.n; i++) {
        if (args[i].type == TERN_TYPE_tern_nd_index)
            return args[i].value.data;
        if (!args[i].buffer || args[i].type != args[0].type)
            return NULL;
    }
    return NULL;
}

/* Sets `step` for each of a row's n tensors: 1 if it is contiguous, 0 if one element is repeated.
 * Returns false if a tensor is neither, the result is not contiguous, or there are too many. */
static bool steps_of(const tern_nd_index *w, int n, uint8_t *step)
{
    for (int k = 0; k < n; k++) {
        if (w->rows != 1 || (w->form != TERN_ND_UNIT && w->step[k] != 0 && w->step[k] != 1))
            return false;
        step[k] = w->form == TERN_ND_UNIT || w->step[k] == 1;
    }
    return n <= 1 + TERN_CHAIN_INPUTS && step[0];
}

/* Returns the chain's number of a tensor, which is added if it is new; -1 if there are already
 * TERN_CHAIN_TENSORS. */
static int tensor_of(tern_finding *f, const tern_arg *arg, uint8_t step)
{
    tern_chain *c = &f->chain;
    for (int i = 0; i < c->tensors; i++)
        if (f->tensors[i].buffer == arg->buffer && f->tensors[i].at == arg->at &&
            f->tensors[i].type == arg->type && c->step[i] == step)
            return i;
    if (c->tensors == TERN_CHAIN_TENSORS)
        return -1;
    f->tensors[c->tensors] = *arg;
    f->made_by[c->tensors] = -1;
    c->step[c->tensors] = step;
    return c->tensors++;
}

/* Returns whether a kernel with a slot adds elements in the same order with the chain as without. A
 * kernel adds elements by fours if its tensors are aligned, else one by one, and in a chain by
 * fours only if the chain's tensors are aligned too. The alignment is that of eights, as rows of
 * half precision read, because bfloat16 rounds in two ways (rounds_alike). */
static bool keeps_order(const tern_finding *f)
{
    for (int t = 0; f->slot && t < f->chain.tensors; t++)
        if (f->chain.step[t] && f->tensors[t].at % 8 != 0)
            return false;
    return true;
}

/* Returns whether later blocks may have the memory of this block. is_kept has the state at the end
 * of the capture, so that chains stay those whose kernels were requested then. */
static bool was_given_back(const tern_block *block)
{
    return block->is_idle && !block->is_kept;
}

/* A block that was freed during the capture, and that no plan moves, may share its memory. */
bool tern_buffers_collide(const tern_graph *graph, const tern_buffer *a, const tern_buffer *b)
{
    const tern_block *p = tern_block_of(a), *q = tern_block_of(b);
    return p == q || p->external || q->external ||
           (!tern_graph_moves(graph) && (was_given_back(p) || was_given_back(q)) &&
            tern_buffers_meet(a, b));
}

/* Returns whether the chain loads and stores each element once; a kernel with a slot may do it
 * twice. */
static bool goes_once(const tern_finding *f)
{
    return !f->slot || f->chain.slot->stores || is_piece(f->slot, f->chain.slot);
}

/* Returns whether two tensors have the same memory element by element. One was freed before the
 * other was allocated, so no row reads an element that an earlier row has overwritten. */
static bool coincide(const tern_finding *f, int a, int b)
{
    const tern_arg *x = &f->tensors[a], *y = &f->tensors[b];
    return goes_once(f) && x->buffer != y->buffer && x->buffer->address &&
           x->buffer->address == y->buffer->address && x->at == y->at && x->type == y->type &&
           f->chain.step[a] && f->chain.step[b];
}

/* Returns whether the other tensors of the kernel with the slot share no memory with tensors of the
 * chain, if one of the two is written: that kernel may access any of their elements at any time. */
static bool is_apart_from_slot(const tern_finding *f)
{
    for (int i = 0; f->slot && i < f->slot->what.launch.n; i++) {
        const tern_arg *arg = &f->slot->what.launch.args[i];
        if (!arg->buffer || arg->role == TERN_ROLE_UNUSED || i == f->chain.slot->arg)
            continue;
        for (int t = 0; t < f->chain.tensors; t++)
            if ((f->made_by[t] >= 0 || arg->role == TERN_ROLE_OUT) &&
                tern_buffers_collide(f->graph, f->tensors[t].buffer, arg->buffer))
                return false;
    }
    return true;
}

static bool is_apart(const tern_finding *f)
{
    for (int a = 0; a < f->chain.tensors; a++)
        for (int b = 0; b < f->chain.tensors; b++)
            if (a != b && f->made_by[a] >= 0 && !coincide(f, a, b) &&
                tern_buffers_collide(f->graph, f->tensors[a].buffer, f->tensors[b].buffer))
                return false;
    return is_apart_from_slot(f);
}

/* Begins the chain with a kernel that has a slot in place of a store; returns false if the command
 * is no such kernel. */
static bool begin_with_slot(tern_finding *f, const tern_command *command)
{
    tern_chain *c = &f->chain;
    const tern_chain_slot *slot = slot_of(f->graph, command, true);
    if (!slot)
        return false;
    c->slot = slot;
    c->n = slot_elements(slot, command->what.launch.args);
    c->row[0] = (tern_chain_row){.file = slot->kernel->file,
                                 .name = slot->kernel->name,
                                 .compiled = command->what.launch.compiled};
    c->row[0].out = (int8_t)tensor_of(f, &command->what.launch.args[slot->arg], 1);
    c->rows = 1;
    f->made_by[0] = 0;
    f->slot = command;
    f->dtype = command->what.launch.kernel->dtype;
    f->work = command->what.launch.grid->work;
    return true;
}

/* Returns whether the chain may have a row of this dtype, and sets f->dtype. A chain with casts has
 * the half precision dtype, and its rows of float32 must be exact (is_exact). */
static bool takes(tern_finding *f, const tern_command *command)
{
    const tern_kernel_ref *kernel = command->what.launch.kernel->ref;
    const tern_arg *args = command->what.launch.args;
    const tern_dtype type = (tern_dtype)(args[0].type == TERN_F32 ? args[1].type : args[0].type);
    const bool is_first = f->chain.rows == 0, casts = is_cast(f->graph, command);
    if (is_first) {
        f->dtype = type;
        f->casts = casts;
        f->is_exact = casts || is_exact(kernel);
        return true;
    }
    if (!casts && type == f->dtype) {
        f->is_exact &= is_exact(kernel);
        return true;
    }
    if (f->slot || (!casts && !(f->casts && type == TERN_F32 && is_exact(kernel))))
        return false;
    if (casts && type != f->dtype && (f->casts || f->dtype != TERN_F32 || !f->is_exact))
        return false;
    f->dtype = casts ? type : f->dtype;
    f->casts |= casts;
    return true;
}

/* Appends a row and returns NULL; sets *joins if the row reads a tensor that an earlier row reads
 * or computes. If the row can't be part of the chain, returns the reason, and *f is invalid. */
static const char *append(tern_finding *f, const tern_command *command, bool *joins)
{
    tern_chain *c = &f->chain;
    const tern_nd_index *w = index_of(f->graph, command);
    const tern_arg *args = command->what.launch.args;
    const tern_resolved *kernel = command->what.launch.kernel;
    uint8_t step[1 + TERN_CHAIN_INPUTS];
    int n = 0;
    while (w && args[n].buffer)
        n++;
    if (!w)
        return tern_is_row_command(command) ? "types are mixed" : "what follows is not elementwise";
    if (n < 2 || !steps_of(w, n, step))
        return "elements do not lie next to each other";
    if ((c->rows > 0 && w->inner != c->n) || !takes(f, command))
        return "what follows has another size or type";
    if (c->rows == TERN_CHAIN_ROWS)
        return tern_chain_is_full;
    const int known = c->tensors;
    tern_chain_row *row = &c->row[c->rows];
    *row = (tern_chain_row){.file = kernel->ref->file,
                            .name = kernel->ref->name,
                            .compiled = command->what.launch.compiled,
                            .n = (uint8_t)(n - 1),
                            .wide = args[0].type == TERN_F32};
    for (int k = 1; k < n; k++) {
        const int t = tensor_of(f, &args[k], step[k]);
        if (t < 0)
            return tern_chain_is_full;
        *joins |= t < known;
        row->in[k - 1] = (uint8_t)(f->made_by[t] >= 0 ? TERN_CHAIN_TENSORS + f->made_by[t] : t);
    }
    if (f->casts && f->dtype == TERN_F16 && row->wide && row->in[0] >= TERN_CHAIN_TENSORS &&
        args[1].type == TERN_F16)
        return "NaN would have other bits"; /* drivers store the NaN of float16 differently */
    if (command->what.launch.n > n + 1 + 2)
        return "more than two numbers";
    for (int k = n + 1; k < command->what.launch.n; k++)
        row->number[row->numbers++] = args[k].value.u64;
    const int out = tensor_of(f, &args[0], 1);
    if (out < 0)
        return tern_chain_is_full;
    row->out = (int8_t)out;
    f->made_by[out] = c->rows++;
    c->n = w->inner;
    f->work += command->what.launch.grid->work;
    if (!keeps_order(f))
        return "sums would have another order";
    return is_apart(f) ? NULL : "memory may be shared";
}

/* Ends the chain with a kernel that has a slot in place of a load, if the chain computes the slot's
 * tensor, and returns NULL; else returns the reason. No tensor may be both read and written, as the
 * kernel may compute the chain twice. */
static const char *end_with_slot(tern_finding *f, const tern_command *command)
{
    tern_chain *c = &f->chain;
    const tern_chain_slot *slot = slot_of(f->graph, command, false);
    if (!slot || c->slot || f->casts || c->rows == TERN_CHAIN_ROWS)
        return "what follows is not elementwise";
    if (slot_elements(slot, command->what.launch.args) != c->n ||
        command->what.launch.kernel->dtype != f->dtype)
        return "what follows has another size or type";
    const int known = c->tensors, t = tensor_of(f, &command->what.launch.args[slot->arg], 1);
    if (t < 0 || t >= known || f->made_by[t] < 0)
        return "what follows does not read it";
    c->row[c->rows++] = (tern_chain_row){.file = slot->kernel->file,
                                         .name = slot->kernel->name,
                                         .compiled = command->what.launch.compiled,
                                         .n = 1,
                                         .in = {(uint8_t)(TERN_CHAIN_TENSORS + f->made_by[t])},
                                         .out = -1};
    c->slot = slot;
    f->slot = command;
    f->work += command->what.launch.grid->work;
    for (int i = 0; i < c->rows; i++)
        for (int k = 0; k < c->row[i].n; k++)
            if (c->row[i].in[k] < TERN_CHAIN_TENSORS && f->made_by[c->row[i].in[k]] >= 0)
                return "it is written over what it reads";
    if (!keeps_order(f))
        return "sums would have another order";
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

/* Makes rows not write a result that a later row overwrites, or that no command from `end` on
 * uses. */
static void leave_out(tern_finding *f, int64_t end)
{
    tern_chain *c = &f->chain;
    for (int i = 0; i < c->rows; i++) {
        const int t = c->row[i].out;
        if (t < 0)
            continue;
        const tern_block *block = tern_block_of(f->tensors[t].buffer);
        if (f->made_by[t] != i ||
            (!block->is_kept && tern_block_is_inner(f->graph, block) && block->last < end))
            c->row[i].out = -1;
    }
}

/* Removes tensors that are neither read nor written, and renumbers the others in the same order. */
static void renumber(tern_finding *f)
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
        c->wide[n] = f->casts && f->tensors[n].type == TERN_F32;
        c->step[n++] = c->step[t];
    }
    c->tensors = n;
    for (int i = 0; i < c->rows; i++) {
        c->row[i].wide &= f->casts;
        for (int k = 0; k < c->row[i].n; k++)
            if (c->row[i].in[k] < TERN_CHAIN_TENSORS)
                c->row[i].in[k] = (uint8_t)number[c->row[i].in[k]];
        if (c->row[i].out >= 0)
            c->row[i].out = (int8_t)number[c->row[i].out];
    }
}

/* Assigns a variable (row.slot) to each row's result, other than those of the row's operands.
 * Returns false if there are not enough variables. */
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

bool tern_chain_complete(tern_finding *f, int64_t end)
{
    leave_out(f, end);
    renumber(f);
    return give_slots(&f->chain);
}

/* The chain's last row reads nothing of the rows before. Returns whether the next row reads both
 * the last row's result and one of an earlier row. */
static bool is_joined(const tern_finding *f, const tern_command *next)
{
    tern_finding longer = *f;
    const int last = f->chain.rows - 1;
    bool joins = false, has_last = false, has_other = false;
    if (append(&longer, next, &joins))
        return false;
    const tern_chain_row *row = &longer.chain.row[last + 1];
    for (int k = 0; k < row->n; k++) {
        has_last |= row->in[k] == TERN_CHAIN_TENSORS + last;
        has_other |= row->in[k] >= TERN_CHAIN_TENSORS && row->in[k] < TERN_CHAIN_TENSORS + last;
    }
    return has_last && has_other;
}

int tern_chain_find(tern_finding *f, tern_graph *graph, tern_graph_node *const *nodes, int64_t i,
                    int64_t n, bool in_slots, const char **why)
{
    *why = "nothing follows";
    *f = (tern_finding){.graph = graph, .first = i};
    for (int64_t k = i + (in_slots && begin_with_slot(f, &nodes[i]->command)); k < n; k++) {
        tern_finding longer = *f;
        bool joins = k == i;
        *why = append(&longer, &nodes[k]->command, &joins);
        if (!*why && !joins && !(k + 1 < n && is_joined(&longer, &nodes[k + 1]->command)))
            *why = "what follows does not read it";
        if (*why) {
            longer = *f;
            if (in_slots && k > i && !end_with_slot(&longer, &nodes[k]->command))
                *f = longer;
            break;
        }
        *f = longer;
    }
    return f->chain.rows;
}
