/* packed.cl -- weights of 8 or 4 bits, (code - zero) scale by groups of neighbours, multiplied as they lie. Of 4 bits byte j of
 * a group of n holds element j in its low half and element j + n / 2 in the high one, so that both are read in order. */
#if IS_FLOAT && !IS_HALF && !IS_WIDE
/* y[r][o] = the sum over i of x[r][i] w[o][i]; a group for each y, those of one row of w beside each other. flip: 128 where
 * codes have a sign, which then goes by the zero. */
KERNEL11(K(packed_linear), (OUT, STO, ys), (IN, STO, xs), (IN, u8, codes), (IN, STO, scales),
         (IN, STO, zeros), (ARG, i64, rows), (ARG, i64, outs), (ARG, i64, ins), (ARG, i64, groups),
         (ARG, i32, nibbles), (ARG, i32, flip))
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
        for (idx g = 0; g < (idx)groups; g++) {
            idx at = (o * (idx)groups + g) * bytes, from = x + g * n;
            ACC scale = scales[o * (idx)groups + g], zero = zeros[o * (idx)groups + g], a = 0, b = 0;
            if (nibbles) {
                SIMD_SUM2(a, b) LANES(j, half_)
                {
                    i32 code = codes[at + j];
                    a += xs[from + j] * ((ACC)(code & 15) - zero);
                    b += xs[from + half_ + j] * ((ACC)(code >> 4) - zero);
                }
            } else {
                SIMD_SUM(a) LANES(j, n)
                {
                    a += xs[from + j] * ((ACC)((i32)codes[at + j] ^ flip) - zero);
                }
            }
            sum += scale * (a + b);
        }
        sum = GROUP_SUM(sum, scratch);
        if (LID == 0)
            ys[r * (idx)outs + o] = sum;
    }
}

/* w[o][i] itself. */
KERNEL9(K(unpack), (OUT, STO, ws), (IN, u8, codes), (IN, STO, scales), (IN, STO, zeros),
        (ARG, i64, outs), (ARG, i64, ins), (ARG, i64, groups), (ARG, i32, nibbles), (ARG, i32, flip))
{
    BASE(ws);
    BASE(codes);
    BASE(scales);
    BASE(zeros);
    GROUPS(t, outs * groups)
    {
        idx n = (idx)(ins / groups), half_ = n / 2, bytes = nibbles ? half_ : n, to = t * n;
        ACC scale = scales[t], zero = zeros[t];
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
