/* gemm_vector.c -- matrix products on CPU-type devices: plans and launches of matmul_vector.cl. */
#include "device/opencl/gemm.h"
#include "base/os_cpu.h"
#include "device/opencl/gemm_plan.h"
#include "device/sources.h"
#include <stdio.h>
#include <string.h>

/* Returns whether the CPU has AVX-512. OpenCL does not report it, but its CPU is this one. */
static bool has_wide_registers(void)
{
#ifdef __x86_64__
    return tern_cpu_has(TERN_CPU_AVX512F);
#else
    return false;
#endif
}

/* Returns the k of a block of matmul_vector.cl, by the local memory of its arrays: gemm_plan.c's
 * 256, or a part of that; 0 if no block fits. CPUs have no local memory of their own, and report
 * anything from 32 KiB to some MiB. */
static int block_k(tern_place *place, tern_dtype dtype)
{
    enum { MC = 96, B_ROW = 1024, MR = 12 };
    uint64_t element = dtype == TERN_F64 ? 8 : 4, vector = has_wide_registers() ? 64 : 32;
    uint64_t spill = tern_dtype_is_half(dtype) ? MC * B_ROW : MR * 2 * vector;
    uint64_t fixed = MC * vector + B_ROW + spill, each = MC * element + B_ROW;
    int k = 256;
    while (k >= 16 && fixed + (uint64_t)k * each > tern_cl_state_of(place)->local_memory)
        k /= 2;
    return k < 16 ? 0 : k;
}

bool tern_cl_vector_fits(tern_place *place, tern_dtype dtype)
{
    return tern_place_info(place)->type == TERN_DEVICE_CPU && block_k(place, dtype) > 0;
}

/* The values of GEMM_KERNEL in matmul_vector.cl. */
enum { PRODUCT, DOT, SUM };
static const char *const names[] = {"gemm", "gemm_dot", "gemm_sum"};

tern_cl_source tern_cl_vector_source(tern_place *place, const char *name, tern_dtype dtype,
                                     tern_text *text, char title[256])
{
    static const char *const types[] = {[TERN_F32] = "GEMM_F32",
                                        [TERN_F64] = "GEMM_F64",
                                        [TERN_F16] = "GEMM_F16",
                                        [TERN_BF16] = "GEMM_BF16"};
    const tern_cl_state *s = tern_cl_state_of(place);
    tern_sources_seen seen = {0};
    int which = 0;
    while (strcmp(names[which], name) != 0)
        which++;
    snprintf(title, 256, "kernel %s of matmul_vector.cl", name);
    tern_text_add(text, "#define %s\n#define GEMM_KERNEL %d\n#define KC %d\n%s", types[dtype],
                  which, block_k(place, dtype), has_wide_registers() ? "#define GEMM_WIDE\n" : "");
    tern_source_add(text, &seen, "declares.h");
    tern_source_add(text, &seen, "matmul_vector.cl");
    bool declared = dtype == TERN_F32 || dtype == TERN_F64;
    return (tern_cl_source){text->data, declared ? s->own_options : s->options, title, s->keep};
}

/* Sets *kernel, which is built at its first use. The caller holds the state's lock. */
static tern_status kernel_for(tern_place *place, tern_cl_gemm_state *state, int which,
                              tern_dtype dtype, tern_cl_kernel **kernel)
{
    tern_cl_kernel **slot = &state->vector[which][dtype];
    if (!*slot) {
        tern_text text = {0};
        char title[256];
        cl_program program;
        tern_cl_source source = tern_cl_vector_source(place, names[which], dtype, &text, title);
        tern_status status =
            text.failed ? TERN_ERR_MEMORY : tern_cl_build(place, &source, &program);
        tern_text_free(&text);
        TERN_TRY(status);
        TERN_TRY(tern_cl_kernel_make(place, program, names[which], slot));
    }
    *kernel = *slot;
    return TERN_OK;
}

static tern_arg word(int64_t value)
{
    return (tern_arg){.bytes = 8, .value.i64 = value};
}

static tern_arg memory(const tern_buffer *buffer)
{
    /* A NULL buffer becomes a null pointer: an argument of a cl_mem's size without data. */
    return buffer ? (tern_arg){.buffer = buffer}
                  : (tern_arg){.bytes = sizeof(cl_mem), .by_reference = true};
}

static tern_arg real(tern_dtype dtype, double value)
{
    return dtype == TERN_F64 ? (tern_arg){.bytes = 8, .value.f64 = value}
                             : (tern_arg){.bytes = 4, .value.f32 = (float)value};
}

static tern_status grow_scratch(tern_place *place, tern_cl_gemm_state *state, size_t bytes)
{
    if (state->scratch.bytes >= bytes)
        return TERN_OK;
    if (state->scratch.bytes)
        tern_cl_free(place, &state->scratch);
    state->scratch = (tern_buffer){.bytes = bytes};
    if (tern_cl_alloc(place, &state->scratch) == TERN_OK)
        return TERN_OK;
    state->scratch = (tern_buffer){0};
    return tern_fail(TERN_ERR_MEMORY, "%s: no %zu bytes for the parts of a matrix product",
                     tern_place_info(place)->device, bytes);
}

/* Launches gemm_sum, the second kernel of a product cut along k. */
static tern_status sum_parts(tern_place *place, tern_cl_gemm_state *state, const tern_cl_product *p,
                             const tern_cl_gemm_plan *plan)
{
    static const size_t one[3] = {1, 1, 1};
    const tern_gemm *g = p->of;
    tern_cl_kernel *kernel;
    TERN_TRY(kernel_for(place, state, SUM, g->dtype, &kernel));
    tern_arg args[] = {memory(&state->scratch),
                       word(plan->parts),
                       memory(g->c.buffer),
                       word(p->at[2]),
                       word(p->stride[2]),
                       word(g->c.row),
                       memory(g->bias),
                       word(g->bias_at),
                       word(g->m),
                       word(g->n),
                       real(g->dtype, g->alpha),
                       real(g->dtype, g->beta),
                       word(plan->sum_rows),
                       word(p->inner),
                       word(p->outer[2])};
    size_t global[3] = {(size_t)p->count, (size_t)((g->m + plan->sum_rows - 1) / plan->sum_rows),
                        1};
    return tern_cl_enqueue(place, kernel, 3, global, one, args, sizeof args / sizeof *args, false);
}

tern_cl_gemm_plan tern_cl_vector_plan(tern_place *place, const tern_gemm *g, int64_t batch)
{
    const tern_cl_gemm_problem problem = {
        .m = g->m,
        .n = g->n,
        .k = g->k,
        .batch = batch,
        .a_row = g->a.row,
        .a_col = g->a.col,
        .b_row = g->b.row,
        .b_col = g->b.col,
        .width = has_wide_registers() ? 64 : 32,
        .element = g->dtype == TERN_F64 ? 8 : 4,
        .narrow = tern_dtype_is_half(g->dtype),
        .compute_units = tern_place_info(place)->compute_units,
    };
    return tern_cl_gemm_plan_make(&problem);
}

tern_status tern_cl_vector_gemm(tern_place *place, tern_cl_gemm_state *state,
                                const tern_cl_product *p)
{
    static const size_t one[3] = {1, 1, 1};
    const tern_gemm *g = p->of;
    bool f64 = g->dtype == TERN_F64;
    const tern_cl_gemm_plan plan = tern_cl_vector_plan(place, g, p->count);
    bool cut = plan.parts > 1;
    tern_cl_kernel *kernel;
    TERN_TRY(kernel_for(place, state, plan.dot ? DOT : PRODUCT, g->dtype, &kernel));
    if (cut)
        TERN_TRY(grow_scratch(place, state, plan.scratch * (f64 ? 8 : 4)));
    const int64_t area = g->m * g->n;
    tern_arg args[] = {memory(g->a.buffer),
                       word(p->at[0]),
                       word(p->stride[0]),
                       word(g->a.row),
                       word(g->a.col),
                       memory(g->b.buffer),
                       word(p->at[1]),
                       word(p->stride[1]),
                       word(g->b.row),
                       word(g->b.col),
                       memory(cut ? &state->scratch : g->c.buffer),
                       word(cut ? 0 : p->at[2]),
                       word(cut ? plan.parts * area : p->stride[2]),
                       word(cut ? g->n : g->c.row),
                       memory(cut ? NULL : g->bias),
                       word(g->bias_at),
                       word(g->m),
                       word(g->n),
                       word(g->k),
                       real(g->dtype, cut ? 1 : g->alpha),
                       real(g->dtype, cut ? 0 : g->beta),
                       word(plan.group_rows),
                       word(plan.group_cols),
                       word(plan.k_part),
                       word(cut ? area : 0),
                       word(p->inner),
                       word(p->outer[0]),
                       word(p->outer[1]),
                       word(cut ? p->inner * plan.parts * area : p->outer[2])};
    TERN_TRY(tern_cl_enqueue(place, kernel, 3, plan.global, one, args, sizeof args / sizeof *args,
                             false));
    return cut ? sum_parts(place, state, p, &plan) : TERN_OK;
}
