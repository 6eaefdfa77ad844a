/* programs.c -- from kernel files to kernels: text, NVRTC, cubins in the cache on disk.
 *
 * A program has one kernel: NVRTC needs a tenth of a second for one kernel and seconds for a
 * family, of which a model uses a dozen. The family's other kernels stay in the text as functions
 * that nothing calls. */
#include "base/dtype.h"
#include "base/ending.h"
#include "device/builds.h"
#include "device/cuda/cuda.h"
#include "device/index32.h"
#include "device/program_archive.h"
#include "device/sources.h"
#include <stdio.h>
#include <string.h>

enum { BLOCK = 256, MAX_ARCHITECTURES = 64 };

/* ---- text -------------------------------------------------------------------------------- */

/* Makes `kernel` the only entry of the program: see TERN_KERNEL in prelude_cuda.h. */
static void pick(tern_text *text, const char *kernel)
{
    tern_text_add(text,
                  "#define TERN_PICKED 1\n#define TERN_PICK_%s tern_none(void); "
                  "TERN_ENTRY void %s\n",
                  kernel, kernel);
}

/* Adds the text of a kernel, or of the kernel for `chain` if that is not NULL. */
static void library_text(tern_text *text, const char *file, const char *kernel, tern_dtype dtype,
                         bool narrow, int lanes, const tern_chain *chain)
{
    static const char *const common[] = {"prelude_cuda.h", "params_device.h", "dialect.h",
                                         "shapes.h",       "nd_index.h",      "math.cl",
                                         "math_special.cl"};
    tern_sources_seen seen = {0};
    char family[64];
    tern_text_add(text, "#define TERN_WG %d\n#define TERN_ATOMIC64 1\n%s", BLOCK,
                  narrow ? "#define TERN_IDX32 1\n" : "");
    if (lanes)
        tern_text_add(text, "#define TERN_ROW_LANES %d\n", lanes);
    pick(text, kernel);
    for (size_t i = 0; i < sizeof common / sizeof *common; i++)
        tern_source_add(text, &seen, common[i]);
    if (dtype == TERN_F64) {
        tern_source_add(text, &seen, "math64.cl");
        tern_source_add(text, &seen, "math64_special.cl");
    }
    tern_source_add(text, &seen, "math_names.h");
    tern_text_add(text, "#define TERN_T %s\n", tern_dtype_rows[dtype].suffix);
    snprintf(family, sizeof family, "%s.cl", file);
    if (chain)
        tern_chain_text(text, &seen, chain, dtype);
    else
        tern_source_add(text, &seen, family);
}

void tern_cuda_matrix_text(tern_text *text, const char *defines, const char *file,
                           const char *kernel)
{
    const char *const files[] = {"prelude_cuda.h", "params_device.h", "dialect.h", "shapes.h",
                                 file};
    tern_sources_seen seen = {0};
    tern_text_add(text, "%s", defines);
    pick(text, kernel);
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        tern_source_add(text, &seen, files[i]);
}

/* ---- compiling --------------------------------------------------------------------------- */

/* What NVRTC compiles for: the device's own code, or if this NVRTC is older than the device, PTX of
 * the newest architecture that it supports, which the driver compiles. */
typedef struct target {
    char option[48];
    bool ptx;
} target;

static tern_status choose_target(tern_place *place, target *t)
{
    int known[MAX_ARCHITECTURES], n = 0, best = 0, least = 1000;
    int compute = tern_cuda_state_of(place)->compute;
    if (tern_cuda.nvrtcGetNumSupportedArchs(&n) != 0 || n <= 0 || n > MAX_ARCHITECTURES ||
        tern_cuda.nvrtcGetSupportedArchs(known) != 0)
        return tern_fail(TERN_ERR_DEVICE, "%s: NVRTC %d.%d does not say what it can compile for",
                         tern_place_info(place)->device, tern_cuda.nvrtc_major,
                         tern_cuda.nvrtc_minor);
    for (int i = 0; i < n; i++) {
        best = known[i] <= compute && known[i] > best ? known[i] : best;
        least = known[i] < least ? known[i] : least;
    }
    if (best == 0)
        return tern_fail(TERN_ERR_UNSUPPORTED,
                         "%s: NVRTC %d does not know sm_%d (%s), its oldest is sm_%d; CUDA 12's "
                         "libraries do: name their folder in TERN_CUDA_PATH",
                         tern_place_info(place)->device, tern_cuda.nvrtc_major, compute,
                         tern_place_info(place)->name, least);
    t->ptx = best != compute;
    snprintf(t->option, sizeof t->option, "--gpu-architecture=%s_%d", t->ptx ? "compute" : "sm",
             best);
    return TERN_OK;
}

static tern_status build_failed(tern_place *place, const tern_cuda_source *source,
                                nvrtcProgram program, nvrtcResult code)
{
    size_t bytes = 0;
    tern_cuda.nvrtcGetProgramLogSize(program, &bytes);
    char *log = tern_alloc_aligned(bytes + 1);
    if (log && (bytes == 0 || tern_cuda.nvrtcGetProgramLog(program, log) != 0))
        log[0] = '\0';
    tern_status status = tern_fail(TERN_ERR_ARGUMENT, "%s: %s does not build: %s\n%.1600s",
                                   tern_place_info(place)->device, source->title,
                                   tern_cuda.nvrtcGetErrorString(code), log ? log : "");
    tern_free(log);
    return status;
}

static nvrtcResult take_image(nvrtcProgram program, bool ptx, void **image, size_t *bytes)
{
    nvrtcResult code = ptx ? tern_cuda.nvrtcGetPTXSize(program, bytes)
                           : tern_cuda.nvrtcGetCUBINSize(program, bytes);
    if (code != 0)
        return code;
    *image = tern_alloc_aligned(*bytes + 1);
    if (!*image)
        return 0;
    return ptx ? tern_cuda.nvrtcGetPTX(program, *image) : tern_cuda.nvrtcGetCUBIN(program, *image);
}

/* Compiles the source. The caller frees *image with tern_free. */
static tern_status compile(tern_place *place, const tern_cuda_source *source, const target *t,
                           void **image, size_t *bytes)
{
    /* Helper functions in a user's source have no __device__: NVRTC makes that the default. */
    const char *options[] = {t->option, "--disable-warnings",
                             source->exact ? "--fmad=false" : "-default-device"};
    nvrtcProgram program = NULL;
    TERN_TRY(tern_build_allowed(place, source->title));
    nvrtcResult code =
        tern_cuda.nvrtcCreateProgram(&program, source->text, source->kernel, 0, NULL, NULL);
    tern_build_compiles(place, source->title);
    tern_foreign_compile_begin();
    if (code == 0)
        code = tern_cuda.nvrtcCompileProgram(program, 3, options);
    tern_foreign_compile_end();
    tern_build_compiled(place, source->title);
    if (code == 0)
        code = take_image(program, t->ptx, image, bytes);
    tern_status status = TERN_OK;
    if (code != 0 && program)
        status = build_failed(place, source, program, code);
    else if (code != 0)
        status = tern_fail(TERN_ERR_DEVICE, "%s: nvrtcCreateProgram gave %s",
                           tern_place_info(place)->device, tern_cuda.nvrtcGetErrorString(code));
    else if (!*image)
        status = TERN_ERR_MEMORY;
    if (program)
        tern_cuda.nvrtcDestroyProgram(&program);
    if (status == TERN_OK)
        tern_place_count_program(place, true);
    if (status != TERN_OK) {
        tern_free(*image);
        *image = NULL;
    }
    return status;
}

static tern_cache_key key_of(const tern_cuda_source *source, const target *t)
{
    char version[32];
    snprintf(version, sizeof version, "%d.%d %d", tern_cuda.nvrtc_major, tern_cuda.nvrtc_minor,
             source->exact);
    tern_cache_key key = tern_cache_key_start("cuda 1");
    tern_cache_key_add(&key, version);
    tern_cache_key_add(&key, t->option);
    tern_cache_key_add(&key, source->text);
    return key;
}

/* ---- kernels ----------------------------------------------------------------------------- */

void tern_cuda_kernel_free(tern_cuda_kernel *kernel)
{
    if (kernel && kernel->module)
        tern_cuda.cuModuleUnload(kernel->module);
    tern_free(kernel);
}

static tern_status load(tern_place *place, const void *image, tern_cuda_kernel *k)
{
    DRIVER_TRY(place, cuModuleLoadData(&k->module, image));
    CUresult code = tern_cuda.cuModuleGetFunction(&k->function, k->module, k->name);
    if (code == 500) /* CUDA_ERROR_NOT_FOUND */
        return tern_fail(TERN_ERR_ARGUMENT, "%s: the program has no kernel called \"%s\"",
                         tern_place_info(place)->device, k->name);
    TERN_TRY(tern_cuda_check_driver(place, code, "cuModuleGetFunction"));
    DRIVER_TRY(place, cuFuncGetAttribute(&k->most_threads, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK,
                                         k->function));
    DRIVER_TRY(place,
               cuFuncGetAttribute(&k->shared, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, k->function));
    return TERN_OK;
}

static tern_status make(tern_place *place, const void *image, const char *name,
                        tern_cuda_kernel **kernel)
{
    tern_cuda_kernel *k = tern_alloc(sizeof *k);
    if (!k)
        return TERN_ERR_MEMORY;
    snprintf(k->name, sizeof k->name, "%s", name);
    k->block = BLOCK;
    tern_status status = load(place, image, k);
    if (status == TERN_OK)
        *kernel = k;
    else
        tern_cuda_kernel_free(k);
    return status;
}

/* Loads or compiles the kernel. The caller has claimed the key with tern_build_begin. */
static tern_status build(tern_place *place, const tern_cuda_source *source, const target *t,
                         const tern_cache_key *key, tern_cuda_kernel **kernel)
{
    size_t bytes = 0;
    void *image = tern_cache_load(key, &bytes);
    bool found = image != NULL;
    if (!found) {
        tern_build_is_cold();
        TERN_TRY(compile(place, source, t, &image, &bytes));
    }
    tern_status status = make(place, image, source->kernel, kernel);
    if (status == TERN_OK && !found)
        tern_cache_keep(key, image, bytes);
    if (status != TERN_OK && found)
        tern_cache_remove(key);
    if (status == TERN_OK && found)
        tern_place_count_program(place, false);
    tern_free(image);
    return status;
}

tern_status tern_cuda_build(tern_place *place, const tern_cuda_source *source,
                            tern_cuda_kernel **kernel)
{
    target t;
    TERN_TRY(choose_target(place, &t));
    tern_cache_key key = key_of(source, &t);
    tern_build_begin(&key); /* may make another device current while it waits */
    tern_status status = tern_cuda_enter(place);
    if (status == TERN_OK)
        status = build(place, source, &t, &key, kernel);
    tern_build_end(&key);
    if (status == TERN_OK)
        tern_program_archive_note(place, &key);
    return status;
}

/* Returns the source of a kernel's program. The caller frees the text. full: the kernel's name with
 * its type. */
static tern_cuda_source source_of(const char *file, const char *name, tern_dtype dtype, bool narrow,
                                  int lanes, const tern_chain *chain, tern_text *text,
                                  char full[128], char title[256])
{
    snprintf(full, 128, "%s_%s", name, tern_dtype_rows[dtype].suffix);
    snprintf(title, 256, "kernel %s of %s.cl", full, file);
    library_text(text, file, full, dtype, narrow, lanes, chain);
    return (tern_cuda_source){text->data, title, full, true};
}

static tern_status resolve(tern_place *place, const char *file, const char *name, tern_dtype dtype,
                           bool narrow, int lanes, const tern_chain *chain, void **kernel)
{
    char full[128], title[256];
    tern_text text = {0};
    tern_cuda_kernel *made = NULL;
    tern_cuda_source source =
        source_of(file, name, dtype, narrow, lanes, chain, &text, full, title);
    tern_status status = text.failed ? TERN_ERR_MEMORY : tern_cuda_build(place, &source, &made);
    tern_text_free(&text);
    *kernel = made;
    return status;
}

tern_status tern_cuda_resolve(tern_place *place, const char *file, const char *name,
                              tern_dtype dtype, void **kernel)
{
    return resolve(place, file, name, dtype, false, 0, NULL, kernel);
}

tern_status tern_cuda_resolve_index32(tern_place *place, const char *file, const char *name,
                                      tern_dtype dtype, int lanes, void **kernel)
{
    return resolve(place, file, name, dtype, true, lanes, NULL, kernel);
}

tern_status tern_cuda_chain(tern_place *place, const tern_chain *chain, tern_dtype dtype,
                            void **compiled)
{
    if (dtype == TERN_BOOL) /* only a store turns a result into 0 or 1 */
        return TERN_OK;
    return resolve(place, "chain", "chain", dtype, chain->n < tern_index32_limit, 0, chain,
                   compiled);
}

/* Compiles without the device, which NVRTC does not need. */
void tern_cuda_prebuild(tern_place *place, const char *file, const char *name, tern_dtype dtype,
                        int lanes)
{
    char full[128], title[256];
    tern_text text = {0};
    target t;
    void *image = NULL;
    size_t bytes = 0;
    tern_cuda_source source = source_of(file, name, dtype, true, lanes, NULL, &text, full, title);
    if (!text.failed && choose_target(place, &t) == TERN_OK) {
        tern_cache_key key = key_of(&source, &t);
        if (tern_build_try(&key)) {
            if (!tern_cache_has(&key) && compile(place, &source, &t, &image, &bytes) == TERN_OK)
                tern_cache_keep(&key, image, bytes);
            tern_build_end(&key);
        }
    }
    tern_free(image);
    tern_text_free(&text);
}
