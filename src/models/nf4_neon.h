/* nf4_neon.h -- the tiles of nf4.c by NEON. */

/* The map's values by bytes: at[i] holds byte i of all 16 values, as a table for one TBL
 * instruction. */
typedef struct planes {
    uint8x16_t at[4];
} planes;

WIDE_INLINE planes planes_of(const float *map)
{
    const uint8x16x4_t bytes = vld4q_u8((const uint8_t *)map);
    return (planes){{bytes.val[0], bytes.val[1], bytes.val[2], bytes.val[3]}};
}

/* Returns the values of 16 codes. */
WIDE_INLINE void numbers_of(const planes *map, uint8x16_t code, float32x4_t *to)
{
    uint8x16_t b[4];
    WIDE_EACH(i, 4)
    b[i] = vqtbl1q_u8(map->at[i], code);
    const uint16x8_t low[2] = {vreinterpretq_u16_u8(vzip1q_u8(b[0], b[1])),
                               vreinterpretq_u16_u8(vzip2q_u8(b[0], b[1]))};
    const uint16x8_t high[2] = {vreinterpretq_u16_u8(vzip1q_u8(b[2], b[3])),
                                vreinterpretq_u16_u8(vzip2q_u8(b[2], b[3]))};
    WIDE_EACH(i, 2)
    {
        to[2 * i] = vreinterpretq_f32_u16(vzip1q_u16(low[i], high[i]));
        to[2 * i + 1] = vreinterpretq_f32_u16(vzip2q_u16(low[i], high[i]));
    }
}

/* Computes outputs o .. o + k of rows from .. from + n of x; n and k are constants at every
 * call. */
WIDE_INLINE void tile_of(const product *p, int64_t o, int k, int64_t from, int n)
{
    const planes map = planes_of(p->map);
    const uint8_t *codes = p->codes + o * p->half;
    const float *x = p->x + from * 2 * p->half, *scale = p->absmax + o * p->half / HALF;
    float32x4_t sums[WIDE_SUMS][WIDE_SUMS], block[WIDE_SUMS][WIDE_SUMS], even[4], odd[4];
    WIDE_EACH(c, k)
    WIDE_EACH(r, n)
    sums[c][r] = vdupq_n_f32(0);
    for (int64_t j = 0; j < p->half; j += HALF) {
        WIDE_EACH(c, k)
        WIDE_EACH(r, n)
        block[c][r] = vdupq_n_f32(0);
        for (int64_t i = j; i < j + HALF; i += 16)
            WIDE_EACH(c, k)
            {
                const uint8x16_t code = vld1q_u8(codes + c * p->half + i);
                numbers_of(&map, vshrq_n_u8(code, 4), even);
                numbers_of(&map, vandq_u8(code, vdupq_n_u8(15)), odd);
                WIDE_EACH(r, n)
                {
                    const float *at = x + r * 2 * p->half + i;
                    WIDE_EACH(q, 4)
                    {
                        block[c][r] = vfmaq_f32(block[c][r], even[q], vld1q_f32(at + 4 * q));
                        block[c][r] =
                            vfmaq_f32(block[c][r], odd[q], vld1q_f32(at + p->half + 4 * q));
                    }
                }
            }
        WIDE_EACH(c, k)
        WIDE_EACH(r, n)
        sums[c][r] = vfmaq_n_f32(sums[c][r], block[c][r], scale[(c * p->half + j) / HALF]);
    }
    WIDE_EACH(c, k)
    WIDE_EACH(r, n)
    p->y[(from + r) * p->outs + o + c] = wide_sum(sums[c][r]);
}
