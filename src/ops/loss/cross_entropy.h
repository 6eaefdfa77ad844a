/* cross_entropy.h -- what the kernels of cross entropy share: its outputs, and the kernel that
 * makes the gradient with the loss. */
#ifndef TERN_SRC_OPS_CROSS_ENTROPY_H
#define TERN_SRC_OPS_CROSS_ENTROPY_H
#include "device/device.h"
#include "tensor/op.h"
#include <tern/ops.h>

typedef struct tern_entropy_attributes {
    int64_t ignored;
    double smoothing;
    tern_reduction reduction;
    bool wide; /* a loss in float32 of logits in half precision, which autocast makes */
} tern_entropy_attributes;

/* Outputs: the loss; of each row lse and the factor of softmax, (2, rows); the sum of the weights;
 * dx for dout = 1. */
enum { ENTROPY_LOSS, ENTROPY_KEPT, ENTROPY_TOTAL, ENTROPY_DX };

/* As in fused.cl. One group takes so few rows and elements, each group counts up to so many
 * targets. */
enum {
    ENTROPY_MEAN = 1,
    ENTROPY_ALONE = 2,
    ENTROPY_COUNTED = 4,
    ENTROPY_PADDED = 8,
    ENTROPY_WITHOUT_DX = 16,
    ENTROPY_LATE = 32,
    ENTROPY_WEIGHTED = 64,
    ENTROPY_EACH = 128,
    ENTROPY_MOST_ROUNDS = 8,
    ENTROPY_MOST_ALONE = 32768,
    ENTROPY_MOST_COUNTED = 4096,
    ENTROPY_GROUP = 256
};

/* What the kernel is given; NULL: it has no use for that. */
typedef struct tern_entropy_unit {
    const tern_tensor *x, *target, *weight, *kept, *total, *loss, *losses, *weights, *dout;
    tern_tensor *dx;
    int what;
} tern_entropy_unit;

/* Whether `cross_entropy_unit` is the kernel: on devices with work-groups. */
bool tern_entropy_is_unit(const tern_tensor *x);
/* Logits of so many bytes are read once more in backward, which may write dx over them. Tests set
 * it. */
extern int64_t tern_entropy_large_from;
bool tern_entropy_is_large(const tern_tensor *x);
/* Run it; in forward losses and weights are NULL where one group has all rows. */
tern_status tern_entropy_run_unit(const tern_entropy_unit *u, const tern_entropy_attributes *at);
tern_status tern_entropy_launch_unit(const tern_call *call, const tern_tensor *losses,
                                     const tern_tensor *weights);
/* Behind the last row of dx, whose rows the kernel clears to their ends, all is zero too. */
tern_status tern_entropy_clear_rows(tern_tensor *dx);
/* The second row of kept. */
static inline tern_arg tern_entropy_pulls(tern_arg kept, int64_t rows)
{
    kept.at += rows;
    return kept;
}

#endif
