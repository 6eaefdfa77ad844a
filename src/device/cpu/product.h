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

/* C = alpha A B + beta C + bias, as in tern_gemm; the elements of a row of C are contiguous. */
typedef struct tern_host_product {
    i64 m, n, k, count[2];
    f64 alpha, beta;
    tern_host_matrix a, b, c;
    const void *bias; /* n elements, or NULL */
    i64 down, across; /* units of work along m and along n */
    char *panels;     /* TERN_PRODUCT_PANELS bytes for each part's packed factors */
} tern_host_product;
enum { TERN_PRODUCT_PANELS = 131072 };

/* Returns whether product_skinny.h computes the product: it reads B once, in place. */
static inline bool tern_product_is_skinny(const tern_host_product *p)
{
    return p->m >= 2 && p->m <= 8 && p->a.col == 1 && p->b.row == 1 && p->n > 1;
}

/* The key of a product in product_bf16.c. All bytes count, so it is cleared before it is filled. */
typedef struct tern_bf16_shape {
    i64 m, n, k, a_row, a_col, b_row, b_col, c_row;
    f64 alpha;
    i64 has_bias;
} tern_bf16_shape;

/* Returns whether this processor multiplies bfloat16 faster than float32. */
bool tern_bf16_is_fast(void);
/* Computes C = alpha A B + bias of contiguous or transposed matrices, on the calling thread alone.
 * Returns false if oneDNN fails or does not support the product. A bias needs alpha 1. */
bool tern_bf16_product(const tern_bf16_shape *shape, const void *a, const void *b, void *c,
                       const void *bias);

/* Attention for attention_tile.h; the elements of a row of out are contiguous. The fields from
 * before to flags are those of tern_attention_block. */
typedef struct tern_host_attention {
    i64 count[2], queries, keys, width, value_width;
    i64 before, after;
    i64 stride[4];
    i32 flags;
    f64 scale, softcap; /* softcap 0: none */
    tern_host_matrix q, k, v, out;
    f32 *sums;
    const void *mask; /* NULL: no mask */
    f32 *scratch;     /* part_scratch numbers for each part */
    i64 part_scratch;
} tern_host_attention;

/* A convolution of images with few channels, or the gradient of its weight, for
 * conv_channels_tile.h: images of c channels, y or dy of o channels, contiguous rows. A group is
 * y_rows rows of an image; packed, a channel of x has x_rows rows of x_row numbers, one of dy
 * y_rows rows of y_row. */
typedef struct tern_host_conv_channels {
    const f32 *x, *weight, *bias, *y; /* bias NULL: none */
    i64 groups, c, o, in[2], out[2], window[2], stride[2], padding[2], dilation[2];
    i64 x_rows, x_row, y_rows, y_row;
    f32 *scratch; /* part_scratch numbers for each part, its sums first */
    i64 part_scratch;
} tern_host_conv_channels;
enum { TERN_CONV_TAPS = 256 }; /* limit for the taps of all channels */

/* The function strips_f32 of product_tile.h for the widest registers, for kernels that are compiled
 * for narrower ones, and the numbers in a row of its panels. */
typedef struct tern_host_strips {
    void (*run)(void);
    i64 panel;
} tern_host_strips;

/* A convolution of 3 x 3 taps and stride 1, or a gradient of one, for conv_winograd_tile.h. The
 * gradient of x is a convolution of dy with the taps flipped: x, c and y, o are exchanged then. y
 * has rows x columns tiles; a unit of work is `strip` rows of tiles of some images. The other
 * numbers are sizes and distances in the parts' scratch. */
typedef struct tern_host_winograd {
    const f32 *x, *weight, *bias, *y; /* bias NULL: none */
    i64 n, c, o, in[2], out[2], padding[2];
    i64 weight_step[2]; /* distances between the taps of outputs, and of inputs */
    i64 flipped;
    i64 rows, columns, strip, images, units;
    tern_host_strips strips; /* the function for products */
    i64 pitch, u_step, v_step, m_step, m_size, line_step, row;
    f32 *scratch;           /* part_scratch numbers for each part */
    i64 part_scratch, sums; /* sums: the size of the gradient of the weight, which comes first */
} tern_host_winograd;

/* A convolution whose y has half the rows and columns of x, or a gradient of one, for
 * conv_stride2_tile.h. back: the gradient of x. */
typedef struct tern_host_stride2 {
    const f32 *x, *weight, *y;
    i64 n, c, o, out[2], window, back;
    i64 pitch;    /* distance between columns */
    f32 *scratch; /* part_scratch numbers for each part, its sums first */
    i64 part_scratch;
} tern_host_stride2;

/* Panels of queries that share a block of keys, most lanes of a panel, and keys of a block. */
enum { TERN_ATTENTION_PANELS = 4, TERN_ATTENTION_LANES = 32, TERN_ATTENTION_KEYS = 64 };

/* The most rows and columns of C in a unit of work, and the numbers that they are multiples of. */
enum {
    TERN_PRODUCT_ROWS = 96,
    TERN_PRODUCT_COLUMNS = 256,
    TERN_PRODUCT_ROW = 12,
    TERN_PRODUCT_COLUMN = 16
};

/* Returns where part i of `parts` of n begins; parts are multiples of `unit`. */
static inline i64 tern_product_cut(i64 n, i64 unit, i64 i, i64 parts)
{
    i64 at = (n + unit - 1) / unit * i / parts * unit;
    return at < n ? at : n;
}

#endif
