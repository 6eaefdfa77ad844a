/* convolution.c -- float32 convolutions with oneDNN. oneDNN runs on the thread that calls it, as in
 * gemm.c: the images are distributed over tern's threads, and each thread processes its images in
 * chunks that fit its cache: it converts x and y to oneDNN's layout, convolves, and converts the
 * result back. Weights are converted once per call. A gradient of the weight is summed over the
 * chunks of a part in oneDNN's layout, and over the parts at the end. */
#include "base/parallel.h"
#include "base/lock.h"
#include "device/cpu/cpu.h"
#include "device/cpu/onednn.h"
#include "device/device.h"
#include "types_host.h"
#include "shapes.h"

#ifdef TERN_ONEDNN_PRIMITIVES
#include <stdatomic.h>
#include <string.h>

/* Bytes of x and y in a chunk. */
enum { CHUNK_BYTES = 384 << 10, MOST_PARTS = 64, ALIGN = 64 };

/* ---- plans: a primitive for a shape, a pass and a number of images ------------------------- */

/* The layout of a tensor, and the layout that the primitive takes; both may be the same. */
typedef struct layout {
    dnnl_memory_desc_t given, worked;
    dnnl_primitive_t change; /* converts given to worked, or the result back; NULL: no conversion */
    size_t bytes;            /* bytes of worked */
} layout;

enum { X, WEIGHT, Y, TENSORS };
typedef struct plan {
    tern_conv_shape shape; /* n: images of one run */
    tern_conv_pass pass;
    bool has_bias, channels_last, refused;
    dnnl_primitive_t run;
    layout t[TENSORS];
    dnnl_memory_desc_t bias, scratch;
    size_t scratch_bytes;
    struct plan *next;
} plan;

enum { BUCKETS = 256 };
static struct {
    tern_mutex lock;
    plan *bucket[BUCKETS];
} cache = {.lock = TERN_MUTEX_INIT};

/* Returns how many leading spatial dims of size 1 are left out; at least one dim remains. */
static int dims_left_out(const tern_conv_shape *s)
{
    int d = 0;
    while (d < 2 && s->in[d] == 1 && s->out[d] == 1 && s->window[d] == 1 && s->padding[d] == 0)
        d++;
    return d;
}

static bool describe(dnnl_memory_desc_t *desc, const int64_t *lead, int n_lead,
                     const int64_t *spatial, int left_out, bool any, bool last)
{
    static const dnnl_format_tag_t dense[] = {
        [3] = dnnl_abc, [4] = dnnl_abcd, [5] = dnnl_abcde, [6] = dnnl_abcdef};
    static const dnnl_format_tag_t by_channels[2][7] = {
        {[3] = dnnl_acb, [4] = dnnl_acdb, [5] = dnnl_acdeb},
        {[4] = dnnl_abdc, [5] = dnnl_abdec, [6] = dnnl_abdefc}};
    dnnl_dims_t dims;
    int n = 0;
    for (int i = 0; i < n_lead; i++)
        dims[n++] = lead[i];
    for (int i = left_out; i < 3; i++)
        dims[n++] = spatial[i];
    return tern_dnnl.memory_desc_init_by_tag(desc, n, dims, dnnl_f32,
                                             any    ? dnnl_format_tag_any
                                             : last ? by_channels[n_lead - 2][n]
                                                    : dense[n]) == dnnl_success;
}

static bool describe_tensors(plan *p, int left_out)
{
    const tern_conv_shape *s = &p->shape;
    int64_t x[] = {s->n, s->c}, y[] = {s->n, s->o};
    int64_t w[] = {s->groups, s->o / s->groups, s->c / s->groups};
    int first = s->groups == 1 ? 1 : 0;
    bool ok = true, last = p->channels_last;
    /* Channels-last x and y with one tap are used in their own layout; with more taps that takes
     * longer than oneDNN's blocked layouts. */
    bool lies = last && s->window[0] * s->window[1] * s->window[2] == 1;
    for (int any = 0; any < 2; any++) {
        dnnl_memory_desc_t *d[TENSORS];
        for (int i = 0; i < TENSORS; i++)
            d[i] = any ? &p->t[i].worked : &p->t[i].given;
        ok = ok && describe(d[X], x, 2, s->in, left_out, any && !lies, last);
        ok = ok && describe(d[WEIGHT], w + first, 3 - first, s->window, left_out, any, last);
        ok = ok && describe(d[Y], y, 2, s->out, left_out, any && !lies, last);
    }
    dnnl_dims_t channels = {s->o};
    return ok && tern_dnnl.memory_desc_init_by_tag(&p->bias, 1, channels, dnnl_f32, dnnl_a) ==
                     dnnl_success;
}

static dnnl_primitive_desc_t describe_run(const plan *p, int left_out)
{
    const tern_conv_shape *s = &p->shape;
    const dnnl_memory_desc_t *x = &p->t[X].worked, *w = &p->t[WEIGHT].worked, *y = &p->t[Y].worked;
    dnnl_dims_t stride, dilation, left, right;
    for (int i = 0, d = left_out; d < 3; i++, d++) {
        stride[i] = s->stride[d];
        dilation[i] = s->dilation[d] - 1;
        left[i] = s->padding[d];
        right[i] = (s->out[d] - 1) * s->stride[d] + (s->window[d] - 1) * s->dilation[d] + 1 -
                   s->in[d] - s->padding[d];
    }
    dnnl_primitive_attr_t attributes;
    dnnl_convolution_desc_t forward, back;
    dnnl_primitive_desc_t hint = NULL, result = NULL;
    if (tern_dnnl.primitive_attr_create(&attributes) != dnnl_success)
        return NULL;
    tern_dnnl.primitive_attr_set_scratchpad_mode(attributes, dnnl_scratchpad_mode_user);
    dnnl_status_t status = tern_dnnl.dilated_convolution_forward_desc_init(
        &forward, dnnl_forward_training, dnnl_convolution_direct, x, w,
        p->has_bias ? &p->bias : NULL, y, stride, dilation, left, right);
    if (status == dnnl_success)
        status = tern_dnnl.primitive_desc_create(&hint, &forward, attributes, tern_onednn_engine(),
                                                 NULL);
    if (status == dnnl_success && p->pass != TERN_CONV_Y) {
        status =
            p->pass == TERN_CONV_X
                ? tern_dnnl.dilated_convolution_backward_data_desc_init(
                      &back, dnnl_convolution_direct, x, w, y, stride, dilation, left, right)
                : tern_dnnl.dilated_convolution_backward_weights_desc_init(
                      &back, dnnl_convolution_direct, x, w, NULL, y, stride, dilation, left, right);
        if (status == dnnl_success)
            status = tern_dnnl.primitive_desc_create(&result, &back, attributes,
                                                     tern_onednn_engine(), hint);
        tern_dnnl.primitive_desc_destroy(hint);
    } else if (status == dnnl_success) {
        result = hint;
    }
    tern_dnnl.primitive_attr_destroy(attributes);
    return status == dnnl_success ? result : NULL;
}

static bool plan_layout(layout *t, dnnl_primitive_desc_t run, dnnl_query_t query, bool result)
{
    t->worked = *tern_dnnl.primitive_desc_query_md(run, query, 0);
    t->bytes = tern_dnnl.memory_desc_get_size(&t->worked);
    if (tern_dnnl.memory_desc_equal(&t->worked, &t->given))
        return true;
    const dnnl_memory_desc_t *from = result ? &t->worked : &t->given;
    const dnnl_memory_desc_t *to = result ? &t->given : &t->worked;
    dnnl_primitive_desc_t change;
    if (tern_dnnl.reorder_primitive_desc_create(&change, from, tern_onednn_engine(), to,
                                                tern_onednn_engine(), NULL) != dnnl_success)
        return false;
    dnnl_status_t status = tern_dnnl.primitive_create(&t->change, change);
    tern_dnnl.primitive_desc_destroy(change);
    return status == dnnl_success;
}

/* Makes a plan. Returns false if oneDNN does not support it; then the portable kernels are used. */
static bool plan_make(plan *p)
{
    static const dnnl_query_t query[3][TENSORS] = {
        [TERN_CONV_Y] = {dnnl_query_src_md, dnnl_query_weights_md, dnnl_query_dst_md},
        [TERN_CONV_X] = {dnnl_query_diff_src_md, dnnl_query_weights_md, dnnl_query_diff_dst_md},
        [TERN_CONV_WEIGHT] = {dnnl_query_src_md, dnnl_query_diff_weights_md,
                              dnnl_query_diff_dst_md}};
    static const int result[3] = {
        [TERN_CONV_Y] = Y, [TERN_CONV_X] = X, [TERN_CONV_WEIGHT] = WEIGHT};
    int left_out = dims_left_out(&p->shape);
    if (!tern_onednn_engine() || !describe_tensors(p, left_out))
        return false;
    dnnl_primitive_desc_t run = describe_run(p, left_out);
    if (!run)
        return false;
    bool ok = tern_dnnl.primitive_create(&p->run, run) == dnnl_success;
    for (int i = 0; i < TENSORS; i++)
        ok = ok && plan_layout(&p->t[i], run, query[p->pass][i], i == result[p->pass]);
    p->scratch = *tern_dnnl.primitive_desc_query_md(run, dnnl_query_scratchpad_md, 0);
    p->scratch_bytes = tern_dnnl.memory_desc_get_size(&p->scratch);
    tern_dnnl.primitive_desc_destroy(run);
    return ok;
}

static size_t hash(const tern_conv_shape *s)
{
    uint64_t h = 0;
    int64_t word[sizeof *s / sizeof(int64_t)];
    memcpy(word, s, sizeof word);
    for (size_t i = 0; i < sizeof word / sizeof *word; i++)
        h = (h ^ (uint64_t)word[i]) * UINT64_C(0x9E3779B97F4A7C15);
    return (size_t)(h >> 40) % BUCKETS;
}

/* Returns the plan for `images` images of c; NULL if there is none. Plans live as long as the
 * process. */
static const plan *plan_for(const tern_convolution *c, int64_t images)
{
    tern_conv_shape shape = *c->shape;
    shape.n = images;
    bool has_bias = c->bias.buffer;
    plan **bucket = &cache.bucket[hash(&shape)], *p;
    tern_mutex_lock(&cache.lock);
    for (p = *bucket; p; p = p->next)
        if (memcmp(&p->shape, &shape, sizeof shape) == 0 && p->pass == c->pass &&
            p->has_bias == has_bias && p->channels_last == c->channels_last)
            break;
    if (!p && (p = tern_alloc(sizeof *p))) {
        memset(p, 0, sizeof *p);
        p->shape = shape;
        p->pass = c->pass;
        p->has_bias = has_bias;
        p->channels_last = c->channels_last;
        tern_onednn_threads a = tern_onednn_go_alone();
        p->refused = !plan_make(p);
        tern_onednn_end_alone(a);
        p->next = *bucket;
        *bucket = p;
    }
    tern_mutex_unlock(&cache.lock);
    return p && !p->refused ? p : NULL;
}

/* ---- runs -------------------------------------------------------------------------------- */

static bool change(const layout *t, dnnl_stream_t stream, bool result, void *given, void *worked)
{
    const tern_onednn_argument a[] = {
        {result ? DNNL_ARG_TO : DNNL_ARG_FROM, &t->given, given},
        {result ? DNNL_ARG_FROM : DNNL_ARG_TO, &t->worked, worked},
    };
    return tern_onednn_run(t->change, stream, a, 2);
}

/* One call: its images are divided into parts, and the parts into chunks. */
typedef struct job {
    const tern_convolution *c;
    const plan *chunk, *rest; /* plans for `images` images, and for the last chunk of all */
    int64_t images, chunks;
    float *given[TENSORS], *bias;
    char *weight;  /* in the worked layout */
    char *scratch; /* scratch memory of all parts */
    size_t part_scratch, x_bytes, y_bytes, weight_bytes, scratch_bytes;
    atomic_bool failed;
} job;

static size_t aligned(size_t bytes)
{
    return (bytes + ALIGN - 1) / ALIGN * ALIGN;
}

static float *image(const job *j, int tensor, int64_t i)
{
    const tern_conv_shape *s = j->c->shape;
    const int64_t *dims = tensor == X ? s->in : s->out;
    return j->given[tensor] + i * (tensor == X ? s->c : s->o) * dims[0] * dims[1] * dims[2];
}

/* Computes the chunk that begins with image i; weight is the weight of this part. */
static bool run_chunk(const job *j, dnnl_stream_t stream, int64_t i, char *scratch, char *weight)
{
    static const int names[3][TENSORS] = {
        [TERN_CONV_Y] = {DNNL_ARG_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_DST},
        [TERN_CONV_X] = {DNNL_ARG_DIFF_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_DIFF_DST},
        [TERN_CONV_WEIGHT] = {DNNL_ARG_SRC, DNNL_ARG_DIFF_WEIGHTS, DNNL_ARG_DIFF_DST}};
    tern_conv_pass pass = j->c->pass;
    const plan *p = i + j->images <= j->c->shape->n ? j->chunk : j->rest;
    float *x = image(j, X, i), *y = image(j, Y, i);
    void *x_worked = p->t[X].change ? (void *)scratch : x;
    void *y_worked = p->t[Y].change ? (void *)(scratch + j->x_bytes) : y;
    bool ok = true;
    if (p->t[X].change && pass != TERN_CONV_X)
        ok = change(&p->t[X], stream, false, x, x_worked);
    if (p->t[Y].change && pass != TERN_CONV_Y)
        ok = ok && change(&p->t[Y], stream, false, y, y_worked);
    const tern_onednn_argument a[] = {
        {names[pass][X], &p->t[X].worked, x_worked},
        {names[pass][WEIGHT], &p->t[WEIGHT].worked, weight},
        {names[pass][Y], &p->t[Y].worked, y_worked},
        {DNNL_ARG_SCRATCHPAD, &p->scratch, scratch + j->x_bytes + j->y_bytes + j->weight_bytes},
        {DNNL_ARG_BIAS, &p->bias, j->bias},
    };
    ok = ok && tern_onednn_run(p->run, stream, a, p->has_bias ? 5 : 4);
    if (p->t[X].change && pass == TERN_CONV_X)
        ok = ok && change(&p->t[X], stream, true, x, x_worked);
    if (p->t[Y].change && pass == TERN_CONV_Y)
        ok = ok && change(&p->t[Y], stream, true, y, y_worked);
    return ok;
}

static void add_numbers(float *restrict to, const float *restrict more, size_t n)
{
    for (size_t i = 0; i < n; i++)
        to[i] += more[i];
}

/* Computes the chunks of a part one after the other. The gradients of the weight of all chunks are
 * added to the gradient of the first chunk; the later ones are first written to the memory after
 * it. */
static bool run_chunks(const job *j, dnnl_stream_t stream, int64_t from, int64_t to, char *scratch,
                       char *weight)
{
    bool sums = j->c->pass == TERN_CONV_WEIGHT, ok = true;
    char *more = scratch + j->x_bytes + j->y_bytes + 2 * j->weight_bytes + j->scratch_bytes;
    for (int64_t i = from; ok && i < to; i++) {
        bool adds = sums && i > from;
        ok = run_chunk(j, stream, i * j->images, scratch, adds ? more : weight);
        if (adds && ok)
            add_numbers((void *)weight, (void *)more, j->chunk->t[WEIGHT].bytes / sizeof(float));
    }
    return ok;
}

/* Returns the address of part p's gradient of the weight, in the tensor's layout. */
static float *partial(const job *j, int part)
{
    return part == 0 ? j->given[WEIGHT]
                     : (void *)(j->scratch + (size_t)part * j->part_scratch + j->x_bytes +
                                j->y_bytes + j->weight_bytes + j->scratch_bytes);
}

static void run_part(void *user, int part, int parts)
{
    job *j = user;
    char *scratch = j->scratch + (size_t)part * j->part_scratch;
    int64_t from = j->chunks * part / parts, to = j->chunks * (part + 1) / parts;
    dnnl_stream_t stream;
    tern_onednn_threads a = tern_onednn_go_alone();
    bool ok = tern_dnnl.stream_create(&stream, tern_onednn_engine(), dnnl_stream_default_flags) ==
              dnnl_success;
    if (ok) {
        bool sums = j->c->pass == TERN_CONV_WEIGHT;
        const layout *w = &j->chunk->t[WEIGHT];
        char *weight = j->weight;
        if (sums)
            weight = w->change ? scratch + j->x_bytes + j->y_bytes : (void *)partial(j, part);
        ok = run_chunks(j, stream, from, to, scratch, weight);
        if (sums && w->change)
            ok = ok && change(w, stream, true, partial(j, part), weight);
        tern_dnnl.stream_destroy(stream);
    }
    tern_onednn_end_alone(a);
    if (!ok)
        atomic_store(&j->failed, true);
}

typedef struct sum_job {
    const job *j;
    int64_t numbers;
    int partials;
} sum_job;

static void sum_part(void *user, int part, int parts)
{
    const sum_job *s = user;
    int64_t from = s->numbers * part / parts, to = s->numbers * (part + 1) / parts;
    float *out = s->j->given[WEIGHT];
    for (int p = 1; p < s->partials; p++) {
        const float *more = partial(s->j, p);
        for (int64_t i = from; i < to; i++)
            out[i] += more[i];
    }
}

static bool prepare_weight(job *j)
{
    dnnl_stream_t stream;
    tern_onednn_threads a = tern_onednn_go_alone();
    bool ok = tern_dnnl.stream_create(&stream, tern_onednn_engine(), dnnl_stream_default_flags) ==
              dnnl_success;
    if (ok) {
        ok = change(&j->chunk->t[WEIGHT], stream, false, j->given[WEIGHT], j->weight);
        tern_dnnl.stream_destroy(stream);
    }
    tern_onednn_end_alone(a);
    return ok;
}

static int64_t numbers_of(const int64_t *dims)
{
    return dims[0] * dims[1] * dims[2];
}

/* Chooses the number of images in a chunk and the number of parts. */
static int cut(const tern_conv_shape *s, tern_conv_pass pass, int64_t *images)
{
    int64_t each = s->c * numbers_of(s->in) + s->o * numbers_of(s->out);
    int64_t work = s->n * s->o * numbers_of(s->out) * (s->c / s->groups) * numbers_of(s->window);
    int parts = tern_parallel_parts(work / TERN_CPU_PER_OPERATION);
    parts = parts < MOST_PARTS ? parts : MOST_PARTS;
    parts = parts < s->n ? parts : (int)s->n;
    int64_t share = (s->n + parts - 1) / parts, fit = CHUNK_BYTES / (4 * each);
    int64_t weights = s->o * (s->c / s->groups) * numbers_of(s->window);
    bool whole =
        pass == TERN_CONV_WEIGHT && weights > CHUNK_BYTES / 8; /* too many to add for each chunk */
    *images = whole || fit > share ? share : fit < 1 ? 1 : fit;
    return parts;
}

static size_t larger(size_t a, size_t b)
{
    return a > b ? a : b;
}

static tern_status run(tern_place *place, job *j, int parts)
{
    const layout *w = &j->chunk->t[WEIGHT];
    bool sums = j->c->pass == TERN_CONV_WEIGHT;
    const plan *p = j->chunk;
    const tern_conv_shape *s = j->c->shape;
    size_t numbers = (size_t)(s->o * (s->c / s->groups) * numbers_of(s->window));
    j->x_bytes = aligned(larger(p->t[X].bytes, j->rest->t[X].bytes));
    j->y_bytes = aligned(larger(p->t[Y].bytes, j->rest->t[Y].bytes));
    j->weight_bytes = aligned(larger(w->bytes, numbers * sizeof(float)));
    j->scratch_bytes = aligned(larger(p->scratch_bytes, j->rest->scratch_bytes));
    /* x, y and the gradient in oneDNN's layout, scratch, the gradient in the tensor's layout, and
     * the gradient of a chunk */
    j->part_scratch = j->x_bytes + j->y_bytes + (sums ? 3 : 2) * j->weight_bytes + j->scratch_bytes;
    tern_block *scratch = tern_block_alloc(
        place, j->part_scratch * (size_t)parts + j->weight_bytes + ALIGN, "tern_convolution");
    if (!scratch)
        return tern_last_status();
    j->scratch = scratch->buffer.host;
    j->weight = w->change ? j->scratch + j->part_scratch * (size_t)parts : (void *)j->given[WEIGHT];
    if (!sums && w->change && !prepare_weight(j))
        atomic_store(&j->failed, true);
    if (!atomic_load(&j->failed))
        tern_parallel(parts, run_part, j);
    if (sums && parts > 1) {
        sum_job sum = {j, (int64_t)numbers, parts};
        tern_parallel(tern_parallel_parts((int64_t)numbers * parts), sum_part, &sum);
    }
    tern_block_free(scratch);
    return atomic_load(&j->failed)
               ? tern_fail(TERN_ERR_DEVICE, "cpu: oneDNN failed in a convolution")
               : TERN_OK;
}

/* Makes the plans for chunks of j's images, which use the weights in one layout. */
static bool find_plans(job *j)
{
    int64_t n = j->c->shape->n, rest = n % j->images;
    j->chunks = (n + j->images - 1) / j->images;
    j->chunk = plan_for(j->c, j->images);
    j->rest = rest && j->chunk ? plan_for(j->c, rest) : j->chunk;
    return j->chunk && j->rest &&
           tern_dnnl.memory_desc_equal(&j->chunk->t[WEIGHT].worked, &j->rest->t[WEIGHT].worked);
}

tern_status tern_cpu_convolution(tern_place *place, const tern_convolution *c, bool *taken)
{
    job j = {.c = c,
             .given = {tern_cpu_at(&c->x), tern_cpu_at(&c->weight), tern_cpu_at(&c->y)},
             .bias = tern_cpu_at(&c->bias)};
    const uint64_t failures = tern_failures();
    TERN_TRY(tern_cpu_conv_own(place, c, taken));
    if (*taken || c->dtype != TERN_F32 || tern_is_forked_child())
        return TERN_OK;
    if (!tern_onednn_engine())
        return TERN_OK;
    int parts = cut(c->shape, c->pass, &j.images);
    bool found = find_plans(&j);
    if (!found && j.chunk) { /* one chunk of all images has no rest */
        j.images = c->shape->n;
        found = find_plans(&j);
    }
    if (!found)
        return tern_failed_since(failures);
    *taken = true;
    return run(place, &j, parts < j.chunks ? parts : (int)j.chunks);
}

#else
tern_status tern_cpu_convolution(tern_place *place, const tern_convolution *c, bool *taken)
{
    return tern_cpu_conv_own(place, c, taken);
}
#endif
