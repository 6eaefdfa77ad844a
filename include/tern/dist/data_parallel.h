/* dist/data_parallel.h -- one module on several devices of one process (torch.nn.DataParallel). */
#ifndef TERN_DIST_DATA_PARALLEL_H
#define TERN_DIST_DATA_PARALLEL_H
#include <tern/nn.h>

TERN_BEGIN_DECLS

typedef struct tern_data_parallel_options {
    const double *weights; /* n weights: the fraction of the rows that each device gets; NULL: equal
                   * parts. Copied */
    bool balance; /* adjust the parts to the measured times of the devices, starting from weights */
    const char *output_device; /* where results are gathered; NULL: the first */
    int dim;                   /* the dim of inputs and results that is split; 0: rows */
    uint64_t reserved[4];
} tern_data_parallel_options;
/* Returns the default options, as TERN_DEFAULTS takes them. */
TERN_API tern_data_parallel_options tern_data_parallel_defaults(void);

/* A module that runs `module` on n devices of any kinds at once, each with a part of the rows of
 * every input; results have the order of the rows. `module` becomes its child "module", and is on
 * devices[0]. The gradients are those of the loss over all rows, however uneven the parts are. The
 * parameters are those of module: the other devices have copies while they run, and the gradients
 * of the copies are summed in the parameters. A device may be listed twice. devices NULL means all
 * devices of the kind that module is on.
 *
 * As in PyTorch: without weights the first devices get ceil(rows / n) rows each, and a device for
 * which no rows are left does not run; inputs without dims, and NULL, go to all devices; a result
 * without dims becomes a vector with one number for each device; hooks of the modules below run
 * once on each device; of the buffers that change, only those of the first device are kept. The
 * module need not be written for this, even if it is the program's own, as long as it reads
 * parameters and buffers by their names and creates tensors on the default device or on that of its
 * input. balance measures in some of the steps how long each device takes for its rows, and moves
 * the parts towards equal times, by a tenth of the difference at a time in the end; no part falls
 * below one row.
 *
 * The result owns module, and frees it if this fails. Errors: TERN_ERR_ARGUMENT for weights that
 * are negative or all zero, TERN_ERR_DEVICE if module is not on devices[0]; in forward,
 * TERN_ERR_SHAPE for inputs with different sizes along dim. */
TERN_API tern_module *tern_nn_data_parallel(tern_module *module, const char *const *devices, int n,
                                            const tern_data_parallel_options *options);
/* Returns the fraction of the rows that device i gets now, between 0 and 1; -1 for any other
 * module. */
TERN_API double tern_data_parallel_weight(const tern_module *parallel, int i);

TERN_END_DECLS
#endif
