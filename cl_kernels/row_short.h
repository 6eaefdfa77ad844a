/* row_short.h -- rows of up to 256 elements, in fours, where lanes hand values over (CUDA): a lane
 * has up to eight in registers, a team's size is a constant of the text, and there is no loop over
 * a row. The two loads of a lane lie side by side for halves, 16 bytes of them, and a team apart
 * for f32.
 *
 *   SHORT_FITS(n, p)     whether rows of n elements from p on are such, of each tensor p
 *   SHORT_ROWS(rows, n)  goes through the rows of a group, in a function of `team`, a constant: row
 *                        `row`, and the eight elements e of a lane, whose fours 0 and 1 are at
 *                        SHORT_FOUR(0) and (1); SHORT_HAS(i): that four is there
 *   SHORT_CALL(n, CALL)  CALL(team) for the team that rows of n elements take */
#ifndef TERN_ROW_SHORT_H
#define TERN_ROW_SHORT_H
#define SHORT_FITS(n, p) ((n) <= 256 && (n) % 4 == 0 && ALIGNED4(p))
#define SHORT_FOUR(i)    (IS_HALF ? 2 * lane + (i) : lane + (i) * team)
#define SHORT_HAS(i)     (row < row_n && SHORT_FOUR(i) < quads)
#define EACH8(e)         UNROLL for (i32 e = 0; e < 8; e++)
#define SHORT_ROWS(rows, n)                                                                        \
    const i32 lane = LID & (team - 1), quads = (i32)(n) / 4;                                       \
    for (idx row_n = (idx)(rows), first_ = GROUP_ID * (TERN_WG / team), row;                       \
         first_ < row_n && (row = first_ + LID / team, 1);                                         \
         first_ += GROUP_COUNT * (TERN_WG / team))
#define SHORT_LOAD(to, from, other)                                                                \
    EACH8(e_) to[e_] = (other);                                                                    \
    if (SHORT_HAS(0))                                                                              \
        LOAD4(to, from, SHORT_FOUR(0));                                                            \
    if (SHORT_HAS(1))                                                                              \
        LOAD4((to + 4), from, SHORT_FOUR(1));
#define SHORT_STORE(to, from)                                                                      \
    if (SHORT_HAS(0))                                                                              \
        STORE4(to, SHORT_FOUR(0), from);                                                           \
    if (SHORT_HAS(1))                                                                              \
        STORE4(to, SHORT_FOUR(1), (from + 4));
#define SHORT_CALL(n, CALL)                                                                        \
    do {                                                                                           \
        if ((n) > 128)                                                                             \
            CALL(32);                                                                              \
        else if ((n) > 64)                                                                         \
            CALL(16);                                                                              \
        else if ((n) > 32)                                                                         \
            CALL(8);                                                                               \
        else                                                                                       \
            CALL(4);                                                                               \
    } while (0)
#endif
