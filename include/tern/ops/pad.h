/* ops/pad.h -- padding of the edges of a tensor (torch.nn.functional.pad). */
#ifndef TERN_OPS_PAD_H
#define TERN_OPS_PAD_H
#include <tern/tensor.h>

TERN_BEGIN_DECLS

typedef enum tern_pad_mode {
    TERN_PAD_CONSTANT = 0, /* every new element is value */
    TERN_PAD_REFLECT,      /* the tensor mirrored at its first and last element, which are not
                            * repeated */
    TERN_PAD_REPLICATE,    /* the first and last element repeated */
    TERN_PAD_CIRCULAR      /* the elements of the opposite end */
} tern_pad_mode;

typedef struct tern_pad_options {
    tern_pad_mode mode;
    double value; /* for TERN_PAD_CONSTANT; default 0 */
    uint64_t reserved[4];
} tern_pad_options;
/* Returns the default options, as TERN_DEFAULTS takes them. */
TERN_API tern_pad_options tern_pad_defaults(void);

/* Returns x with elements added before and after the elements of its last dims. pad holds (before,
 * after) of the last dim, then of the dim before it, and so on for at most six dims; a negative
 * number removes elements. TERN_PAD_CONSTANT pads any tensor. The other modes pad the last 1, 2 or
 * 3 dims of a tensor that has one or two dims more. The result is new and belongs to the innermost
 * scope; NULL after TERN_ERR_ARGUMENT or TERN_ERR_SHAPE. */
TERN_API tern_tensor *tern_pad(tern_tensor *x, tern_shape pad, const tern_pad_options *options);

TERN_END_DECLS
#endif
