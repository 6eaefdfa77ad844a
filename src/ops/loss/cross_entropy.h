/* cross_entropy.h -- declarations shared by the kernels of cross entropy: the outputs, and the
 * kernel that computes the gradient with the loss. */
#ifndef TERN_SRC_OPS_CROSS_ENTROPY_H
#define TERN_SRC_OPS_CROSS_ENTROPY_H
#include "device/device.h"
#include "tensor/op.h"
#include <tern/ops.h>

typedef struct tern_entropy_attributes {
    int64_t ignored;
    double smoothing;
    tern_reduction reduction;
    bool wide; /* float32 loss of half precision logits, which autocast requests */
} tern_entropy_attributes;

/* Outputs: the loss; for each row lse and the factor of softmax, (2, rows); the sum of the weights;
 * dx for dout = 1. */
enum { ENTROPY_LOSS, ENTROPY_KEPT, ENTROPY_TOTAL, ENTROPY_DX };

/* Values as in fused.cl. One work-group computes all rows if there are few rows (MOST_ROUNDS) and
 * elements (MOST_ALONE). Each work-group counts up to MOST_COUNTED targets itself. */
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

/* Arguments of the kernel; NULL for tensors that it does not use. */
typedef struct tern_entropy_unit {
    const tern_tensor *x, *target, *weight, *kept, *total, *loss, *losses, *weights, *dout;
    tern_tensor *dx;
    int what;
} tern_entropy_unit;

/* Returns whether the kernel `cross_entropy_unit` is used: on devices with work-groups. */
bool tern_entropy_is_unit(const tern_tensor *x);
/* The size in bytes from which logits are large: backward reads them once more, and may write dx
 * over them. Tests set it. */
extern int64_t tern_entropy_large_from;
bool tern_entropy_is_large(const tern_tensor *x);
/* Run the kernel. In forward, losses and weights are NULL if one work-group has all rows. */
tern_status tern_entropy_run_unit(const tern_entropy_unit *u, const tern_entropy_attributes *at);
tern_status tern_entropy_launch_unit(const tern_call *call, const tern_tensor *losses,
                                     const tern_tensor *weights);
/* Sets the memory behind the last row of dx to 0. The kernel clears the padding of the rows. */
tern_status tern_entropy_clear_rows(tern_tensor *dx);
/* Returns `kept` at its second row, the factor of softmax. */
static inline tern_arg tern_entropy_pulls(tern_arg kept, int64_t rows)
{
    kept.at += rows;
    return kept;
}

#endif
