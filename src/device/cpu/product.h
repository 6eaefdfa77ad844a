/* product.h -- a batch of matrix products as the host's own kernels take it. */
#ifndef TERN_DEVICE_CPU_PRODUCT_H
#define TERN_DEVICE_CPU_PRODUCT_H
#include "types_host.h"
#include <stdbool.h>

/* Element (i, j) of matrix (b0, b1) is at b0 * batch[0] + b1 * batch[1] + i * row + j * col. */
typedef struct tern_host_matrix {
    const void *data;
    i64 row, col, batch[2];
} tern_host_matrix;

/* C = alpha A B + beta C + bias, as tern_gemm has it; C's columns are dense. */
typedef struct tern_host_product {
    i64 m, n, k, count[2];
    f64 alpha, beta;
    tern_host_matrix a, b, c;
    const void *bias; /* n numbers, or NULL */
    i64 down, across; /* units of work that C is cut into */
    char *panels;     /* TERN_PRODUCT_PANELS bytes for each part, where factors are packed */
} tern_host_product;
enum { TERN_PRODUCT_PANELS = 131072 };

/* Is it one of product_skinny.h, whose B is read once and where it lies? */
static inline bool tern_product_is_skinny(const tern_host_product *p)
{
    return p->m >= 2 && p->m <= 8 && p->a.col == 1 && p->b.row == 1 && p->n > 1;
}

/* A product as product_bf16.c keeps it. All bytes count: cleared before it is filled. */
typedef struct tern_bf16_shape {
    i64 m, n, k, a_row, a_col, b_row, b_col, c_row;
    f64 alpha;
    i64 has_bias;
} tern_bf16_shape;

/* Does this processor multiply bfloat16 faster than float32? */
bool tern_bf16_is_fast(void);
/* C = alpha A B + bias of dense or transposed matrices, on this thread alone; false if oneDNN fails
 * or does not have it. A bias goes with alpha 1. */
bool tern_bf16_product(const tern_bf16_shape *shape, const void *a, const void *b, void *c,
                       const void *bias);

/* Attention as attention_tile.h takes it; out's columns are dense. before to flags are those of
 * tern_attention_block. */
typedef struct tern_host_attention {
    i64 count[2], queries, keys, width, value_width;
    i64 before, after;
    i64 stride[4];
    i32 flags;
    f64 scale, softcap; /* 0: none */
    tern_host_matrix q, k, v, out;
    f32 *sums;
    const void *mask; /* NULL: none */
    f32 *scratch;     /* part_scratch numbers for each part */
    i64 part_scratch;
} tern_host_attention;

/* A convolution of images with few channels, or the gradient of its weight, as conv_channels_tile.h
 * takes it: images of c channels, y or dy of o channels, in dense rows. A group is y_rows rows of
 * an image; packed, x has x_rows rows of x_row numbers a channel, dy y_rows of y_row. */
typedef struct tern_host_conv_channels {
    const f32 *x, *weight, *bias, *y; /* bias: NULL for none */
    i64 groups, c, o, in[2], out[2], window[2], stride[2], padding[2], dilation[2];
    i64 x_rows, x_row, y_rows, y_row;
    f32 *scratch; /* part_scratch numbers for each part; its sums come first */
    i64 part_scratch;
} tern_host_conv_channels;
enum { TERN_CONV_TAPS = 256 }; /* of all its channels, at most */

/* strips_f32 of product_tile.h for the widest registers that there are, to those that are compiled
 * for narrower ones, and how many numbers a row of its panels has. */
typedef struct tern_host_strips {
    void (*run)(void);
    i64 panel;
} tern_host_strips;

/* A convolution of 3 x 3 taps and stride 1 as conv_winograd_tile.h takes it, or a gradient of one:
 * that of x is one of dy with the taps turned, whose x, c and y, o they then are. y has rows x
 * columns tiles; a unit of work is `strip` rows of tiles of some images. The other numbers say
 * where the parts' scratch has what. */
typedef struct tern_host_winograd {
    const f32 *x, *weight, *bias, *y; /* bias: NULL for none */
    i64 n, c, o, in[2], out[2], padding[2];
    i64 weight_step[2]; /* between the taps of outputs, and of inputs */
    i64 flipped;
    i64 rows, columns, strip, images, units;
    tern_host_strips strips; /* its products */
    i64 pitch, u_step, v_step, m_step, m_size, line_step, row;
    f32 *scratch;           /* part_scratch numbers for each part */
    i64 part_scratch, sums; /* the gradient of the weight comes first, `sums` numbers */
} tern_host_winograd;

/* A convolution whose y has half the rows and columns of x as conv_stride2_tile.h takes it, or a
 * gradient; back: that of x. */
typedef struct tern_host_stride2 {
    const f32 *x, *weight, *y;
    i64 n, c, o, out[2], window, back;
    i64 pitch;    /* of columns */
    f32 *scratch; /* part_scratch numbers for each part; its sums come first */
    i64 part_scratch;
} tern_host_stride2;

/* Panels of queries that share a block of keys, the most lanes of one, and keys of a block. */
enum { TERN_ATTENTION_PANELS = 4, TERN_ATTENTION_LANES = 32, TERN_ATTENTION_KEYS = 64 };

/* Rows and columns of C that are one unit of work, at most, and what they are multiples of. */
enum {
    TERN_PRODUCT_ROWS = 96,
    TERN_PRODUCT_COLUMNS = 256,
    TERN_PRODUCT_ROW = 12,
    TERN_PRODUCT_COLUMN = 16
};

/* Where part i of `parts` of n begins, whose parts are multiples of `unit`. */
static inline i64 tern_product_cut(i64 n, i64 unit, i64 i, i64 parts)
{
    i64 at = (n + unit - 1) / unit * i / parts * unit;
    return at < n ? at : n;
}

#endif
