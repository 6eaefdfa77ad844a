/* matrix_unit.h -- what the vendors' matrix instructions do, lane by lane, as their manuals say
 * it: for kernels over cl_kernels/matrix.h on the host. Nothing here is taken from there, so that
 * a wrong layout there makes wrong numbers.
 *
 *   MMA    PTX ISA, "Matrix Fragments for mma.m16n8k16" and "ldmatrix"
 *   RDNA3  "RDNA3" Instruction Set Architecture, 7.9: lanes 0 to 15 have what 16 to 31 have, too
 *   RDNA4  "RDNA4" Instruction Set Architecture, 7.12
 *   CDNA   "AMD Instinct MI300" Instruction Set Architecture, 7.1, V_MFMA_F32_16X16X16_F16 (of
 *   MI200, too)
 *   XE8, XE16  cl_intel_subgroup_matrix_multiply_accumulate, for sub-groups of 8 and of 16; block
 *   reads:
 *          cl_intel_subgroup_local_block_io */
#ifndef TERN_TESTS_MATRIX_UNIT_H
#define TERN_TESTS_MATRIX_UNIT_H
#include "lanes.h"

/* One instruction: C (m, n) += A (m, k) B (k, n); how many halves of A and B and sums of C a lane
 * has. */
#if MATRIX_WAY == 1
enum { UNIT_LANES = 32, UNIT_M = 16, UNIT_N = 8, UNIT_K = 16, UNIT_A = 8, UNIT_B = 4, UNIT_C = 4 };
#elif MATRIX_WAY == 2
enum {
    UNIT_LANES = 32,
    UNIT_M = 16,
    UNIT_N = 16,
    UNIT_K = 16,
    UNIT_A = 16,
    UNIT_B = 16,
    UNIT_C = 8
};
#elif MATRIX_WAY == 3
enum { UNIT_LANES = 32, UNIT_M = 16, UNIT_N = 16, UNIT_K = 16, UNIT_A = 8, UNIT_B = 8, UNIT_C = 8 };
#elif MATRIX_WAY == 4
enum { UNIT_LANES = 64, UNIT_M = 16, UNIT_N = 16, UNIT_K = 16, UNIT_A = 4, UNIT_B = 4, UNIT_C = 4 };
#elif MATRIX_WAY == 5
enum { UNIT_LANES = 8, UNIT_M = 8, UNIT_N = 8, UNIT_K = 16, UNIT_A = 16, UNIT_B = 16, UNIT_C = 8 };
#elif MATRIX_WAY == 6
enum { UNIT_LANES = 16, UNIT_M = 8, UNIT_N = 16, UNIT_K = 16, UNIT_A = 8, UNIT_B = 16, UNIT_C = 8 };
#else
enum { UNIT_LANES = 1 };
#endif

#if MATRIX_WAY > 0
/* Where number i of a lane stands: its row and column in A, in B, in C. */
static void unit_a(int lane, int i, int *row, int *column)
{
#if MATRIX_WAY == 1
    *row = lane / 4 + (i % 4 < 2 ? 0 : 8);
    *column = lane % 4 * 2 + i % 2 + (i < 4 ? 0 : 8);
#elif MATRIX_WAY == 2
    *row = lane % 16, *column = i;
#elif MATRIX_WAY == 3
    *row = lane % 16, *column = i % 4 + 4 * (lane / 16) + 8 * (i / 4);
#elif MATRIX_WAY == 4
    *row = lane % 16, *column = 4 * (lane / 16) + i;
#elif MATRIX_WAY == 5 /* a word of each row, two of the depth in it */
    *row = i / 2, *column = 2 * lane + i % 2;
#else                 /* a half of each row */
    *row = i, *column = lane;
#endif
}
static void unit_b(int lane, int i, int *row, int *column)
{
#if MATRIX_WAY == 1
    *row = lane % 4 * 2 + i % 2 + (i < 2 ? 0 : 8), *column = lane / 4;
#elif MATRIX_WAY == 2
    *row = i, *column = lane % 16;
#elif MATRIX_WAY == 3
    *row = i % 4 + 4 * (lane / 16) + 8 * (i / 4), *column = lane % 16;
#elif MATRIX_WAY == 4
    *row = 4 * (lane / 16) + i, *column = lane % 16;
#else
    *row = i, *column = lane;
#endif
}
static void unit_c(int lane, int i, int *row, int *column)
{
#if MATRIX_WAY == 1
    *row = lane / 4 + (i < 2 ? 0 : 8), *column = lane % 4 * 2 + i % 2;
#elif MATRIX_WAY == 2
    *row = 2 * i + lane / 16, *column = lane % 16;
#elif MATRIX_WAY == 3
    *row = i + 8 * (lane / 16), *column = lane % 16;
#elif MATRIX_WAY == 4
    *row = 4 * (lane / 16) + i, *column = lane % 16;
#else
    *row = i, *column = lane;
#endif
}

/* What each lane has brought to an instruction. There are two of each: a lane is at most one
 * instruction ahead. */
typedef struct unit_brought {
    u16 a[16], b[16];
    const void *from;
    u32 word;
} unit_brought;
static unit_brought unit_slots[2][LANES_MOST];
static int unit_count[LANES_MOST];
static bool unit_differs; /* lanes that are to bring the same did not */

/* Those of the own sub-group, once all have brought theirs. */
static const unit_brought *unit_bring(const unit_brought *own)
{
    int item = the_lanes.item;
    unit_brought *all = unit_slots[unit_count[item]++ & 1];
    all[item] = *own;
    lanes_wait(LANE_AT_SUB_GROUP);
    return all + item / UNIT_LANES * UNIT_LANES;
}

static f32 unit_half(u16 h)
{
    return LD_OF(TERN_T, &h, 0);
}

/* A and B of the instruction that a sub-group is at: its lanes bring them in turn, and the first
 * that goes on puts them together. */
static struct {
    int count;
    f32 x[UNIT_M][UNIT_K], y[UNIT_K][UNIT_N];
} unit_whole[LANES_MOST / UNIT_LANES];

static void unit_gather(int count, const unit_brought *all)
{
    __typeof__(*unit_whole) *w = &unit_whole[the_lanes.item / UNIT_LANES];
    int row, column;
    if (w->count == count)
        return;
    w->count = count;
    for (int lane = UNIT_LANES - 1; lane >= 0; lane--) {
        for (int i = 0; i < UNIT_A; i++) {
            unit_a(lane, i, &row, &column);
            w->x[row][column] = unit_half(all[lane].a[i]);
        }
        for (int i = 0; i < UNIT_B; i++) {
            unit_b(lane, i, &row, &column);
            w->y[row][column] = unit_half(all[lane].b[i]);
        }
    }
    for (int lane = 0; MATRIX_WAY == 2 && lane < 16; lane++)
        if (memcmp(all[lane].a, all[lane + 16].a, sizeof all->a) != 0 ||
            memcmp(all[lane].b, all[lane + 16].b, sizeof all->b) != 0)
            unit_differs = true;
}

static void matrix_unit_multiply(f32 *c, const void *a, const void *b)
{
    unit_brought own = {.from = NULL};
    int row, column;
    memcpy(own.a, a, UNIT_A * sizeof *own.a);
    memcpy(own.b, b, UNIT_B * sizeof *own.b);
    const unit_brought *all = unit_bring(&own);
    unit_gather(unit_count[the_lanes.item], all);
    for (int i = 0; i < UNIT_C; i++) {
        unit_c(the_lanes.item % UNIT_LANES, i, &row, &column);
        for (int k = 0; k < UNIT_K; k++)
            c[i] += unit_whole[the_lanes.item / UNIT_LANES].x[row][k] *
                    unit_whole[the_lanes.item / UNIT_LANES].y[k][column];
    }
}

/* The word of the lane whose number differs in those bits. */
static inline u32 matrix_unit_exchange(u32 word, i32 mask)
{
    unit_brought own = {.word = word};
    const unit_brought *all = unit_bring(&own);
    return all[(the_lanes.item % UNIT_LANES) ^ mask].word;
}

#if MATRIX_WAY == 1
/* ldmatrix .x4: row r of matrix m is where lane 8 m + r points; a lane gets word l % 4 of row l /
 * 4 of each. */
static inline void matrix_unit_matrices(u32 *to, const u32 *row)
{
    unit_brought own = {.from = row};
    const unit_brought *all = unit_bring(&own);
    int lane = the_lanes.item % UNIT_LANES;
    for (int m = 0; m < 4; m++)
        to[m] = ((const u32 *)all[8 * m + lane / 4].from)[lane % 4];
}
#elif MATRIX_WAY == 5
/* A block of 8 times as many words as there are lanes, from where the first lane points. */
static void matrix_unit_block(u32 *to, const u32 *from)
{
    unit_brought own = {.from = from};
    const u32 *first = unit_bring(&own)[0].from;
    for (int e = 0; e < 8; e++)
        to[e] = first[e * UNIT_LANES + the_lanes.item % UNIT_LANES];
}
#elif MATRIX_WAY == 6
/* The same of halves. */
static void matrix_unit_block(u16 *to, const void *from)
{
    unit_brought own = {.from = from};
    const u16 *first = unit_bring(&own)[0].from;
    for (int e = 0; e < 8; e++)
        to[e] = first[e * UNIT_LANES + the_lanes.item % UNIT_LANES];
}
#endif
#endif
#endif
