/* packed.cl -- weights of 8 or 4 bits, (code - zero) scale by groups of neighbours, multiplied as
 * they lie. Of 4 bits byte j of a group of n holds element j in its low half and element j + n / 2
 * in the high one, so that both are read in order. */
#if IS_FLOAT && !IS_HALF && !IS_WIDE
/* The zero of group k; without zeros the middle of what codes can be. */
#define PACKED_ZERO(k) (zeroed != 0 ? zeros[k] + (ACC)flip : (ACC)(nibbles != 0 ? 8 : 128))
#if TERN_CHUNKS
/* Sums side by side, from group to group: a sum of its own for each group would cost more than its
 * products. */
enum { TERN_PACKED_LANES = 32 };
#define PACKED_SUMS ACC sums[TERN_PACKED_LANES] = {0}
#else
#define PACKED_SUMS
#endif

/* y[r][o] = the sum over i of x[r][i] w[o][i]; a group for each y, those of one row of w beside
 * each other. flip: 128 where codes have a sign, which then goes by the zero. */
KERNEL12(K(packed_linear), (OUT, STO, ys), (IN, STO, xs), (IN, u8, codes), (IN, STO, scales),
         (IN, STO, zeros), (ARG, i64, rows), (ARG, i64, outs), (ARG, i64, ins), (ARG, i64, groups),
         (ARG, i32, nibbles), (ARG, i32, flip), (ARG, i32, zeroed))
{
    BASE(ys);
    BASE(xs);
    BASE(codes);
    BASE(scales);
    BASE(zeros);
    LOCAL_ARRAY(ACC, scratch, TERN_WG);
    GROUPS(t, rows * outs)
    {
        idx o = t / (idx)rows, r = t % (idx)rows, n = (idx)(ins / groups), half_ = n / 2;
        idx x = r * (idx)ins, bytes = nibbles ? half_ : n;
        ACC sum = 0;
        PACKED_SUMS;
#if TERN_CHUNKS
        for (idx g = 0; g < (idx)groups; g++) {
            idx at = (o * (idx)groups + g) * bytes, low = x + g * n, high = low + half_, done = 0;
            ACC scale = scales[o * (idx)groups + g], a = 0;
            ACC zero = PACKED_ZERO(o * (idx)groups + g);
            for (; nibbles && done + TERN_PACKED_LANES <= half_; done += TERN_PACKED_LANES)
                SIMD for (idx j = 0; j < TERN_PACKED_LANES; j++)
                {
                    i32 code = codes[at + done + j];
                    ACC b = xs[low + done + j] * ((ACC)(code & 15) - zero);
                    b += xs[high + done + j] * ((ACC)(code >> 4) - zero);
                    sums[j] += b * scale;
                }
            if (nibbles) {
                for (idx j = done; j < half_; j++) {
                    i32 code = codes[at + j];
                    a += xs[low + j] * ((ACC)(code & 15) - zero);
                    a += xs[high + j] * ((ACC)(code >> 4) - zero);
                }
            } else {
                SIMD_SUM(a) LANES(j, n)
                {
                    a += xs[low + j] * ((ACC)((i32)codes[at + j] ^ flip) - zero);
                }
            }
            sum += scale * a;
        }
        SIMD_SUM(sum) for (idx j = 0; j < TERN_PACKED_LANES; j++) sum += sums[j];
#else
        LANES(k, bytes * (idx)groups) /* neighbours read neighbours, whatever a group's size is */
        {
            idx g = k / bytes, low = x + g * n + k % bytes;
            i32 code = codes[o * bytes * (idx)groups + k];
            ACC zero = PACKED_ZERO(o * (idx)groups + g);
            ACC a = xs[low] * ((ACC)(nibbles != 0 ? code & 15 : code ^ flip) - zero);
            if (nibbles != 0)
                a += xs[low + half_] * ((ACC)(code >> 4) - zero);
            sum += scales[o * (idx)groups + g] * a;
        }
#endif
        sum = GROUP_SUM(sum, scratch);
        if (LID == 0)
            ys[r * (idx)outs + o] = sum;
    }
}

/* w[o][i] itself. */
KERNEL10(K(unpack), (OUT, STO, ws), (IN, u8, codes), (IN, STO, scales), (IN, STO, zeros),
        (ARG, i64, outs), (ARG, i64, ins), (ARG, i64, groups), (ARG, i32, nibbles),
        (ARG, i32, flip),
        (ARG, i32, zeroed))
{
    BASE(ws);
    BASE(codes);
    BASE(scales);
    BASE(zeros);
    GROUPS(t, outs * groups)
    {
        idx n = (idx)(ins / groups), half_ = n / 2, bytes = nibbles ? half_ : n, to = t * n;
        ACC scale = scales[t], zero = PACKED_ZERO(t);
        if (nibbles) {
            SIMD LANES(j, half_)
            {
                i32 code = codes[t * bytes + j];
                ws[to + j] = ((ACC)(code & 15) - zero) * scale;
                ws[to + half_ + j] = ((ACC)(code >> 4) - zero) * scale;
            }
        } else {
            SIMD LANES(j, n)
            {
                ws[to + j] = ((ACC)((i32)codes[t * bytes + j] ^ flip) - zero) * scale;
            }
        }
    }
}
#endif
