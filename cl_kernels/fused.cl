/* fused.cl -- what would be several commands in one, for devices with work-groups, where each has
 * its price. The host has these kernels by name alone. */
#if TERN_HOST && !TERN_STANDIN
#undef KERNEL_
#define KERNEL_ DEVICE_KERNEL_
#endif
#undef TERN_BLOCKS
#define TERN_BLOCKS 4
#if IS_FLOAT
#include "float4.h"
#include "math_rows.cl"
#include "layer_norm.h"
#include "layer_norm_gradient.h"

/* ---- layer norm ------------------------------------------------------------------------------ */

#undef TERN_BLOCKS
#if TERN_ROW_LANES && !IS_HALF /* eight columns, and their vectors at once */
#define TERN_BLOCKS 1
#elif IS_WIDE || TERN_ROW_LANES
#define TERN_BLOCKS 2
#else
#define TERN_BLOCKS 4
#endif
KERNEL13(K(layer_norm_gradient), (OUT, STO, dxs), (OUT, ACC, dws), (OUT, ACC, dbs), (IN, STO, dys),
         (IN, STO, xs), (IN, STO, ws), (IN, STO, befores), (IN, ACC, means), (IN, ACC, rstds),
         (ARG, i64, rows), (ARG, i64, n), (ARG, i64, len), (ARG, i32, what))
{
    LAYER_NORM_GRADIENT_(1, LD, ST, TERN_T, , )
}

NORM_AGAIN_FUNCTION(K(norm_again), STO, LD)
#define ADD_NORM_IN(X)       X(a, TERN_T, as + at) X(h, TERN_T, hs + at)
#define ADD_NORM_IN_MIXED(X) X(a, f32, as + at) X(h, TERN_T, hs + at)
#define ADD_NORM_MAKE_(IN, T, PUT)                                                                 \
    {                                                                                              \
        enum { row_kept = ROW_HALF_ };                                                             \
        IN(ROW_KEEP_)                                                                              \
        ROW_EACH(1, IN, f32 v[ROW_WIDTH];, v[e] = a + h;, ROW_STORE(T, xs + at + head, q, v);,     \
            PUT(xs, at + j, v[0]);)                                                                \
    }
#undef TERN_BLOCKS
#define TERN_BLOCKS 2
/* Layer norm of a sum xs = as + hs, which is made too. A lane reads again what it wrote itself. */
KERNEL12(K(add_layer_norm), (OUT, STO, xs), (IN, STO, as), (IN, STO, hs), (OUT, STO, ys),
         (OUT, ACC, means), (OUT, ACC, rstds), (IN, STO, ws), (IN, STO, bs), (ARG, i64, rows),
         (ARG, i64, n), (ARG, REAL, eps), (ARG, i32, what))
{
    BASE(xs);
    BASE(as);
    BASE(hs);
    BASE(ys);
    BASE(means);
    BASE(rstds);
    BASE(ws);
    BASE(bs);
    LAYER_NORM_(K(norm_again), ST(xs, at + j, LD(as, at + j) + LD(hs, at + j));, LD,
        ST(ys, at + j, v);, TERN_T, NORM_IN,
                ROW_PAST(xs) == ROW_PAST(as) && ROW_PAST(xs) == ROW_PAST(hs) &&
                    ROW_PAST(xs) == ROW_PAST(ys),
                    ADD_NORM_MAKE_(ADD_NORM_IN, TERN_T, ST),
                ROW_STORE(TERN_T, ys + at + head, q, y_v);)
}

#undef TERN_BLOCKS
#define TERN_BLOCKS 3
/* Float32 with halves: the gradient of what came in of half precision, below. */
#if IS_HALF
#define IN_F32(p, i)     (p)[i]
#define TO_F32(p, i, v)  (p)[i] = (v)
NORM_AGAIN_FUNCTION(K(norm_again_f32), f32, IN_F32)
/* Layer norm of float32, whose result is noted in half precision too, or alone. */
#define MIXED_PUT_                                                                                 \
    ST(halves, at + j, v);                                                                         \
    if ((what & TERN_NORM_HALVES_ALONE) == 0)                                                      \
        ys[at + j] = v;
#define MIXED_PUT_V_                                                                               \
    ROW_STORE(TERN_T, halves + at + head, q, y_v);                                                 \
    if ((what & TERN_NORM_HALVES_ALONE) == 0)                                                      \
        ROW_STORE(f32, ys + at + head, q, y_v);
KERNEL11(K(layer_norm_mixed), (OUT, f32, ys), (OUT, STO, halves), (OUT, ACC, means),
         (OUT, ACC, rstds), (IN, f32, xs), (IN, f32, ws), (IN, f32, bs), (ARG, i64, rows),
         (ARG, i64, n), (ARG, REAL, eps), (ARG, i32, what))
{
    BASE(ys);
    BASE(halves);
    BASE(means);
    BASE(rstds);
    BASE(xs);
    BASE(ws);
    BASE(bs);
    LAYER_NORM_(K(norm_again_f32), , IN_F32, MIXED_PUT_, f32, NORM_IN_F32,
        ROW_PAST(xs) == ROW_PAST(ys) && ROW_PAST(xs) == ROW_PAST(halves), , MIXED_PUT_V_)
}

#undef TERN_BLOCKS
#define TERN_BLOCKS 2
/* The same of a sum xs = as + hs, which is made too. */
KERNEL13(K(add_layer_norm_mixed), (OUT, f32, xs), (IN, f32, as), (IN, STO, hs), (OUT, f32, ys),
         (OUT, STO, halves), (OUT, ACC, means), (OUT, ACC, rstds), (IN, f32, ws), (IN, f32, bs),
         (ARG, i64, rows), (ARG, i64, n), (ARG, REAL, eps), (ARG, i32, what))
{
    BASE(xs);
    BASE(as);
    BASE(hs);
    BASE(ys);
    BASE(halves);
    BASE(means);
    BASE(rstds);
    BASE(ws);
    BASE(bs);
    LAYER_NORM_(K(norm_again_f32), xs[at + j] = as[at + j] + LD(hs, at + j);, IN_F32, MIXED_PUT_,
        f32, NORM_IN_F32,
                ROW_PAST(xs) == ROW_PAST(as) && ROW_PAST(xs) == ROW_PAST(hs) &&
                    ROW_PAST(xs) == ROW_PAST(ys) &&
                    ROW_PAST(xs) == ROW_PAST(halves),
                ADD_NORM_MAKE_(ADD_NORM_IN_MIXED, f32, TO_F32), MIXED_PUT_V_)
}

#undef TERN_BLOCKS
#if TERN_ROW_LANES
#define TERN_BLOCKS 2
#else
#define TERN_BLOCKS 4
#endif
KERNEL14(K(layer_norm_gradient_mixed), (OUT, f32, dxs), (OUT, STO, halves), (OUT, ACC, dws),
         (OUT, ACC, dbs), (IN, STO, dys), (IN, f32, xs), (IN, f32, ws), (IN, f32, befores),
         (IN, ACC, means), (IN, ACC, rstds), (ARG, i64, rows), (ARG, i64, n), (ARG, i64, len),
         (ARG, i32, what))
{
    BASE(halves);
    LAYER_NORM_GRADIENT_(NORM_PAST_(halves) == 0, IN_F32, TO_F32, f32,
                         if ((what & 16) != 0) ST(halves, at + j, dx);
                         , if ((what & 16) != 0) NORM_STORE_(TERN_T)(halves + at, q, v);)
}
#endif

#if !TERN_ROW_LANES /* programs for short rows have those alone */
#undef TERN_BLOCKS
#define TERN_BLOCKS 4

/* dw and db as the sums of their parts (parts, n): a group has 32 columns, and 8 sums of each at a
 * time. */
KERNEL6(K(layer_norm_sums), (OUT, STO, dws), (OUT, STO, dbs), (IN, ACC, dw_parts),
        (IN, ACC, db_parts), (ARG, i64, parts), (ARG, i64, n))
{
    BASE(dws);
    BASE(dbs);
    BASE(dw_parts);
    BASE(db_parts);
    BESIDE(layer_norm_sums)
    LOCAL_ARRAY(ACC, dw, 256);
    LOCAL_ARRAY(ACC, db, 256);
    GROUPS(g, (n + 31) / 32)
    {
        idx left = g * 32, width = (idx)n - left;
        width = width < 32 ? width : 32;
        LANES(q, 256)
        {
            idx j = q % 32;
            ACC some = 0, more = 0;
            for (idx k = q / 32; j < width && k < (idx)parts; k += 8) {
                some += dw_parts[k * (idx)n + left + j];
                more += db_parts[k * (idx)n + left + j];
            }
            dw[q] = some;
            db[q] = more;
        }
        BARRIER();
        LANES(j, width)
        {
            ACC some = 0, more = 0;
            for (idx k = j; k < 256; k += 32) {
                some += dw[k];
                more += db[k];
            }
            ST(dws, left + j, some);
            ST(dbs, left + j, more);
        }
        BARRIER();
    }
}
#endif

/* ---- cross entropy --------------------------------------------------------------------------- */

#undef TERN_BLOCKS
#if TERN_ROW_LANES && !IS_WIDE
#define TERN_BLOCKS 5
#elif TERN_ROW_LANES || !TERN_IDX32 /* numbers or indices of 64 bits take more registers */
#define TERN_BLOCKS 2
#else
#define TERN_BLOCKS 3
#endif
/* As in loss.cl, and also dx for dout = 1, for which the mean divides by `total`, the sum of w[t]
 * of the rows that are not ignored. A team has a row. what: 1 the mean; 2 there is one group, which
 * has all rows and so writes the loss and total; 4 total is known; otherwise each group sums; 8
 * rows of dx begin at multiples of 8, zeros between; 16 all but dx; 32 dx alone, for dout, by the
 * lses there are: it may lie where x does; 64 there are weights; 128 each row has a dout. */
#define ENTROPY_COUNTS_(target) ((target) >= 0 && (target) < n && (target) != ignored)
#define ENTROPY_WEIGHT_(target) (has_weight ? LD(ws, (idx)(target)) : 1)
KERNEL19(K(cross_entropy_unit), (OUT, ACC, ys), (OUT, ACC, losses), (OUT, ACC, lses),
         (OUT, ACC, pulls), (OUT, ACC, weights), (OUT, STO, dxs), (OUT, ACC, totals),
         (IN, ACC, douts), (IN, STO, xs), (IN, i64, targets), (IN, STO, ws), (OUT, i64, fault),
         (ARG, i64, rows), (ARG, i64, n), (ARG, i64, row), (ARG, i64, ignored),
         (ARG, REAL, smoothing), (ARG, i32, what), (ARG, i32, code))
{
    BASE(ys);
    BASE(losses);
    BASE(lses);
    BASE(pulls);
    BASE(weights);
    BASE(dxs);
    BASE(totals);
    BASE(douts);
    BASE(xs);
    BASE(targets);
    BASE(ws);
    BASE(fault);
    LOCAL_ARRAY(ACC, scratch, TERN_WG);
    const i32 late = (what & 32) != 0, has_weight = (what & 64) != 0;
    ACC total = 0, sum = 0, spread = 0;
    const ACC share = smoothing / (ACC)n;
    LANES(r, (what & 4) != 0 ? 0 : rows)
    {
        total += ENTROPY_COUNTS_(targets[r]) ? ENTROPY_WEIGHT_(targets[r]) : 0;
    }
    LANES(j, smoothing != 0 && has_weight ? n : 0)
    {
        spread += LD(ws, j);
    }
    GROUP_SUM2(total, spread, scratch, 1)
    spread = share * (has_weight ? spread : (ACC)n);
    if ((what & 4) != 0)
        total = totals[0];
    else if (LID == 0 && (what & 2) != 0)
        totals[0] = total;
    const ACC of_mean = (what & 1) != 0 ? 1 / total : 1;
    TEAMS(r, rows, n)
    {
        const idx at = r * (idx)row;
        const idx place = ENTROPY_COUNTS_(targets[r]) ? (idx)targets[r] : -1;
        ACC m = MINUS_INF, z = 0, even = 0;
        const idx seen = late ? 0 : (idx)n, made = (what & 16) != 0 ? 0 : (idx)n;
#if BY_FOURS
#undef ENTROPY_IN
#define ENTROPY_IN(X) X(x, TERN_T, xs + at)
#define ENTROPY_DX_   pull * ROW_POWER(x) - evenly
        /* A row's loss, where it is a result, does not depend on where the row begins. */
        ROW_VECTORS(xs + at, seen, (what & 128) == 0)
        ENTROPY_IN(ROW_KEEP_)
        ROW_POWERS(ENTROPY_IN, m, z, )
        z = ROW_LOG(z, m);
        if (smoothing != 0 && has_weight) {
            ROW_SUM(0, ENTROPY_IN, even, LD(ws, j) * (z - (x - m)))
        } else if (smoothing != 0) {
            ROW_SUM(0, ENTROPY_IN, even, z - (x - m))
        }
#else
        TEAM_LANES(j, seen)
        {
            ACC x = LD(xs, at + j);
            m = m > x ? m : x;
        }
        m = TEAM_MAX(m, scratch);
        TEAM_LANES(j, seen)
        {
            z += exp_below(LD(xs, at + j) - m);
        }
        z = log(TEAM_SUM(z, scratch));
        TEAM_LANES(j, smoothing != 0 ? seen : 0)
        {
            even += ENTROPY_WEIGHT_(j) * (z - (LD(xs, at + j) - m));
        }
#endif
        even = TEAM_SUM(even, scratch);
        const ACC scale = late ? of_mean * douts[(what & 128) != 0 ? r : 0] : of_mean;
        const ACC w = place >= 0 ? ENTROPY_WEIGHT_(place) : 0;
        const idx to = r * ((what & 8) != 0 ? ((idx)n + 7) & ~(idx)7 : (idx)n);
        ACC lse = late ? lses[r] : m + z;
        ACC pull = (1 - smoothing) * w + spread;
        const ACC push = scale * (1 - smoothing) * w;
        for (idx j = (idx)n; TEAM_LEADER && (what & 8) != 0 && (j & 7) != 0; j++)
            ST(dxs, to + j, 0);
        if (TEAM_LEADER && !late) {
            const i64 target = targets[r];
            ACC loss = 0;
            if (!(target >= 0 && target < n) && target != ignored)
                FAULT(fault, code, target, n);
            if (place >= 0) {
                loss = (1 - smoothing) * w * (z - (LD(xs, at + place) - m));
                loss = smoothing != 0 ? loss + share * even : loss;
            }
            lses[r] = lse;
            pulls[r] = place >= 0 ? pull : 0;
            sum += loss;
            if ((what & 2) == 0) {
                losses[r] = loss;
                weights[r] = w;
            }
        }
        pull = scale * pull;
#if BY_FOURS
        const i32 unevenly = smoothing != 0 && has_weight;
        const ACC evenly = unevenly ? 0 : scale * share;
        { /* by the vectors that dx's row has */
            ROW_VECTORS(dxs + to, made, 1)
            ROW_BASE(lse)
            pull = ROW_AMENDED(pull, lse);
            const i32 alike = ROW_PAST(xs + at + head) == 0;
            back = again; /* what was read last is still in a cache */
            ROW_PASSES_(c)
            {
                if (!alike) {
                    ROW_UNITS_(ROW_OF_(ROW_GATHER, TERN_T)(x_k[u], xs + at + head, q);)
                } else if (again || late) {
                    ROW_UNITS_(ENTROPY_IN(ROW_LOAD_))
                }
                ROW_UNITS(ENTROPY_IN, f32 v[ROW_WIDTH];, v[e] = ENTROPY_DX_;,
                          const idx own = place - head - ROW_WIDTH * q;
                          if (unevenly)
                              EACH_OF_ROW(e) v[e] -=
                                  scale * share * LD(ws, head + ROW_WIDTH * q + e);
                          if (own >= 0 && own < ROW_WIDTH)
                              EACH_OF_ROW(e) v[e] = e == own ? v[e] - push : v[e];
                          if (place < 0)
                              EACH_OF_ROW(e) v[e] = 0;
                          ROW_STORE(TERN_T, dxs + to + head, q, v);)
            }
            ROW_LEFT(ENTROPY_IN, ACC v = ENTROPY_DX_ - (j == place ? push : 0);
                     v = unevenly ? v - scale * share * LD(ws, j) : v;
                     ST(dxs, to + j, place >= 0 ? v : 0);)
        }
#else
        TEAM_LANES(j, made)
        {
            const ACC even_w = scale * share * ENTROPY_WEIGHT_(j);
            ACC v = pull * exp_below(LD(xs, at + j) - lse);
            v = j == place ? v - push - even_w : v - even_w;
            ST(dxs, to + j, place >= 0 ? v : 0);
        }
#endif
    }
    sum = GROUP_SUM(sum, scratch);
    if (LID == 0 && (what & 2) != 0)
        ys[0] = (what & 1) != 0 ? sum / totals[0] : sum;
}

#if !TERN_ROW_LANES /* programs for short rows have those alone */
/* The sum of w[t] of targets t that are classes and not ignored; one group. */
KERNEL7(K(count_classes), (OUT, ACC, totals), (IN, i64, targets), (IN, STO, ws), (ARG, i64, rows),
        (ARG, i64, n), (ARG, i64, ignored), (ARG, i32, has_weight))
{
    BASE(totals);
    BASE(targets);
    BASE(ws);
    LOCAL_ARRAY(ACC, scratch, TERN_WG);
    GROUPS(g, 1)
    {
        ACC total = 0;
        LANES(r, rows)
        {
            total += ENTROPY_COUNTS_(targets[r]) ? ENTROPY_WEIGHT_(targets[r]) : 0;
        }
        total = GROUP_SUM(total, scratch);
        if (LID == 0)
            totals[g] = total;
    }
}

/* ---- float32 and halves ---------------------------------------------------------------------- */

#if IS_HALF
KERNEL4(K(add_mixed), (OUT, f32, zs), (IN, f32, xs), (IN, STO, ys), (ARG, i64, n))
{
    BASE(zs);
    BASE(xs);
    BASE(ys);
    idx vectors = 0;
#if BY_FOURS
    if (FLAT_FITS(zs) && FLAT_FITS(xs) && FLAT_FITS(ys))
        vectors = (idx)n / ROW_WIDTH;
    FLAT_VECTORS(1, vectors)
    {
        FLAT_TWO(f32, x)
        FLAT_TWO(TERN_T, y)
        FLAT_LOADED(r, j)
        {
            FLAT_GET(f32, x, xs, j);
            FLAT_GET(TERN_T, y, ys, j);
        }
        FLAT_USED(q)
        {
            FLAT_VALUES(f32, xv, x)
            FLAT_VALUES(TERN_T, yv, y)
            EACH_OF_ROW(e) xv[e] += yv[e];
            ROW_STORE(f32, zs, q, xv);
        }
    }
#endif
    ITEMS(i, n - ROW_WIDTH * vectors)
    {
        const idx j = ROW_WIDTH * vectors + i;
        zs[j] = xs[j] + LD(ys, j);
    }
}
#endif

/* ---- gelu, made again, and its gradient in one reading --------------------------------------- */

#define PAIR_(NAME, Y, DX)                                                                         \
    KERNEL5(K(NAME##_pair), (OUT, STO, dxs), (OUT, STO, ys), (IN, STO, xs), (IN, STO, dys),        \
            (ARG, i64, n))                                                                         \
    {                                                                                              \
        BASE(dxs);                                                                                 \
        BASE(ys);                                                                                  \
        BASE(xs);                                                                                  \
        BASE(dys);                                                                                 \
        idx vectors = 0;                                                                           \
        TERN_CAT(PAIR_VECTORS, BY_FOURS)(Y, DX)                                                    \
        ITEMS(i, n - ROW_WIDTH * vectors)                                                          \
        {                                                                                          \
            const idx j = ROW_WIDTH * vectors + i;                                                 \
            const REAL x = LD(xs, j), dy = LD(dys, j);                                             \
            ST(ys, j, (Y));                                                                        \
            ST(dxs, j, (DX));                                                                      \
        }                                                                                          \
    }
#define PAIR_VECTORS_0(Y, DX)
#define PAIR_VECTORS_1(Y, DX)                                                                      \
    if (FLAT_FITS(dxs) && FLAT_FITS(ys) && FLAT_FITS(xs) && FLAT_FITS(dys))                        \
        vectors = (idx)n / ROW_WIDTH;                                                              \
    FLAT_VECTORS(1, vectors)                                                                       \
    {                                                                                              \
        FLAT_TWO(TERN_T, x)                                                                        \
        FLAT_TWO(TERN_T, dy)                                                                       \
        FLAT_LOADED(r, j)                                                                          \
        {                                                                                          \
            FLAT_GET(TERN_T, x, xs, j);                                                            \
            FLAT_GET(TERN_T, dy, dys, j);                                                          \
        }                                                                                          \
        FLAT_USED(q)                                                                               \
        {                                                                                          \
            REAL yv[ROW_WIDTH], dxv[ROW_WIDTH];                                                    \
            FLAT_VALUES(TERN_T, xv, x)                                                             \
            FLAT_VALUES(TERN_T, dyv, dy)                                                           \
            EACH_OF_ROW(e)                                                                         \
            {                                                                                      \
                const REAL x = xv[e], dy = dyv[e];                                                 \
                yv[e] = (Y);                                                                       \
                dxv[e] = (DX);                                                                     \
            }                                                                                      \
            ROW_STORE(TERN_T, ys, q, yv);                                                          \
            ROW_STORE(TERN_T, dxs, q, dxv);                                                        \
        }                                                                                          \
    }
/* As in elementwise.def. */
PAIR_(gelu, x * normal_cdf(x), dy * (normal_cdf(x) + C(0.3989422804014327) * x
    * exp_below(C(-0.5) * x * x)))
#define SIGMOID_ sigmoid(C(1.5957691216057308) * (x + C(0.044715) * x * x * x))
PAIR_(gelu_tanh, x * SIGMOID_, dy * SIGMOID_ * (1 + x * (1 - SIGMOID_) * C(1.5957691216057308)
    * (1 + C(0.134145) * x * x)))
#undef SIGMOID_
#undef PAIR_
#undef PAIR_VECTORS_0
#undef PAIR_VECTORS_1
#endif
#endif
