/* attention.cl -- what attention does to a block of scores between its products: a group for each
 * row. Collectives stand outside of branches: some compilers lose their way otherwise. */
#undef TERN_BLOCKS
#define TERN_BLOCKS 2
#if IS_FLOAT
#include "philox.h"

/* Where group r's row lies: stack (b0, b1), query i. */
#define ATTENTION_ROW                                                                              \
    idx at = r * (idx)b.columns, i = (idx)b.first + r % (idx)b.rows, stack = r / (idx)b.rows;

/* Of its columns the band leaves `seen`, from `skipped` on; at and mask_at go there. */
#define ATTENTION_BAND                                                                             \
    idx skipped = 0, seen = (idx)b.columns;                                                        \
    if ((b.flags & TERN_ATTENTION_BAND) != 0) {                                                    \
        idx end = i + (idx)b.after + 1 - (idx)b.from;                                              \
        skipped = i - (idx)b.before - (idx)b.from;                                                 \
        skipped = skipped < 0 ? 0 : skipped > seen ? seen : skipped;                               \
        end = end < skipped ? skipped : end > seen ? seen : end;                                   \
        seen = end - skipped;                                                                      \
    }                                                                                              \
    at += skipped;                                                                                 \
    idx mask_at = stack / (idx)b.count[1] * (idx)b.stride[0] +                                     \
                  stack % (idx)b.count[1] * (idx)b.stride[1] + i * (idx)b.stride[2] +              \
                  ((idx)b.from + skipped) * (idx)b.stride[3];

/* Score j < seen of the row, masked. Of floats the mask was put into the scores by ATTENTION_MASK,
 * so that the loops that follow have no branch; halves left what the products rounded away in
 * rests, and are not rounded once more before the end. */
#if IS_HALF
#define ATTENTION_SCORE(x, j)                                                                      \
    ACC x = LD(ps, at + j) + LD(rests, at + j);                                                    \
    if (cap != 0)                                                                                  \
        x = cap * tanh(x / cap);                                                                   \
    if ((b.flags & TERN_ATTENTION_NUMBERS) != 0)                                                   \
        x += LD(numbers, mask_at + j * (idx)b.stride[3]);                                          \
    if ((b.flags & TERN_ATTENTION_BOOLS) != 0 && bools[mask_at + j * (idx)b.stride[3]] == 0)       \
        x = MINUS_INF;
#define ATTENTION_MASK
#else
#define ATTENTION_SCORE(x, j) ACC x = LD(ps, at + j);
#define ATTENTION_MASK                                                                             \
    if (cap != 0)                                                                                  \
        SIMD LANES(j, seen)                                                                        \
        {                                                                                          \
            ST(ps, at + j, cap * tanh(LD(ps, at + j) / cap));                                      \
        }                                                                                          \
    if ((b.flags & TERN_ATTENTION_NUMBERS) != 0)                                                   \
        SIMD LANES(j, seen)                                                                        \
        {                                                                                          \
            ST(ps, at + j, LD(ps, at + j) + LD(numbers, mask_at + j * (idx)b.stride[3]));          \
        }                                                                                          \
    if ((b.flags & TERN_ATTENTION_BOOLS) != 0)                                                     \
        SIMD LANES(j, seen)                                                                        \
        {                                                                                          \
            ACC x = LD(ps, at + j);                                                                \
            ST(ps, at + j, bools[mask_at + j * (idx)b.stride[3]] != 0 ? x : MINUS_INF);            \
        }
#endif

/* The weights of keys that the band hides. */
#define ATTENTION_UNSEEN                                                                           \
    SIMD LANES(j, skipped)                                                                         \
    {                                                                                              \
        ST(ps, at - skipped + j, 0);                                                               \
    }                                                                                              \
    SIMD LANES(j, (idx)b.columns - skipped - seen)                                                 \
    {                                                                                              \
        ST(ps, at + seen + j, 0);                                                                  \
    }

/* 1 where dropout keeps weight j, else 0; from the element's number in the whole. */
#define ATTENTION_KEPT(kept, j)                                                                    \
    u64 number = ((u64)stack * (u64)b.queries + (u64)i) * (u64)b.keys + (u64)(b.from + (j));       \
    tern_words w = tern_philox(state[1] + (number >> 2), state[0]);                                \
    u32 which = (u32)number & 3u;                                                                  \
    u32 word = which == 0 ? w.a : which == 1 ? w.b : which == 2 ? w.c : w.d;                       \
    i32 kept = (i32)(word >> 8) >= b.drop ? 1 : 0;

/* Scores become weights e^(x - max) / sum; log sum e^x of each row is kept. Without a key the
 * weights are 0, as is what is kept. */
KERNEL7(K(attention_weights), (OUT, STO, ps), (IN, STO, rests), (OUT, ACC, lses),
        (IN, STO, numbers), (IN, u8, bools), (ARG, tern_attention_block, b), (ARG, REAL, cap))
{
    BASE(ps);
    BASE(rests);
    BASE(lses);
    BASE(numbers);
    BASE(bools);
    LOCAL_ARRAY(ACC, scratch, TERN_WG);
    GROUPS(r, b.count[0] * b.count[1] * b.rows)
    {
        ATTENTION_ROW
        ATTENTION_BAND
        ACC m = MINUS_INF, z = 0;
        ATTENTION_MASK
        SIMD_MAX(m) LANES(j, seen)
        {
            ATTENTION_SCORE(x, j)
            m = m > x ? m : x;
        }
        m = GROUP_MAX(m, scratch);
        m = m == MINUS_INF ? 0 : m; /* no key is seen: e^(-inf - 0) is 0, and so are the weights */
        SIMD_SUM(z) LANES(j, seen)
        {
            ATTENTION_SCORE(x, j)
            ACC e = exp_below(x - m);
#if !IS_HALF /* it would be rounded before it is divided */
            ST(ps, at + j, e);
#endif
            z += e;
        }
        z = GROUP_SUM(z, scratch);
        ACC lse = z == 0 ? 0 : m + log(z), one = z == 0 ? 0 : 1 / z;
        SIMD LANES(j, seen)
        {
#if IS_HALF
            ATTENTION_SCORE(x, j)
            ST(ps, at + j, exp_below(x - m) * one);
#else
            ST(ps, at + j, LD(ps, at + j) * one);
#endif
        }
        ATTENTION_UNSEEN
        if (LID == 0)
            lses[stack * (idx)b.queries + i] = lse;
    }
}

/* The same once more, from the sums. */
KERNEL7(K(attention_again), (OUT, STO, ps), (IN, STO, rests), (IN, ACC, lses), (IN, STO, numbers),
        (IN, u8, bools), (ARG, tern_attention_block, b), (ARG, REAL, cap))
{
    BASE(ps);
    BASE(rests);
    BASE(lses);
    BASE(numbers);
    BASE(bools);
    GROUPS(r, b.count[0] * b.count[1] * b.rows)
    {
        ATTENTION_ROW
        ATTENTION_BAND
        ACC lse = lses[stack * (idx)b.queries + i];
        ATTENTION_MASK
        SIMD LANES(j, seen)
        {
            ATTENTION_SCORE(x, j)
            ST(ps, at + j, exp_below(x - lse));
        }
        ATTENTION_UNSEEN
    }
}

/* Weights after dropout. */
KERNEL5(K(attention_drop), (OUT, STO, ys), (IN, STO, ps), (IN, u64, state),
        (ARG, tern_attention_block, b), (ARG, REAL, scale))
{
    BASE(ys);
    BASE(ps);
    BASE(state);
    GROUPS(r, b.count[0] * b.count[1] * b.rows)
    {
        ATTENTION_ROW
        LANES(j, b.columns)
        {
            ATTENTION_KEPT(kept, j)
            ST(ys, at + j, kept != 0 ? LD(ps, at + j) * scale : 0);
        }
    }
}

/* ds = p (dp - sum p dp), in the place of dp; dp goes through dropout first. */
KERNEL5(K(attention_gradient), (OUT, STO, ds), (IN, STO, ps), (IN, u64, state),
        (ARG, tern_attention_block, b), (ARG, REAL, scale))
{
    BASE(ds);
    BASE(ps);
    BASE(state);
    LOCAL_ARRAY(ACC, scratch, TERN_WG);
    GROUPS(r, b.count[0] * b.count[1] * b.rows)
    {
        ATTENTION_ROW
        ACC sum = 0;
        if (b.drop != 0) {
            LANES(j, b.columns)
            {
                ATTENTION_KEPT(kept, j)
                ACC dp = kept != 0 ? LD(ds, at + j) * scale : 0;
                ST(ds, at + j, dp);
                sum += LD(ps, at + j) * LD(ds, at + j);
            }
        } else {
            SIMD_SUM(sum) LANES(j, b.columns)
            {
                sum += LD(ps, at + j) * LD(ds, at + j);
            }
        }
        sum = GROUP_SUM(sum, scratch);
        SIMD LANES(j, b.columns)
        {
            ST(ds, at + j, LD(ps, at + j) * (LD(ds, at + j) - sum));
        }
    }
}

/* The same of scores before softcap, cap tanh(x / cap): by 1 - tanh^2. The score after it is found
 * from its weight, log p + lse, less the mask's number; where p is 0 so is ds. */
KERNEL6(K(attention_uncap), (OUT, STO, ds), (IN, STO, ps), (IN, ACC, lses), (IN, STO, numbers),
        (ARG, tern_attention_block, b), (ARG, REAL, cap))
{
    BASE(ds);
    BASE(ps);
    BASE(lses);
    BASE(numbers);
    GROUPS(r, b.count[0] * b.count[1] * b.rows)
    {
        ATTENTION_ROW
        ATTENTION_BAND
        ACC lse = lses[stack * (idx)b.queries + i];
        SIMD LANES(j, seen)
        {
            ACC p = LD(ps, at + j), x = lse + log(p > 0 ? p : 1);
            if ((b.flags & TERN_ATTENTION_NUMBERS) != 0)
                x -= LD(numbers, mask_at + j * (idx)b.stride[3]);
            ACC t = x / cap, slope = 1 - t * t;
            ST(ds, at + j, p > 0 && slope > 0 ? LD(ds, at + j) * slope : 0);
        }
    }
}

/* The generator's seed and place, as the way back needs them. */
KERNEL3(K(attention_note), (OUT, u64, noted), (IN, u64, state), (ARG, i64, at))
{
    BASE(noted);
    BASE(state);
    ITEMS(k, 2)
    {
        noted[k] = state[k] + (k == 1 ? (u64)at : 0);
    }
}
/* Pairs of a row's elements, turned by the angle of its place and theirs; `apart` elements lie
 * between the two of a pair, `step` between pairs. */
KERNEL5(K(rotary), (OUT, STO, ys), (IN, STO, xs), (IN, ACC, cosines), (IN, ACC, sines),
        (ARG, tern_rotary, s))
{
    BASE(ys);
    BASE(xs);
    BASE(cosines);
    BASE(sines);
    FLAT(r, s.rows, s.pairs)
    {
        idx place = r / (idx)s.share * (idx)s.places + r % (idx)s.length + (idx)s.offset;
        idx table = place * (idx)s.pairs, row = r * (idx)s.width;
        INNER(r, k)
        {
            idx a = row + k * (idx)s.step, b = a + (idx)s.apart;
            ACC c = cosines[table + k], d = sines[table + k] * (ACC)s.turn;
            ACC x = LD(xs, a), y = LD(xs, b);
            ST(ys, a, x * c - y * d);
            ST(ys, b, x * d + y * c);
        }
    }
}

#undef ATTENTION_ROW
#undef ATTENTION_BAND
#undef ATTENTION_SCORE
#undef ATTENTION_MASK
#undef ATTENTION_UNSEEN
#undef ATTENTION_KEPT
#endif
