/* user.c -- the user's own kernels on the cpu: from C++ text to a library that the host's compiler
 * builds, kept in the cache; without a compiler, through an OpenCL device on the processor. */
#include "base/env.h"
#include "base/os.h"
#include "base/dynlib.h"
#include "device/cache.h"
#include "device/cpu/cpu.h"
#include "device/builds.h"
#include "device/cpu/user.h"
#include "device/sources.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PATH_BYTES = 4096, LOG_BYTES = 4000 };

/* ---- the text ---------------------------------------------------------------------------- */

static tern_status add_text(tern_text *text, const tern_user_source *source)
{
    tern_sources_seen seen = {0};
    tern_source_add(text, &seen, "user_host.h");
    tern_source_add(text, &seen, "user.h");
    tern_text_add_bytes(text, source->text.data, source->text.length);
    tern_text_add(text, "%s(%d, %s)\n", source->meets ? "TERN_ITEM" : "TERN_ITEMS",
                  source->parameters.n, source->call.data);
    return text->failed ? TERN_ERR_MEMORY : TERN_OK;
}

static bool write_file(const char *path, const void *bytes, size_t n)
{
    int file = tern_os_open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    FILE *f = file >= 0 ? tern_os_fdopen(file, "wb") : NULL;
    if (!f && file >= 0)
        tern_os_close(file);
    bool whole = f && fwrite(bytes, 1, n, f) == n;
    return f && fclose(f) == 0 && whole;
}

/* Returns all bytes of a file, which the caller frees, or NULL without memory or file. */
static void *read_file(const char *path, size_t *n)
{
    FILE *f = tern_os_fopen(path, "rb");
    void *bytes = NULL;
    long size = f && fseek(f, 0, SEEK_END) == 0 ? ftell(f) : -1;
    if (size > 0 && fseek(f, 0, SEEK_SET) == 0 && (bytes = tern_alloc_aligned((size_t)size + 1)) &&
        fread(bytes, 1, (size_t)size, f) != (size_t)size) {
        tern_free(bytes);
        bytes = NULL;
    }
    if (f)
        fclose(f);
    *n = bytes ? (size_t)size : 0;
    return bytes;
}

/* ---- the compiler ------------------------------------------------------------------------ */

/* A folder of this process alone, and the files in it. */
typedef struct workshop {
    char folder[PATH_BYTES], source[PATH_BYTES + 16], library[PATH_BYTES + 16],
        log[PATH_BYTES + 16];
} workshop;

static bool open_workshop(workshop *w)
{
    if (!tern_cache_folder(w->folder, sizeof w->folder))
        return false;
    snprintf(w->source, sizeof w->source, "%s/kernel.cpp", w->folder);
    snprintf(w->library, sizeof w->library, "%s/kernel" TERN_LIBRARY_ENDING, w->folder);
    snprintf(w->log, sizeof w->log, "%s/log", w->folder);
    return true;
}

static void close_workshop(const workshop *w)
{
    tern_os_unlink(w->source);
    tern_os_unlink(w->library);
    tern_os_unlink(w->log);
    tern_os_rmdir(w->folder);
}

/* Runs the compiler without a shell. Returns its exit status; -1 if there is no such compiler. */
static int run_compiler(const char *name, const workshop *w)
{
    const char *const words[] = {name,
                                 "-x",
                                 "c++",
                                 "-std=gnu++17",
                                 "-O3",
                                 "-fPIC",
                                 "-shared",
                                 "-w",
                                 "-fsigned-char",
                                 "-fno-exceptions",
                                 "-fno-math-errno",
                                 "-fno-trapping-math", /* vectorizes floor, ceil and trunc */
                                 "-fno-strict-aliasing",
                                 "-fvisibility=hidden",
#ifdef __x86_64__
                                 "-march=native",
#endif
                                 "-o",
                                 w->library,
                                 w->source,
                                 "-lm",
                                 NULL};
    return tern_os_run(words, w->log);
}

/* Returns the i-th compiler to try, or NULL: TERN_CXX ("off" for none), or else the usual ones. */
static const char *compiler(int i)
{
    static const char *const names[] = {"c++", "g++", "clang++"};
    const char *own = tern_env(TERN_ENV_CXX);
    if (own)
        return i == 0 && strcmp(own, "off") != 0 ? own : NULL;
    return i < 3 ? names[i] : NULL;
}

static tern_status refused(const char *name, const workshop *w)
{
    size_t n;
    char *log = read_file(w->log, &n);
    tern_status status = tern_fail(
        TERN_ERR_ARGUMENT, "cpu: tern_kernel_compile: the source of \"%s\" does not build:\n%.*s",
        name, (int)(n < LOG_BYTES ? n : LOG_BYTES), log ? log : "");
    tern_free(log);
    return status;
}

/* Writes the library, from the cache or compiled. *found is false if there is no compiler. */
static tern_status make_library(tern_place *place, const workshop *w, const char *name,
                                const tern_text *text, bool *found)
{
    size_t n = 0;
    *found = true;
    tern_cache_key key = tern_cache_key_start("cpu 3");
    tern_cache_key_add(&key, tern_place_info(place)->name);
    tern_cache_key_add(&key, compiler(0) ? compiler(0) : "");
    tern_cache_key_add(&key, text->data);
    void *bytes = compiler(0) ? tern_cache_load(&key, &n) : NULL;
    if (bytes) {
        bool written = write_file(w->library, bytes, n);
        tern_free(bytes);
        tern_place_count_program(place, false);
        return written ? TERN_OK
                       : tern_fail(TERN_ERR_IO, "tern_kernel_compile: can't write %s: %s",
                                   w->library, strerror(errno));
    }
    if (!write_file(w->source, text->data, text->length))
        return tern_fail(TERN_ERR_IO, "tern_kernel_compile: can't write %s: %s", w->source,
                         strerror(errno));
    char title[160];
    snprintf(title, sizeof title, "kernel %s of the program's own", name);
    TERN_TRY(compiler(0) ? tern_build_allowed(place, title) : TERN_OK);
    for (int i = 0; compiler(i); i++) {
        tern_build_compiles(place, title);
        int code = run_compiler(compiler(i), w);
        tern_build_compiled(place, title);
        if (code > 0)
            return refused(name, w);
        if (code == 0) {
            tern_place_count_program(place, true);
            if ((bytes = read_file(w->library, &n)))
                tern_cache_store(&key, bytes, n);
            tern_free(bytes);
            return TERN_OK;
        }
    }
    *found = false;
    return TERN_OK;
}

static tern_status load(tern_cpu_user *k, const workshop *w)
{
    char why[512] = "";
    k->library = tern_dynlib_open_path(w->library, why, sizeof why);
    void *entry = k->library ? tern_dynlib_symbol(k->library, k->source.meets ? "tern_user_item"
                                                                              : "tern_user_items")
                             : NULL;
    if (!entry)
        return tern_fail(TERN_ERR_IO, "tern_kernel_compile: %s does not load: %s", w->library, why);
    if (k->source.meets)
        memcpy(&k->item, &entry, sizeof entry);
    else
        memcpy(&k->items, &entry, sizeof entry);
    return TERN_OK;
}

/* Compiles and loads the kernel. *found stays false if there is no compiler. */
static tern_status compile(tern_place *place, tern_cpu_user *k, const char *name, bool *found)
{
    workshop w;
    tern_text text = {0};
    tern_status status = add_text(&text, &k->source);
    if (status == TERN_OK && !open_workshop(&w))
        status = tern_fail(TERN_ERR_IO, "tern_kernel_compile: no folder to compile \"%s\" in: %s",
                           name, strerror(errno));
    else if (status == TERN_OK) {
        status = make_library(place, &w, name, &text, found);
        if (status == TERN_OK && *found)
            status = load(k, &w);
        close_workshop(&w); /* the loaded library stays */
    }
    tern_text_free(&text);
    return status;
}

/* ---- kernels ----------------------------------------------------------------------------- */

tern_status tern_cpu_user_compile(tern_place *place, const char *source, const char *name,
                                  void **kernel)
{
    bool found = false;
    tern_cpu_user *k = tern_alloc(sizeof *k);
    if (!k)
        return TERN_ERR_MEMORY;
    snprintf(k->name, sizeof k->name, "%s", name);
    tern_status status = tern_user_source_read(&k->source, source, name);
    if (status == TERN_OK)
        status = compile(place, k, name, &found);
    if (status == TERN_OK && !found)
        status = tern_cpu_elsewhere_compile(k, source, name);
    if (status != TERN_OK)
        tern_cpu_user_free(place, k);
    else
        *kernel = k;
    return status;
}

void tern_cpu_user_free(tern_place *place, void *kernel)
{
    tern_cpu_user *k = kernel;
    (void)place;
    tern_cpu_elsewhere_free(k);
    tern_dynlib_close(k->library);
    tern_user_source_free(&k->source);
    tern_free(k);
}
