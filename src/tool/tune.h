/* tune.h -- the parts of `tern tune`: measured products, trials in child processes, the file of
 * results. */
#ifndef TERN_TOOL_TUNE_H
#define TERN_TOOL_TUNE_H
#include "tool/tool.h"
#include <string.h>

/* ---- a class of products (tune_classes.def) -------------------------------------------------- */
typedef struct tune_class {
    const char *name, *layout, *sizes; /* sizes: of the route */
    int64_t m, n, k, count;            /* sizes of the measured product */
} tune_class;
/* Whether the product is of half precision, for matrix units. */
static inline bool tune_is_half(const tune_class *c)
{
    return strstr(c->sizes, "type=half") != NULL;
}
enum {
    TUNE_CLASSES = 0
#define X(...) +1
#include "tool/tune_classes.def"
#undef X
};
static inline double tune_flops(const tune_class *c)
{
    return 2.0 * (double)c->m * (double)c->n * (double)c->k * (double)c->count;
}

/* ---- a trial (tune_run.c) -------------------------------------------------------------------- */
/* Runs the class's product in a child process with a value of TERN_OPENCL_GEMM in `way`, "" for the
 * library's untuned choice; sets seconds to the device time of its events, or to 0 and why to the
 * reason. */
typedef struct tune_trial {
    const char *device;
    tune_class of;
    char way[64];
    int limit; /* time limit in seconds */
    bool quick;
    double seconds;
    bool lost; /* the child hung or crashed */
    bool late; /* the trial exceeded the time limit */
    char why[200];
} tune_trial;
void tune_try(tune_trial *trial);

/* ---- the file (tune_file.c) ------------------------------------------------------------------ */
/* The key of results; with another driver, version of tern or size they are measured again. */
typedef struct tune_key {
    char name[256], driver[256];
    int64_t size;
    bool quick;
} tune_key;
typedef struct tune_file {
    char path[4096];
    char *others;               /* the file's contents without this device's results */
    char *result[TUNE_CLASSES]; /* the lines of a measured class; NULL: not measured */
} tune_file;
/* Writes the path at which the library looks for the file; false if there is none. */
bool tune_file_path(char *path, size_t bytes);
/* Reads the results of this key; false with errno if the file cannot be read. A missing file is an
 * empty one. */
bool tune_file_read(tune_file *file, const tune_key *key, const tune_class *classes, bool anew);
/* Writes a temporary file and renames it; false with errno. */
bool tune_file_write(const tune_file *file, const tune_key *key);
void tune_file_free(tune_file *file);

#endif
