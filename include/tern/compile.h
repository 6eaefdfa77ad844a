/* compile.h -- kernels of devices that compile at run time (opencl, cuda): compiled before their
 * use, with progress reports, and saved to files that can be shipped.
 *
 * A kernel is compiled when it is first used, and kept in a cache on disk (TERN_CACHE_DIR, else
 * ~/.cache/tern; PoCL has its own). When a training uses its first kernel of a group, background
 * threads compile the others of the group. TERN_COMPILE_THREADS in the environment sets the number
 * of these threads; the default is one less than the number of cores, and 0 turns them off.
 * tern_compile_ahead (tern/nn/compile.h) compiles all kernels of a model at once. */
#ifndef TERN_COMPILE_H
#define TERN_COMPILE_H
#include <tern/device.h>

TERN_BEGIN_DECLS

/* What a handler receives when the compilation of a kernel begins or ends. */
typedef struct tern_compile_progress {
    const char *device;
    const char *kernel; /* "kernel gelu_f32 of elementwise.cl" */
    int64_t done,
        total; /* programs that this process has compiled, and the total with those that are
                * planned */
    uint64_t reserved[4];
} tern_compile_progress;
/* A handler should note the report and return; the texts live until it returns. */
typedef void (*tern_compile_handler)(const tern_compile_progress *progress, void *user);

/* Sets a handler that is called when the compilation of a program begins and when it ends, on the
 * thread that compiles, one call at a time. There is one handler per process; NULL removes it.
 * Without a handler, TERN_PROGRESS=1 in the environment prints to stderr, and on a terminal it
 * rewrites one line. Kernels that PoCL compiles at their first launch are reported too if that
 * takes longer than reading a file. */
TERN_API void tern_on_compile(tern_compile_handler handler, void *user);

/* Stops waiting for compilers; may be called on any thread, and in a handler of tern_on_compile.
 * The compilation that is running is completed, and every call that needs another one fails with
 * TERN_ERR_STATE until this function is called with false; a recording whose operations could be
 * fused keeps them apart instead. Compiled programs stay in the cache. */
TERN_API void tern_compile_stop(bool stop);

/* Begins a section that compiles without running: until tern_compile_end, commands of this thread
 * for device (NULL: the default one) do not run, and the programs that they need are compiled by
 * all cores. Results have no values, but their memory is allocated. A read of values on the host
 * fails as it does in a capture (tern/graph.h); a capture cannot begin in the section. On the cpu
 * everything is computed as usual. */
TERN_API tern_status tern_compile_begin(const char *device);
/* Ends the section, waits for the compilers, and returns the error of a read on the host if there
 * was one. Errors: TERN_ERR_STATE without tern_compile_begin. */
TERN_API tern_status tern_compile_end(void);

/* ---- files of compiled programs -------------------------------------------------------------- */
/* Writes the programs that this process has used on the device to a file, and replaces an existing
 * one. The file is for machines with the same device, driver and version of tern. For a device
 * without programs the file is empty of them. */
TERN_API tern_status tern_programs_save(const char *device, const char *path);
/* Loads the programs of a file, as if they had been compiled here. They are executable code: trust
 * the file as you would trust a library. Returns how many programs were loaded. It is 0 for a file
 * of another device, driver or version of tern (tern_on_warning gets the difference), and -1 after
 * an error, when nothing has changed: TERN_ERR_IO for a file that cannot be read or is damaged. */
TERN_API int64_t tern_programs_load(const char *device, const char *path);

TERN_END_DECLS
#endif
