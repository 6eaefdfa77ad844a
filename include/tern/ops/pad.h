/* ops/pad.h -- elements around a tensor (torch.nn.functional.pad). */
#ifndef TERN_OPS_PAD_H
#define TERN_OPS_PAD_H
#include <tern/tensor.h>

TERN_BEGIN_DECLS

typedef enum tern_pad_mode {
    TERN_PAD_CONSTANT = 0, /* a number */
    TERN_PAD_REFLECT,      /* mirrored at the first and last element, which are not repeated */
    TERN_PAD_REPLICATE,    /* the first and last element again and again */
    TERN_PAD_CIRCULAR      /* the other end */
} tern_pad_mode;

typedef struct tern_pad_options {
    tern_pad_mode mode;
    double value; /* of TERN_PAD_CONSTANT */
    uint64_t reserved[4];
} tern_pad_options;
/* Returns the default options, as TERN_DEFAULTS takes them. */
TERN_API tern_pad_options tern_pad_defaults(void);

/* pad is (before, after) of the last dim, then of the one in front of it, and so on, six dims at
 * most. Negative numbers cut. TERN_PAD_CONSTANT pads any tensor; the other modes pad the last 1, 2
 * or 3 dims of a tensor with one or two dims more. New, owned by the innermost scope; NULL after
 * TERN_ERR_ARGUMENT or TERN_ERR_SHAPE. */
TERN_API tern_tensor *tern_pad(tern_tensor *x, tern_shape pad, const tern_pad_options *options);

TERN_END_DECLS
#endif
