/* norm_again.h -- mean and 1 / sqrt(var + eps) of numbers whose squares are beyond the type, from
 * scaled numbers. Each lane computes them by itself, so that no barrier stands under the condition;
 * ordinary rows have the condition alone. */
#ifndef TERN_NORM_AGAIN_H
#define TERN_NORM_AGAIN_H
/* Sums that overflowed give 0 or NaN; without eps those that vanished give infinity. */
#define NORM_LOST_(rstd) ((rstd) == 0 || (rstd) * 0 != 0)
/* Element i of the `count` numbers of a row or channel: runs of `size`, `gap` apart. */
#define NORM_AT_(i) (first + (i) + (i) / size * gap)
/* The scale is a power of two: what is multiplied with it stays exact. */
#define NORM_OF_TYPE_(NAME) TERN_CAT(NAME, IN_SET(DOUBLES, TERN_T))
#define NORM_LARGE         NORM_OF_TYPE_(NORM_LARGE_IN)
#define NORM_SMALL         NORM_OF_TYPE_(NORM_SMALL_IN)
#define NORM_DOWN          NORM_OF_TYPE_(NORM_DOWN_IN)
#define NORM_UP            NORM_OF_TYPE_(NORM_UP_IN)
#define NORM_LARGE_IN_0       1e14f
#define NORM_LARGE_IN_1       1e140
#define NORM_SMALL_IN_0       1e-15f
#define NORM_SMALL_IN_1       1e-140
#define NORM_DOWN_IN_0        0x1p-100f
#define NORM_DOWN_IN_1        0x1p-600
#define NORM_UP_IN_0          0x1p100f
#define NORM_UP_IN_1          0x1p600
/* Sums of squares, or of other powers, that overflowed, or are so small that they lost digits. */
#define POWERS_LOST(s)        ((s) * 0 != 0 || (s) < NORM_OF_TYPE_(POWERS_VANISHED_IN))
#define POWERS_VANISHED_IN_0  1e-30f
#define POWERS_VANISHED_IN_1  1e-290
#define NORM_AGAIN_FUNCTION(NAME, T, LDX)                                                          \
    FUNCTION void NAME(const GLOBAL T *xs, idx first, idx count, idx size, idx gap, i32 centred,   \
                       REAL eps, ACC *mean, ACC *rstd)                                             \
    {                                                                                              \
        ACC most = 0;                                                                              \
        ACC sum = 0;                                                                               \
        ACC off = 0;                                                                               \
        ACC squares = 0;                                                                           \
        for (idx i = 0; i < count; i++) {                                                          \
            const ACC x = LDX(xs, NORM_AT_(i));                                                    \
            const ACC v = x < 0 ? -x : x;                                                          \
            most = v > most || v != v ? v : most;                                                  \
        }                                                                                          \
        if (!(most > 0) || most - most != 0 || (most < NORM_LARGE && most > NORM_SMALL))           \
            return;                                                                                \
        const ACC scale = most < 1 ? NORM_UP : NORM_DOWN;                                          \
        for (idx i = 0; i < count && centred != 0; i++)                                            \
            sum += LDX(xs, NORM_AT_(i)) * scale;                                                   \
        sum /= (ACC)count;                                                                         \
        for (idx i = 0; i < count; i++) {                                                          \
            const ACC d = LDX(xs, NORM_AT_(i)) * scale - sum;                                      \
            squares += d * d;                                                                      \
            off += d;                                                                              \
        }                                                                                          \
        off = centred != 0 ? off / (ACC)count : 0;                                                 \
        *mean = (sum + off) / scale;                                                               \
        *rstd = scale / sqrt(squares / (ACC)count - off * off + eps * scale * scale);              \
    }
#endif
