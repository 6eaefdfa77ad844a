/* ops/embedding.h -- rows of a table looked up by index, and the sum, mean or maximum of several
 * rows.
 *
 * weight (rows, width) has a floating point dtype, indices are int64 or int32. An index out of
 * range is TERN_ERR_ARGUMENT: at once on the cpu, at the next synchronisation on other devices.
 * Results belong to the innermost scope; NULL after an error. nn/layers.h has the modules. */
#ifndef TERN_OPS_EMBEDDING_H
#define TERN_OPS_EMBEDDING_H
#include <tern/tensor.h>

TERN_BEGIN_DECLS

typedef struct tern_embedding_function_options {
    tern_optional_int padding_idx; /* the row that gets no gradient; a negative index counts from
                                    * the end */
    double max_norm;  /* > 0: rows that are looked up and have a larger norm are scaled to this
                      * norm, in weight itself; TERN_ZERO for 0. Default (and NaN): no row is
                      * scaled */
    double norm_type; /* which norm; default 2 */
    bool scale_grad_by_freq; /* divide the gradient of a row by how often its index occurs */
    uint64_t reserved[4];
} tern_embedding_function_options;
/* Returns the default options, as TERN_DEFAULTS takes them. */
TERN_API tern_embedding_function_options tern_embedding_function_defaults(void);
/* Returns the rows of weight that indices name: indices (*) -> (*, width)
 * (torch.nn.functional.embedding). */
TERN_API tern_tensor *tern_embedding(tern_tensor *indices, tern_tensor *weight,
                                     const tern_embedding_function_options *options);

typedef enum tern_embedding_bag_mode {
    TERN_EMBEDDING_BAG_MEAN = 0,
    TERN_EMBEDDING_BAG_SUM,
    TERN_EMBEDDING_BAG_MAX
} tern_embedding_bag_mode;
typedef struct tern_embedding_bag_function_options {
    tern_embedding_bag_mode mode;
    tern_tensor *per_sample_weights; /* a factor for each index, of weight's dtype; for sums only */
    bool include_last_offset; /* the last offset is the end of the last bag, not the start of one */
    tern_optional_int padding_idx; /* the row that gets no gradient and is left out of the bags */
    double max_norm, norm_type;    /* as in tern_embedding_function_options */
    bool scale_grad_by_freq;       /* not with TERN_EMBEDDING_BAG_MAX */
    uint64_t reserved[4];
} tern_embedding_bag_function_options;
/* Returns the default options, as TERN_DEFAULTS takes them. */
TERN_API tern_embedding_bag_function_options tern_embedding_bag_function_defaults(void);
/* Returns the mean, sum or maximum of the rows in each bag, without storing the rows: (B, width),
 * with zeros for an empty bag (torch.nn.functional.embedding_bag). With offsets NULL each row of
 * indices (B, N) is a bag; else bag b is indices (N) from offsets[b] up to the next offset. */
TERN_API tern_tensor *tern_embedding_bag(tern_tensor *indices, tern_tensor *weight,
                                         tern_tensor *offsets,
                                         const tern_embedding_bag_function_options *options);

TERN_END_DECLS
#endif
