/* builds.h -- programs that are compiled while a program runs: each once, by the thread that wants
 * it first or ahead of that by others; and who hears of it. */
#ifndef TERN_DEVICE_BUILDS_H
#define TERN_DEVICE_BUILDS_H
#include "device/cache.h"
#include "device/device.h"

/* ---- for backends: around the building of one program ---------------------------------------- */
/* Only one thread has a program at a time. The one that wants it waits for another that has it, and
 * helps with what else there is to build; one that works ahead goes on to something else (false),
 * also where it was built before. */
void tern_build_begin(const tern_cache_key *key);
bool tern_build_try(const tern_cache_key *key);
void tern_build_end(const tern_cache_key *key);
/* The compiler's own time: what tern_on_compile reports. title: "kernel gelu_f32 of
 * elementwise.cl". */
void tern_build_compiles(const tern_place *place, const char *title);
void tern_build_compiled(const tern_place *place, const char *title);
/* Returns whether the calling thread is in that handler, which must not wait for another program:
 * its compilation may wait for the handler. */
bool tern_build_is_reporting(void);
/* TERN_ERR_STATE where tern_compile_stop was called: nothing is compiled. */
tern_status tern_build_allowed(const tern_place *place, const char *title);
bool tern_builds_are_stopped(void);
/* Whether the threads are those of the process that forked this one: nobody works here. */
bool tern_builds_are_of_parent(void);
/* A program was not in the cache: what is expected gets built from now on. */
void tern_build_is_cold(void);

/* ---- for the device layer -------------------------------------------------------------------- */
/* Have the program of a kernel built by other threads; file and name are static. */
void tern_builds_add(tern_place *place, const char *file, const char *name, tern_dtype dtype,
                     int lanes);
struct tern_chain_kernel;
/* Likewise the kernel of a chain; false: there are no such threads. */
bool tern_builds_add_chain(tern_place *place, struct tern_chain_kernel *chain);
/* A kernel is about to be resolved: those of its group (program_groups.h) are expected. */
void tern_builds_expect(tern_place *place, const char *file, const char *name, tern_dtype dtype);
/* How many wait for a thread. */
int tern_builds_waiting(void);
/* Build, with the other threads, until all is done or tern_compile_stop is called. */
void tern_builds_finish(void);
/* The process ends: no thread begins another. */
void tern_builds_stop(void);
#endif
