/* nn/summary.h -- a model as a table: its layers, what they give, and what they hold. */
#ifndef TERN_NN_SUMMARY_H
#define TERN_NN_SUMMARY_H
#include <tern/nn.h>

TERN_BEGIN_DECLS

typedef struct tern_summary_options {
    int depth; /* rows for modules down to here, 1 being m's children; 0 for all */
    uint64_t reserved[4];
} tern_summary_options;
/* Returns the default options, as TERN_DEFAULTS takes them. */
TERN_API tern_summary_options tern_summary_defaults(void);

/* A row for m and each module below it with the shape of its (first) result, how many parameters
 * are its own and whether they are trained; then the totals, a tied weight counted once, and bytes.
 * The shapes are those of a run of m on in[n], in evaluation mode and unrecorded, which leaves
 * modes and gradients as they were; with n = 0 nothing is run and the shapes are left out. Text to
 * be freed with tern_free_text; NULL after an error. */
TERN_API char *tern_nn_summary(tern_module *m, tern_tensor *const *in, int n,
                               const tern_summary_options *options);
/* The same to stdout. */
TERN_API tern_status tern_nn_print_summary(tern_module *m, tern_tensor *const *in, int n,
                                           const tern_summary_options *options);

TERN_END_DECLS
#endif
