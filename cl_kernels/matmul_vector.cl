/* matmul_vector.cl -- the matrix product for CPU-type OpenCL devices: register-tiled, one work-item
   a group.

   C_b = alpha A_b B_b + beta C_b (+ bias), for each b of the batch, in rows of `inner`; A is (m,
   k), B is (k, n), both with any strides, C is (m, n) with contiguous rows. beta = 0 does not read
   C.

   One work-group computes a block of rows x cols of one C_b, in the order of Goto and van de Geijn,
   "Anatomy of high-performance matrix multiplication" (2008):

       for each KC of k                                      sums stay in C between these
           pack B[KC, cols] into panels of WIDTH columns     at most 256 KiB, in L2
           for each MC of the rows
               pack A[MC, KC] into rows                      about 100 KiB, in L2
               for each pair of B panels                     32 KiB, in L1
                   for each MR rows of A
                       MR x 2 WIDTH sums in registers        24 of 32 vector registers, or 12 of 16

   Packing costs a few percent of the products, gives the inner loop fixed strides whatever those of
   A and B (so NN, NT, TN and TT run the same one; large powers of two do no harm), and needs no
   scratch buffer and no second launch. Lanes past the edge of A or B hold whatever was read there:
   they only reach rows and columns of C that are not stored.

   Built once per type: -DGEMM_F32 (default), GEMM_F64, GEMM_F16 or GEMM_BF16; the last two store 16
   bits and compute in float. On a device with less local memory than a KC of 256 takes:
   128, 64, 32 or 16. */

/* GEMM_WIDE: there are 32 vector registers of 64 bytes, and vectors fill one each. Else of half the
   size, and tiles of half the height, for which 16 registers of 32 bytes do, or 32 of 16. */
#if defined(GEMM_F64)
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
typedef double real;
#ifdef GEMM_WIDE
#define WIDTH 8
#else
#define WIDTH 4
#endif
#else
typedef float real;
#ifdef GEMM_WIDE
#define WIDTH 16
#else
#define WIDTH 8
#endif
#endif

#define JOIN_(a, b) a##b
#define JOIN(a, b) JOIN_(a, b)
#ifdef GEMM_F64
typedef JOIN(double, WIDTH) vec;
#else
typedef JOIN(float, WIDTH) vec;
#endif
#define LOAD_LOCAL(p) JOIN(vload, WIDTH)(0, p)
#define STORE_LOCAL(v, p) JOIN(vstore, WIDTH)(v, 0, p)

#if WIDTH == 16
#define QUADS(p, at) (vec)(LOAD4(p + at[0]), LOAD4(p + at[4]), LOAD4(p + at[8]), LOAD4(p + at[12]))
#define INTERLEAVE_LOW(a, b)                                                                       \
    (vec)(a.s0, b.s0, a.s1, b.s1, a.s4, b.s4, a.s5, b.s5, a.s8, b.s8, a.s9, b.s9, a.sc, b.sc,      \
          a.sd, b.sd)
#define INTERLEAVE_HIGH(a, b)                                                                      \
    (vec)(a.s2, b.s2, a.s3, b.s3, a.s6, b.s6, a.s7, b.s7, a.sa, b.sa, a.sb, b.sb, a.se, b.se,      \
          a.sf, b.sf)
#elif WIDTH == 8
#define QUADS(p, at) (vec)(LOAD4(p + at[0]), LOAD4(p + at[4]))
#define INTERLEAVE_LOW(a, b) (vec)(a.s0, b.s0, a.s1, b.s1, a.s4, b.s4, a.s5, b.s5)
#define INTERLEAVE_HIGH(a, b) (vec)(a.s2, b.s2, a.s3, b.s3, a.s6, b.s6, a.s7, b.s7)
#else
#define QUADS(p, at) LOAD4(p + at[0])
#define INTERLEAVE_LOW(a, b) (vec)(a.s0, b.s0, a.s1, b.s1)
#define INTERLEAVE_HIGH(a, b) (vec)(a.s2, b.s2, a.s3, b.s3)
#endif

#if defined(GEMM_F16)
typedef half element;
#define LOAD(p) JOIN(vload_half, WIDTH)(0, p)
#define LOAD4(p) vload_half4(0, p)
#define STORE(v, p) JOIN(vstore_half, WIDTH)(v, 0, p)
#define READ(p) vload_half(0, p)
#define WRITE(x, p) vstore_half(x, 0, p)
#define NARROW 1
#elif defined(GEMM_BF16)
typedef ushort element;
#define WORDS JOIN(uint, WIDTH)
#define SHORTS JOIN(ushort, WIDTH)
#define LOAD(p) JOIN(as_float, WIDTH)(JOIN(convert_, WORDS)(JOIN(vload, WIDTH)(0, p)) << 16)
#define LOAD4(p) as_float4(convert_uint4(vload4(0, p)) << 16)
#define STORE(v, p) JOIN(vstore, WIDTH)(bf16_vector(v), 0, p)
#define READ(p) as_float((uint) * (p) << 16)
#define WRITE(x, p) (*(p) = bf16_scalar(x))
#define NARROW 1

/* The upper half of a float, rounded to nearest even; a NaN stays one. */
static ushort bf16_scalar(float x)
{
    uint u = as_uint(x);
    return (ushort)(isnan(x) ? u >> 16 | 0x40u : (u + 0x7fffu + (u >> 16 & 1u)) >> 16);
}

static SHORTS bf16_vector(vec x)
{
    WORDS u = JOIN(as_, WORDS)(x);
    WORDS rounded = (u + 0x7fffu + (u >> 16 & 1u)) >> 16;
    return JOIN(convert_, SHORTS)(select(rounded, u >> 16 | 0x40u, isnan(x)));
}
#else
typedef real element;
#define LOAD(p) LOAD_LOCAL(p)
#define LOAD4(p) vload4(0, p)
#define STORE(v, p) STORE_LOCAL(v, p)
#define READ(p) (*(p))
#define WRITE(x, p) (*(p) = (x))
#define NARROW 0
#endif

/* The blocking; gemm_plan.c repeats it. MR: rows of a tile. MC: rows of a packed block of A. KC:
   the k of a block. NP: vectors in a row of a packed block of B. */
#ifndef KC
#define KC 256
#endif
#ifndef MC
#define MC 96
#endif
#ifdef GEMM_WIDE
#define NP 16
#define MR 12
#else
#define NP 32
#define MR 6
#endif
/* One row of a packed block of A, one panel of B; a vector more than they hold spreads them over
 * the L1 sets. */
#define A_ROW (KC + WIDTH)
#define B_PANEL (KC * WIDTH + WIDTH)

#define INLINE static inline __attribute__((always_inline))

/* Transposes the 4 x 4 block that each group of four lanes makes across r[0..3]: two perfect
 * shuffles. */
INLINE void transpose_quads(vec r[4])
{
#pragma unroll
    for (int step = 0; step < 2; step++) {
        vec a = INTERLEAVE_LOW(r[0], r[2]), b = INTERLEAVE_HIGH(r[0], r[2]);
        vec c = INTERLEAVE_LOW(r[1], r[3]), d = INTERLEAVE_HIGH(r[1], r[3]);
        r[0] = a, r[1] = b, r[2] = c, r[3] = d;
    }
}

/* Packs count x lanes elements as vectors of WIDTH lanes: B with columns for lanes, A with k for
   lanes. out[i * line + lane / WIDTH * panel + lane % WIDTH] = in[i * stride + lane * lane_stride].
   The first `reach` elements of `in` may be read. */
static void pack(__local real *out, const int line, const int panel, __global const element *in,
                 long stride, long lane_stride, int count, int lanes, long reach)
{
    int done = 0;
    if (lane_stride == 1) {
        int last = (lanes - 1) / WIDTH;
        for (; done < count && done * stride + (last + 1) * WIDTH <= reach; done++)
            for (int g = 0; g <= last; g++)
                STORE_LOCAL(LOAD(in + done * stride + g * WIDTH), out + done * line + g * panel);
    } else if (stride == 1 && count >= WIDTH) {
        for (int lane = 0; lane < lanes; lane += WIDTH, out += panel, in += WIDTH * lane_stride) {
            long lane_at[WIDTH];
#pragma unroll
            for (int i = 0; i < WIDTH; i++)
                lane_at[i] = min(i, lanes - lane - 1) * lane_stride;
            for (int at = 0; at < count; at += WIDTH) {
                int from = min(at, count - WIDTH);
                __global const element *row = in + from;
                vec r[4][4];
#pragma unroll
                for (int i = 0; i < 4; i++)
#pragma unroll
                    for (int q = 0; q < WIDTH / 4; q++)
                        r[q][i] = QUADS(row + 4 * q, (lane_at + i));
#pragma unroll
                for (int q = 0; q < WIDTH / 4; q++) {
                    transpose_quads(r[q]);
#pragma unroll
                    for (int i = 0; i < 4; i++)
                        STORE_LOCAL(r[q][i], out + (from + 4 * q + i) * line);
                }
            }
        }
        return;
    }
    for (int lane = 0; lane < lanes; lane++) {
        __local real *to = out + lane / WIDTH * panel + lane % WIDTH;
        for (int i = done; i < count; i++)
            to[i * line] = READ(in + lane * lane_stride + i * stride);
    }
}

/* sum[i][v] = the products of `rows` rows of a block of A and `vectors` panels of B. */
INLINE void multiply(const int rows, const int vectors, __local const real *a,
                     __local const real *b, int kc, vec sum[MR][2])
{
#pragma unroll
    for (int i = 0; i < rows; i++)
#pragma unroll
        for (int v = 0; v < vectors; v++)
            sum[i][v] = (vec)((real)0);
#pragma unroll 1
    for (int k = 0; k < kc; k++, b += WIDTH) {
        vec bk[2];
#pragma unroll
        for (int v = 0; v < vectors; v++)
            bk[v] = LOAD_LOCAL(b + v * B_PANEL);
#pragma unroll
        for (int i = 0; i < rows; i++) {
            vec ai = (vec)(a[i * A_ROW + k]);
#pragma unroll
            for (int v = 0; v < vectors; v++)
                sum[i][v] = fma(ai, bk[v], sum[i][v]);
        }
    }
}

/* c = alpha sum + keep c (+ bias) for the whole tile; keep = 0 does not read c. */
INLINE void store_whole(const int rows, const int vectors, vec sum[MR][2], __global element *c,
                        long c_row, real alpha, real keep, __global const element *bias)
{
#pragma unroll
    for (int v = 0; v < vectors; v++) {
        vec add = (vec)((real)0);
        if (bias)
            add = LOAD(bias + v * WIDTH);
#pragma unroll
        for (int i = 0; i < rows; i++) {
            __global element *p = c + i * c_row + v * WIDTH;
            vec x = fma((vec)(alpha), sum[i][v], add);
            if (keep != 0)
                x = fma((vec)(keep), LOAD(p), x);
            STORE(x, p);
        }
    }
}

/* The same for m x n sums in memory, their rows sum_row apart. */
static void store_part(__local const real *sum, long sum_row, __global element *c, long c_row,
                       int m, int n, real alpha, real keep, __global const element *bias)
{
    for (int i = 0; i < m; i++, sum += sum_row, c += c_row) {
        int j = 0;
        for (; j + WIDTH <= n; j += WIDTH) {
            vec x = alpha * LOAD_LOCAL(sum + j);
            if (bias)
                x += LOAD(bias + j);
            if (keep != 0)
                x += keep * LOAD(c + j);
            STORE(x, c + j);
        }
        for (; j < n; j++) {
            real x = alpha * sum[j];
            if (bias)
                x += READ(bias + j);
            if (keep != 0)
                x += keep * READ(c + j);
            WRITE(x, c + j);
        }
    }
}

/* One tile of C: rows x vectors products, or what of them lies within m x n, for one KC of k.
   `spill` (rows spill_row apart) takes the sums of a tile at an edge; those of a narrow type stay
   there, in float, from the first KC to the last. */
INLINE void tile(const int rows, const int vectors, __local const real *a, __local const real *b,
                 int kc, int first, int last, __local real *spill, long spill_row,
                 __global element *c, long c_row, int m, int n, real alpha, real beta,
                 __global const element *bias)
{
    vec sum[MR][2];
    multiply(rows, vectors, a, b, kc, sum);
    real keep = NARROW || first ? beta : 1;
    if (!NARROW && !first)
        bias = 0;
    if (!NARROW && m >= rows && n >= vectors * WIDTH) {
        store_whole(rows, vectors, sum, c, c_row, alpha, keep, bias);
        return;
    }
#pragma unroll
    for (int i = 0; i < rows; i++)
#pragma unroll
        for (int v = 0; v < vectors; v++) {
            __local real *p = spill + i * spill_row + v * WIDTH;
            STORE_LOCAL(NARROW && !first ? sum[i][v] + LOAD_LOCAL(p) : sum[i][v], p);
        }
    if (!NARROW || last)
        store_part(spill, spill_row, c, c_row, min(m, rows), min(n, vectors * WIDTH), alpha, keep,
                   bias);
}

#define ARGUMENTS                                                                                  \
    __global const element *restrict A, long a_at, long a_batch, long a_row, long a_col,           \
        __global const element *restrict B, long b_at, long b_batch, long b_row, long b_col,       \
        __global element *restrict C, long c_at, long c_batch, long c_row,                         \
        __global const element *restrict bias, long bias_at, long m, long n, long k, real alpha,   \
        real beta, long group_rows, long group_cols, long k_part, long c_part, long inner,         \
        long a_outer, long b_outer, long c_outer

#define ONE_ITEM __attribute__((reqd_work_group_size(1, 1, 1)))

#if GEMM_KERNEL == 0
/* Group (x, y, z): block x of the columns, block y of the rows, part z % parts of k of matrix z /
   parts; a part's products go to C + part c_part. */
__kernel ONE_ITEM void gemm(ARGUMENTS)
{
    __local real a_block[MC * A_ROW] __attribute__((aligned(64)));
    __local real b_block[NP * B_PANEL] __attribute__((aligned(64)));
    __local real spill[NARROW ? MC * NP * WIDTH : MR * 2 * WIDTH] __attribute__((aligned(64)));
    const int spill_row = NARROW ? NP * WIDTH : 2 * WIDTH;
    long parts = (k + k_part - 1) / k_part;
    long batch = get_group_id(2) / parts, part = get_group_id(2) % parts;
    long i0 = get_group_id(1) * group_rows, i1 = min(i0 + group_rows, m);
    long j0 = get_group_id(0) * group_cols;
    int all_cols = (int)min(group_cols, n - j0);
    long k_begin = part * k_part, k_end = min(k_begin + k_part, k);
    A += a_at + batch / inner * a_outer + batch % inner * a_batch;
    B += b_at + batch / inner * b_outer + batch % inner * b_batch + j0 * b_col;
    C += c_at + batch / inner * c_outer + batch % inner * c_batch + part * c_part + j0;
    if (bias)
        bias += bias_at + j0;

    for (long k0 = k_begin; k0 < k_end; k0 += KC) {
        int kc = (int)min((long)KC, k_end - k0), first = k0 == k_begin, last = k0 + kc == k_end;
        pack(b_block, WIDTH, B_PANEL, B + k0 * b_row, b_row, b_col, kc, all_cols,
             (k - k0 - 1) * b_row + (n - j0 - 1) * b_col + 1);
        for (long ic = i0; ic < i1; ic += MC) {
            int all_rows = (int)min((long)MC, i1 - ic);
            pack(a_block, A_ROW, WIDTH, A + ic * a_row + k0 * a_col, a_row, a_col, all_rows, kc,
                 (m - ic - 1) * a_row + (k - k0 - 1) * a_col + 1);
            for (int j = 0; j < all_cols; j += 2 * WIDTH) {
                __local const real *b = b_block + j / WIDTH * B_PANEL;
                __global const element *bj = bias ? bias + j : 0;
                /* the last rows go 4 at a time where that wastes less */
                for (int i = 0, step; i < all_rows; i += step) {
                    __local const real *a = a_block + i * A_ROW;
                    __local real *sums = NARROW ? spill + i * spill_row + j : spill;
                    __global element *c = C + (ic + i) * c_row + j;
                    int rows = all_rows - i, cols = all_cols - j;
                    step = rows <= 4 || rows == 8 || rows <= MR - 4 ? 4 : MR;
                    if (step == MR)
                        tile(MR, 2, a, b, kc, first, last, sums, spill_row, c, c_row, rows, cols,
                             alpha, beta, bj);
                    else
                        tile(4, 2, a, b, kc, first, last, sums, spill_row, c, c_row, rows, cols,
                             alpha, beta, bj);
                }
            }
        }
    }
}
#endif

#if GEMM_KERNEL == 2
/* C_b = alpha (the sum of the `parts` products in A, each m x n, in order) + beta C_b (+ bias):
   ends a gemm whose k was cut in parts. Group (x, y): rows from y group_rows on, of matrix x. */
__kernel ONE_ITEM void gemm_sum(__global const real *restrict A, long parts,
                                __global element *restrict C, long c_at, long c_batch, long c_row,
                                __global const element *restrict bias, long bias_at, long m, long n,
                                real alpha, real beta, long group_rows, long inner, long c_outer)
{
    __local real sum[2 * WIDTH] __attribute__((aligned(64)));
    long batch = get_group_id(0), i0 = get_group_id(1) * group_rows, i1 = min(i0 + group_rows, m);
    A += batch * parts * m * n;
    C += c_at + batch / inner * c_outer + batch % inner * c_batch;
    for (long i = i0; i < i1; i++)
        for (long j = 0; j < n; j += 2 * WIDTH) {
            int cols = (int)min((long)(2 * WIDTH), n - j);
            for (int x = 0; x < cols; x++)
                sum[x] = A[i * n + j + x];
            for (long part = 1; part < parts; part++)
                for (int x = 0; x < cols; x++)
                    sum[x] += A[(part * m + i) * n + j + x];
            store_part(sum, 0, C + i * c_row + j, c_row, 1, cols, alpha, beta,
                       bias ? bias + bias_at + j : 0);
        }
}
#endif

#if GEMM_KERNEL == 1
INLINE real sum_lanes(vec v)
{
#if WIDTH == 16
    float8 w = v.lo + v.hi;
    return ((w.s0 + w.s4) + (w.s1 + w.s5)) + ((w.s2 + w.s6) + (w.s3 + w.s7));
#elif WIDTH == 8
    return ((v.s0 + v.s4) + (v.s1 + v.s5)) + ((v.s2 + v.s6) + (v.s3 + v.s7));
#else
    return (v.s0 + v.s1) + (v.s2 + v.s3);
#endif
}

/* For a_col = b_row = 1 and few rows or columns: 4 x 4 dot products at a time, straight from A and
   B, as packing would cost more than the products. At an edge the last row or column is computed
   again. Not cut along k. */
__kernel ONE_ITEM void gemm_dot(ARGUMENTS)
{
    __local real spill[16 * WIDTH] __attribute__((aligned(64)));
    long batch = get_group_id(2);
    long i0 = get_group_id(1) * group_rows, i1 = min(i0 + group_rows, m);
    long j0 = get_group_id(0) * group_cols, j1 = min(j0 + group_cols, n);
    A += a_at + batch / inner * a_outer + batch % inner * a_batch;
    B += b_at + batch / inner * b_outer + batch % inner * b_batch;
    C += c_at + batch / inner * c_outer + batch % inner * c_batch;
    for (long i = i0; i < i1; i += 4)
        for (long j = j0; j < j1; j += 4) {
            __global const element *a[4], *b[4];
            vec sum[4][4];
#pragma unroll
            for (int x = 0; x < 4; x++) {
                a[x] = A + min(i + x, i1 - 1) * a_row;
                b[x] = B + min(j + x, j1 - 1) * b_col;
#pragma unroll
                for (int y = 0; y < 4; y++)
                    sum[x][y] = (vec)((real)0);
            }
            long at = 0;
            for (; at + WIDTH <= k; at += WIDTH) {
                vec bk[4];
#pragma unroll
                for (int y = 0; y < 4; y++)
                    bk[y] = LOAD(b[y] + at);
#pragma unroll
                for (int x = 0; x < 4; x++) {
                    vec ak = LOAD(a[x] + at);
#pragma unroll
                    for (int y = 0; y < 4; y++)
                        sum[x][y] = fma(ak, bk[y], sum[x][y]);
                }
            }
#pragma unroll
            for (int x = 0; x < 16; x++)
                STORE_LOCAL(sum[x / 4][x % 4], spill + x * WIDTH);
            for (int x = 0; x < min(4L, i1 - i); x++)
                for (int y = 0; y < min(4L, j1 - j); y++) {
                    real total = sum_lanes(LOAD_LOCAL(spill + (x * 4 + y) * WIDTH));
                    for (long p = at; p < k; p++)
                        total += READ(A + (i + x) * a_row + p) * READ(B + (j + y) * b_col + p);
                    total *= alpha;
                    __global element *c = C + (i + x) * c_row + j + y;
                    if (bias)
                        total += READ(bias + bias_at + j + y);
                    if (beta != 0)
                        total += beta * READ(c);
                    WRITE(total, c);
                }
        }
}
#endif
