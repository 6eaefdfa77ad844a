/* nn/summary.h -- a table of a model's layers, with the shapes of their results and the numbers of
 * their parameters. */
#ifndef TERN_NN_SUMMARY_H
#define TERN_NN_SUMMARY_H
#include <tern/nn.h>

TERN_BEGIN_DECLS

typedef struct tern_summary_options {
    int depth; /* list modules down to this depth, where m's children have depth 1; 0 lists all */
    uint64_t reserved[4];
} tern_summary_options;
/* Returns the default options, as TERN_DEFAULTS takes them. */
TERN_API tern_summary_options tern_summary_defaults(void);

/* Returns a text with a row for m and for each module below it: the shape of its (first) result,
 * the number of its own parameters, and whether they are trained. The totals and the bytes follow;
 * a tied weight is counted once. The shapes come from a run of m on in[n] in evaluation mode and
 * without autograd, which does not change modes or gradients. With n 0 nothing is run and the
 * shapes are left out. The caller frees the text with tern_free_text; NULL after an error. */
TERN_API char *tern_nn_summary(tern_module *m, tern_tensor *const *in, int n,
                               const tern_summary_options *options);
/* Writes the same text to stdout. */
TERN_API tern_status tern_nn_print_summary(tern_module *m, tern_tensor *const *in, int n,
                                           const tern_summary_options *options);

TERN_END_DECLS
#endif
