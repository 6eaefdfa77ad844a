/* libraries.c -- finds and opens CUDA's libraries at run time, all of one major version.
 *
 * The search order is: TERN_CUDA_PATH, the loader's own path, CUDA_HOME and CUDA_PATH,
 * /usr/local/cuda, and the folders of NVIDIA's Python wheels. */
#include "base/env.h"
#include "base/os.h"
#include "base/dynlib.h"
#include "device/cuda/cuda.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* FIRST_GRAPH: the first version of cuDNN with which attention need not clear the sums of dq. */
enum { MAX_FOLDERS = 64, PATH_BYTES = 1024, FIRST_GRAPH = 90600 };

tern_cuda_api tern_cuda;

typedef struct folders {
    char of[MAX_FOLDERS][PATH_BYTES];
    int n;
} folders;

static void add_folder(folders *list, const char *root, const char *below)
{
    if (list->n < MAX_FOLDERS && root &&
        snprintf(list->of[list->n], PATH_BYTES, "%s%s", root, below) < PATH_BYTES)
        list->n++;
}

static void add_found(void *list, const char *path)
{
    add_folder(list, path, "");
}

static void add_wheels(folders *list, const char *root, const char *python)
{
    char pattern[PATH_BYTES];
    if (root && snprintf(pattern, sizeof pattern, "%s/%s/nvidia/*/" TERN_WHEEL_FOLDER, root,
                         python) < PATH_BYTES)
        tern_os_glob(pattern, add_found, list);
}

static void list_folders(folders *list)
{
    const char *own = tern_env(TERN_ENV_CUDA_PATH), *home = tern_os_home();
    const char *const installed[] = {tern_os_getenv("CUDA_HOME"), tern_os_getenv("CUDA_PATH"),
                                     "/usr/local/cuda"};
    const char *const environments[] = {tern_os_getenv("VIRTUAL_ENV"),
                                        tern_os_getenv("CONDA_PREFIX"), "/usr/local", "/usr",
                                        "/opt/conda"};
    if (own) {
        add_folder(list, own, "");
        add_folder(list, own, "/lib64");
        add_folder(list, own, "/lib");
    }
    add_folder(list, "", ""); /* the loader's own path */
    for (size_t i = 0; i < sizeof installed / sizeof *installed; i++)
        add_folder(list, installed[i], TERN_CUDA_FOLDER);
    for (size_t i = 0; i < sizeof environments / sizeof *environments; i++) {
        add_wheels(list, environments[i], TERN_PYTHON_FOLDER "site-packages");
        add_wheels(list, environments[i], TERN_PYTHON_FOLDER "dist-packages");
    }
    add_wheels(list, home, ".local/lib/python3*/site-packages");
}

/* Returns the library from the first folder where it loads, or NULL. reason is set to the error of
 * the first file that exists but does not load; without such a file, to the loader's error for its
 * own path. */
static void *open_library(const folders *list, const char *name, char *reason, size_t bytes)
{
    char path[2 * PATH_BYTES], why[512] = "";
    bool broken = false;
    for (int i = 0; i < list->n; i++) {
        const char *folder = list->of[i];
        snprintf(path, sizeof path, "%s%s%s", folder, *folder ? "/" : "", name);
        void *library = tern_dynlib_open_path(path, why, sizeof why);
        if (library)
            return library;
        bool absent = tern_dynlib_is_absent(why);
        if (!broken && (!absent || !*folder))
            snprintf(reason, bytes, "%s", why);
        broken = broken || !absent;
    }
    return NULL;
}

typedef enum part { DRIVER, RUNTIME, COMPILER, PRODUCTS, CONVOLUTIONS, GRAPHS, COLLECTIVES } part;

/* The functions of each library, and the offset of each function's pointer in tern_cuda_api. */
static const struct {
    part of;
    const char *name;
    size_t at;
} symbols[] = {
#define X(RESULT, NAME, PARAMETERS) {OF, #NAME, offsetof(tern_cuda_api, NAME)},
#define OF                          DRIVER
#include "device/cuda/driver.def"
#undef OF
#define OF RUNTIME
#include "device/cuda/cudart.def"
#undef OF
#define OF COMPILER
#include "device/cuda/nvrtc.def"
#undef OF
#define OF PRODUCTS
#include "device/cuda/cublaslt.def"
#undef OF
#define OF CONVOLUTIONS
#include "device/cuda/cudnn.def"
#undef OF
#define OF GRAPHS
#include "device/cuda/cudnn_graph.def"
#undef OF
#define OF COLLECTIVES
#include "device/cuda/nccl.def"
#undef OF
#undef X
};

/* Looks up all functions of a part. Returns false, with a note, if one is missing. */
static bool take(part of, void *library, const char *file, tern_text *notes)
{
    for (size_t i = 0; i < sizeof symbols / sizeof *symbols; i++) {
        if (symbols[i].of != of)
            continue;
        void *address = tern_dynlib_symbol(library, symbols[i].name);
        memcpy((char *)&tern_cuda + symbols[i].at, &address, sizeof address);
        if (!address) {
            tern_text_add(notes, "%s%s has no %s", notes->length ? "; " : "", file,
                          symbols[i].name);
            return false;
        }
    }
    return true;
}

/* Opens cuDNN if it is installed, new enough, and made for the same CUDA. */
static void load_dnn(const folders *list, int major, tern_text *notes)
{
    static const char *const files[] = {TERN_LIBRARY_CUDNN_9, TERN_LIBRARY_CUDNN_8};
    static const char without[] = "convolutions are computed as matrix products";
    char why[512] = "";
    const char *comma = notes->length ? "; " : "";
    void *library = open_library(list, files[0], why, sizeof why);
    const char *file = files[library ? 0 : 1];
    if (!library && !(library = open_library(list, files[1], why, sizeof why))) {
        tern_text_add(notes, "%s%s not found: %s", comma, files[0], without);
        return;
    }
    if (!take(CONVOLUTIONS, library, file, notes))
        return;
    size_t version = tern_cuda.cudnnGetVersion(), runtime = tern_cuda.cudnnGetCudartVersion();
    tern_cuda.has_dnn = version >= 8000 && runtime / 1000 == (size_t)major;
    tern_cuda.has_graph =
        tern_cuda.has_dnn && version >= FIRST_GRAPH && take(GRAPHS, library, file, notes);
    if (version < 8000)
        tern_text_add(notes, "%s%s is version %zu, 8000 is needed: %s", comma, file, version,
                      without);
    else if (!tern_cuda.has_dnn)
        tern_text_add(notes, "%s%s is for CUDA %zu, not %d: %s", comma, file, runtime / 1000, major,
                      without);
}

/* Opens NCCL if it is installed. Nothing is noted if not: machines with one device need no NCCL. */
static void load_nccl(const folders *list, tern_text *notes)
{
    static const char file[] = TERN_LIBRARY_NCCL;
    char why[512] = "";
    void *library =
        tern_env_flag(TERN_ENV_NCCL, true) ? open_library(list, file, why, sizeof why) : NULL;
    tern_cuda.has_nccl = library && take(COLLECTIVES, library, file, notes);
}

/* Opens the runtime and the compiler of one major version, and cuBLASLt, cuDNN and NCCL if they are
 * installed. Returns false if the runtime or the compiler can't be used. */
static bool load_major(const folders *list, int major, tern_text *missing, tern_text *notes)
{
    char runtime[32], compiler[32], products[32], why[512] = "";
    snprintf(runtime, sizeof runtime, TERN_LIBRARY_CUDART, major);
    snprintf(compiler, sizeof compiler, TERN_LIBRARY_NVRTC, major);
    snprintf(products, sizeof products, TERN_LIBRARY_CUBLASLT, major);
    void *cudart = open_library(list, runtime, why, sizeof why);
    void *nvrtc = open_library(list, compiler, why, sizeof why);
    if (!cudart || !nvrtc) {
        tern_text_add(missing, "%sCUDA %d: %s%s%s not found", missing->length ? "; " : "", major,
                      cudart ? "" : runtime, !cudart && !nvrtc ? " and " : "",
                      nvrtc ? "" : compiler);
        if (cudart || nvrtc)
            tern_text_add(missing, " (%s is there)", cudart ? runtime : compiler);
        return false;
    }
    if (!take(RUNTIME, cudart, runtime, notes) || !take(COMPILER, nvrtc, compiler, notes))
        return false;
    void *lt = open_library(list, products, why, sizeof why);
    tern_cuda.has_lt = lt && take(PRODUCTS, lt, products, notes);
    if (!tern_cuda.has_lt)
        tern_text_add(notes, "%s%s not found: matrix products take tern's own, slower kernel (%s)",
                      notes->length ? "; " : "", products, why);
    load_dnn(list, major, notes);
    load_nccl(list, notes);
    tern_cuda.major = major;
    return tern_cuda.nvrtcVersion(&tern_cuda.nvrtc_major, &tern_cuda.nvrtc_minor) == 0;
}

bool tern_cuda_load(tern_text *notes)
{
    static const int majors[] = {13, 12};
    char why[512] = "";
    int driver = 0;
    folders *list = tern_alloc(sizeof *list);
    if (!list) {
        notes->failed = true;
        return false;
    }
    list_folders(list);
    bool loaded = false;
    tern_text missing = {0};
    void *libcuda = open_library(list, TERN_LIBRARY_CUDA, why, sizeof why);
    if (!libcuda) {
        tern_text_add(notes, TERN_LIBRARY_CUDA ": %s (%s)",
                      tern_dynlib_is_absent(why) ? "no NVIDIA driver"
                                                 : "NVIDIA's driver cannot be loaded",
                      why);
    } else if (take(DRIVER, libcuda, TERN_LIBRARY_CUDA, notes)) {
        CUresult code = tern_cuda.cuDriverGetVersion(&driver);
        for (size_t i = 0; code == 0 && i < sizeof majors / sizeof *majors && !loaded; i++) {
            if (driver >= majors[i] * 1000)
                loaded = load_major(list, majors[i], &missing, notes);
            else
                tern_text_add(&missing, "%sCUDA %d: the driver is for CUDA %d.%d",
                              missing.length ? "; " : "", majors[i], driver / 1000,
                              driver % 1000 / 10);
        }
        if (!loaded)
            tern_text_add(
                notes,
                "%sthe NVIDIA driver (CUDA %d.%d) is there, but not CUDA's libraries: %s. "
                "Install them, or name their folder in TERN_CUDA_PATH",
                notes->length ? "; " : "", driver / 1000, driver % 1000 / 10,
                missing.data ? missing.data : "");
    }
    tern_text_free(&missing);
    tern_free(list);
    return loaded;
}
