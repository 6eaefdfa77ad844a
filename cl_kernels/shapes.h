/* shapes.h -- structs that the host fills and kernels read; the same layout everywhere. */
#ifndef TERN_SHAPES_H
#define TERN_SHAPES_H

/* Lanes of a team that a row of n elements is given to, in work-groups of `group`:
 * collectives.h. */
#define TERN_TEAM(n, group)                                                                        \
    ((n) > 1024 || (group) < 32 ? (group) : (n) > 128 ? 32 : (n) > 64 ? 16 : (n) > 32 ? 8 : 4)
/* Rows of up to so many elements have programs of their own for each size of team, TERN_ROW_LANES,
 * of which each lane has up to eight elements. */
enum { TERN_SHORT_ROW = 256 };

/* Flags of norms, in the last argument of their kernels, that a recording reads or sets: layer norm
 * is stored in half precision alone; batch norm's sums are those of a part of a channel, and no
 * more; what relu is of is not stored. */
enum { TERN_NORM_HALVES_ALONE = 32, TERN_NORM_PIECES = 64, TERN_NORM_UNREAD = 512 };

/* An index over up to four tensors of one broadcast shape: `rows` rows of `inner` elements. Row r
 * is a position in dim[0..ndim), the row's first element in tensor k is at the sum of position
 * times stride[k], its elements are step[k] apart. unit: every step is 1. flat_a, flat_b: likewise,
 * but the step of tensor 1 (2) is 0. Bit k of fours: rows of tensor k begin at multiples of four
 * elements from its first, bit 4 + k: of eight. Of the first TERN_ND_LOW dims but 0: q / dim[d] =
 * (2 q factor[d] >> 32) >> shift[d] for q below 2^31. */
enum { TERN_ND_TENSORS = 4, TERN_ND_DIMS = 11, TERN_ND_LOW = 4, TERN_ND_ALL_FOURS = 255 };
enum { TERN_ND_STRIDED = 0, TERN_ND_UNIT = 1, TERN_ND_FLAT_A = 2, TERN_ND_FLAT_B = 3 };
typedef struct tern_nd_index {
    i64 rows, inner;
    i64 dim[TERN_ND_DIMS];
    i64 stride[TERN_ND_TENSORS][TERN_ND_DIMS];
    i64 step[TERN_ND_TENSORS];
    i32 ndim;
    i16 form, fours;
    u32 factor[TERN_ND_LOW], shift[TERN_ND_LOW];
} tern_nd_index;

/* A copy between planes that are contiguous along different dims: y (n, m), rows y_step apart, x
 * (m, n), rows x_step apart. planes: the index over the other dims of y and x. n, m and all steps
 * are multiples of together, 1 to 8. */
enum { TERN_TRANSPOSE_TILE = 32, TERN_WORD_TILE = 64 };
typedef struct tern_transposition {
    tern_nd_index planes;
    i64 n, m, y_step, x_step, together;
} tern_transposition;

/* A batch of matrix products, as in matmul.cl: element (i, j) of matrix (b0, b1) is at
 * b0 * batch[0] + b1 * batch[1] + i * row + j * col. */
enum { TERN_GEMM_TILE = 32, TERN_GEMM_DEPTH = 16 };
typedef struct tern_gemm_matrix {
    i64 row, col, batch[2];
} tern_gemm_matrix;
typedef struct tern_gemm_shape {
    i64 m, n, k, count[2];
    tern_gemm_matrix a, b, c;
    i64 has_bias;
} tern_gemm_shape;

/* The windows of images as columns: x (batch, channels, size[0], size[1], size[2]), its images and
 * channels x_batch and x_channel apart; y (batch, channels * window[0] * window[1] * window[2],
 * count[0] * count[1] * count[2]), its images and rows y_batch and y_row apart. Window o has at k
 * the element o * stride - padding + k * dilation along each dim. */
typedef struct tern_columns {
    i64 batch, channels;
    i64 size[3], window[3], count[3], stride[3], padding[3], dilation[3];
    i64 x_batch, x_channel, y_batch, y_row;
} tern_columns;

/* Rows of layer norm whose gradients are all made at once have no more elements. */
enum { TERN_NORM_WIDE = 1024 };

/* Columns of a weight's gradient that one work-group of linear_gradient sums. */
enum { TERN_LINEAR_TILE = 256 };

/* Writing where an index points, along one dim: an index over (written, read, index) without that
 * dim, which has count entries, step apart, to be written to one of size. */
enum {
    TERN_SCATTER_SET = 0,
    TERN_SCATTER_ADD = 1,
    TERN_SCATTER_MULTIPLY = 2,
    TERN_SCATTER_MAX = 3,
    TERN_SCATTER_MIN = 4
};
typedef struct tern_scatter_shape {
    tern_nd_index nd;
    i64 count, size, step[3];
    i32 mode, wrap, code, ordered;
} tern_scatter_shape;

/* A table for kernels over many tensors: a row for each tensor and what goes with it (a parameter,
 * its gradient, its states), 0 where there is none; and the chunks that all rows are cut into.
 * TERN_FOREACH_ARGUMENTS rows go as arguments to devices without addresses: each takes up to 1024
 * bytes. */
enum { TERN_FOREACH_COLUMNS = 5, TERN_FOREACH_CHUNK = 4096, TERN_FOREACH_ARGUMENTS = 20 };
typedef struct tern_foreach_row {
    u64 address[TERN_FOREACH_COLUMNS];
} tern_foreach_row;
typedef struct tern_foreach_chunk {
    i64 row, first, count; /* elements first .. first + count of that row */
} tern_foreach_chunk;

/* A convolution of x (n, c, in) with weight (o, c / groups, window) into y (n, o, out): spatial
 * dims are three, the leading ones 1 where there are fewer. y at q sees x at q * stride - padding +
 * k * dilation; what lies outside of x is 0. */
typedef struct tern_conv_shape {
    i64 n, c, o, groups;
    i64 in[3], out[3], window[3], stride[3], padding[3], dilation[3];
} tern_conv_shape;

/* A pass of it as products C (m, n) = A (m, k) B (k, n) of each group, whose B is looked up in an
 * image of size end: number r of a line (a row or a column of B) is an outer one and three along
 * size, with the last next to each other; it adds outer and first + step to the place in the image,
 * and where it is in A (rows) or C (columns) is at + outer_at and along_at. k is cut into `parts`
 * of `part`, with more than one their sums are in a scratch, `whole` apart.
 *
 * In convolution_matrix.cl a row of the lines is a unit of the depth: several of `depth` channels,
 * which are `deep` apart in the image and a_deep in A, at one tap, or a place. Places of the image
 * are `pixel` apart. `width` neighbours of C lie together; 8 begin at multiples of 16 bytes. */
typedef struct tern_conv_line {
    i32 size[3], first[3], step[3], outer;
    i32 at, along_at[3], outer_at;
} tern_conv_line;
typedef struct tern_conv_tiles {
    i32 m, n, k, groups, parts, part, whole;
    i32 end[3], a_row, c_row, a_group, b_group, c_group;
    i32 outs, channels, has_bias, adds; /* of conv_parts: elements of a channel, channels; C is
                                           added to */
    i32 depth, deep, a_deep, pixel, width;
    tern_conv_line row, column;
} tern_conv_tiles;
/* Of convolution_vector.cl: numbers of the image, of k, rows and places that a work-group has at
 * hand, and its scratch. */
enum { TERN_CONV_IMAGE = 32768, TERN_CONV_K = 640, TERN_CONV_M = 64, TERN_CONV_WIDE = 256,
    TERN_CONV_SCRATCH = 160000 };

/* Scores of attention in a block of queries: (count[0], count[1], rows, columns), dense; row i of
 * it is query `first` + i, column j key `from` + j. With a band query i sees the keys from i -
 * before to i + after. The mask's element for query i and key j is at stride[0] b0 + stride[1] b1 +
 * stride[2] i + stride[3] j. Dropout keeps where a random number of 24 bits is at least `drop`. */
enum { TERN_ATTENTION_BAND = 1, TERN_ATTENTION_BOOLS = 2, TERN_ATTENTION_NUMBERS = 4 };
typedef struct tern_attention_block {
    i64 count[2], rows, columns, first, from;
    i64 queries, keys; /* of the whole */
    i64 before, after;
    i64 stride[4];
    i32 flags, drop;
} tern_attention_block;

/* Attention of whole stacks by tiles: how each matrix lies, their widths, up to
 * TERN_ATTENTION_WIDEST, what scores are multiplied by, and their softcap or 0. */
enum { TERN_ATTENTION_WIDEST = 128 };
typedef struct tern_attention_tiles {
    tern_attention_block block; /* rows, columns, first, from unused */
    tern_gemm_matrix q, k, v, out, dout, dq, dk, dv;
    i64 width, value_width;
    f32 scale, softcap;
} tern_attention_tiles;

/* One factor of a Fourier transform: see fft.cl. Half: one side of a spectrum that is its own
 * mirror image. */
typedef struct tern_fft_shape {
    i64 rows, n, factor, groups, stride, have, want;
    i32 real_in, real_out, half_in, half_out;
} tern_fft_shape;

/* Windows over planes x (planes, in), one for each of y (planes, out), three dims: window q begins
 * at q * stride - padding and has every dilation-th element; adaptive: it is from q in / out to (q
 * + 1) in / out, rounded outwards. last: the third dim is that of channels, which places do not
 * count. */
typedef struct tern_pool_shape {
    i64 planes, in[3], out[3], window[3], stride[3], padding[3], dilation[3];
    i64 adaptive, last, bytes; /* bytes: positions in windows instead of places in planes */
    i64 count_padding, divisor; /* of means: count what is outside; 0: that count */
} tern_pool_shape;

/* Planes (n, c, in) read at places between their elements into (n, c, out); ndim of the three dims
 * are there, the others 1. planes = n c. last: of two dims, behind which the third is that of
 * channels, planes = n. */
typedef struct tern_sample_shape {
    i64 n, c, planes, in[3], out[3], ndim, last;
} tern_sample_shape;

/* Rows of `width` elements, `length` in a sequence, of which `pairs` pairs are turned (turn -1:
 * back), each `share` rows by a table of their own of `places` rows. */
typedef struct tern_rotary {
    i64 rows, length, width, pairs, offset, step, apart, turn, share, places;
} tern_rotary;

#endif
