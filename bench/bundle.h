/* bundle.h -- tensors that the other side wrote: NAME.txt says what lies where in NAME.raw.
 *
 * A line of the index: name, element type (f32 or i64, little-endian), offset in bytes, sizes; or
 * of a model's options, "name = value". */
#ifndef BENCH_BUNDLE_H
#define BENCH_BUNDLE_H
#include <tern/tern.h>

typedef struct bundle bundle;

/* NULL after a message to stderr. */
bundle *bundle_read(const char *stem);
void bundle_free(bundle *b);
/* A new tensor on the default device; NULL, after a message, when there is no such name. */
tern_tensor *bundle_tensor(const bundle *b, const char *name);
/* An option's value, "" where it is not there; and as a number, 0 then. */
const char *bundle_option(const bundle *b, const char *name);
double bundle_number(const bundle *b, const char *name);
/* Copy every parameter of module from the tensor that has its path as its name. */
bool bundle_load(const bundle *b, tern_module *module);

#endif
