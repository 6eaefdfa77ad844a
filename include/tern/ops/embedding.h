/* ops/embedding.h -- rows of a table by their numbers, and bags of them.
 *
 * weight (rows, width) is of a floating point type, indices int64 or int32. An index out of range
 * is TERN_ERR_ARGUMENT: at once on cpu, at the next synchronisation elsewhere. Results belong to
 * the innermost scope; NULL after an error. The modules are in nn/layers.h. */
#ifndef TERN_OPS_EMBEDDING_H
#define TERN_OPS_EMBEDDING_H
#include <tern/tensor.h>

TERN_BEGIN_DECLS

typedef struct tern_embedding_function_options {
    tern_optional_int padding_idx; /* this row gets no gradient; negative counts from the end */
    double max_norm;               /* > 0: rows that are looked up and whose norm is larger are
                                    * scaled to it, in weight itself; TERN_ZERO for 0. Default:
                                    * none are, which NaN is, too */
    double norm_type;              /* of that norm; default 2 */
    bool scale_grad_by_freq;       /* gradients by how often their index is there */
    uint64_t reserved[4];
} tern_embedding_function_options;
/* Returns the default options, as TERN_DEFAULTS takes them. */
TERN_API tern_embedding_function_options tern_embedding_function_defaults(void);
/* indices (*) -> (*, width) (torch.nn.functional.embedding). */
TERN_API tern_tensor *tern_embedding(tern_tensor *indices, tern_tensor *weight,
                                     const tern_embedding_function_options *options);

typedef enum tern_embedding_bag_mode {
    TERN_EMBEDDING_BAG_MEAN = 0,
    TERN_EMBEDDING_BAG_SUM,
    TERN_EMBEDDING_BAG_MAX
} tern_embedding_bag_mode;
typedef struct tern_embedding_bag_function_options {
    tern_embedding_bag_mode mode;
    tern_tensor *per_sample_weights; /* a factor for each index, for sums; of weight's type */
    bool include_last_offset;        /* the last offset is the end of the last bag */
    tern_optional_int padding_idx;   /* its row is left out of bags, too */
    double max_norm, norm_type;      /* as of embedding */
    bool scale_grad_by_freq;         /* not of maxima */
    uint64_t reserved[4];
} tern_embedding_bag_function_options;
/* Returns the default options, as TERN_DEFAULTS takes them. */
TERN_API tern_embedding_bag_function_options tern_embedding_bag_function_defaults(void);
/* The mean, sum or maximum of rows, without room for them: of each row of indices (B, N), offsets
 * NULL; or of indices (N) from each of offsets (B) to the next -> (B, width), zeros for an empty
 * bag (torch.nn.functional.embedding_bag). */
TERN_API tern_tensor *tern_embedding_bag(tern_tensor *indices, tern_tensor *weight,
                                         tern_tensor *offsets,
                                         const tern_embedding_bag_function_options *options);

TERN_END_DECLS
#endif
