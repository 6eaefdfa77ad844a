/* attention_matrix.c -- attention on matrix units: chooses kernels and their arguments. */
#include "device/attention_matrix.h"
#include "device/index32.h"
#include "types_host.h"
#include "shapes.h"

/* FAR: the limit of queries and keys, as the kernels' positions have 32 bits. */
enum { FAR = 1 << 30, MOST_GROUPS = 1 << 20, PASSES = 3 };

/* The variant of the kernels for a call. */
typedef struct variant {
    int way, width;
    bool extras, odd;
} variant;

/* ---- the choice of kernels ------------------------------------------------------------------- */

static bool lies_in_eights(const tern_matrix *m, const int64_t count[2], int64_t width)
{
    int64_t outer = count[0] > 1 ? m->batch[0] : 0, inner = count[1] > 1 ? m->batch[1] : 0;
    return m->col == 1 && width % 8 == 0 && ((m->at | m->row | outer | inner) & 7) == 0 &&
           m->buffer->address % 16 == 0; /* external memory may have any alignment */
}

static bool fits(const tern_attention *a)
{
    const tern_attention_block *b = a->block;
    return tern_dtype_is_half(a->dtype) && a->width <= TERN_ATTENTION_MATRIX_WIDEST &&
           a->value_width <= TERN_ATTENTION_MATRIX_WIDEST && b->queries < FAR && b->keys < FAR;
}

static variant variant_of(const tern_attention *a, int way)
{
    const tern_attention_block *b = a->block;
    int64_t width = a->width > a->value_width ? a->width : a->value_width;
    const tern_matrix *of_width[] = {&a->q, &a->k, &a->dq, &a->dk};
    const tern_matrix *of_values[] = {&a->v, &a->out, &a->dout, &a->dv};
    variant v = {.way = way,
                 .width = width <= 32    ? 32
                          : width <= 64  ? 64
                          : width <= 128 ? 128
                                         : TERN_ATTENTION_MATRIX_WIDEST};
    /* If scale is above 0, the maximum of scores can be found before they are multiplied by it. */
    v.extras = (b->flags & ~TERN_ATTENTION_BAND) != 0 || b->drop != 0 || a->softcap != 0 ||
               !(a->scale > 0);
    for (int i = 0; i < (a->gradient ? 4 : 2); i++)
        v.odd = v.odd || !lies_in_eights(of_width[i], b->count, a->width) ||
                !lies_in_eights(of_values[i], b->count, a->value_width);
    return v;
}

static bool is_xe(int way)
{
    return way == TERN_MATRIX_XE8 || way == TERN_MATRIX_XE16;
}

/* Returns whether the kernel of the pass (dq or dk) holds columns of two matrices. */
static bool holds_two(int pass)
{
    return pass == 1 || pass == 2;
}

/* Returns the number of sub-groups of a work-group; if their columns are in local memory, its size
 * limits the number. */
static int64_t subs_of(const variant *v, int pass)
{
    const bool in_local = is_xe(v->way) || v->way == TERN_MATRIX_RDNA3 ||
                          (v->way == TERN_MATRIX_RDNA4 && (pass == 1 || (pass == 2 && v->extras)));
    if (v->width > 128)
        return (v->way == TERN_MATRIX_XE8 ? 8 : 4) / (in_local && holds_two(pass) ? 2 : 1);
    if (is_xe(v->way))
        return v->width > 64 ? 8 : 16;
    return v->way == TERN_MATRIX_MMA && v->width > 64 ? 8 : 4;
}

/* Writes the passes of a call and returns how many. 0: forward; 1: dq; 2: dk, or dk and dv if one
 * kernel computes both; 3: dv. */
static int passes_of(const tern_attention *a, const variant *v, int passes[PASSES])
{
    passes[0] = a->gradient;
    passes[1] = 2, passes[2] = 3;
    bool whole = v->width <= 64 && !is_xe(v->way) && !(v->way == TERN_MATRIX_RDNA3 && v->extras);
    return !a->gradient ? 1 : whole ? 2 : 3;
}

/* Returns how many work-groups share the columns of a result: CUTS of cl_kernels/
 * attention_matrix.h. */
static int64_t cuts_of(const variant *v, int pass)
{
    if (v->width > 128)
        return v->way == TERN_MATRIX_CDNA                       ? 1
               : is_xe(v->way)                                  ? 4
               : v->way == TERN_MATRIX_RDNA3                    ? (pass == 1 ? 4 : 2)
               : v->way != TERN_MATRIX_PLAIN && holds_two(pass) ? 4
                                                                : 2;
    return v->width > 64 && (is_xe(v->way) || (v->way == TERN_MATRIX_RDNA3 && pass == 1)) ? 2 : 1;
}

static int64_t groups_of(const tern_attention *a, const variant *v, int pass)
{
    const tern_attention_block *b = a->block;
    int64_t columns = subs_of(v, pass) * (v->way == TERN_MATRIX_XE8 ? 8 : 16);
    int64_t lines = pass < 2 ? b->queries : b->keys;
    return b->count[0] * b->count[1] * ((lines + columns - 1) / columns) * cuts_of(v, pass);
}

static tern_matrix_variant kernel_of(const variant *v, tern_dtype dtype, int pass, bool narrow)
{
    static const char gradient[] = "attention_matrix_gradient.cl";
    static const char function[] = "tern_scaled_dot_product_attention";
#define FAMILY(FILE, END, WHAT)                                                                    \
    {                                                                                              \
        FILE, "attention_matrix" END, function, WHAT,                                              \
        {                                                                                          \
            "MATRIX_WIDTH", "MATRIX_EXTRAS", "MATRIX_ODD", "MATRIX_PASS"                           \
        }                                                                                          \
    }
    static const tern_matrix_family families[] = {
        FAMILY("attention_matrix.cl", "", "attentions"),
        FAMILY(gradient, "_dq", "gradients of attentions"),
        FAMILY(gradient, "_dk", "gradients of attentions"),
        FAMILY(gradient, "_dv", "gradients of attentions"),
    };
#undef FAMILY
    return (tern_matrix_variant){
        .family = &families[pass],
        .dtype = (int32_t)dtype,
        .way = v->way,
        .group = (int32_t)(subs_of(v, pass) * tern_matrix_lanes(v->way)),
        .narrow = narrow,
        .numbers = {v->width, v->extras, v->odd ? 2 : 0, pass},
    };
}

/* ---- arguments ------------------------------------------------------------------------------- */

static tern_gemm_matrix strides(const tern_matrix *m)
{
    return (tern_gemm_matrix){m->row, m->col, {m->batch[0], m->batch[1]}};
}
static int64_t nearer(int64_t x)
{
    return x < -FAR ? -FAR : x > FAR ? FAR : x;
}

static tern_attention_tiles shape_of(const tern_attention *a)
{
    tern_attention_tiles s = {.block = *a->block,
                              .q = strides(&a->q),
                              .k = strides(&a->k),
                              .v = strides(&a->v),
                              .out = strides(&a->out),
                              .dout = strides(&a->dout),
                              .dq = strides(&a->dq),
                              .dk = strides(&a->dk),
                              .dv = strides(&a->dv),
                              .width = a->width,
                              .value_width = a->value_width,
                              .scale = (f32)a->scale,
                              .softcap = (f32)a->softcap};
    s.block.before = nearer(s.block.before);
    s.block.after = nearer(s.block.after);
    return s;
}

static tern_arg of(tern_role role, const tern_attention *a, const tern_matrix *m)
{
    return tern_arg_buffer(role, a->dtype, m->buffer, m->at);
}

/* Writes the arguments of the kernels, the same for all passes, and returns how many. deltas: the
 * scratch memory of a gradient. */
static int arguments(const tern_attention *a, const tern_attention_tiles *s,
                     const tern_buffer *deltas, tern_arg args[TERN_ATTENTION_ARGS])
{
    const tern_arg none = tern_arg_buffer(TERN_ROLE_UNUSED, a->dtype, a->q.buffer, 0);
    const int32_t flags = a->block->flags;
    int n = 0;
    if (a->gradient) {
        args[n++] = of(TERN_ROLE_OUT, a, &a->dq);
        args[n++] = of(TERN_ROLE_OUT, a, &a->dk);
        args[n++] = of(TERN_ROLE_OUT, a, &a->dv);
        args[n++] = tern_arg_buffer(TERN_ROLE_OUT, TERN_F32, deltas, 0);
    } else {
        args[n++] = of(TERN_ROLE_OUT, a, &a->out);
        args[n++] = a->sums;
    }
    args[n++] = of(TERN_ROLE_IN, a, &a->q);
    args[n++] = of(TERN_ROLE_IN, a, &a->k);
    args[n++] = of(TERN_ROLE_IN, a, &a->v);
    if (a->gradient) {
        args[n++] = of(TERN_ROLE_IN, a, &a->out);
        args[n++] = of(TERN_ROLE_IN, a, &a->dout);
        args[n++] = a->sums;
    }
    args[n++] = flags & TERN_ATTENTION_NUMBERS ? a->mask : none;
    args[n++] = flags & TERN_ATTENTION_BOOLS ? a->mask : none;
    args[n++] = a->block->drop ? a->state : none;
    args[n++] = TERN_ARG_STRUCT(tern_attention_tiles, s);
    args[n++] = tern_arg_f32((float)a->kept);
    return n;
}

/* ---- a call ---------------------------------------------------------------------------------- */

typedef struct call {
    tern_place *place;
    const tern_attention_backend *backend;
    variant v;
} call;

/* Writes the passes of a and the variant of the kernel of each; returns how many. */
static int list(const call *c, const tern_attention *a, int passes[PASSES],
                tern_matrix_variant of[PASSES])
{
    tern_arg args[TERN_ATTENTION_ARGS];
    const tern_attention_tiles s = shape_of(a);
    const bool narrow = tern_fits_index32(args, arguments(a, &s, a->q.buffer, args), 0);
    const int n = passes_of(a, &c->v, passes);
    for (int i = 0; i < n; i++)
        of[i] = kernel_of(&c->v, a->dtype, passes[i], narrow);
    return n;
}

static tern_status run(const call *c, const tern_attention *a)
{
    const tern_attention_tiles s = shape_of(a);
    tern_matrix_variant of[PASSES];
    tern_arg args[TERN_ATTENTION_ARGS];
    int passes[PASSES];
    const int n = list(c, a, passes, of), n_args = arguments(a, &s, a->scratch, args);
    for (int i = 0; i < n; i++) {
        tern_matrix_kernel *kernel;
        TERN_TRY(tern_matrix_find(c->place, c->backend->kernels, &of[i], &kernel));
        TERN_TRY(
            c->backend->launch(c->place, kernel, groups_of(a, &c->v, passes[i]), args, n_args));
    }
    return TERN_OK;
}

/* A call, and the attention for which its kernels are tried with a small problem. */
typedef struct trial {
    const call *of;
    const tern_attention *a;
} trial;

static tern_status run_trial(void *user, const tern_attention *a)
{
    return run(user, a);
}

static tern_status try(void *user, bool *right)
{
    const trial *t = user;
    call c = *t->of;
    return tern_attention_try(c.place, t->a->dtype, t->a->gradient, c.v.width, run_trial, &c,
                              right);
}

tern_status tern_attention_matrix_plan(tern_place *place, const tern_attention_backend *backend,
                                       const tern_attention *a, size_t *scratch, bool *taken)
{
    const call c = {place, backend, variant_of(a, a->way)};
    trial t = {&c, a};
    tern_matrix_variant of[PASSES];
    tern_matrix_kernel *found[PASSES];
    int passes[PASSES];
    *taken = false;
    if (!fits(a) || groups_of(a, &c.v, 0) > MOST_GROUPS || groups_of(a, &c.v, 2) > MOST_GROUPS)
        return TERN_OK;
    const tern_matrix_call wanted = {of, list(&c, a, passes, of), try, &t};
    TERN_TRY(tern_matrix_prepare(place, backend->kernels, &wanted, found, taken));
    if (*taken && a->gradient)
        *scratch = (size_t)(a->block->count[0] * a->block->count[1] * a->block->queries) * 4;
    return TERN_OK;
}

tern_status tern_attention_matrix_run(tern_place *place, const tern_attention_backend *backend,
                                      const tern_attention *a)
{
    const call c = {place, backend, variant_of(a, a->way)};
    return run(&c, a);
}
