/* attention_matrix.c -- attention on matrix units: kernels, arguments, and what was tried. */
#include "device/attention_matrix.h"
#include "base/warning.h"
#include "device/index32.h"
#include "types_host.h"
#include "shapes.h"
#include <stdio.h>
#include <string.h>

/* FAR: positions are numbers of 32 bits. */
enum { FAR = 1 << 30, MOST_GROUPS = 1 << 20, PASSES = 3 };

/* What a call's kernels are built for. */
typedef struct variant {
    int way, width;
    bool extras, odd;
} variant;

/* ---- which kernels --------------------------------------------------------------------------- */

static bool lies_in_eights(const tern_matrix *m, const int64_t count[2], int64_t width)
{
    int64_t outer = count[0] > 1 ? m->batch[0] : 0, inner = count[1] > 1 ? m->batch[1] : 0;
    return m->col == 1 && width % 8 == 0 && ((m->at | m->row | outer | inner) & 7) == 0 &&
           m->buffer->address % 16 == 0; /* the application's begins anywhere */
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
    /* A maximum of scores before they are multiplied by scale is one behind it, if that is above
     * 0. */
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

/* dq and dk hold columns of two matrices. */
static bool holds_two(int pass)
{
    return pass == 1 || pass == 2;
}

/* Sub-groups of a group; where local memory has their columns, as many as find room. */
static int64_t subs_of(const variant *v, int pass)
{
    const bool in_local =
        is_xe(v->way) || v->way == TERN_MATRIX_RDNA3 || (v->way == TERN_MATRIX_RDNA4 && pass == 1);
    if (v->width > 128)
        return (v->way == TERN_MATRIX_XE8 ? 8 : 4) / (in_local && holds_two(pass) ? 2 : 1);
    if (is_xe(v->way))
        return v->width > 64 ? 8 : 16;
    return v->way == TERN_MATRIX_MMA && v->width > 64 ? 8 : 4;
}

/* 0: forward; 1 to 3: dq, dk with dv where one kernel makes both, dv. */
static int passes_of(const tern_attention *a, const variant *v, int passes[PASSES])
{
    passes[0] = a->gradient;
    passes[1] = 2, passes[2] = 3;
    bool whole = v->width <= 64 && !is_xe(v->way) && !(v->way == TERN_MATRIX_RDNA3 && v->extras);
    return !a->gradient ? 1 : whole ? 2 : 3;
}

/* As CUTS of attention_matrix.h: how many groups share the columns of a result. */
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

static void describe(tern_attention_kernel *k, const variant *v, tern_dtype dtype, int pass,
                     bool narrow)
{
    static const char *const ends[] = {"", "_dq", "_dk", "_dv"};
    const char *type = tern_dtype_rows[dtype].suffix;
    *k = (tern_attention_kernel){
        .file = pass ? "attention_matrix_gradient.cl" : "attention_matrix.cl",
        .title = pass ? "attention's gradient on matrix units" : "attention on matrix units",
        .way = v->way,
        .group = (size_t)(subs_of(v, pass) * tern_matrix_lanes(v->way))};
    snprintf(k->name, sizeof k->name, "attention_matrix%s_%s", ends[pass], type);
    snprintf(k->defines, sizeof k->defines,
             "#define TERN_WG %zu\n#define TERN_IDX32 %d\n#define TERN_T %s\n"
             "#define MATRIX_WAY %d\n#define MATRIX_WIDTH %d\n#define MATRIX_EXTRAS %d\n"
             "#define MATRIX_ODD %d\n#define MATRIX_PASS %d\n",
             k->group, narrow, type, v->way, v->width, v->extras, v->odd ? 2 : 0, pass);
}

/* What does not build is kept, too: made is NULL then. */
static tern_status find(tern_place *place, tern_attention_kernels *kernels,
                        const tern_attention_kernel *wanted, tern_attention_kernel **found)
{
    tern_attention_kernel *k = kernels->first;
    while (k && strcmp(k->defines, wanted->defines) != 0)
        k = k->next;
    *found = k;
    if (k)
        return TERN_OK;
    if (!(k = tern_alloc(sizeof *k)))
        return TERN_ERR_MEMORY;
    *k = *wanted;
    tern_status status = kernels->backend->build(place, k);
    if (status == TERN_ERR_MEMORY) { /* another time */
        tern_free(k);
        return status;
    }
    k->state = status != TERN_OK             ? TERN_ATTENTION_WRONG
               : k->way == TERN_MATRIX_PLAIN ? TERN_ATTENTION_RIGHT
                                             : TERN_ATTENTION_NOT_TRIED;
    k->next = kernels->first;
    *found = kernels->first = k;
    return status;
}

void tern_attention_matrix_free(tern_attention_kernels *kernels)
{
    for (tern_attention_kernel *next, *k = kernels->first; k; k = next) {
        next = k->next;
        if (k->made)
            kernels->backend->free(k->made);
        tern_free(k);
    }
    kernels->first = NULL;
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

/* Those of the kernels of a pass; deltas: the scratch memory of a gradient. */
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
    tern_attention_kernels *kernels;
    variant v;
} call;

/* The kernels of a, up to the first that is wrong. */
static tern_status find_all(const call *c, const tern_attention *a, int passes[PASSES], int *n,
                            tern_attention_kernel *all[PASSES])
{
    tern_arg args[TERN_ATTENTION_ARGS];
    const tern_attention_tiles s = shape_of(a);
    const bool narrow = tern_fits_index32(args, arguments(a, &s, a->q.buffer, args), 0);
    *n = passes_of(a, &c->v, passes);
    for (int i = 0; i < *n; i++) {
        tern_attention_kernel wanted;
        describe(&wanted, &c->v, a->dtype, passes[i], narrow);
        TERN_TRY(find(c->place, c->kernels, &wanted, &all[i]));
        if (all[i]->state == TERN_ATTENTION_WRONG)
            *n = i + 1; /* the others would be compiled for nothing */
    }
    return TERN_OK;
}

static tern_status run(void *user, const tern_attention *a)
{
    const call *c = user;
    const tern_attention_tiles s = shape_of(a);
    tern_attention_kernel *all[PASSES];
    tern_arg args[TERN_ATTENTION_ARGS];
    int passes[PASSES], n;
    TERN_TRY(find_all(c, a, passes, &n, all));
    const int n_args = arguments(a, &s, a->scratch, args);
    for (int i = 0; i < n; i++)
        TERN_TRY(c->kernels->backend->launch(c->place, all[i], groups_of(a, &c->v, passes[i]), args,
                                             n_args));
    return TERN_OK;
}

/* Builds and tries what is new; *usable: all kernels are right. What fails is reported once. */
static tern_status prepare(call *c, const tern_attention *a, bool *usable)
{
    tern_attention_kernel *all[PASSES];
    int passes[PASSES], n;
    bool right = true, new = false;
    TERN_TRY(find_all(c, a, passes, &n, all));
    for (int i = 0; i < n; i++) {
        if (all[i]->state == TERN_ATTENTION_WRONG)
            return TERN_OK;
        new = new || all[i]->state == TERN_ATTENTION_NOT_TRIED;
    }
    tern_status status =
        new ? tern_attention_try(c->place, a->dtype, a->gradient, c->v.width, run, c, &right)
            : TERN_OK;
    if (status == TERN_ERR_MEMORY)
        return status; /* another time */
    *usable = status == TERN_OK && right;
    for (int i = 0; new &&i < n; i++)
        all[i]->state = *usable ? TERN_ATTENTION_RIGHT : TERN_ATTENTION_WRONG;
    return status != TERN_OK || right ? status
                                      : tern_fail(TERN_ERR_DEVICE, "what was tried came out wrong");
}

tern_status tern_attention_matrix_plan(tern_place *place, tern_attention_kernels *kernels,
                                       const tern_attention *a, size_t *scratch, bool *taken)
{
    call c = {place, kernels, variant_of(a, a->way)};
    char why[600];
    tern_error_hold hold;
    *taken = false;
    if (!fits(a) || groups_of(a, &c.v, 0) > MOST_GROUPS || groups_of(a, &c.v, 2) > MOST_GROUPS)
        return TERN_OK;
    TERN_TRY(tern_error_hold_begin(&hold));
    prepare(&c, a, taken);
    tern_status status = tern_error_hold_end(&hold, why, sizeof why);
    if (status != TERN_OK && status != TERN_ERR_MEMORY)
        tern_warn("slow", "tern_scaled_dot_product_attention",
                  "attention of %s on %s leaves its matrix unit alone (%s): %s",
                  tern_dtype_name(a->dtype), tern_place_info(place)->device,
                  tern_matrix_name(a->way), why);
    if (*taken && a->gradient)
        *scratch = (size_t)(a->block->count[0] * a->block->count[1] * a->block->queries) * 4;
    return TERN_OK;
}

tern_status tern_attention_matrix_run(tern_place *place, tern_attention_kernels *kernels,
                                      const tern_attention *a)
{
    call c = {place, kernels, variant_of(a, a->way)};
    return run(&c, a);
}
