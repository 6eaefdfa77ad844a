/* collectives.h -- one result from the values that the lanes of a work-group, or of a team, hold.
 *
 * scratch is a LOCAL_ARRAY of TERN_WG elements, free again afterwards; every lane gets the same
 * result. The order does not depend on what the lanes do. Maxima of floats lose NaN: see tern_order
 * in reduce.cl. GROUP_SUM and so on take the type that sums of the element type are kept in.
 *
 * A team is a part of a work-group that has a short row to itself: TEAMS(r, rows, n) gives each row
 * of n elements to one, TEAM_LANES(j, n) is its lanes' loop over them, TEAM_SUM and so on its
 * collectives, and TEAM_LEADER one lane of it. All teams of a group go round together: one that is
 * left without a row has r of the last one and runs no loop, so that what is not in a TEAM_LANES or
 * under TEAM_LEADER may read but not write.
 *
 * With TERN_ROW_LANES, in programs for rows of up to TERN_SHORT_ROW elements (device/launch.c), a
 * team's size is that constant. */
#include "shapes.h"
#if TERN_ROW_LANES && TERN_WG >= 32
#define TERN_SHORT_ROWS 1
#endif
#if TERN_CHUNKS
#define TEAMS(r, rows, n)  GROUPS(r, rows)
#define TEAM_LANES(j, n)   LANES(j, n)
#define TEAM_LEADER        (LID == 0)
#define TERN_TEAM_         1
#else
#define TERN_TEAM_ ((i32)tern_team)
#if TERN_SHORT_ROWS
enum { tern_team = TERN_ROW_LANES };
#define TERN_TEAM_OF_(n) /* a constant */
#else
#define TERN_TEAM_OF_(n) tern_team = TERN_TEAM(n, TERN_WG),
#endif
#define TEAMS(r, rows, n)                                                                          \
    for (idx TERN_TEAM_OF_(n) tern_lane = (idx)((u32)LID % (u32)tern_team),                        \
             tern_own = (idx)((u32)LID / (u32)tern_team), tern_teams = TERN_WG / TERN_TEAM_,       \
             tern_n = (idx)(rows), tern_k = GROUP_ID * tern_teams, r;                              \
         tern_k < tern_n && (r = tern_k + tern_own, r = r < tern_n ? r : tern_n - 1, 1);           \
         tern_k += GROUP_COUNT * tern_teams)
#define TERN_HAS_ROW_ (tern_k + tern_own < tern_n)
#define TEAM_LANES(j, n)                                                                           \
    for (idx j = tern_lane, j##_n = TERN_HAS_ROW_ ? (idx)(n) : 0; j < j##_n; j += tern_team)
#define TEAM_LEADER (tern_lane == 0 && TERN_HAS_ROW_)
#endif

#if TERN_SHUFFLES /* warps of 32 hand values over without memory */
#define TERN_COLLECTIVE_(NAME, T, RESULT)                                                          \
    INLINE T NAME##_##T(T v, LOCAL T *scratch, i32 team)                                           \
    {                                                                                              \
        for (i32 half_ = (team < 32 ? team : 32) / 2; half_ > 0; half_ >>= 1) {                    \
            T a = v, b = SHUFFLE_DOWN(v, half_);                                                   \
            v = (RESULT);                                                                          \
        }                                                                                          \
        if (team <= 32)                                                                            \
            return SHUFFLE_FIRST(v, team);                                                         \
        if (LID % 32 == 0)                                                                         \
            scratch[LID / 32] = v;                                                                 \
        BARRIER();                                                                                 \
        v = scratch[0];                                                                            \
        for (i32 warp_ = 1; warp_ < TERN_WG / 32; warp_++) {                                       \
            T a = v, b = scratch[warp_];                                                           \
            v = (RESULT);                                                                          \
        }                                                                                          \
        BARRIER();                                                                                 \
        return v;                                                                                  \
    }
#else
#define TERN_COLLECTIVE_(NAME, T, RESULT)                                                          \
    INLINE T NAME##_##T(T v, LOCAL T *scratch, i32 team)                                           \
    {                                                                                              \
        i32 lane = LID % team, first = LID - lane;                                                 \
        scratch[LID] = v;                                                                          \
        BARRIER();                                                                                 \
        for (i32 half_ = team / 2; half_ > 0; half_ >>= 1) {                                       \
            if (lane < half_) {                                                                    \
                T a = scratch[LID], b = scratch[LID + half_];                                      \
                scratch[LID] = (RESULT);                                                           \
            }                                                                                      \
            BARRIER();                                                                             \
        }                                                                                          \
        v = scratch[first];                                                                        \
        BARRIER();                                                                                 \
        return v;                                                                                  \
    }
#endif
#define TERN_COLLECTIVES_(T)                                                                       \
    TERN_COLLECTIVE_(team_sum, T, a + b)                                                           \
    TERN_COLLECTIVE_(team_max, T, a > b ? a : b)                                                   \
    TERN_COLLECTIVE_(team_min, T, a < b ? a : b)
TERN_COLLECTIVES_(f32)
#if TERN_F64
TERN_COLLECTIVES_(f64)
#endif
TERN_COLLECTIVES_(i32)
TERN_COLLECTIVES_(i64)
/* Two sums of a group at once. scratch is not free before the next barrier, but for turns 0 and 1
 * that alternate. */
#if TERN_SHUFFLES
#define TERN_SUM2_(T)                                                                              \
    INLINE void group_sum2_##T(T *s, T *t, LOCAL T *scratch)                                       \
    {                                                                                              \
        T a = *s, b = *t;                                                                          \
        for (i32 half_ = 16; half_ > 0; half_ >>= 1) {                                             \
            a += SHUFFLE_DOWN(a, half_);                                                           \
            b += SHUFFLE_DOWN(b, half_);                                                           \
        }                                                                                          \
        if (LID % 32 == 0) {                                                                       \
            scratch[LID / 16] = a;                                                                 \
            scratch[LID / 16 + 1] = b;                                                             \
        }                                                                                          \
        BARRIER();                                                                                 \
        a = scratch[0];                                                                            \
        b = scratch[1];                                                                            \
        for (i32 warp_ = 2; warp_ < TERN_WG / 16; warp_ += 2) {                                    \
            a += scratch[warp_];                                                                   \
            b += scratch[warp_ + 1];                                                               \
        }                                                                                          \
        *s = a;                                                                                    \
        *t = b;                                                                                    \
    }
TERN_SUM2_(f32)
TERN_SUM2_(f64)
#define GROUP_SUM2(s, t, scratch, turn) TERN_CAT(group_sum2, ACC)(&s, &t,                          \
    scratch + (turn) * TERN_WG / 2);
#else
#define GROUP_SUM2(s, t, scratch, turn)                                                            \
    s = GROUP_SUM(s, scratch);                                                                     \
    t = GROUP_SUM(t, scratch);
#endif
#define GROUP_OF(collective, T, v, scratch) TERN_CAT(collective, T)(v, scratch, TERN_WG)
#if TERN_SHORT_ROWS && !TERN_SHUFFLES
/* Each lane goes through the values of up to eight, and then through those of each eight: fewer
 * barriers than by halves. */
#define TERN_EIGHTS_ (TERN_ROW_LANES < 8 ? TERN_ROW_LANES : 8)
#define TERN_SHORT_STEP_(T, RESULT, from, n, step)                                                 \
    BARRIER();                                                                                     \
    v = scratch[from];                                                                             \
    UNROLL for (i32 k_ = 1; k_ < (n); k_++)                                                        \
    {                                                                                              \
        const T a = v, b = scratch[(from) + k_ * (step)];                                          \
        v = (RESULT);                                                                              \
    }                                                                                              \
    BARRIER();
#if TERN_ROW_LANES > 8
#define TERN_SHORT_EIGHTS_(T, RESULT)                                                              \
    scratch[LID] = v;                                                                              \
    TERN_SHORT_STEP_(T, RESULT, LID & -tern_team, TERN_ROW_LANES / 8, 8)
#else
#define TERN_SHORT_EIGHTS_(T, RESULT)
#endif
#define TERN_SHORT_COLLECTIVE_(NAME, T, RESULT)                                                    \
    INLINE T short_##NAME##_##T(T v, LOCAL T *scratch)                                             \
    {                                                                                              \
        scratch[LID] = v;                                                                          \
        TERN_SHORT_STEP_(T, RESULT, LID & -TERN_EIGHTS_, TERN_EIGHTS_, 1)                          \
        TERN_SHORT_EIGHTS_(T, RESULT)                                                              \
        return v;                                                                                  \
    }
TERN_SHORT_COLLECTIVE_(team_sum, f32, a + b)
TERN_SHORT_COLLECTIVE_(team_max, f32, a > b ? a : b)
#if TERN_F64
TERN_SHORT_COLLECTIVE_(team_sum, f64, a + b)
TERN_SHORT_COLLECTIVE_(team_max, f64, a > b ? a : b)
#endif
TERN_SHORT_COLLECTIVE_(team_sum, i64, a + b)
#define TEAM_OF(collective, T, v, scratch)   TEAM_OF_(collective, T, v, scratch)
#define TEAM_OF_(collective, T, v, scratch)  short_##collective##_##T(v, scratch)
#else
#define TEAM_OF(collective, T, v, scratch)  TERN_CAT(collective, T)(v, scratch, TERN_TEAM_)
#endif
#define GROUP_SUM(v, scratch) GROUP_OF(team_sum, ACC, v, scratch)
#define GROUP_MAX(v, scratch) GROUP_OF(team_max, ACC, v, scratch)
#define GROUP_MIN(v, scratch) GROUP_OF(team_min, ACC, v, scratch)
#define TEAM_SUM(v, scratch)  TEAM_OF(team_sum, ACC, v, scratch)
#define TEAM_MAX(v, scratch)  TEAM_OF(team_max, ACC, v, scratch)

/* Runs of n elements: sums of sums lose less by rounding than one long sum. */
#define RUNS(b, run, n)                                                                            \
    for (idx b = 0, run; b < (idx)(n) && (run = (idx)(n)-b < 1024 ? (idx)(n)-b : 1024, 1);         \
        b += 1024)
