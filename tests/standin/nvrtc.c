/* nvrtc.c -- the stand-in's compiler. The library's kernels need none where the host has them; with
 * TERN_STANDIN_NVRTC=/path/libnvrtc.so.13 that real NVRTC compiles each program too, and what it
 * refuses is refused. Others, as those of matrix units, and a user's kernel are compiled by the
 * machine's C++ compiler. */
#include "standin.h"
#include "userprogram.h"
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { COMPILATION = 6, INVALID_PROGRAM = 4 };

#define X(RESULT, NAME, PARAMETERS) EXPORT RESULT NAME PARAMETERS;
#include "device/cuda/nvrtc.def"
#undef X

struct _nvrtcProgram {
    char *text, *name, *image;
    size_t image_bytes;
    char log[8192];
};

nvrtcResult nvrtcVersion(int *major, int *minor)
{
    FAULT(nvrtcVersion);
    *major = 13;
    *minor = 0;
    return 0;
}

const char *nvrtcGetErrorString(nvrtcResult result)
{
    return result == COMPILATION ? "NVRTC_ERROR_COMPILATION" : "NVRTC error of the stand-in";
}

static const int architectures[] = {75, 80, 90, 120};

nvrtcResult nvrtcGetNumSupportedArchs(int *n)
{
    FAULT(nvrtcGetNumSupportedArchs);
    *n = 4;
    return 0;
}

nvrtcResult nvrtcGetSupportedArchs(int *list)
{
    FAULT(nvrtcGetSupportedArchs);
    memcpy(list, architectures, sizeof architectures);
    return 0;
}

nvrtcResult nvrtcCreateProgram(nvrtcProgram *program, const char *text, const char *name, int n,
                               const char *const *headers, const char *const *names)
{
    (void)n, (void)headers, (void)names;
    FAULT(nvrtcCreateProgram);
    nvrtcProgram p = calloc(1, sizeof *p);
    if (!p)
        return 1;
    p->text = strdup(text);
    p->name = strdup(name);
    *program = p;
    return 0;
}

nvrtcResult nvrtcDestroyProgram(nvrtcProgram *program)
{
    free((*program)->text);
    free((*program)->name);
    free((*program)->image);
    free(*program);
    *program = NULL;
    FAULT(nvrtcDestroyProgram);
    return 0;
}

static void *real(void *library, const char *name)
{
    return dlsym(library, name);
}

/* What the real compiler says to the same text. */
static nvrtcResult ask_real(nvrtcProgram p, const char *path, int n, const char *const *options)
{
    nvrtcResult (*create)(nvrtcProgram *, const char *, const char *, int, const char *const *,
                          const char *const *);
    nvrtcResult (*compile)(nvrtcProgram, int, const char *const *);
    nvrtcResult (*get_log)(nvrtcProgram, char *);
    nvrtcResult (*log_size)(nvrtcProgram, size_t *);
    nvrtcResult (*destroy)(nvrtcProgram *);
    nvrtcProgram theirs;
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        snprintf(p->log, sizeof p->log, "%s", dlerror());
        return COMPILATION;
    }
    *(void **)&create = real(library, "nvrtcCreateProgram");
    *(void **)&compile = real(library, "nvrtcCompileProgram");
    *(void **)&get_log = real(library, "nvrtcGetProgramLog");
    *(void **)&log_size = real(library, "nvrtcGetProgramLogSize");
    *(void **)&destroy = real(library, "nvrtcDestroyProgram");
    if (create(&theirs, p->text, p->name, 0, NULL, NULL) != 0)
        return INVALID_PROGRAM;
    nvrtcResult code = compile(theirs, n, options);
    size_t bytes = 0;
    if (code != 0 && log_size(theirs, &bytes) == 0 && bytes < sizeof p->log)
        get_log(theirs, p->log);
    destroy(&theirs);
    return code;
}

/* Of the architecture that is asked for. */
static int compute_of(int n, const char *const *options)
{
    for (int i = 0; i < n; i++) {
        const char *number = strchr(options[i], '_');
        if (strncmp(options[i], "--gpu-architecture=", 19) == 0 && number)
            return atoi(number + 1);
    }
    return 0;
}

/* Kernels that chains become part of, by their text: alone, and with relu, they are to have the same bits. */
static bool has_slot(const char *name)
{
    static const char *const kernels[] = {"batch_norm",
                                          "batch_norm_relu",
                                          "batch_norm_gradient",
                                          "batch_norm_masked_gradient",
                                          "batch_norm_relu_gradient",
                                          "batch_norm_columns",
                                          "batch_norm_columns_gradient",
                                          "batch_norm_columns_relu_gradient"};
    const char *dtype = strrchr(name, '_');
    const size_t n = dtype ? (size_t)(dtype - name) : 0;
    for (size_t i = 0; i < sizeof kernels / sizeof *kernels; i++)
        if (strlen(kernels[i]) == n && strncmp(name, kernels[i], n) == 0)
            return true;
    return false;
}

nvrtcResult nvrtcCompileProgram(nvrtcProgram p, int n, const char *const *options)
{
    char pick[160];
    const char *nvrtc = getenv("TERN_STANDIN_NVRTC");
    FAULT(nvrtcCompileProgram);
    if (nvrtc && *nvrtc) {
        nvrtcResult code = ask_real(p, nvrtc, n, options);
        if (code != 0)
            return code;
    }
    free(p->image);
    p->image = NULL;
    if (strncmp(p->name, "tern_entry_", 11) == 0) {
        p->image = user_program_compile(p->text, p->name, &p->image_bytes, p->log, sizeof p->log);
        return p->image ? 0 : COMPILATION;
    }
    snprintf(pick, sizeof pick, "#define TERN_PICK_%s ", p->name);
    if (!strstr(p->text, pick)) {
        snprintf(p->log, sizeof p->log, "the program picks no kernel %s", p->name);
        return COMPILATION;
    }
    if (!standin_find(p->name) || has_slot(p->name) || getenv("TERN_STANDIN_TEXT")) {
        const char *matrix = getenv("TERN_STANDIN_MATRIX");
        if (matrix && strcmp(matrix, "refused") == 0)
            return COMPILATION;
        p->image = library_program_compile(p->text, p->name, compute_of(n, options),
                                           &p->image_bytes, p->log, sizeof p->log);
        return p->image ? 0 : COMPILATION;
    }
    p->image = strdup("standin-library");
    p->image_bytes = strlen(p->image) + 1;
    return 0;
}

static nvrtcResult size_of_image(nvrtcProgram p, size_t *bytes)
{
    *bytes = p->image_bytes;
    return p->image ? 0 : INVALID_PROGRAM;
}

static nvrtcResult copy_image(nvrtcProgram p, char *to)
{
    if (!p->image)
        return INVALID_PROGRAM;
    memcpy(to, p->image, p->image_bytes);
    return 0;
}

nvrtcResult nvrtcGetCUBINSize(nvrtcProgram p, size_t *bytes)
{
    FAULT(nvrtcGetCUBINSize);
    return size_of_image(p, bytes);
}

nvrtcResult nvrtcGetCUBIN(nvrtcProgram p, char *cubin)
{
    FAULT(nvrtcGetCUBIN);
    return copy_image(p, cubin);
}

nvrtcResult nvrtcGetPTXSize(nvrtcProgram p, size_t *bytes)
{
    FAULT(nvrtcGetPTXSize);
    return size_of_image(p, bytes);
}

nvrtcResult nvrtcGetPTX(nvrtcProgram p, char *ptx)
{
    FAULT(nvrtcGetPTX);
    return copy_image(p, ptx);
}

nvrtcResult nvrtcGetProgramLogSize(nvrtcProgram p, size_t *bytes)
{
    FAULT(nvrtcGetProgramLogSize);
    *bytes = strlen(p->log) + 1;
    return 0;
}

nvrtcResult nvrtcGetProgramLog(nvrtcProgram p, char *log)
{
    FAULT(nvrtcGetProgramLog);
    strcpy(log, p->log);
    return 0;
}
