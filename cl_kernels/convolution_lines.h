/* convolution_lines.h -- numbers of lines (tern_conv_line) as places and taps, for
 * convolution_tiles.cl and convolution_matrix.cl. */
#ifndef TERN_CONVOLUTION_LINES_H
#define TERN_CONVOLUTION_LINES_H

/* r of a line as an outer number and three along its size. */
INLINE void line_at(i32 p[4], const i32 *size, i32 r)
{
    p[3] = r % size[2];
    r /= size[2];
    p[2] = r % size[1];
    r /= size[1];
    p[1] = r % size[0];
    p[0] = r / size[0];
}
/* p += by, both of that form. */
INLINE void line_move(i32 p[4], const i32 by[4], const i32 *size)
{
    i32 carry = 0;
    for (i32 d = 3; d > 0; d--) {
        p[d] += by[d] + carry;
        carry = p[d] >= size[d - 1];
        p[d] -= carry ? size[d - 1] : 0;
    }
    p[0] += by[0] + carry;
}
#endif
