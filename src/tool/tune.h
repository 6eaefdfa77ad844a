/* tune.h -- the parts of `tern tune`: products that are measured, trials in children, the file that
 * it writes. */
#ifndef TERN_TOOL_TUNE_H
#define TERN_TOOL_TUNE_H
#include "tool/tool.h"
#include <string.h>

/* ---- a class of products (tune_classes.def) -------------------------------------------------- */
typedef struct tune_class {
    const char *name, *layout, *sizes; /* sizes: of the route */
    int64_t m, n, k, count;            /* of the product that is measured */
} tune_class;
/* Whether it is of halves, for matrix units. */
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
/* The class's product by a way of TERN_OPENCL_GEMM, "" for what the library does untuned, in a
 * child of its own: seconds on the device, by its events, or 0 and why not. */
typedef struct tune_trial {
    const char *device;
    tune_class of;
    char way[64];
    int limit; /* seconds that it may take */
    bool quick;
    double seconds;
    bool lost; /* the child hung or ended */
    bool late; /* it was not done in that time */
    char why[200];
} tune_trial;
void tune_try(tune_trial *trial);

/* ---- the file (tune_file.c) ------------------------------------------------------------------ */
/* Whose results they are: with another driver, tern or size they are measured anew. */
typedef struct tune_key {
    char name[256], driver[256];
    int64_t size;
    bool quick;
} tune_key;
typedef struct tune_file {
    char path[4096];
    char *others;               /* the file without this device's results */
    char *result[TUNE_CLASSES]; /* lines of a class that is done; NULL: it is not */
} tune_file;
/* Where the library looks for it; false: nowhere. */
bool tune_file_path(char *path, size_t bytes);
/* What is there, of this key; false with errno where it cannot be read. No file is an empty one. */
bool tune_file_read(tune_file *file, const tune_key *key, const tune_class *classes, bool anew);
/* Beside it, and then moved there; false with errno. */
bool tune_file_write(const tune_file *file, const tune_key *key);
void tune_file_free(tune_file *file);

#endif
