/* dist/data_parallel.h -- one module on several devices of one process (torch.nn.DataParallel). */
#ifndef TERN_DIST_DATA_PARALLEL_H
#define TERN_DIST_DATA_PARALLEL_H
#include <tern/nn.h>

TERN_BEGIN_DECLS

typedef struct tern_data_parallel_options {
    const double
        *weights; /* of n: what part of the rows each device gets; NULL: the same. Copied */
    bool balance; /* parts follow how long devices take, beginning with weights */
    const char *output_device; /* where results are gathered; NULL: the first */
    int dim;                   /* of inputs and results that is shared out; 0: rows */
    uint64_t reserved[4];
} tern_data_parallel_options;
/* Returns the default options, as TERN_DEFAULTS takes them. */
TERN_API tern_data_parallel_options tern_data_parallel_defaults(void);

/* A module that runs `module`, which is its child "module" and on devices[0], on n devices of any
 * kinds at once: each gets some of the rows of every input, results stand in the order of the rows.
 * What the loss of all results gives is exact, however uneven the parts are. The parameters are
 * those of module: other devices have copies of them while they run, and their gradients are added
 * up in them. A device may stand there twice. devices NULL: all of the kind that module is on.
 *
 * As in PyTorch: without weights the first devices get ceil(rows / n) rows each, and one for which
 * none are left does nothing; inputs without dims, and NULL, go to all; a result without dims
 * becomes one number for each device; hooks below run once a device; buffers that the first device
 * writes are module's own, what the others write is lost. The module needs to know nothing of it,
 * one of the program's own neither, as long as it takes parameters and buffers by their names and
 * makes tensors on the default device or that of its input. balance looks at how long each device
 * took for its rows, in some of the steps, and moves parts towards where all take as long, in the
 * end a tenth of the way at a time; none falls below one row.
 *
 * The result owns module, also when this fails. Errors: TERN_ERR_ARGUMENT for weights that are
 * negative or all zero, TERN_ERR_DEVICE for a module that is not on devices[0]; when it runs,
 * TERN_ERR_SHAPE for inputs that differ in size along dim. */
TERN_API tern_module *tern_nn_data_parallel(tern_module *module, const char *const *devices, int n,
                                            const tern_data_parallel_options *options);
/* The part of the rows that device i gets now, between 0 and 1; -1 for what is no such module. */
TERN_API double tern_data_parallel_weight(const tern_module *parallel, int i);

TERN_END_DECLS
#endif
