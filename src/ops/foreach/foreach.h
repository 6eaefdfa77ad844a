/* foreach.h -- kernels over many tensors at once, as torch._foreach_*: one launch for all tensors
 * of a device and dtype, or, on OpenCL devices whose memory has no addresses, one for every
 * TERN_FOREACH_ARGUMENTS tensors.
 *
 * This is the one header of ops/ that layers to the right include: its functions are no operations
 * on tensors for a user, and the public headers have no kernels of the library's own. */
#ifndef TERN_SRC_OPS_FOREACH_H
#define TERN_SRC_OPS_FOREACH_H
#include "device/device.h"
#include "types_host.h"
#include "shapes.h"

/* The layout of n tensors, cut into chunks, and the table of addresses on their device, with a row
 * for each tensor and a column for each role (parameter, gradient, moments). */
typedef struct tern_foreach tern_foreach;

/* Returns a table for tensors of these sizes on the device of the first, or NULL after an error; n
 * > 0. The caller frees the table. */
tern_foreach *tern_foreach_new(tern_tensor *const *tensors, int n);
void tern_foreach_free(tern_foreach *table);
/* Return the total number of chunks, and the first chunk of tensor i. */
int64_t tern_foreach_chunks(const tern_foreach *table);
int64_t tern_foreach_first_chunk(const tern_foreach *table, int i);

/* A kernel in both forms of foreach_forms.h. */
typedef struct tern_foreach_kernel {
    tern_kernel_ref many, by_arguments;
} tern_foreach_kernel;
/* clang-format off */
#define TERN_FOREACH_KERNEL(file, name) {{file, name}, {file, name "_arguments"}}
/* clang-format on */

/* A launch of a kernel over columns of tensors: column[k][i] belongs to tensor i. Columns 0 and 1
 * have one dtype; tensor i is left out where column[1][i] is NULL. All tensors are dense: where
 * column[0][i] is a dense copy of target[i], it is copied back at the end. The arguments of the
 * kernel are rows, chunks, each, shared ..., found, faults, the number of chunks. Where the
 * device's memory has no addresses, the other form runs for TERN_FOREACH_ARGUMENTS tensors at a
 * time, with their buffers as arguments. */
enum { TERN_FOREACH_SHARED = 4 };
typedef struct tern_foreach_call {
    const tern_foreach_kernel *kernel;
    const tern_foreach_kernel *before;                /* kernel to launch first, or NULL */
    const char *function;                             /* public function, for error messages */
    tern_tensor *const *column[TERN_FOREACH_COLUMNS]; /* NULL: no such column */
    tern_tensor *const *target;                       /* NULL: column 0 */
    tern_tensor *each;                        /* one element for each chunk, written; or NULL */
    tern_tensor *shared[TERN_FOREACH_SHARED]; /* read by the kernel; NULL entries are left out */
    tern_tensor *found;                       /* one element, written; or NULL */
    bool writes;                              /* column 0 is written: its versions increase */
} tern_foreach_call;
tern_status tern_foreach_launch(tern_foreach *table, const tern_foreach_call *call);

/* The two parts of a launch, for several launches of which either all run or none: prepare, which
 * may fail for its arguments or for lack of memory, and run, which writes. */
typedef struct tern_foreach_ready {
    bool any, addressed;
    tern_arg faults;
    tern_block *rows; /* of the table, valid until its next tern_foreach_prepare */
} tern_foreach_ready;
tern_status tern_foreach_prepare(tern_foreach *table, const tern_foreach_call *call,
                                 tern_foreach_ready *ready);
tern_status tern_foreach_run(tern_foreach *table, const tern_foreach_call *call,
                             const tern_foreach_ready *ready);
/* Returns an error if x cannot be written because several of its elements share one place in
 * memory, as in an expanded tensor. */
tern_status tern_foreach_can_write(const tern_tensor *x, const char *function);

/* torch._amp_update_scale_: updates the scale of mixed precision (float32, one element) after a
 * step; tracker (int64) counts the consecutive steps for which *found (float32) was 0. */
tern_status tern_update_scale(tern_tensor *scale, tern_tensor *tracker, tern_tensor *found,
                              double growth, double backoff, int64_t interval);

#endif
