/* matrix_tiles_f32.h -- what matrix_tiles.h has, for matrices of float32 that a matrix unit reads
 * as TensorFloat-32 numbers: a word of local memory holds one number, rounded where it is
 * stored, and 16 bytes of global memory hold four.
 *
 * Straight: four of the depth are loaded at once. Turned: four rows of one depth.
 *
 *   MATRIX_ODD 0: rows begin at multiples of 16 bytes, and sizes are multiples of 4 along them
 *              1: sizes are any, but a whole four can be read at the end, too
 *              2: strides are any; elements are loaded one by one, when they are stored */
#include "matrix.h"
#undef MATRIX_HELD
#undef MATRIX_TURNED_HELD
#undef MATRIX_FETCH
#undef MATRIX_PUT
#undef MATRIX_FETCH_TURNED
#undef MATRIX_PUT_TURNED

/* Four numbers, of which `left` are there. */
INLINE void K(matrix_four_of)(u32 *to, const GLOBAL STO *from, idx left)
{
    matrix_four w;
    to[0] = to[1] = to[2] = to[3] = 0;
    if (left <= 0)
        return;
    w = *(const GLOBAL matrix_four *)from;
    to[0] = w.x, to[1] = w.y, to[2] = w.z, to[3] = w.w;
#if MATRIX_ODD
    MATRIX_EACH(e, 4) to[e] = left > e ? to[e] : 0;
#endif
}

/* Fours of a tile that an item has in registers. */
#define MATRIX_HELD(ROWS, DEPTH)        (((ROWS) * (DEPTH) / 4 + TERN_WG - 1) / TERN_WG)
#define MATRIX_TURNED_HELD(ROWS, DEPTH) MATRIX_HELD(ROWS, DEPTH)
#define MATRIX_IS_OWN(q, n)             ((n) % TERN_WG == 0 || (q) < (n))

#if MATRIX_ODD == 2
#define MATRIX_FETCH(held, from, row, deep, rows, depth, ROWS, DEPTH)
#define MATRIX_FETCH_TURNED(held, from, row, deep, rows, depth, ROWS, DEPTH)
#define MATRIX_PUT_(tile, from, row, deep, rows, depth, ROWS, DEPTH, I, D)                         \
    for (i32 q_ = LID; q_ < (ROWS) * (DEPTH); q_ += TERN_WG) {                                     \
        const i32 i_ = I, k_ = D;                                                                  \
        const f32 x_ = i_ < (rows) && k_ < (depth) ? (from)[i_ * (row) + k_ * (deep)] : 0;         \
        (tile)[MATRIX_AT(i_, k_, DEPTH)] = matrix_unit_tf32(x_);                                   \
    }
#define MATRIX_PUT(tile, held, from, row, deep, rows, depth, ROWS, DEPTH)                          \
    MATRIX_PUT_(tile, from, row, deep, rows, depth, ROWS, DEPTH, q_ / (DEPTH), q_ % (DEPTH))
#define MATRIX_PUT_TURNED(tile, held, from, row, deep, rows, depth, ROWS, DEPTH)                   \
    MATRIX_PUT_(tile, from, row, deep, rows, depth, ROWS, DEPTH, q_ % (ROWS), q_ / (ROWS))
#else
#define MATRIX_FETCH(held, from, row, deep, rows, depth, ROWS, DEPTH)                              \
    MATRIX_EACH(r_, MATRIX_HELD(ROWS, DEPTH))                                                      \
    {                                                                                              \
        const i32 q_ = LID + r_ * TERN_WG, i_ = q_ / ((DEPTH) / 4), k_ = q_ % ((DEPTH) / 4) * 4;   \
        if (MATRIX_IS_OWN(q_, (ROWS) * (DEPTH) / 4))                                               \
            K(matrix_four_of)(held[r_], (from) + (i_ * (row) + k_ * (deep)),                       \
                         i_ < (rows) ? (depth)-k_ : 0);                                            \
    }
#define MATRIX_PUT(tile, held, from, row, deep, rows, depth, ROWS, DEPTH)                          \
    MATRIX_EACH(r_, MATRIX_HELD(ROWS, DEPTH))                                                      \
    {                                                                                              \
        const i32 q_ = LID + r_ * TERN_WG, i_ = q_ / ((DEPTH) / 4), k_ = q_ % ((DEPTH) / 4) * 4;   \
        if (MATRIX_IS_OWN(q_, (ROWS) * (DEPTH) / 4)) {                                             \
            matrix_four w_;                                                                        \
            w_.x = matrix_unit_tf32(f32_from_bits(held[r_][0]));                                   \
            w_.y = matrix_unit_tf32(f32_from_bits(held[r_][1]));                                   \
            w_.z = matrix_unit_tf32(f32_from_bits(held[r_][2]));                                   \
            w_.w = matrix_unit_tf32(f32_from_bits(held[r_][3]));                                   \
            *(LOCAL matrix_four *)((tile) + MATRIX_AT(i_, k_, DEPTH)) = w_;                        \
        }                                                                                          \
    }
#define MATRIX_FETCH_TURNED(held, from, row, deep, rows, depth, ROWS, DEPTH)                       \
    MATRIX_EACH(r_, MATRIX_HELD(ROWS, DEPTH))                                                      \
    {                                                                                              \
        const i32 q_ = LID + r_ * TERN_WG, i_ = q_ % ((ROWS) / 4) * 4, k_ = q_ / ((ROWS) / 4);     \
        if (MATRIX_IS_OWN(q_, (ROWS) * (DEPTH) / 4))                                               \
            K(matrix_four_of)(held[r_], (from) + (i_ * (row) + k_ * (deep)),                       \
                         k_ < (depth) ? (rows)-i_ : 0);                                            \
    }
#define MATRIX_PUT_TURNED(tile, held, from, row, deep, rows, depth, ROWS, DEPTH)                   \
    MATRIX_EACH(r_, MATRIX_HELD(ROWS, DEPTH))                                                      \
    {                                                                                              \
        const i32 q_ = LID + r_ * TERN_WG, i_ = q_ % ((ROWS) / 4) * 4, k_ = q_ / ((ROWS) / 4);     \
        if (MATRIX_IS_OWN(q_, (ROWS) * (DEPTH) / 4))                                               \
            MATRIX_EACH(e_, 4)                                                                     \
            (tile)[MATRIX_AT(i_ + e_, k_, DEPTH)] =                                                \
                matrix_unit_tf32(f32_from_bits(held[r_][e_]));                                     \
    }
#endif
