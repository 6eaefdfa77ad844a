/* memory_blocks.c -- the blocks that are alive at the peak of a training step: the function that made each, and whether anything
 * reads it again.
 *
 *   memory_blocks MODEL BATCH [DEVICE]     MODEL: gpt2 or resnet50
 *
 * It is linked with --wrap of the allocator and the dispatch of commands, so that the library is as it is. A line: MB, blocks,
 * phase, function (of the gradient of which operation), "read" (after the peak) or "idle" (a scope alone holds it), type and shape.
 * Below them stands the peak of a plan that frees each block after its last reader, without moving any work. */
#include "device/recording.h"
#include "memory_steps.h"
#include "tensor/node.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct made {
    size_t bytes;
    long at, end, last; /* counted in commands and blocks; end: NEVER while it lives */
    const char *phase, *backward;
    char function[40], type[12], shape[48];
} made;

enum { NEVER = 1 << 30, MOST = 1 << 18 };
static made all[MOST];
static long n, now, begun;
static const char *phase = "before";
static char shape[48], type[12];

tern_block *__real_tern_block_alloc(tern_place *place, size_t bytes, const char *function);
void __real_tern_block_free(tern_block *block);
tern_status __real_tern_command_dispatch(tern_place *place, const tern_command *command,
                                         bool *taken);
tern_status __real_tern_record_command(tern_graph *graph, const tern_command *command);
tern_tensor *__real_tern_tensor_new(const tern_shape *of, tern_dtype dtype, tern_place *place,
                                    const char *function);
tern_block *__wrap_tern_block_alloc(tern_place *place, size_t bytes, const char *function);
void __wrap_tern_block_free(tern_block *block);
tern_status __wrap_tern_command_dispatch(tern_place *place, const tern_command *command,
                                         bool *taken);
tern_status __wrap_tern_record_command(tern_graph *graph, const tern_command *command);
tern_tensor *__wrap_tern_tensor_new(const tern_shape *of, tern_dtype dtype, tern_place *place,
                                    const char *function);

static const char *device = "cuda:0";

tern_tensor *__wrap_tern_tensor_new(const tern_shape *of, tern_dtype dtype, tern_place *place,
                                    const char *function)
{
    int at = 0;
    shape[0] = '\0';
    for (int i = 0; i < of->ndim && at < 40; i++)
        at += snprintf(shape + at, sizeof shape - (size_t)at, "%s%lld", i ? "x" : "",
                       (long long)of->dims[i]);
    snprintf(type, sizeof type, "%s", tern_dtype_name(dtype));
    tern_tensor *x = __real_tern_tensor_new(of, dtype, place, function);
    shape[0] = type[0] = '\0';
    return x;
}

tern_block *__wrap_tern_block_alloc(tern_place *place, size_t bytes, const char *function)
{
    tern_block *block = __real_tern_block_alloc(place, bytes, function);
    if (!block || strcmp(tern_place_text(place), device) != 0 || n == MOST)
        return block;
    made *m = &all[n];
    *m = (made){.bytes = bytes,
                .at = ++now,
                .end = NEVER,
                .last = now,
                .phase = phase,
                .backward = tern_thread.running.backward};
    snprintf(m->function, sizeof m->function, "%s", function ? function : "");
    memcpy(m->shape, shape, sizeof shape);
    memcpy(m->type, type, sizeof type);
    block->maker = ++n; /* a profiler's, which does not run */
    return block;
}

static made *made_of(const tern_buffer *buffer)
{
    union {
        const tern_buffer *buffer;
        const tern_block *block;
    } at = {buffer};
    return buffer && at.block->maker > 0 && at.block->maker <= n ? &all[at.block->maker - 1] : NULL;
}

void __wrap_tern_block_free(tern_block *block)
{
    made *m = block ? made_of(&block->buffer) : NULL;
    if (m && m->end == NEVER)
        m->end = ++now;
    __real_tern_block_free(block);
}

static void use(const tern_buffer *buffer)
{
    made *m = made_of(buffer);
    if (m)
        m->last = now;
}

static void note(const tern_command *command)
{
    now++;
    if (command->kind == TERN_COMMAND_KERNEL || command->kind == TERN_COMMAND_USER) {
        for (int i = 0; i < command->what.launch.n; i++)
            use(command->what.launch.args[i].buffer);
    } else if (command->kind == TERN_COMMAND_GEMM) {
        const tern_gemm *g = command->what.gemm;
        const tern_buffer *of[] = {g->a.buffer, g->b.buffer,  g->c.buffer,
                                   g->bias,     g->bias_grad, g->mask};
        for (int i = 0; i < 6; i++)
            use(of[i]);
    } else if (command->kind == TERN_COMMAND_CONVOLUTION) {
        const tern_convolution *c = command->what.convolution;
        const tern_buffer *of[] = {c->x.buffer, c->weight.buffer, c->y.buffer, c->bias.buffer,
                                   c->scratch};
        for (int i = 0; i < 5; i++)
            use(of[i]);
    } else if (command->kind == TERN_COMMAND_ATTENTION) {
        const tern_attention *a = command->what.attention;
        const tern_buffer *of[] = {a->q.buffer,    a->k.buffer,    a->v.buffer, a->out.buffer,
                                   a->sums.buffer, a->mask.buffer, a->scratch,  a->dout.buffer,
                                   a->dq.buffer,   a->dk.buffer,   a->dv.buffer};
        for (int i = 0; i < 11; i++)
            use(of[i]);
    } else if (command->kind == TERN_COMMAND_COPY || command->kind == TERN_COMMAND_ZERO) {
        use(command->what.copy.from);
        use(command->what.copy.to);
    }
}

tern_status __wrap_tern_command_dispatch(tern_place *place, const tern_command *command,
                                         bool *taken)
{
    note(command);
    return __real_tern_command_dispatch(place, command, taken);
}

tern_status __wrap_tern_record_command(tern_graph *graph, const tern_command *command)
{
    note(command);
    return __real_tern_record_command(graph, command);
}

/* ---- what was seen ---- */

static size_t live_at(long t, bool planned)
{
    size_t bytes = 0;
    for (long i = 0; i < n; i++) {
        const made *m = &all[i];
        const bool lasts = m->at < begun || m->end == NEVER;
        const long end = planned && !lasts && m->last < m->end ? m->last : m->end;
        if (m->at <= t && (t < end || (planned && t == end && !lasts)))
            bytes += m->bytes;
    }
    return bytes;
}

static long peak_at(bool planned, size_t *bytes)
{
    long at = begun;
    *bytes = 0;
    for (long i = 0; i < n; i++) {
        if (all[i].at < begun)
            continue;
        size_t live = live_at(all[i].at, planned);
        if (live > *bytes) {
            *bytes = live;
            at = all[i].at;
        }
    }
    return at;
}

typedef struct line {
    const made *first;
    size_t bytes;
    long blocks;
    bool read;
} line;

static int by_bytes(const void *a, const void *b)
{
    const line *x = a, *y = b;
    return (x->bytes < y->bytes) - (x->bytes > y->bytes);
}

static bool alike(const line *l, const made *m, bool read, bool old)
{
    const made *f = l->first;
    if (old || f->at < begun)
        return old && f->at < begun;
    return l->read == read && strcmp(f->function, m->function) == 0 && f->phase == m->phase &&
           f->backward == m->backward;
}

static void print_peak(long at)
{
    static line lines[1024];
    int k = 0;
    size_t idle = 0;
    for (long i = 0; i < n; i++) {
        const made *m = &all[i];
        if (m->at > at || m->end <= at)
            continue;
        const bool old = m->at<begun, read = m->last> at || m->end == NEVER;
        int j = 0;
        while (j < k && !alike(&lines[j], m, read, old))
            j++;
        if (j == 1024)
            continue;
        if (j == k)
            lines[k++] = (line){.first = m, .read = read};
        lines[j].bytes += m->bytes;
        lines[j].blocks++;
        if (!old && !read)
            idle += m->bytes;
    }
    qsort(lines, (size_t)k, sizeof *lines, by_bytes);
    for (int j = 0; j < k && (double)lines[j].bytes > 2e6; j++) {
        const made *f = lines[j].first;
        const bool old = f->at < begun;
        printf("%10.1f %5ld  %-9s %-28s %-22s %-5s %s %s\n", 1e-6 * (double)lines[j].bytes,
               lines[j].blocks, old ? "before" : f->phase,
               old ? "parameters, state, data" : f->function,
               old || !f->backward ? "" : f->backward,
               old             ? ""
               : lines[j].read ? "read"
                               : "idle",
               old ? "" : f->type, old ? "" : f->shape);
    }
    printf("%10.1f        of it idle\n", 1e-6 * (double)idle);
}

static void mark(const char *what)
{
    phase = what;
}

/* Recorded, nothing runs. */
static void one_step(memory_step *s, bool runs)
{
    tern_graph *graph = runs ? NULL : tern_graph_new(device);
    if (runs) {
        TERN_SCOPE
            memory_step_run(s, mark);
    } else {
        TERN_CAPTURE (graph)
            TERN_SCOPE
                memory_step_run(s, mark);
    }
    tern_graph_free(graph);
}

int main(int argc, char **argv)
{
    if (argc < 3)
        return fputs("Usage: memory_blocks MODEL BATCH [DEVICE]\n", stderr), 2;
    device = argc > 3 ? argv[3] : device;
    memory_step s = {.name = argv[1], .batch = atoll(argv[2])};
    if (tern_set_default_device(device) != TERN_OK || !memory_step_open(&s))
        return fprintf(stderr, "memory_blocks: %s\n", tern_last_error()), 1;
    const bool runs = strncmp(device, "cuda", 4) == 0;
    for (int i = 0; i < 4; i++) { /* the optimizer has its state then */
        begun = ++now;
        one_step(&s, runs);
    }
    size_t peak, planned;
    long at = peak_at(false, &peak);
    printf("peak %.1f MB of %s, batch %s, on %s\n", 1e-6 * (double)peak, s.name, argv[2], device);
    print_peak(at);
    peak_at(true, &planned);
    printf("%10.1f        peak if each were freed after its last reader\n", 1e-6 * (double)planned);
    return tern_last_status() != TERN_OK;
}
