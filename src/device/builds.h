/* builds.h -- programs of kernels that are compiled at run time: each is compiled once, by the
 * first thread that needs it or earlier by a background thread; and reports of compilations. */
#ifndef TERN_DEVICE_BUILDS_H
#define TERN_DEVICE_BUILDS_H
#include "device/cache.h"
#include "device/device.h"

/* ---- for backends: the compilation of one program -------------------------------------------- */
/* Only one thread builds a program at a time, between begin or try and end. tern_build_begin waits
 * while another thread builds it, and compiles other programs meanwhile. tern_build_try is for
 * background threads and returns false if another thread builds it or it was built before. */
void tern_build_begin(const tern_cache_key *key);
bool tern_build_try(const tern_cache_key *key);
void tern_build_end(const tern_cache_key *key);
/* Called before and after the compiler runs, for the reports of tern_on_compile. title: "kernel
 * gelu_f32 of elementwise.cl". */
void tern_build_compiles(const tern_place *place, const char *title);
void tern_build_compiled(const tern_place *place, const char *title);
/* Returns whether the calling thread is in the handler of tern_on_compile. The handler must not
 * wait for another program, whose compilation may wait for the handler. */
bool tern_build_is_reporting(void);
/* Returns TERN_ERR_STATE if tern_compile_stop was called, so that nothing may be compiled. */
tern_status tern_build_allowed(const tern_place *place, const char *title);
bool tern_builds_are_stopped(void);
/* Returns whether this process is a forked child of the one that has the background threads; the
 * child has none. */
bool tern_builds_are_of_parent(void);
/* Called when a program is not in the cache: background threads start to compile the expected
 * ones. */
void tern_build_is_cold(void);

/* ---- for the device layer -------------------------------------------------------------------- */
/* Adds a job: background threads compile the program of a kernel. file and name must be static. */
void tern_builds_add(tern_place *place, const char *file, const char *name, tern_dtype dtype,
                     int lanes);
struct tern_chain_kernel;
/* Adds a job for the kernel of a chain; returns false if no background thread will do it. */
bool tern_builds_add_chain(tern_place *place, struct tern_chain_kernel *chain);
/* Called when a kernel is about to be resolved: adds jobs for the other kernels of its group
 * (program_groups.h). Threads for them are started by tern_build_is_cold. */
void tern_builds_expect(tern_place *place, const char *file, const char *name, tern_dtype dtype);
/* Returns the number of jobs that no thread has begun. */
int tern_builds_waiting(void);
/* Helps the background threads until all jobs are done or tern_compile_stop is called. */
void tern_builds_finish(void);
/* Called when the process ends: no thread begins another job. */
void tern_builds_stop(void);
#endif
