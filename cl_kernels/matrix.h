/* matrix.h -- products of small matrices of halves on whatever a device multiplies matrices with:
 * a sub-group (a warp, a wave) of MATRIX_LANES lanes adds A (16, 16) B (16, MATRIX_N) to sums that
 * its lanes hold, and each way there is one value of MATRIX_WAY. NVIDIA's multiplies float32 too,
 * of which it reads 11 bits (TensorFloat-32): a word has one number then, and the depth is 8.
 *
 *   matrix_sums  a lane's part of the product: sum e stands in row MATRIX_ROW(e), and in column
 *                MATRIX_COLUMN(p) with p = MATRIX_PLACE(e) < MATRIX_PLACES
 *   matrix_a, matrix_b  its operands. A's rows and B's columns lie in local memory as rows of
 *                       words,
 *                a word being two consecutive halves of the depth; word w of row r is at
 *                MATRIX_AT(r, w, words of a row)
 *
 * A lane has columns of its own on every device, so that maxima and sums over rows take few
 * exchanges (matrix_chain.h), and a product's sums become B of the next one, whose depth their
 * rows are, without local memory. NVIDIA's instruction has it the other way about:
 * there A and B change places, which nobody outside sees. The order of the depth is the same in A
 * and B, and else of no account. Which lane has what, and which manual says so:
 * tests/matrix_unit.h. */
#ifndef TERN_MATRIX_H
#define TERN_MATRIX_H
#define MATRIX_PLAIN 0 /* ordinary arithmetic: a lane has a column, and needs nothing of others */
#define MATRIX_MMA   1 /* NVIDIA from compute capability 8.0 on: mma.m16n8k16 */
#define MATRIX_RDNA3 2 /* AMD gfx11, waves of 32: v_wmma_f32_16x16x16 */
#define MATRIX_RDNA4 3 /* AMD gfx12, the same with half the operands */
#define MATRIX_CDNA  4 /* AMD gfx90a, gfx942, gfx950: v_mfma_f32_16x16x16 */
#define MATRIX_XE8   5 /* Intel Xe-HPG: dpas in sub-groups of 8 */
#define MATRIX_XE16  6 /* Intel Xe-HPC, Xe2: dpas in sub-groups of 16 */
/* A way of cl_khr_cooperative_matrix would have matrix_load_a, _b and matrix_multiply; it says
 * nothing of which lane has what, so that MATRIX_ROW and what goes with it are not to be had:
 * products alone could go that way. */
#ifndef MATRIX_WAY
#define MATRIX_WAY MATRIX_PLAIN
#endif
#define MATRIX_IS_XE (MATRIX_WAY == MATRIX_XE8 || MATRIX_WAY == MATRIX_XE16)

#if MATRIX_WAY == MATRIX_MMA
#define MATRIX_LANES     32
#define MATRIX_N         16
#define MATRIX_SUMS      8
#define MATRIX_PLACES    2
#define MATRIX_A_WORDS   4
#define MATRIX_B_WORDS   4
#define MATRIX_ROW(e)    ((e) / 4 * 8 + MATRIX_LANE % 4 * 2 + (e) % 2)
#define MATRIX_COLUMN(p) (MATRIX_LANE / 4 + 8 * (p))
#define MATRIX_PLACE(e)  ((e) / 2 % 2)
/* Lanes of one column differ in bits of their number, from NEAR to below FAR. */
#define MATRIX_NEAR      1
#define MATRIX_FAR       4
#elif MATRIX_WAY == MATRIX_RDNA3
#define MATRIX_LANES   32
#define MATRIX_N       16
#define MATRIX_SUMS    8
#define MATRIX_A_WORDS 8
#define MATRIX_B_WORDS 8
#define MATRIX_ROW(e)  (2 * (e) + MATRIX_LANE / 16)
#define MATRIX_NEAR    16
#define MATRIX_FAR     32
#elif MATRIX_WAY == MATRIX_RDNA4
#define MATRIX_LANES   32
#define MATRIX_N       16
#define MATRIX_SUMS    8
#define MATRIX_A_WORDS 4
#define MATRIX_B_WORDS 4
#define MATRIX_ROW(e)  ((e) + MATRIX_LANE / 16 * 8)
#define MATRIX_NEAR    16
#define MATRIX_FAR     32
#elif MATRIX_WAY == MATRIX_CDNA
#define MATRIX_LANES   64
#define MATRIX_N       16
#define MATRIX_SUMS    4
#define MATRIX_A_WORDS 2
#define MATRIX_B_WORDS 2
#define MATRIX_ROW(e)  (MATRIX_LANE / 16 * 4 + (e))
#define MATRIX_NEAR    16
#define MATRIX_FAR     64
#else
#define MATRIX_LANES   (MATRIX_WAY == MATRIX_XE8 ? 8 : 16)
#define MATRIX_N       MATRIX_LANES
#define MATRIX_SUMS    16
#define MATRIX_A_WORDS (MATRIX_IS_XE ? 16 : 1)
#define MATRIX_B_WORDS 8
#define MATRIX_ROW(e)  (e)
#endif
#ifndef MATRIX_PLACES
#define MATRIX_PLACES    1
#define MATRIX_COLUMN(p) (MATRIX_LANE % MATRIX_N)
#define MATRIX_PLACE(e)  0
#endif
#define MATRIX_LANE (LID % MATRIX_LANES)

/* A compiler that makes machine code late, and the host's, keep loops as they are: the code is
 * long. */
#if MATRIX_ROLLED
#define MATRIX_UNROLL
#else
#define MATRIX_UNROLL _Pragma("unroll")
#endif
#define MATRIX_EACH(i, n) MATRIX_UNROLL for (i32 i = 0; i < (n); i++)

/* What kernels of a way are compiled as. */
#if !MATRIX_SIMULATED && (MATRIX_IS_XE || MATRIX_WAY == MATRIX_CDNA)
#undef TERN_KERNEL
#define TERN_KERNEL(n)                                                                             \
    __kernel __attribute__((reqd_work_group_size(TERN_WG, 1, 1), MATRIX_ATTRIBUTE)) void n
#if MATRIX_IS_XE
#define MATRIX_ATTRIBUTE intel_reqd_sub_group_size(MATRIX_LANES)
#else /* with more registers sums would be kept apart from the others, and moved for each product */
#define MATRIX_ATTRIBUTE amdgpu_waves_per_eu(2)
#endif
#endif
#if !MATRIX_SIMULATED && MATRIX_WAY >= MATRIX_RDNA3 && MATRIX_WAY <= MATRIX_CDNA
#define MATRIX_IS_AMD 1
/* Operands behind it are not loaded before it: AMD's compiler would load all of an unrolled loop's
 * at once, and spill. */
#define MATRIX_STEP() __builtin_amdgcn_sched_barrier(0)
#else
#define MATRIX_IS_AMD 0
#define MATRIX_STEP()
#endif

/* In CUDA one instruction loads four matrices of 8 x 8; NVIDIA's OpenCL has no address for it, and
 * loads word by word. */
#if MATRIX_WAY == MATRIX_MMA && !defined(__OPENCL_VERSION__) && !MATRIX_WORD_BY_WORD
#define MATRIX_BY_FOURS 1
#else
#define MATRIX_BY_FOURS 0
#endif
#ifdef __OPENCL_VERSION__
#define MATRIX_ASM       __asm__
#define MATRIX_BARRIER() barrier(CLK_LOCAL_MEM_FENCE) /* nothing goes by global memory */
#else
#define MATRIX_ASM       asm
#define MATRIX_BARRIER() BARRIER()
#endif

/* v is made anew behind it: what is computed of it is not kept from one turn of a loop to the
 * next, in registers that there are too few of. */
#if !MATRIX_SIMULATED && MATRIX_WAY == MATRIX_MMA
#define MATRIX_ANEW(v) MATRIX_ASM volatile("" : "+r"(v))
#elif MATRIX_IS_AMD
#define MATRIX_ANEW(v) MATRIX_ASM volatile("" : "+v"(v))
#else
#define MATRIX_ANEW(v)
#endif

/* ---- types --------------------------------------------------------------------------------- */

#ifdef __OPENCL_VERSION__
typedef uint4 matrix_four; /* 16 bytes in one load or store */
typedef uint2 matrix_two;
#elif TERN_HOST
typedef struct __attribute__((aligned(16), may_alias)) matrix_four {
    u32 x, y, z, w;
} matrix_four;
typedef struct __attribute__((aligned(8), may_alias)) matrix_two {
    u32 x, y;
} matrix_two;
#else
typedef uint4 matrix_four;
typedef uint2 matrix_two;
#endif

#if MATRIX_IS_XE && !MATRIX_SIMULATED /* eight registers in a row, as the instruction wants them */
typedef union matrix_sums {
    float8 eight[2];
    f32 v[MATRIX_SUMS];
} matrix_sums;
#else
typedef struct matrix_sums {
    f32 v[MATRIX_SUMS];
} matrix_sums;
#endif
typedef struct matrix_b {
    u32 v[MATRIX_B_WORDS];
} matrix_b;
#if MATRIX_WAY == MATRIX_PLAIN /* where it lies: nothing is loaded before it is needed */
typedef struct matrix_a {
    const LOCAL u32 *from;
    i32 row, word, words;
} matrix_a;
#elif MATRIX_WAY == MATRIX_XE16 /* a lane has one number of the depth, of each row */
typedef struct matrix_a {
    u16 v[MATRIX_A_WORDS];
} matrix_a;
#else
typedef struct matrix_a {
    u32 v[MATRIX_A_WORDS];
} matrix_a;
#endif

/* ---- rows of words in local memory: 8, 16 or a multiple of 32 a row ------------------------- */

#if MATRIX_IS_XE /* blocks of 8 rows of 8 words: one load of the sub-group's takes a block */
#define MATRIX_AT(row, word, words)                                                                \
    (((row) / 8 * ((words) / 8) + (word) / 8) * 64 + (row) % 8 * 8 + (word) % 8)
/* Fours of words change places by their row: 8 rows of a column are in 32 banks, and so are words
 * of 32 rows. */
#else
#define MATRIX_MIX(row, words)                                                                     \
    ((words) >= 32   ? (((row) ^ (row) / 8) & 7)                                                   \
     : (words) == 16 ? (((row) / 2 ^ (row) / 8) & 3)                                               \
                     : (((row) / 4 ^ (row) / 8) & 1))
#define MATRIX_AT(row, word, words)                                                                \
    ((row) * (words) + (((word) / 4 ^ MATRIX_MIX(row, words)) * 4) + (word) % 4)
#endif

/* ---- two halves in a word ------------------------------------------------------------------- */

/* Where OpenCL C computes in halves. Through private memory, as elsewhere, Intel's compiler keeps
 * all arrays there. */
#if !MATRIX_SIMULATED && (MATRIX_IS_AMD || MATRIX_IS_XE)
#define MATRIX_HALVES 1
#pragma OPENCL EXTENSION cl_khr_fp16 : enable
#endif

#define MATRIX_IS_BF16   TERN_CAT(MATRIX_BF16, TERN_T)
#define MATRIX_BF16_f16  0
#define MATRIX_BF16_bf16 1
#define MATRIX_BF16_f32  0
#define MATRIX_IS_TF32   TERN_CAT(MATRIX_TF32, TERN_T)
#define MATRIX_TF32_f16  0
#define MATRIX_TF32_bf16 0
#define MATRIX_TF32_f32  1
#define MATRIX_IN_WORD   (2 - MATRIX_IS_TF32) /* numbers of the depth */
#if MATRIX_WAY == MATRIX_MMA && !MATRIX_SIMULATED
#if MATRIX_IS_BF16
#define MATRIX_NAME(before, after) before "bf16" after
#else
#define MATRIX_NAME(before, after) before "f16" after
#endif
INLINE u32 matrix_pair(f32 a, f32 b)
{
    u32 w;
    MATRIX_ASM(MATRIX_NAME("cvt.rn.", "x2.f32 %0, %1, %2;") : "=r"(w) : "f"(b), "f"(a));
    return w;
}
#elif MATRIX_IS_BF16
#define matrix_pair(a, b) (tern_f32_to_bf16(a) | (u32)tern_f32_to_bf16(b) << 16)
#elif MATRIX_HALVES
#define matrix_pair(a, b)                                                                          \
    (as_ushort(convert_half_rte(a)) | (u32)as_ushort(convert_half_rte(b)) << 16)
#elif defined(__OPENCL_VERSION__)
/* By way of private memory, which compilers see through: no arithmetic of halves is needed. */
INLINE u32 matrix_pair(f32 a, f32 b)
{
    u16 h[2];
    vstore_half_rte(a, 0, (half *)h);
    vstore_half_rte(b, 1, (half *)h);
    return h[0] | (u32)h[1] << 16;
}
#else
#define matrix_pair(a, b) (tern_f32_to_f16(a) | (u32)tern_f32_to_f16(b) << 16)
#endif
#if MATRIX_IS_BF16
#define matrix_low(w)  f32_from_bits((w) << 16)
#define matrix_high(w) f32_from_bits((w)&0xffff0000u)
#elif MATRIX_HALVES
#define matrix_low(w)  convert_float(as_half((u16)(w)))
#define matrix_high(w) convert_float(as_half((u16)((w) >> 16)))
#elif defined(__OPENCL_VERSION__)
INLINE f32 matrix_low(u32 w)
{
    u16 h = (u16)w;
    return vload_half(0, (const half *)&h);
}
#define matrix_high(w) matrix_low((w) >> 16)
#else
#define matrix_low(w)  tern_f16_to_f32((u16)(w))
#define matrix_high(w) tern_f16_to_f32((u16)((w) >> 16))
#endif

/* ---- the instructions: sums += a b; what another lane has; loads of a whole sub-group -------- */

#if MATRIX_SIMULATED /* tests/matrix_unit.h */
#elif MATRIX_WAY == MATRIX_MMA
#if MATRIX_IS_BF16
#define MATRIX_MMA_TYPES "m16n8k16.row.col.f32.bf16.bf16.f32"
#elif MATRIX_IS_TF32 /* the same words in the same lanes */
#define MATRIX_MMA_TYPES "m16n8k8.row.col.f32.tf32.tf32.f32"
#else
#define MATRIX_MMA_TYPES "m16n8k16.row.col.f32.f16.f16.f32"
#endif
INLINE void matrix_unit_multiply(f32 *c, const u32 *a, const u32 *b)
{
    MATRIX_ASM("mma.sync.aligned." MATRIX_MMA_TYPES " {%0, %1, %2, %3}, "
            "{%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
            : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
            : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}
/* The bits of a number of float32 for the instruction, which would cut off those below. */
INLINE u32 matrix_unit_tf32(f32 x)
{
    u32 w;
    MATRIX_ASM("cvt.rna.tf32.f32 %0, %1;" : "=r"(w) : "f"(x));
    return w;
}
INLINE u32 matrix_unit_exchange(u32 v, i32 mask)
{
    u32 w;
    MATRIX_ASM volatile("shfl.sync.bfly.b32 %0, %1, %2, 31, 0xffffffff;"
                        : "=r"(w)
                        : "r"(v), "r"(mask));
    return w;
}
#if MATRIX_BY_FOURS
INLINE void matrix_unit_matrices(u32 *to, const LOCAL u32 *row)
{
    u32 at = (u32)__cvta_generic_to_shared(row);
    MATRIX_ASM volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                        : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                        : "r"(at)
                        : "memory");
}
#endif
#elif MATRIX_IS_AMD
#if MATRIX_WAY == MATRIX_RDNA3
#define MATRIX_WORDS(v) ((uint8)(v[0], v[1], v[2], v[3], v[4], v[5], v[6], v[7]))
#define MATRIX_FLOATS   float8
#if MATRIX_IS_BF16
#define MATRIX_UNIT(a, b, c)                                                                       \
    __builtin_amdgcn_wmma_f32_16x16x16_bf16_w32(as_short16(a), as_short16(b), c)
#else
#define MATRIX_UNIT(a, b, c)                                                                       \
    __builtin_amdgcn_wmma_f32_16x16x16_f16_w32(as_half16(a), as_half16(b), c)
#endif
#elif MATRIX_WAY == MATRIX_RDNA4
#define MATRIX_WORDS(v) ((uint4)(v[0], v[1], v[2], v[3]))
#define MATRIX_FLOATS   float8
#if MATRIX_IS_BF16
#define MATRIX_UNIT(a, b, c)                                                                       \
    __builtin_amdgcn_wmma_f32_16x16x16_bf16_w32_gfx12(as_short8(a), as_short8(b), c)
#else
#define MATRIX_UNIT(a, b, c)                                                                       \
    __builtin_amdgcn_wmma_f32_16x16x16_f16_w32_gfx12(as_half8(a), as_half8(b), c)
#endif
#else
#define MATRIX_WORDS(v) ((uint2)(v[0], v[1]))
#define MATRIX_FLOATS   float4
#if MATRIX_IS_BF16
#define MATRIX_UNIT(a, b, c)                                                                       \
    __builtin_amdgcn_mfma_f32_16x16x16bf16_1k(as_short4(a), as_short4(b), c, 0, 0, 0)
#else
#define MATRIX_UNIT(a, b, c)                                                                       \
    __builtin_amdgcn_mfma_f32_16x16x16f16(as_half4(a), as_half4(b), c, 0, 0, 0)
#endif
#endif
INLINE void matrix_unit_multiply(f32 *c, const u32 *a, const u32 *b)
{
    union {
        MATRIX_FLOATS whole;
        f32 v[MATRIX_SUMS];
    } sums;
    MATRIX_EACH(e, MATRIX_SUMS) sums.v[e] = c[e];
    sums.whole = MATRIX_UNIT(MATRIX_WORDS(a), MATRIX_WORDS(b), sums.whole);
    MATRIX_EACH(e, MATRIX_SUMS) c[e] = sums.v[e];
}
INLINE u32 matrix_unit_exchange(u32 v, i32 mask)
{
#if MATRIX_WAY == MATRIX_CDNA
    return (u32)__builtin_amdgcn_ds_bpermute((MATRIX_LANE ^ mask) << 2, (i32)v);
#else /* the mask is 16: the other row of lanes */
    return (u32)__builtin_amdgcn_permlanex16(v, v, 0x76543210, 0xfedcba98, false, false);
#endif
}
#elif MATRIX_IS_XE
#if MATRIX_IS_BF16
#define MATRIX_UNIT intel_sub_group_bf16_bf16_matrix_mad_k16
#else
#define MATRIX_UNIT intel_sub_group_f16_f16_matrix_mad_k16
#endif
#define MATRIX_EIGHT(T, v) ((T)(v[0], v[1], v[2], v[3], v[4], v[5], v[6], v[7]))
#if MATRIX_WAY == MATRIX_XE8
#define MATRIX_XE_MULTIPLY(c, a, b) MATRIX_UNIT(MATRIX_EIGHT(int8, (a)), MATRIX_EIGHT(int8, (b)), c)
INLINE void matrix_unit_block(u32 *to, const LOCAL u32 *from)
{
    uint8 w = intel_sub_group_block_read8(from);
#else
#define MATRIX_XE_MULTIPLY(c, a, b)                                                                \
    MATRIX_UNIT(MATRIX_EIGHT(short8, (a)), MATRIX_EIGHT(int8, (b)), c)
INLINE void matrix_unit_block(u16 *to, const LOCAL u32 *from)
{
    ushort8 w = intel_sub_group_block_read_us8((const LOCAL u16 *)from);
#endif
    to[0] = w.s0, to[1] = w.s1, to[2] = w.s2, to[3] = w.s3;
    to[4] = w.s4, to[5] = w.s5, to[6] = w.s6, to[7] = w.s7;
}
#endif

/* ---- operands ------------------------------------------------------------------------------- */

INLINE void matrix_four_words(u32 *to, const LOCAL u32 *from)
{
    matrix_four w = *(const LOCAL matrix_four *)from;
    to[0] = w.x, to[1] = w.y, to[2] = w.z, to[3] = w.w;
}

/* Where A and B are loaded alike: what a lane has of its row from `row` on, and of the depth from
 * `word` on. */
INLINE void matrix_load_row(u32 *to, const LOCAL u32 *from, i32 row, i32 word, i32 words)
{
    row += MATRIX_LANE % MATRIX_N;
#if MATRIX_FEW_REGISTERS && MATRIX_WAY == MATRIX_RDNA3
    /* Addresses are made at each load: kept for a loop's next turn they are some 30 registers. */
    i32 mix = MATRIX_MIX(row, words);
#if !MATRIX_SIMULATED
    MATRIX_ASM volatile("" : "+v"(mix));
#endif
    from += row * words;
    matrix_four_words(to, from + (word / 4 ^ mix) * 4);
    matrix_four_words(to + 4, from + ((word / 4 + 1) ^ mix) * 4);
#elif MATRIX_WAY == MATRIX_RDNA4
    matrix_four_words(to, from + MATRIX_AT(row, word + MATRIX_LANE / 16 * 4, words));
#elif MATRIX_WAY == MATRIX_CDNA
    matrix_two w =
        *(const LOCAL matrix_two *)(from + MATRIX_AT(row, word + MATRIX_LANE / 16 * 2, words));
    to[0] = w.x, to[1] = w.y;
#elif MATRIX_WAY != MATRIX_MMA
    matrix_four_words(to, from + MATRIX_AT(row, word, words));
    matrix_four_words(to + 4, from + MATRIX_AT(row, word + 4, words));
#endif
}

/* A's 16 rows from `row` on, and B's MATRIX_N columns, of 16 halves from `word` on. */
INLINE matrix_a matrix_load_a(const LOCAL u32 *from, i32 row, i32 word, i32 words)
{
    matrix_a a;
#if MATRIX_WAY == MATRIX_PLAIN
    a.from = from, a.row = row, a.word = word, a.words = words;
#elif MATRIX_BY_FOURS
    row += MATRIX_LANE / 16 * 8 + MATRIX_LANE % 8;
    matrix_unit_matrices(a.v, from + MATRIX_AT(row, word + MATRIX_LANE / 8 % 2 * 4, words));
#elif MATRIX_WAY == MATRIX_MMA
    MATRIX_EACH(e, 4)
    a.v[e] = from[MATRIX_AT(row + e / 2 * 8 + MATRIX_LANE / 4,
                            word + e % 2 * 4 + MATRIX_LANE % 4, words)];
#elif MATRIX_IS_XE
    matrix_unit_block(a.v, from + MATRIX_AT(row, word, words));
    matrix_unit_block(a.v + 8, from + MATRIX_AT(row + 8, word, words));
#else
    matrix_load_row(a.v, from, row, word, words);
#endif
    return a;
}
INLINE matrix_b matrix_load_b(const LOCAL u32 *from, i32 row, i32 word, i32 words)
{
    matrix_b b;
#if MATRIX_BY_FOURS
    row += MATRIX_LANE / 8 % 2 * 8 + MATRIX_LANE % 8;
    matrix_unit_matrices(b.v, from + MATRIX_AT(row, word + MATRIX_LANE / 16 * 4, words));
#elif MATRIX_WAY == MATRIX_MMA
    MATRIX_EACH(e, 4)
    b.v[e] = from[MATRIX_AT(row + e % 2 * 8 + MATRIX_LANE / 4,
                            word + e / 2 * 4 + MATRIX_LANE % 4, words)];
#else
    matrix_load_row(b.v, from, row, word, words);
#endif
    return b;
}

/* ---- products ------------------------------------------------------------------------------- */

/* sums += a b */
INLINE void matrix_multiply(matrix_sums *sums, const matrix_a *a, const matrix_b *b)
{
#if MATRIX_WAY == MATRIX_PLAIN
    f32 y[16];
    MATRIX_EACH(w, 8) y[2 * w] = matrix_low(b->v[w]), y[2 * w + 1] = matrix_high(b->v[w]);
    MATRIX_EACH(e, 16)
    {
        f32 sum = sums->v[e];
        MATRIX_EACH(four, 2)
        {
            u32 x[4];
            matrix_four_words(x, a->from + MATRIX_AT(a->row + e, a->word + 4 * four, a->words));
            MATRIX_EACH(w, 4)
            {
                sum = MULTIPLY_ADD(matrix_low(x[w]), y[8 * four + 2 * w], sum);
                sum = MULTIPLY_ADD(matrix_high(x[w]), y[8 * four + 2 * w + 1], sum);
            }
        }
        sums->v[e] = sum;
    }
#elif MATRIX_WAY == MATRIX_MMA
    matrix_unit_multiply(sums->v, b->v, a->v);
    matrix_unit_multiply(sums->v + 4, b->v, a->v + 2);
#elif MATRIX_IS_XE && !MATRIX_SIMULATED
    sums->eight[0] = MATRIX_XE_MULTIPLY(sums->eight[0], a->v, b->v);
    sums->eight[1] = MATRIX_XE_MULTIPLY(sums->eight[1], (a->v + 8), b->v);
#elif MATRIX_IS_XE
    matrix_unit_multiply(sums->v, a->v, b->v);
    matrix_unit_multiply(sums->v + 8, a->v + 8, b->v);
#else
    matrix_unit_multiply(sums->v, a->v, b->v);
#endif
}
#endif
