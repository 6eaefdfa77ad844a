/* matrix_tiles.h -- tiles of a matrix of halves on their way from global memory into local memory
 * for matrix.h, by way of registers, so that the next tile is under way while the last is
 * multiplied.
 *
 * Element (r, k) of a matrix, k along the depth, is at from[r * row + k * deep]. Straight: deep is
 * 1, and eight of the depth are loaded at once. Turned: row is 1, eight rows of two depths are
 * loaded, and halves change places where they are stored. What is outside of `rows` and `depth` is
 * 0.
 *
 * MATRIX_COPY and MATRIX_COPY_TURNED go all the way, an eight or a pair of eights after the other:
 * where the next tile would take registers that are needed.
 *
 *   MATRIX_ODD 0: rows begin at multiples of 16 bytes, and sizes are multiples of 8 along them
 *              1: sizes are any, but a whole eight can be read at the end, too
 *              2: strides are any; elements are loaded one by one, when they are stored */
#include "matrix.h"
#undef MATRIX_FETCH
#undef MATRIX_PUT
#undef MATRIX_FETCH_TURNED
#undef MATRIX_PUT_TURNED
#undef MATRIX_COPY
#undef MATRIX_COPY_TURNED

/* Eight halves, of which `left` are there. */
INLINE void K(matrix_eight)(u32 *to, const GLOBAL STO *from, idx left)
{
    matrix_four w;
    if (left <= 0) {
        to[0] = to[1] = to[2] = to[3] = 0;
        return;
    }
    w = *(const GLOBAL matrix_four *)from;
    to[0] = w.x, to[1] = w.y, to[2] = w.z, to[3] = w.w;
#if MATRIX_ODD
    MATRIX_EACH(e, 4)
    to[e] = left > 2 * e + 1 ? to[e] : left > 2 * e ? to[e] & 0xffffu : 0;
#endif
}

/* Eights of a straight tile, and pairs of eights of a turned one, that an item has in registers. */
#define MATRIX_HELD(ROWS, DEPTH)  (((ROWS) * (DEPTH) / 8 + TERN_WG - 1) / TERN_WG)
#define MATRIX_PAIRS(ROWS, DEPTH) (((ROWS) / 8 * ((DEPTH) / 2) + TERN_WG - 1) / TERN_WG)
#define MATRIX_TURNED_HELD(ROWS, DEPTH) (2 * MATRIX_PAIRS(ROWS, DEPTH))
#define MATRIX_IS_OWN(q, n)       ((n) % TERN_WG == 0 || (q) < (n))

#if MATRIX_ODD == 2
#define MATRIX_FETCH(held, from, row, deep, rows, depth, ROWS, DEPTH)
#define MATRIX_FETCH_TURNED(held, from, row, deep, rows, depth, ROWS, DEPTH)
#define MATRIX_PUT_(tile, from, row, deep, rows, depth, ROWS, DEPTH, I, W)                         \
    for (i32 q_ = LID; q_ < (ROWS) * (DEPTH) / 2; q_ += TERN_WG) {                                 \
        const i32 i_ = I, w_ = W;                                                                  \
        const GLOBAL STO *at_ = (from) + i_ * (row) + 2 * w_ * (deep);                             \
        u32 two_ = 0;                                                                              \
        if (i_ < (rows) && 2 * w_ < (depth))                                                       \
            two_ = at_[0];                                                                         \
        if (i_ < (rows) && 2 * w_ + 1 < (depth))                                                   \
            two_ |= (u32)at_[deep] << 16;                                                          \
        (tile)[MATRIX_AT(i_, w_, (DEPTH) / 2)] = two_;                                             \
    }
#define MATRIX_PUT(tile, held, from, row, deep, rows, depth, ROWS, DEPTH)                          \
    MATRIX_PUT_(tile, from, row, deep, rows, depth, ROWS, DEPTH, q_ / ((DEPTH) / 2),               \
                q_ % ((DEPTH) / 2))
#define MATRIX_PUT_TURNED(tile, held, from, row, deep, rows, depth, ROWS, DEPTH)                   \
    MATRIX_PUT_(tile, from, row, deep, rows, depth, ROWS, DEPTH, q_ % (ROWS), q_ / (ROWS))
#define MATRIX_COPY(tile, from, row, deep, rows, depth, ROWS, DEPTH)                               \
    MATRIX_PUT(tile, , from, row, deep, rows, depth, ROWS, DEPTH)
#define MATRIX_COPY_TURNED(tile, from, row, deep, rows, depth, ROWS, DEPTH)                        \
    MATRIX_PUT_TURNED(tile, , from, row, deep, rows, depth, ROWS, DEPTH)
#else
#define MATRIX_COPY(tile, from, row, deep, rows, depth, ROWS, DEPTH)                               \
    for (i32 q_ = LID; q_ < (ROWS) * (DEPTH) / 8; q_ += TERN_WG) {                                 \
        const i32 i_ = q_ / ((DEPTH) / 8), k_ = q_ % ((DEPTH) / 8) * 8;                            \
        u32 e_[4];                                                                                 \
        matrix_four w_;                                                                            \
        K(matrix_eight)(e_, (from) + (i_ * (row) + k_ * (deep)), i_ < (rows) ? (depth)-k_ : 0);    \
        w_.x = e_[0], w_.y = e_[1], w_.z = e_[2], w_.w = e_[3];                                    \
        *(LOCAL matrix_four *)((tile) + MATRIX_AT(i_, k_ / 2, (DEPTH) / 2)) = w_;                  \
    }
#define MATRIX_COPY_TURNED(tile, from, row, deep, rows, depth, ROWS, DEPTH)                        \
    for (i32 q_ = LID; q_ < (ROWS) / 8 * ((DEPTH) / 2); q_ += TERN_WG) {                           \
        const i32 i_ = q_ % ((ROWS) / 8) * 8, k_ = q_ / ((ROWS) / 8);                              \
        u32 a_[4], b_[4];                                                                          \
        K(matrix_eight)(a_, (from) + (i_ * (row) + 2 * k_ * (deep)),                               \
                        2 * k_ < (depth) ? (rows)-i_ : 0);                                         \
        K(matrix_eight)(b_, (from) + (i_ * (row) + (2 * k_ + 1) * (deep)),                         \
                        2 * k_ + 1 < (depth) ? (rows)-i_ : 0);                                     \
        MATRIX_EACH(e_, 4)                                                                         \
        {                                                                                          \
            (tile)[MATRIX_AT(i_ + 2 * e_, k_, (DEPTH) / 2)] = (a_[e_] & 0xffffu) | b_[e_] << 16;   \
            (tile)[MATRIX_AT(i_ + 2 * e_ + 1, k_, (DEPTH) / 2)] =                                  \
                a_[e_] >> 16 | (b_[e_] & 0xffff0000u);                                             \
        }                                                                                          \
    }
#define MATRIX_FETCH(held, from, row, deep, rows, depth, ROWS, DEPTH)                              \
    MATRIX_EACH(r_, MATRIX_HELD(ROWS, DEPTH))                                                      \
    {                                                                                              \
        const i32 q_ = LID + r_ * TERN_WG, i_ = q_ / ((DEPTH) / 8), k_ = q_ % ((DEPTH) / 8) * 8;   \
        if (MATRIX_IS_OWN(q_, (ROWS) * (DEPTH) / 8))                                               \
            K(matrix_eight)(held[r_], (from) + (i_ * (row) + k_ * (deep)),                         \
                         i_ < (rows) ? (depth)-k_ : 0);                                            \
    }
#define MATRIX_PUT(tile, held, from, row, deep, rows, depth, ROWS, DEPTH)                          \
    MATRIX_EACH(r_, MATRIX_HELD(ROWS, DEPTH))                                                      \
    {                                                                                              \
        const i32 q_ = LID + r_ * TERN_WG, i_ = q_ / ((DEPTH) / 8), k_ = q_ % ((DEPTH) / 8) * 4;   \
        if (MATRIX_IS_OWN(q_, (ROWS) * (DEPTH) / 8)) {                                             \
            matrix_four w_;                                                                        \
            w_.x = held[r_][0], w_.y = held[r_][1], w_.z = held[r_][2], w_.w = held[r_][3];        \
            *(LOCAL matrix_four *)((tile) + MATRIX_AT(i_, k_, (DEPTH) / 2)) = w_;                  \
        }                                                                                          \
    }
#define MATRIX_FETCH_TURNED(held, from, row, deep, rows, depth, ROWS, DEPTH)                       \
    MATRIX_EACH(r_, MATRIX_PAIRS(ROWS, DEPTH))                                                     \
    {                                                                                              \
        const i32 q_ = LID + r_ * TERN_WG, i_ = q_ % ((ROWS) / 8) * 8, k_ = q_ / ((ROWS) / 8) * 2; \
        if (MATRIX_IS_OWN(q_, (ROWS) / 8 * ((DEPTH) / 2)))                                         \
            MATRIX_EACH(h_, 2)                                                                     \
            K(matrix_eight)(held[2 * r_ + h_], (from) + (i_ * (row) + (k_ + h_) * (deep)),         \
                         k_ + h_ < (depth) ? (rows)-i_ : 0);                                       \
    }
#define MATRIX_PUT_TURNED(tile, held, from, row, deep, rows, depth, ROWS, DEPTH)                   \
    MATRIX_EACH(r_, MATRIX_PAIRS(ROWS, DEPTH))                                                     \
    {                                                                                              \
        const i32 q_ = LID + r_ * TERN_WG, i_ = q_ % ((ROWS) / 8) * 8, k_ = q_ / ((ROWS) / 8);     \
        if (MATRIX_IS_OWN(q_, (ROWS) / 8 * ((DEPTH) / 2)))                                         \
            MATRIX_EACH(e_, 4)                                                                     \
            {                                                                                      \
                const u32 a_ = held[2 * r_][e_], b_ = held[2 * r_ + 1][e_];                        \
                (tile)[MATRIX_AT(i_ + 2 * e_, k_, (DEPTH) / 2)] = (a_ & 0xffffu) | b_ << 16;       \
                (tile)[MATRIX_AT(i_ + 2 * e_ + 1, k_, (DEPTH) / 2)] =                              \
                    a_ >> 16 | (b_ & 0xffff0000u);                                                 \
            }                                                                                      \
    }
#endif
