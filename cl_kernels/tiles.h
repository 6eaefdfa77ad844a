/* tiles.h -- a tile of a product in the registers of a group's items, for matmul_tiles.cl and
 * convolution_tiles.cl: a chunk of A lies in local memory by columns, one of B by rows. */
#ifndef TERN_TILES_H
#define TERN_TILES_H
#include "float4.h"
#define ROWS (TILE_DOWN * TILE_M)
#define COLS (TILE_ACROSS * TILE_N)
/* From one k to the next; the gap spreads what is stored over the banks. */
#define A_STEP (ROWS + TILE_V)
#define B_STEP (COLS + TILE_V)
#define PLACE(item, items, r) ((r) / TILE_V * (items) * TILE_V + (item)*TILE_V + (r) % TILE_V)
#if TILE_V == 4
#define WORD float4
#define SPREAD(to, word) TERN_SPREAD4_((to), float4, word)
#else
#define WORD f32
#define SPREAD(to, word) (to)[0] = (word)
#endif

INLINE void tile_clear(f32 sums[TILE_M][TILE_N])
{
#pragma unroll
    for (i32 r = 0; r < TILE_M; r++) {
#pragma unroll
        for (i32 s = 0; s < TILE_N; s++)
            sums[r][s] = 0;
    }
}

/* sums += the chunk's product; a and b begin at the item's own rows and columns. */
INLINE void tile_multiply(f32 sums[TILE_M][TILE_N], const LOCAL WORD *a, const LOCAL WORD *b)
{
    for (i32 p = 0; p < TILE_K; p++) {
        f32 x[TILE_M], y[TILE_N];
#pragma unroll
        for (i32 r = 0; r < TILE_M; r += TILE_V)
            SPREAD(x + r, a[(p * A_STEP + r * TILE_DOWN) / TILE_V]);
#pragma unroll
        for (i32 s = 0; s < TILE_N; s += TILE_V)
            SPREAD(y + s, b[(p * B_STEP + s * TILE_ACROSS) / TILE_V]);
#pragma unroll
        for (i32 r = 0; r < TILE_M; r++) {
#pragma unroll
            for (i32 s = 0; s < TILE_N; s++)
                sums[r][s] = MULTIPLY_ADD(x[r], y[s], sums[r][s]);
        }
    }
}
#endif
