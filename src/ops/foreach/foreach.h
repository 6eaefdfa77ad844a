/* foreach.h -- kernels over many tensors at once, as torch._foreach_* are: one launch for all of a
 * device and dtype, or, on OpenCL devices whose memory has no addresses, for every
 * TERN_FOREACH_ARGUMENTS of them.
 *
 * The one header of ops/ that layers to the right include: what it does is no operation on tensors
 * that a user could want, and the public headers have no kernels of the library's own. */
#ifndef TERN_SRC_OPS_FOREACH_H
#define TERN_SRC_OPS_FOREACH_H
#include "device/device.h"
#include "types_host.h"
#include "shapes.h"

/* The layout of n tensors, cut into chunks, and the table of addresses on their device: a row for
 * each tensor, a column for each role (parameter, gradient, moments). */
typedef struct tern_foreach tern_foreach;

/* For tensors of these sizes on the device of the first; n > 0. NULL after an error. */
tern_foreach *tern_foreach_new(tern_tensor *const *tensors, int n);
void tern_foreach_free(tern_foreach *table);
/* How many chunks there are in all, and the first one of tensor i. */
int64_t tern_foreach_chunks(const tern_foreach *table);
int64_t tern_foreach_first_chunk(const tern_foreach *table, int i);

/* A kernel in both forms of foreach_forms.h. */
typedef struct tern_foreach_kernel {
    tern_kernel_ref many, by_arguments;
} tern_foreach_kernel;
/* clang-format off */
#define TERN_FOREACH_KERNEL(file, name) {{file, name}, {file, name "_arguments"}}
/* clang-format on */

/* A run of a kernel over columns of tensors: column[k][i] goes with tensor i. Columns 0 and 1 are
 * of one dtype; tensor i is left out where column[1][i] is NULL. All are dense: where column[0][i]
 * is a dense copy of target[i], it is copied back in the end. Arguments of the
 * kernel are rows, chunks, each, shared ..., found, faults, the number of chunks. Where the
 * device's memory has no addresses, its other form runs for TERN_FOREACH_ARGUMENTS tensors at a
 * time, which are its arguments then. */
enum { TERN_FOREACH_SHARED = 4 };
typedef struct tern_foreach_call {
    const tern_foreach_kernel *kernel;
    const tern_foreach_kernel *before;                /* runs first, on the same; or NULL */
    const char *function;                             /* that errors name */
    tern_tensor *const *column[TERN_FOREACH_COLUMNS]; /* NULL: not there */
    tern_tensor *const *target;                       /* NULL: column 0 */
    tern_tensor *each; /* an element for each chunk, written; NULL: left out */
    tern_tensor *shared[TERN_FOREACH_SHARED]; /* those that are there, read */
    tern_tensor *found;                       /* of one element, written; NULL: left out */
    bool writes;                              /* column 0 is written: versions rise */
} tern_foreach_call;
tern_status tern_foreach_launch(tern_foreach *table, const tern_foreach_call *call);

/* The two halves of a launch, for several of which all are to run or none: what may be refused or
 * lack memory, and what writes. */
typedef struct tern_foreach_ready {
    bool any, addressed;
    tern_arg faults;
    tern_block *rows; /* the table's, until the next launch of it is prepared */
} tern_foreach_ready;
tern_status tern_foreach_prepare(tern_foreach *table, const tern_foreach_call *call,
                                 tern_foreach_ready *ready);
tern_status tern_foreach_run(tern_foreach *table, const tern_foreach_call *call,
                             const tern_foreach_ready *ready);
/* Whether x can be written: refused where several of its elements are one in memory, as in what was
 * expanded. */
tern_status tern_foreach_can_write(const tern_tensor *x, const char *function);

/* Beside them, torch._amp_update_scale_: the scale of mixed precision (float32, one element) after
 * a step; tracker (int64) counts those in a row for which *found (float32) was 0. */
tern_status tern_update_scale(tern_tensor *scale, tern_tensor *tracker, tern_tensor *found,
                              double growth, double backoff, int64_t interval);

#endif
