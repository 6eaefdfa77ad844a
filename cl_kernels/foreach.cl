/* foreach.cl -- one launch over many tensors, as torch._foreach_* are: norms, multiples, clamps and
 * averages of them, gradients over the scale of mixed precision; and that scale after a step. */
#undef TERN_BLOCKS
#define TERN_BLOCKS 2
#include "foreach_forms.h"
#include "norm_again.h"
#if IS_FLOAT

/* ---- the norm of each chunk ----------------------------------------------------------------- */

INLINE ACC K(chunk_squares)(const GLOBAL STO *gs, idx n, ACC by)
{
    ACC sum = 0;
    SIMD_SUM(sum) LANES(j, n)
    {
        ACC g = LD(gs, j) * by;
        sum += g * g;
    }
    return sum;
}
INLINE ACC K(chunk_most)(const GLOBAL STO *gs, idx n)
{
    ACC most = 0;
    SIMD_MAX(most) LANES(j, n)
    {
        const ACC g = LD(gs, j), v = g < 0 ? -g : g;
        most = v > most ? v : most;
    }
    return most;
}

/* Where squares are beyond the type, those of scaled numbers are summed again. */
#define NORMS_BODY_(NAME, FIND)                                                                    \
    {                                                                                              \
        BASE(rows);                                                                                \
        BASE(chunks);                                                                              \
        BASE(norms);                                                                               \
        BASE(faults);                                                                              \
        LOCAL_ARRAY(ACC, scratch, TERN_WG);                                                        \
        GROUPS(c, n)                                                                               \
        {                                                                                          \
            idx count = (idx)chunks[c].count;                                                      \
            FIND(c)                                                                                \
            ps += chunks[c].first;                                                                 \
            const ACC sum = GROUP_SUM(K(chunk_squares)(ps, count, 1), scratch);                    \
            count = POWERS_LOST(sum) ? count : 0;                                                  \
            const ACC most = GROUP_MAX(K(chunk_most)(ps, count), scratch);                         \
            count = most > 0 && most - most == 0 ? count : 0;                                      \
            const ACC by = most < 1 ? NORM_UP : NORM_DOWN;                                         \
            const ACC again = GROUP_SUM(K(chunk_squares)(ps, count, by), scratch);                 \
            LANES(j, 1) norms[c] = count == 0 ? sqrt(sum) : sqrt(again) / by;                      \
        }                                                                                          \
    }
FOREACH1(norms, NORMS_BODY_, (OUT, ACC, norms))

/* ---- with one number: over tensors and others beside them, which may be the same ------------- */

INLINE void K(times_chunk)(GLOBAL STO *xs, const GLOBAL STO *ys, idx n, REAL factor)
{
    SIMD LANES(j, n)
    {
        ST(xs, j, LD(xs, j) * factor);
    }
}
#define WITH_NUMBER_BODY_(NAME, FIND)                                                              \
    {                                                                                              \
        BASE(rows);                                                                                \
        BASE(chunks);                                                                              \
        BASE(number);                                                                              \
        GROUPS(c, n)                                                                               \
        {                                                                                          \
            i64 at = chunks[c].first; /* tables of addresses hold no sizes */                   \
            FIND(c)                                                                                \
            if (gs != 0)                                                                           \
                K(NAME##_chunk)(ps + at, gs + at, (idx)chunks[c].count, number[0]);                \
        }                                                                                          \
    }
#define WITH_NUMBER(NAME) FOREACH1(NAME, WITH_NUMBER_BODY_, (IN, REAL, number))
WITH_NUMBER(times)

#if !IS_HALF
/* xs += (ys - xs) factor */
INLINE void K(average_chunk)(GLOBAL STO *xs, const GLOBAL STO *ys, idx n, REAL factor)
{
    SIMD LANES(j, n) xs[j] += (ys[j] - xs[j]) * factor;
}
/* The xs between -limit and limit; NaN stays. */
INLINE void K(clip_chunk)(GLOBAL STO *xs, const GLOBAL STO *ys, idx n, REAL limit)
{
    SIMD LANES(j, n)
    {
        REAL x = xs[j];
        x = x > limit ? limit : x;
        xs[j] = x < -limit ? -limit : x;
    }
}
WITH_NUMBER(average)
WITH_NUMBER(clip)
#endif

/* ---- between halves and float32, which is in the third column -------------------------------- */

#if IS_HALF
INLINE void K(narrow_chunk)(GLOBAL STO *xs, GLOBAL f32 *ys, idx n)
{
    SIMD LANES(j, n)
    {
        ST(xs, j, ys[j]);
    }
}
INLINE void K(widen_chunk)(GLOBAL STO *xs, GLOBAL f32 *ys, idx n)
{
    SIMD LANES(j, n) ys[j] = LD(xs, j);
}
#define CONVERT_BODY_(NAME, FIND)                                                                  \
    {                                                                                              \
        BASE(rows);                                                                                \
        BASE(chunks);                                                                              \
        GROUPS(c, n)                                                                               \
        {                                                                                          \
            i64 at = chunks[c].first;                                                              \
            FIND(c)                                                                                \
            if (gs != 0)                                                                           \
                K(NAME##_chunk)(ps + at, as + at, (idx)chunks[c].count);                           \
        }                                                                                          \
    }
FOREACH0(narrow, CONVERT_BODY_)
FOREACH0(widen, CONVERT_BODY_)
#endif

/* ---- gradients over the scale of mixed precision; *found is 1 where one is not finite -------- */

INLINE void K(chunk_unscale)(GLOBAL STO *gs, idx n, f32 scale, GLOBAL f32 *found)
{
    REAL factor = C(1.0) / (REAL)scale;
    REAL bad = 0; /* x - x is 0, but NaN for infinities and NaN */
    SIMD_SUM(bad) LANES(j, n)
    {
        REAL g = LD(gs, j);
        bad += g - g;
        ST(gs, j, g * factor);
    }
    if (bad != 0)
        found[0] = 1.0f;
}
#define UNSCALE_BODY_(NAME, FIND)                                                                  \
    {                                                                                              \
        BASE(rows);                                                                                \
        BASE(chunks);                                                                              \
        BASE(scale);                                                                               \
        BASE(found);                                                                               \
        GROUPS(c, n)                                                                               \
        {                                                                                          \
            FIND(c)                                                                                \
            if (ps != 0)                                                                           \
                K(chunk_unscale)(ps + chunks[c].first, (idx)chunks[c].count, scale[0], found);     \
        }                                                                                          \
    }
FOREACH2(unscale, UNSCALE_BODY_, (IN, f32, scale), (OUT, f32, found))
#endif

/* The scale after a step: it backs off after one that found something, and grows after `interval`
 * others in a row, as far as f32 reaches. */
#if IS_FLOAT && !IS_HALF && !IS_WIDE
KERNEL6(K(update_scale), (OUT, f32, scale), (OUT, i64, tracker), (IN, f32, found),
        (ARG, f32, growth), (ARG, f32, backoff), (ARG, i64, interval))
{
    BASE(scale);
    BASE(tracker);
    BASE(found);
    ITEMS(i, 1)
    {
        f32 grown = scale[0] * growth;
        i64 good = found[0] != 0 ? 0 : tracker[0] + 1;
        if (found[0] != 0)
            scale[0] *= backoff;
        else if (good == interval && grown - grown == 0)
            scale[0] = grown;
        tracker[0] = good == interval ? 0 : good;
    }
}
#endif
