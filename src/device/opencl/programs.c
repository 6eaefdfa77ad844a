/* programs.c -- from kernel files to kernels: text, build, cache on disk.
 *
 * In the cpu form a program has one kernel, or a program group of the kernels that training needs.
 * PoCL takes 1 s for a process's first program, 0.05 s for each later one (and 0.2 s more where it
 * reads its own declarations of OpenCL C, see enumerate.c), 0.02 s for each kernel in a program,
 * and 0.1 to 0.4 s for the machine code of a kernel that is launched. A binary would make PoCL
 * compile other machine code first, for groups of any size, which no launch uses, so its programs
 * are left to its own cache. Other devices get a family and dtype in one program, as their
 * compilers are quick at kernels and slow at starting. */
#include "base/dtype.h"
#include "base/lock.h"
#include "device/builds.h"
#include "device/program_groups.h"
#include "device/program_archive.h"
#include "device/signature.h"
#include "device/index32.h"
#include "device/opencl/opencl.h"
#include "device/sources.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { GROUP = 64 };

static const struct {
    const char *file;
    size_t group;
} large_families[] = {
#define LARGE(file, group) {#file, group},
#include "device/opencl/large_families.def"
#undef LARGE
};
enum { LARGE_FAMILIES = sizeof large_families / sizeof *large_families };

/* Returns the index of a family in large_families, or LARGE_FAMILIES. */
static int large_family(const char *file)
{
    int i = 0;
    while (i < LARGE_FAMILIES && strcmp(large_families[i].file, file) != 0)
        i++;
    return i;
}

/* ---- text -------------------------------------------------------------------------------- */

/* What a program is built from: a kernel, or the program group of the kernel. */
typedef struct unit {
    const char *file, *kernel; /* the kernel's name is without its type */
    const char *program_group; /* NULL: no group */
    tern_dtype dtype;
    size_t work_group;
    bool noopt;              /* built alone, without the driver's optimizer (doctor.c) */
    bool narrow;             /* 32-bit indices */
    int lanes;               /* lanes of teams for short rows; 0: any */
    const tern_chain *chain; /* built in place of the file's kernel; NULL: none */
} unit;

static bool is_member(const unit *u, const tern_program_group_row *row)
{
    return row->shares && strcmp(row->group, u->program_group) == 0;
}

/* Picks a kernel for the program: see TERN_KERNEL in prelude_opencl_cpu.h. */
static void add_pick(tern_text *text, tern_text *kernels, const unit *u, const char *kernel)
{
    const char *suffix = tern_dtype_rows[u->dtype].suffix;
    tern_text_add(text,
                  "#define TERN_PICK_%s_%s tern_none(void); __kernel TERN_ONE_ITEM void %s_%s\n",
                  kernel, suffix, kernel, suffix);
    tern_text_add(kernels, " %s ", kernel);
}

static void add_family(tern_text *text, tern_sources_seen *seen, const char *file)
{
    char family[64];
    snprintf(family, sizeof family, "%s.cl", file);
    tern_source_add(text, seen, family);
}

static void library_text(tern_place *place, tern_text *text, const unit *u)
{
    static const char *const common[] = {"params_device.h", "dialect.h", "shapes.h",
                                         "nd_index.h",      "math.cl",   "math_special.cl"};
    const tern_cl_state *s = tern_cl_state_of(place);
    tern_sources_seen seen = {0};
    tern_text kernels = {0};
    tern_text_add(text, "#define TERN_WG %zu\n#define TERN_F64 %d\n#define TERN_ATOMIC64 %d\n",
                  u->work_group, tern_place_info(place)->has_f64, s->atomics64);
    tern_text_add(text, "#define TERN_IDX32 %d\n#define TERN_ROW_LANES %d\n", u->narrow, u->lanes);
    if (s->cpu_form && !u->program_group)
        add_pick(text, &kernels, u, u->kernel);
    for (const tern_program_group_row *row = tern_program_groups; u->program_group && row->group;
         row++)
        if (is_member(u, row))
            add_pick(text, &kernels, u, row->kernel);
    tern_source_add(text, &seen, "prelude_opencl.h");
    tern_source_add(text, &seen, s->cpu_form ? "prelude_opencl_cpu.h" : "prelude_opencl_gpu.h");
    for (size_t i = 0; i < sizeof common / sizeof *common; i++)
        tern_source_add(text, &seen, common[i]);
    if (u->dtype == TERN_F64) {
        tern_source_add(text, &seen, "math64.cl");
        tern_source_add(text, &seen, "math64_special.cl");
    }
    tern_source_add(text, &seen, "math_names.h");
    tern_text_add(text, "#define TERN_T %s\n", tern_dtype_rows[u->dtype].suffix);
    seen.kernels = kernels.data;
    if (u->chain)
        tern_chain_text(text, &seen, u->chain, u->dtype);
    else if (!u->program_group)
        add_family(text, &seen, u->file);
    for (const tern_program_group_row *row = tern_program_groups; u->program_group && row->group;
         row++)
        if (is_member(u, row))
            add_family(text, &seen, row->file);
    text->failed |= kernels.failed;
    tern_text_free(&kernels);
}

/* ---- building ---------------------------------------------------------------------------- */

/* Adds the log's lines with errors. Returns false if there are none, and adds the log instead. */
static bool add_errors(tern_text *message, const char *log)
{
    int lines = 0;
    for (const char *line = log; line && *line && lines < 4;) {
        size_t length = strcspn(line, "\n");
        const char *error = strstr(line, "error");
        if (error && error < line + length) {
            tern_text_add(message, "%s%.*s", lines ? "\n" : "", (int)(length < 400 ? length : 400),
                          line);
            lines++;
        }
        line += length + (line[length] == '\n');
    }
    if (lines == 0)
        tern_text_add(message, "%.800s", log);
    return lines > 0;
}

static tern_status build_failed(tern_place *place, const tern_cl_source *source, cl_program program,
                                cl_int code)
{
    tern_cl_state *s = tern_cl_state_of(place);
    size_t bytes = 0;
    tern_text message = {0};
    tern_cl.GetProgramBuildInfo(program, s->device, CL_PROGRAM_BUILD_LOG, 0, NULL, &bytes);
    char *log = tern_alloc_aligned(bytes + 1);
    if (log) {
        log[0] = log[bytes] = '\0';
        tern_cl.GetProgramBuildInfo(program, s->device, CL_PROGRAM_BUILD_LOG, bytes, log, NULL);
        if (!add_errors(&message, log) && strstr(tern_place_info(place)->platform, "Portable"))
            tern_text_add(&message, " (it needs a folder it can write to: POCL_CACHE_DIR)");
    }
    tern_free(log);
    tern_status status =
        tern_fail(TERN_ERR_ARGUMENT, "%s: %s does not build: %s (%d), options \"%s\"\n%s",
                  tern_place_info(place)->device, source->title, tern_cl_code_name(code), code,
                  source->options, message.data ? message.data : "");
    tern_text_free(&message);
    return status;
}

static tern_cache_key key_of(tern_place *place, const tern_cl_source *source)
{
    const tern_device_info *info = tern_place_info(place);
    const char *parts[] = {source->text, source->options,
                           info->name,   info->platform,
                           info->driver, tern_cl_state_of(place)->platform_version};
    tern_cache_key key = tern_cache_key_start("opencl 1");
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        tern_cache_key_add(&key, parts[i]);
    return key;
}

/* Compiles a program from source. */
static tern_status compile(tern_place *place, const tern_cl_source *source, cl_program *program)
{
    tern_cl_state *s = tern_cl_state_of(place);
    cl_int code = CL_SUCCESS;
    TERN_TRY(tern_build_allowed(place, source->title));
    cl_program made = CL_NEW(
        code, CreateProgramWithSource(s->context, 1, (const char *[]){source->text}, NULL, &code));
    TERN_TRY(tern_cl_check(place, code, "CreateProgramWithSource"));
    tern_build_compiles(place, source->title);
    tern_foreign_compile_begin();
    code = CL(BuildProgram(made, 1, &s->device, source->options, NULL, NULL));
    tern_foreign_compile_end();
    tern_build_compiled(place, source->title);
    if (code == CL_SUCCESS) {
        tern_place_count_program(place, true);
        *program = made;
        return TERN_OK;
    }
    tern_status status = code == CL_OUT_OF_RESOURCES || code == CL_OUT_OF_HOST_MEMORY
                             ? tern_cl_check(place, code, "BuildProgram")
                             : build_failed(place, source, made, code);
    CL_END(ReleaseProgram(made));
    return status;
}

/* Loads or compiles a program. The caller has claimed the key. */
static tern_status build(tern_place *place, const tern_cl_source *source, const tern_cache_key *key,
                         cl_program *program)
{
    *program = source->keep == TERN_CL_KEEP_NOT ? NULL : tern_cl_binary_load(place, source, key);
    if (*program) {
        tern_place_count_program(place, false);
        return TERN_OK;
    }
    tern_build_is_cold();
    tern_cl_flush(place); /* the device has work while the compiler runs */
    TERN_TRY(compile(place, source, program));
    if (source->keep == TERN_CL_KEEP)
        tern_cl_binary_store(key, *program);
    else if (source->keep == TERN_CL_KEEP_LATER)
        tern_cl_keep_later(place, key, *program);
    return TERN_OK;
}

tern_status tern_cl_build(tern_place *place, const tern_cl_source *source, cl_program *program)
{
    tern_cache_key key = key_of(place, source);
    tern_build_begin(&key);
    int claim = source->keep == TERN_CL_KEEP_NOT ? -1 : tern_cache_claim(&key);
    tern_status status = build(place, source, &key, program);
    tern_cache_let_go(claim, &key);
    tern_build_end(&key);
    if (status == TERN_OK && source->keep != TERN_CL_KEEP_NOT)
        tern_program_archive_note(place, &key);
    return status;
}

void tern_cl_build_ahead(tern_place *place, const tern_cl_source *source)
{
    tern_cache_key key = key_of(place, source);
    cl_program program = NULL;
    if (source->keep == TERN_CL_KEEP_NOT || !tern_build_try(&key))
        return;
    int claim = tern_cache_claim(&key);
    if (!tern_cache_has(&key) && compile(place, source, &program) == TERN_OK &&
        source->keep == TERN_CL_KEEP)
        tern_cl_binary_store(&key, program);
    if (program)
        CL_END(ReleaseProgram(program));
    tern_cache_let_go(claim, &key);
    tern_build_end(&key);
}

/* ---- kernels ----------------------------------------------------------------------------- */

tern_status tern_cl_kernel_make(tern_place *place, cl_program program, const char *name,
                                tern_cl_kernel **kernel)
{
    cl_int code = CL_SUCCESS;
    tern_cl_kernel *k = tern_alloc(sizeof *k);
    if (!k) {
        CL_END(ReleaseProgram(program));
        return TERN_ERR_MEMORY;
    }
    k->program = program;
    snprintf(k->name, sizeof k->name, "%s", name);
    k->kernel = CL_NEW(code, CreateKernel(program, name, &code));
    tern_status status = TERN_OK;
    if (code == CL_INVALID_KERNEL_NAME)
        status = tern_fail(TERN_ERR_ARGUMENT, "%s: the program has no kernel called \"%s\"",
                           tern_place_info(place)->device, name);
    else
        status = tern_cl_check(place, code, "CreateKernel");
    if (status == TERN_OK) {
        code = CL(
            GetKernelInfo(k->kernel, CL_KERNEL_NUM_ARGS, sizeof k->arguments, &k->arguments, NULL));
        status = tern_cl_check(place, code, "GetKernelInfo");
    }
    if (status == TERN_OK) {
        code = CL(GetKernelWorkGroupInfo(k->kernel, tern_cl_state_of(place)->device,
                                         CL_KERNEL_LOCAL_MEM_SIZE, sizeof k->own_local,
                                         &k->own_local, NULL));
        status = tern_cl_check(place, code, "GetKernelWorkGroupInfo");
    }
    if (status != TERN_OK) {
        tern_cl_kernel_free(k);
        return status;
    }
    *kernel = k;
    return TERN_OK;
}

void tern_cl_kernel_free(tern_cl_kernel *kernel)
{
    if (!kernel)
        return;
    if (kernel->kernel)
        CL_END(ReleaseKernel(kernel->kernel));
    CL_END(ReleaseProgram(kernel->program));
    tern_free(kernel);
}

/* Returns the unit of a kernel, with the work-group size that is tried first. */
static unit unit_of(tern_place *place, const char *file, const char *name, tern_dtype dtype,
                    bool narrow, int lanes)
{
    const tern_cl_state *s = tern_cl_state_of(place);
    char full[128];
    snprintf(full, sizeof full, "%s_%s", name, tern_dtype_rows[dtype].suffix);
    const tern_cl_way_around *way = tern_cl_doctor_way(place, full);
    const int large = large_family(file);
    size_t most = large < LARGE_FAMILIES ? large_families[large].group : GROUP;
    most = way && way->group && way->group < most ? way->group : most;
    unit u = {file, name, NULL, dtype, 0, way && way->group == 0, narrow, lanes, NULL};
    u.work_group = s->cpu_form ? 1 : s->group_limit < most ? s->group_limit : most;
    return u;
}

/* Returns the program group or the family in a program, or NULL for a program with one kernel. */
static const char *contents(const tern_cl_state *s, const unit *u)
{
    return u->noopt ? NULL : u->program_group ? u->program_group : s->cpu_form ? NULL : u->file;
}

/* Returns the program of the kernel, if another of its kernels was resolved before, or NULL. */
static cl_program shared_program(tern_cl_state *s, const unit *u)
{
    cl_program program = NULL;
    const char *family = contents(s, u);
    tern_mutex_lock(&s->lock);
    for (tern_cl_kernel *k = family ? s->kernels : NULL; k && !program; k = k->next)
        if (k->group == u->work_group && k->dtype == u->dtype && k->narrow == u->narrow &&
            k->lanes == u->lanes && k->family && strcmp(k->family, family) == 0)
            program = k->program;
    tern_mutex_unlock(&s->lock);
    return program;
}

/* The strings of a source beside its text. */
typedef struct words {
    char title[256], options[192];
} words;

/* Returns the source of a unit's program, with strings in w. The caller frees the text. */
static tern_cl_source source_of(tern_place *place, const unit *u, tern_text *text, words *w)
{
    const tern_cl_state *s = tern_cl_state_of(place);
    library_text(place, text, u);
    snprintf(w->title, sizeof w->title, "kernel %s_%s of %s.cl", u->kernel,
             tern_dtype_rows[u->dtype].suffix, u->file);
    const bool large = s->has_large_registers && large_family(u->file) < LARGE_FAMILIES;
    snprintf(w->options, sizeof w->options, "%s%s%s", s->own_options,
             large ? " -cl-intel-256-GRF-per-thread" : "", u->noopt ? " -cl-opt-disable" : "");
    return (tern_cl_source){text->data, w->options, w->title, s->keep};
}

/* Sets *program to one with this kernel, its family or its program group, for u->work_group. */
static tern_status build_library(tern_place *place, const unit *u, cl_program *program)
{
    words w;
    tern_text text = {0};
    *program = shared_program(tern_cl_state_of(place), u);
    if (*program)
        return tern_cl_check(place, CL(RetainProgram(*program)), "RetainProgram");
    tern_cl_source source = source_of(place, u, &text, &w);
    tern_status status = text.failed ? TERN_ERR_MEMORY : tern_cl_build(place, &source, program);
    tern_text_free(&text);
    return status;
}

/* Returns the program group that a kernel shares a program with, or NULL. */
static const tern_program_group_row *row_of(const tern_cl_state *s, const unit *u)
{
    const tern_program_group_row *row =
        s->is_lazy && !u->noopt ? tern_program_group_of(u->file, u->kernel) : NULL;
    return row && row->shares ? row : NULL;
}

/* Returns a kernel's program group, or NULL. Only a kernel that shows training begins a group. */
static const char *group_for(tern_cl_state *s, unit *u)
{
    const tern_program_group_row *row = row_of(s, u);
    u->program_group = row ? row->group : NULL;
    return row && (row->opens || shared_program(s, u)) ? row->group : NULL;
}

static void list(tern_cl_state *s, tern_cl_kernel *k)
{
    tern_mutex_lock(&s->lock);
    k->next = s->kernels;
    s->kernels = k;
    tern_mutex_unlock(&s->lock);
}

static tern_status resolve(tern_place *place, const char *file, const char *name, tern_dtype dtype,
                           bool narrow, int lanes, void **kernel)
{
    tern_cl_state *s = tern_cl_state_of(place);
    char full[128];
    TERN_TRY(tern_cl_alive(place));
    if (dtype == TERN_F64 && !tern_place_info(place)->has_f64)
        return tern_fail(TERN_ERR_UNSUPPORTED, "%s: the device has no float64 (%s)",
                         tern_place_info(place)->device, name);
    snprintf(full, sizeof full, "%s_%s", name, tern_dtype_rows[dtype].suffix);
    unit u = unit_of(place, file, name, dtype, narrow, lanes);
    u.program_group = group_for(s, &u);
    for (;;) {
        cl_program program;
        tern_cl_kernel *k;
        size_t limit = u.work_group;
        TERN_TRY(build_library(place, &u, &program));
        TERN_TRY(tern_cl_kernel_make(place, program, full, &k));
        CL(GetKernelWorkGroupInfo(k->kernel, s->device, CL_KERNEL_WORK_GROUP_SIZE, sizeof limit,
                                  &limit, NULL));
        if (limit >= u.work_group || limit == 0) {
            k->group = u.work_group;
            k->narrow = narrow;
            k->lanes = lanes;
            k->family = contents(s, &u);
            k->dtype = dtype;
            list(s, k);
            *kernel = k;
            return TERN_OK;
        }
        tern_cl_kernel_free(k); /* too large for the device: halves the size */
        while (u.work_group > limit)
            u.work_group /= 2;
    }
}

tern_status tern_cl_resolve(tern_place *place, const char *file, const char *name, tern_dtype dtype,
                            void **kernel)
{
    return resolve(place, file, name, dtype, false, 0, kernel);
}

tern_status tern_cl_resolve_index32(tern_place *place, const char *file, const char *name,
                                    tern_dtype dtype, int lanes, void **kernel)
{
    return resolve(place, file, name, dtype, true, lanes, kernel);
}

tern_status tern_cl_resolve_for(tern_place *place, const char *file, const char *name,
                                tern_dtype dtype, const tern_arg *args, int n, void *slots[2],
                                void **kernel)
{
    bool narrow = !tern_cl_state_of(place)->cpu_form && tern_fits_index32(args, n, 0);
    if (!slots[narrow]) {
        TERN_TRY(tern_signature_check(place, file, name, dtype, args, n));
        TERN_TRY(resolve(place, file, name, dtype, narrow, 0, &slots[narrow]));
    }
    *kernel = slots[narrow];
    return TERN_OK;
}

tern_status tern_cl_chain(tern_place *place, const tern_chain *chain, tern_dtype dtype,
                          void **compiled)
{
    tern_cl_state *s = tern_cl_state_of(place);
    const int at = chain->slot && !chain->slot->stores ? chain->rows - 1 : 0;
    const tern_chain_row *row = &chain->row[at];
    const bool has = chain->slot || chain->is_beside; /* whether the chain has a kernel of a file */
    unit u = unit_of(place, has ? row->file : "chain", has ? row->name : "chain", dtype,
                     !s->cpu_form && chain->n < tern_index32_limit, 0);
    words w;
    tern_text text = {0};
    cl_program program;
    size_t limit = 0;
    tern_cl_kernel *k = NULL;
    u.chain = chain, u.kernel = "chain";
    if (dtype == TERN_BOOL) /* only a store turns a result into 0 or 1 */
        return TERN_OK;
    if (has) /* the same size as for the kernel alone */
        u.work_group = ((const tern_cl_kernel *)row->compiled)->group;
    const tern_cl_source source = source_of(place, &u, &text, &w);
    tern_status status = text.failed ? TERN_ERR_MEMORY : tern_cl_build(place, &source, &program);
    tern_text_free(&text);
    snprintf(w.title, sizeof w.title, "chain_%s", tern_dtype_rows[dtype].suffix);
    TERN_TRY(status);
    TERN_TRY(tern_cl_kernel_make(place, program, w.title, &k));
    k->group = u.work_group;
    list(s, k);
    CL(GetKernelWorkGroupInfo(k->kernel, s->device, CL_KERNEL_WORK_GROUP_SIZE, sizeof limit, &limit,
                              NULL));
    if (has && limit && limit < u.work_group) /* its sums would have another order */
        return tern_fail(TERN_ERR_DEVICE, "%s: %s with them has work-groups of %zu, and alone %zu",
                         tern_place_info(place)->device, row->name, limit, u.work_group);
    *compiled = k;
    return TERN_OK;
}

void tern_cl_build_kernel_ahead(tern_place *place, const char *file, const char *name,
                                tern_dtype dtype, int lanes)
{
    tern_cl_state *s = tern_cl_state_of(place);
    tern_text text = {0};
    words w;
    unit u = unit_of(place, file, name, dtype, !s->cpu_form, lanes);
    const tern_program_group_row *row = row_of(s, &u);
    u.program_group = row ? row->group : NULL;
    tern_cl_source source = source_of(place, &u, &text, &w);
    if (!text.failed)
        tern_cl_build_ahead(place, &source);
    tern_text_free(&text);
}
