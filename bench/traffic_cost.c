/* traffic_cost.c -- bytes, flops and time of a recorded command: a model, which takes each tensor to be read and
 * written once by each command that is given it, and a command to be done when the slower of memory and arithmetic is. */
#include "traffic.h"
#include "device/device.h"
#include "device/command.h"
#include "types_host.h"
#include "shapes.h"
#include <string.h>

/* H200: 4.3 TB/s were measured for copies, 800 TFLOP/s of bfloat16 and 50 of float32 are what products reach;
 * TensorFloat-32 is half of bfloat16. The others are their data sheets' dense numbers. */
const hardware machines[MACHINES] = {
    {"H200", "measured copies and products", 4.3e12, {50e12, 400e12, 800e12}, 2.5e-6, 5e-6},
    {"A100 80GB", "data sheet", 2.039e12, {19.5e12, 156e12, 312e12}, 2.5e-6, 5e-6},
    {"RTX 4090", "data sheet", 1.008e12, {82.6e12, 82.6e12, 165.2e12}, 2.5e-6, 5e-6},
};

double cost_time(const cost *c, const hardware *h)
{
    double memory = (c->read + c->written) / h->bytes, arithmetic = c->flops / h->flops[c->rate];
    return memory > arithmetic ? memory : arithmetic;
}

static rate rate_of(tern_dtype dtype, bool tf32)
{
    return tern_dtype_size(dtype) == 2 ? RATE_HALF : tf32 ? RATE_TF32 : RATE_F32;
}

/* ---- kernels ---- */

/* Elements of tensor k that a walk comes to. */
static double walked(const tern_nd_index *w, int k)
{
    double n = w->step[k] ? (double)w->inner : 1;
    for (int d = 0; d < w->ndim; d++)
        n *= w->stride[k][d] ? (double)w->dim[d] : 1;
    return n;
}

/* The argument that is this struct, NULL where there is none. */
static const void *struct_of(const tern_command *command, tern_type type)
{
    for (int i = 0; i < command->what.launch.n; i++)
        if (command->what.launch.args[i].type == (uint8_t)type)
            return command->what.launch.args[i].value.data;
    return NULL;
}

/* Elements of q, k, v and the like, whose views may be of what all three are packed in. */
static double most_of_tiles(const tern_attention_tiles *s)
{
    int64_t rows = s->block.queries > s->block.keys ? s->block.queries : s->block.keys;
    int64_t width = s->width > s->value_width ? s->width : s->value_width;
    return (double)(s->block.count[0] * s->block.count[1] * rows * width);
}

/* Elements from an argument to the end of its memory; no more than the launch has operations for. */
static double elements_of(const tern_command *command, const tern_arg *arg)
{
    const tern_block *block = (const void *)arg->buffer;
    double n = (double)(block->used / arg->bytes) - (double)arg->at;
    double most = (double)command->what.launch.grid->work;
    return n < most ? n : most;
}

/* Kernels over all parameters know them by a table: how many numbers of each are read and written. */
static const struct {
    const char *name;
    double read, written; /* float32; halves count half */
    bool least;           /* part of what a step can't do without */
} over_parameters[] = {
    {"adam", 4, 3, true},     {"sgd", 3, 2, true},     {"squares", 1, 0, false},
    {"unscale", 1, 1, false}, {"scaled", 1, 1, false}, {"multiply", 1, 1, false},
    {"narrow", 1, .5, false}, {"widen", .5, 1, false},
};

static bool takes_rows(const tern_command *command)
{
    return command->what.launch.n &&
           command->what.launch.args[0].type == TERN_TYPE_tern_foreach_row;
}

static void cost_rows(const step *s, cost *c)
{
    double read = 1, written = 1;
    for (size_t i = 0; i < sizeof over_parameters / sizeof *over_parameters; i++)
        if (strcmp(over_parameters[i].name, c->name) == 0) {
            read = over_parameters[i].read;
            written = over_parameters[i].written;
            if (over_parameters[i].least)
                c->least = 4 * s->parameters * (read + written);
        }
    c->read = 4 * s->parameters * read;
    c->written = 4 * s->parameters * written;
}

static void cost_kernel(const tern_command *command, const step *s, cost *c)
{
    const tern_nd_index *walk = struct_of(command, TERN_TYPE_tern_nd_index);
    const tern_attention_tiles *tiles = struct_of(command, TERN_TYPE_tern_attention_tiles);
    int k = 0;
    c->name = command->what.launch.kernel->ref->name;
    c->flops = (double)command->what.launch.grid->work;
    if (tiles) /* products on tensor cores, where halves are */
        c->rate = rate_of(command->what.launch.kernel->dtype, false);
    if (takes_rows(command)) {
        cost_rows(s, c);
        return;
    }
    for (int i = 0; i < command->what.launch.n; i++) {
        const tern_arg *arg = &command->what.launch.args[i];
        if (!arg->buffer || arg->role == TERN_ROLE_UNUSED)
            continue;
        double n = elements_of(command, arg);
        if (tiles && most_of_tiles(tiles) < n)
            n = most_of_tiles(tiles);
        if (walk && k < TERN_ND_TENSORS && walked(walk, k) < n)
            n = walked(walk, k);
        k++;
        *(arg->role == TERN_ROLE_OUT ? &c->written : &c->read) += n * arg->bytes;
    }
}

/* ---- products and the rest ---- */

static double batches(const tern_gemm *g, const tern_matrix *m)
{
    return (m->batch[0] ? (double)g->count[0] : 1) * (m->batch[1] ? (double)g->count[1] : 1);
}

/* Bytes that a product notes for its gradient, or reads there. */
static double noted_by(const tern_gemm *g)
{
    return (double)tern_dtype_size(g->dtype) * (double)(g->m * tern_gemm_gelu_row(g->n));
}

/* Products of one matrix are those with weights, which no step can do without. */
static void cost_product(const tern_gemm *g, cost *c)
{
    double size = (double)tern_dtype_size(g->dtype), m = (double)g->m, n = (double)g->n;
    double k = (double)g->k, all = (double)(g->count[0] * g->count[1]);
    c->name = "product";
    c->kind = KIND_PRODUCT;
    c->rate = rate_of(g->dtype, g->tf32);
    c->flops = 2 * m * n * k * all;
    c->written = (g->wide ? 4 : size) * m * n * all;
    c->read = size * (m * k * batches(g, &g->a) + k * n * batches(g, &g->b)) +
              (g->beta != 0 ? c->written : 0) + (g->bias ? size * n : 0);
    if (all == 1)
        c->least = c->read + c->written;
    if (g->mask)
        *(g->epilogue == TERN_GEMM_GELU_GRADIENT ? &c->read : &c->written) += noted_by(g);
}

static void cost_convolution(const tern_convolution *v, cost *c)
{
    static const char *const names[] = {"convolution", "convolution dx", "convolution dw"};
    const tern_conv_shape *s = v->shape;
    double size = (double)tern_dtype_size(v->dtype), in = 1, out = 1, window = 1;
    for (int d = 0; d < 3; d++) {
        in *= (double)s->in[d];
        out *= (double)s->out[d];
        window *= (double)s->window[d];
    }
    double x = (double)(s->n * s->c) * in, y = (double)(s->n * s->o) * out;
    double weight = (double)(s->o * s->c) / (double)s->groups * window;
    double result = v->pass == TERN_CONV_Y ? y : v->pass == TERN_CONV_X ? x : weight;
    c->name = names[v->pass];
    c->kind = KIND_CONVOLUTION;
    c->rate = rate_of(v->dtype, v->tf32);
    c->flops = 2 * y * (double)s->c / (double)s->groups * window;
    c->written = size * result;
    c->least = size * (x + y + weight);
    c->read = c->least - c->written;
}

static void cost_attention(const tern_attention *a, cost *c)
{
    double size = (double)tern_dtype_size(a->dtype);
    double stacks = (double)(a->block->count[0] * a->block->count[1]);
    double queries = (double)a->block->queries, keys = (double)a->block->keys;
    double width = (double)a->width, value = (double)a->value_width;
    double q = queries * width, k = keys * width, v = keys * value, out = queries * value;
    c->name = a->gradient ? "attention gradient" : "attention";
    c->rate = rate_of(a->dtype, false);
    c->flops = 2 * stacks * queries * keys * (width + value);
    c->read = size * stacks * (q + k + v);
    c->written = size * stacks * out + 4 * stacks * queries;
    if (a->gradient) { /* scores twice, and cuDNN's sums of dq in float32 */
        c->flops *= 2.5;
        c->read += stacks * (2 * size * out + 4 * queries + 4 * (q + queries));
        c->written = stacks * (size * (q + k + v) + 4 * (q + queries));
    }
}

cost cost_of(const tern_command *command, const step *s)
{
    cost c = {.name = "copy", .kind = KIND_KERNEL};
    switch (command->kind) {
    case TERN_COMMAND_KERNEL:
        cost_kernel(command, s, &c);
        break;
    case TERN_COMMAND_GEMM:
        cost_product(command->what.gemm, &c);
        break;
    case TERN_COMMAND_CONVOLUTION:
        cost_convolution(command->what.convolution, &c);
        break;
    case TERN_COMMAND_ATTENTION:
        cost_attention(command->what.attention, &c);
        break;
    default:
        c.kind = KIND_COPY;
        c.name = command->kind == TERN_COMMAND_ZERO ? "zero" : "copy";
        c.written = (double)command->what.copy.bytes;
        c.read = command->kind == TERN_COMMAND_ZERO ? 0 : c.written;
    }
    return c;
}
