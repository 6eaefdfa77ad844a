/* compile.h -- programs for devices that compile kernels at run time (opencl, cuda): built ahead of
 * their use, with progress reported, and in files that can be shipped.
 *
 * A kernel is compiled when it is first used, and kept in a cache on disk (TERN_CACHE_DIR, else
 * ~/.cache/tern; PoCL has one of its own). The first one of a kind that a training needs has others
 * compile the rest ahead, in threads of the background (tern_compile_ahead of tern/nn/compile.h has
 * all of a model's compiled at once): TERN_COMPILE_THREADS of the environment says how many, at
 * first one less than there are cores; 0 is none. */
#ifndef TERN_COMPILE_H
#define TERN_COMPILE_H
#include <tern/device.h>

TERN_BEGIN_DECLS

/* A compiler begins or ends its work on a kernel. */
typedef struct tern_compile_progress {
    const char *device;
    const char *kernel; /* "kernel gelu_f32 of elementwise.cl" */
    int64_t done,
        total; /* programs that this process compiled so far, and with those that are to come */
    uint64_t reserved[4];
} tern_compile_progress;
/* A handler notes it and returns; the texts live until then. */
typedef void (*tern_compile_handler)(const tern_compile_progress *progress, void *user);

/* Call handler when a program begins to be compiled and when it is done, on the thread that
 * compiles, one call at a time. NULL removes it: then TERN_PROGRESS=1 in the environment prints to
 * stderr, where that is a terminal a line that is written over. What PoCL compiles when a kernel is
 * first launched is reported, too, where it takes longer than to read a file. One handler per
 * process. */
TERN_API void tern_on_compile(tern_compile_handler handler, void *user);

/* Stop waiting for compilers, from any thread or a handler of tern_on_compile: the one that is at
 * work comes to its end, and what needs another fails with TERN_ERR_STATE until this is called with
 * false. What is compiled stays in the cache. */
TERN_API void tern_compile_stop(bool stop);

/* Between the two nothing that this thread gives the device (NULL: the default one) runs: the
 * programs that it takes are compiled, by all cores, and end waits for that. Results hold no
 * values, and their memory is taken as if they did. What reads values on the host fails as in a
 * capture (tern/graph.h), which can't be begun meanwhile; end gives that error. On cpu they are
 * computed as ever. */
TERN_API tern_status tern_compile_begin(const char *device);
/* TERN_ERR_STATE without a beginning. */
TERN_API tern_status tern_compile_end(void);

/* ---- packs: files of compiled programs --------------------------------------------------- */
/* Write the programs that this process used on the device so far into a file, which replaces
 * another of that name: for machines with the same device, driver and version of tern. Where the
 * device has none there is an empty pack. */
TERN_API tern_status tern_programs_save(const char *device, const char *path);
/* Take the programs of a file, as if they had been compiled here; they are executable code, so the
 * file must be as trusted as a library. Gives how many there are; 0 for a pack of another device,
 * driver or version of tern (tern_on_warning receives which), and then nothing is taken; -1 after
 * an error: TERN_ERR_IO for one that can't be read or is damaged, which leaves all as it was. */
TERN_API int64_t tern_programs_load(const char *device, const char *path);

TERN_END_DECLS
#endif
