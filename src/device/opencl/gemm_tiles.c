/* gemm_tiles.c -- matrix products on GPUs: tiles, their limits, programs and launches of
 * matmul_tiles.cl. */
#include "base/env.h"
#include "base/os.h"
#include "base/warning.h"
#include "device/gemm_kernel.h"
#include "device/index32.h"
#include "device/opencl/gemm.h"
#include "device/signature.h"
#include "device/sources.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- tiles ------------------------------------------------------------------------------- */

const char *tern_cl_tile_read(const char *text, tern_cl_tile *t)
{
    uint16_t *const fields[] = {&t->down, &t->across, &t->m, &t->n, &t->k, &t->v};
    for (int i = 0; i < 6; i++) {
        char *end;
        unsigned long value = *text >= '0' && *text <= '9' ? strtoul(text, &end, 10) : 0;
        if (value == 0 || value > 1024 || *end != (i < 5 ? 'x' : '\0'))
            return "is not DOWNxACROSSxMxNxKxV";
        *fields[i] = (uint16_t)value;
        text = end + 1;
    }
    if (t->m > 16 || t->n > 16 || t->k > 64)
        return "has more than 16 rows or columns an item, or a depth of more than 64";
    if (t->v != 1 && (t->v != 4 || (t->m | t->n | t->k) % 4 != 0))
        return "loads neither 1 nor 4 elements, or 4 do not divide M, N and K";
    return NULL;
}

const char *tern_cl_tile_check(const tern_cl_tile *t, uint64_t local_memory, size_t group_limit)
{
    uint64_t rows = (uint64_t)t->down * t->m, columns = (uint64_t)t->across * t->n;
    if ((size_t)t->down * t->across > group_limit)
        return "wants larger work-groups than the device has";
    if ((rows + columns + 2 * t->v) * t->k * sizeof(float) > local_memory)
        return "wants more local memory than the device has";
    return NULL;
}

const char *tern_cl_tile_of_family(const char *name)
{
    static const char *const rows[][2] = {
#define X(PART, TILE) {PART, TILE},
#include "device/opencl/tiles.def"
#undef X
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        for (const char *at = name; *at; at++)
            if (tern_os_strncasecmp(at, rows[i][0], strlen(rows[i][0])) == 0)
                return rows[i][1];
    return NULL;
}

/* ---- kernels ----------------------------------------------------------------------------- */

static void program_text(tern_text *text, const tern_cl_tiled *u)
{
    const char *const files[] = {"prelude_opencl.h", "prelude_opencl_gpu.h",
                                 "params_device.h",  "dialect.h",
                                 "shapes.h",         u->file};
    const tern_cl_tile *t = &u->tile;
    tern_sources_seen seen = {0};
    tern_text_add(text,
                  "#define TERN_WG %d\n#define TERN_F64 0\n#define TERN_IDX32 %d\n"
                  "#define TERN_T %s\n#define TILE_DOWN %d\n#define TILE_ACROSS %d\n"
                  "#define TILE_M %d\n#define TILE_N %d\n#define TILE_K %d\n#define TILE_V %d\n"
                  "#define TILE_TA %d\n#define TILE_TB %d\n",
                  t->down * t->across, u->narrow, tern_dtype_rows[u->dtype].suffix, t->down,
                  t->across, t->m, t->n, t->k, t->v, u->layout & 1, u->layout >> 1);
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        tern_source_add(text, &seen, files[i]);
}

static tern_status build(tern_place *place, tern_cl_tiled *u)
{
    const tern_cl_state *s = tern_cl_state_of(place);
    const tern_cl_tile *t = &u->tile;
    size_t group = (size_t)t->down * t->across, limit = group;
    char title[96], name[32];
    tern_text text = {0};
    cl_program program;
    const char *why = group ? tern_cl_tile_check(t, s->local_memory, s->group_limit)
                            : tern_cl_tile_read("", &(tern_cl_tile){0});
    snprintf(title, sizeof title, "tile %dx%dx%dx%dx%dx%d of %s", t->down, t->across, t->m, t->n,
             t->k, t->v, u->file);
    if (why)
        return tern_fail(TERN_ERR_ARGUMENT, "%s: %s %s", tern_place_info(place)->device, title,
                         why);
    program_text(&text, u);
    tern_cl_source source = {text.data, s->options, title, s->keep};
    tern_status status = text.failed ? TERN_ERR_MEMORY : tern_cl_build(place, &source, &program);
    tern_text_free(&text);
    TERN_TRY(status);
    snprintf(name, sizeof name, "%s_%s", u->name, tern_dtype_rows[u->dtype].suffix);
    TERN_TRY(tern_cl_kernel_make(place, program, name, &u->kernel));
    CL(GetKernelWorkGroupInfo(u->kernel->kernel, s->device, CL_KERNEL_WORK_GROUP_SIZE, sizeof limit,
                              &limit, NULL));
    u->kernel->group = group;
    if (limit >= group || limit == 0)
        return TERN_OK;
    tern_cl_kernel_free(u->kernel);
    u->kernel = NULL;
    return tern_fail(TERN_ERR_ARGUMENT, "%s: %s needs groups of %zu, and runs in %zu here",
                     tern_place_info(place)->device, title, group, limit);
}

static tern_cl_tiled *find(tern_cl_gemm_state *state, const tern_cl_tiled *u)
{
    for (tern_cl_tiled *t = state->tiled; t; t = t->next)
        if (memcmp(&t->tile, &u->tile, sizeof t->tile) == 0 && t->dtype == u->dtype &&
            t->layout == u->layout && t->narrow == u->narrow && t->name == u->name)
            return t;
    return NULL;
}

/* Builds the kernel. If the driver can't, a warning says that a slower kernel computes the product.
 * It is an error if TERN_OPENCL_GEMM names the tile, or if memory is out. */
static tern_status build_or_not(tern_place *place, tern_cl_tiled *u)
{
    const char *forced = tern_env(TERN_ENV_OPENCL_GEMM);
    char message[800];
    tern_error_hold hold;
    if (forced && strncmp(forced, "tiles:", 6) == 0)
        return build(place, u);
    TERN_TRY(tern_error_hold_begin(&hold));
    build(place, u);
    tern_status status = tern_error_hold_end(&hold, message, sizeof message);
    if (status == TERN_ERR_MEMORY) /* the build may succeed another time */
        return tern_fail(status, "%s", message);
    if (status != TERN_OK)
        tern_warn("slow", u->function, "products of %s take a slower kernel: %s",
                  tern_dtype_name(u->dtype), message);
    return TERN_OK;
}

tern_status tern_cl_tile_kernel(tern_place *place, tern_cl_gemm_state *state, tern_cl_tiled u,
                                tern_cl_kernel **kernel)
{
    tern_cl_tiled *t = find(state, &u);
    if (!t) {
        TERN_TRY(build_or_not(place, &u));
        t = tern_alloc(sizeof *t);
        if (!t) {
            tern_cl_kernel_free(u.kernel);
            return TERN_ERR_MEMORY;
        }
        *t = u;
        t->next = state->tiled;
        state->tiled = t;
    }
    *kernel = t->kernel;
    return TERN_OK;
}

/* ---- a product --------------------------------------------------------------------------- */

tern_status tern_cl_tiles_gemm(tern_place *place, tern_cl_gemm_state *state, const tern_gemm *g,
                               const tern_cl_tile *tile, bool *done)
{
    const tern_gemm_shape shape = tern_gemm_shape_of(g);
    const tern_arg args[] = TERN_GEMM_ARGS(g, &shape);
    const int n = sizeof args / sizeof *args;
    const tern_cl_tiled u = {.file = "matmul_tiles.cl",
                             .name = "gemm_tiles",
                             .function = "tern_matmul",
                             .tile = *tile,
                             .dtype = g->dtype,
                             .layout = tern_gemm_layout(g),
                             .narrow = tern_fits_index32(args, n, 0)};
    const int64_t rows = (int64_t)tile->down * tile->m, columns = (int64_t)tile->across * tile->n;
    tern_cl_kernel *kernel;
    TERN_TRY(tern_cl_tile_kernel(place, state, u, &kernel));
    *done = kernel != NULL;
    if (!kernel)
        return TERN_OK;
    int64_t tiles = ((g->m + rows - 1) / rows) * ((g->n + columns - 1) / columns);
    tern_grid grid = tern_groups(g->count[0] * g->count[1] * tiles, rows * columns * g->k);
    return tern_cl_launch(place, kernel, &grid, args, n);
}
