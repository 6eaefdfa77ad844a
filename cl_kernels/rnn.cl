/* rnn.cl -- one step of a recurrent layer after its matrix products, and the step back.
 *
 * Rows of all steps lie one after the other. A step has the rows at, at + 1, ...; row r of it comes
 * after row before + r of the step before it for r < carried, else after the initial state; from
 * row `last` on its state is the final one. n is the width of the hidden state. */
#undef TERN_BLOCKS
#define TERN_BLOCKS 4
#if IS_FLOAT
/* Exact to the last bit but a few, and half the work of sigmoid(x). */
#define SQUASH(x) (1 / (1 + exp(-(x))))

/* kept: i f g o c of each row, where i f g o come in as sums.
 * c' = sigmoid(f) c + sigmoid(i) tanh(g), h' = sigmoid(o) tanh(c'). */
KERNEL11(K(lstm_step), (OUT, STO, hs), (OUT, STO, kept), (OUT, STO, h_last), (OUT, STO, c_last),
         (IN, STO, c_first), (ARG, i64, at), (ARG, i64, before), (ARG, i64, rows),
         (ARG, i64, carried),
         (ARG, i64, last), (ARG, i64, n))
{
    BASE(hs);
    BASE(kept);
    BASE(h_last);
    BASE(c_last);
    BASE(c_first);
    FLAT(r, rows, n)
    {
        idx w = (idx)n, to = ((idx)at + r) * w, k = 5 * to, from = ((idx)before + r) * w;
        GLOBAL const STO *cs = r < (idx)carried ? kept + 5 * from + 4 * w : c_first + r * w;
        SIMD INNER(r, j)
        {
            REAL i = SQUASH(LD(kept, k + j)), f = SQUASH(LD(kept, k + w + j));
            REAL g = tanh(LD(kept, k + 2 * w + j)), o = SQUASH(LD(kept, k + 3 * w + j));
            REAL c = f * LD(cs, j) + i * g;
            ST(kept, k + j, i);
            ST(kept, k + w + j, f);
            ST(kept, k + 2 * w + j, g);
            ST(kept, k + 3 * w + j, o);
            ST(kept, k + 4 * w + j, c);
            ST(hs, to + j, o * tanh(c));
        }
        if (r >= (idx)last) {
            SIMD INNER(r, j)
            {
                ST(h_last, r * w + j, LD(hs, to + j));
                ST(c_last, r * w + j, LD(kept, k + 4 * w + j));
            }
        }
    }
}

/* From dy of the step's result, and dh and dc that come back from the steps after it: gradients of
 * the four sums, dc for the step before, and a copy of the hidden state before the step. */
KERNEL14(K(lstm_step_back), (OUT, STO, das), (OUT, STO, earlier), (OUT, STO, dhs), (OUT, STO, dcs),
         (IN, STO, dys), (IN, STO, kept), (IN, STO, hs), (IN, STO, h_first), (IN, STO, c_first),
         (ARG, i64, at), (ARG, i64, before), (ARG, i64, rows), (ARG, i64, carried), (ARG, i64, n))
{
    BASE(das);
    BASE(earlier);
    BASE(dhs);
    BASE(dcs);
    BASE(dys);
    BASE(kept);
    BASE(hs);
    BASE(h_first);
    BASE(c_first);
    FLAT(r, rows, n)
    {
        idx w = (idx)n, to = ((idx)at + r) * w, from = ((idx)before + r) * w, k = 5 * to;
        GLOBAL const STO *before_c = r < (idx)carried ? kept + 5 * from + 4 * w : c_first + r * w;
        GLOBAL const STO *before_h = r < (idx)carried ? hs + from : h_first + r * w;
        SIMD INNER(r, j)
        {
            REAL i = LD(kept, k + j), f = LD(kept, k + w + j);
            REAL g = LD(kept, k + 2 * w + j), o = LD(kept, k + 3 * w + j);
            REAL c = LD(before_c, j), h = LD(before_h, j);
            REAL y = tanh(LD(kept, k + 4 * w + j));
            REAL dh = LD(dhs, r * w + j) + LD(dys, to + j);
            REAL dc = LD(dcs, r * w + j) + dh * o * (1 - y * y);
            ST(das, 4 * to + j, dc * g * i * (1 - i));
            ST(das, 4 * to + w + j, dc * c * f * (1 - f));
            ST(das, 4 * to + 2 * w + j, dc * i * (1 - g * g));
            ST(das, 4 * to + 3 * w + j, dh * y * o * (1 - o));
            ST(dcs, r * w + j, dc * f);
            ST(earlier, to + j, h);
        }
    }
}

/* kept: r z n m of each row, where r z n come in as sums over the input and us holds those over the
 * hidden state, with their biases. r = sigmoid(r + u), z = sigmoid(z + u), m = u,
 * n = tanh(n + r m), h' = (1 - z) n + z h. */
KERNEL11(K(gru_step), (OUT, STO, hs), (OUT, STO, kept), (OUT, STO, h_last), (IN, STO, us),
         (IN, STO, h_first), (ARG, i64, at), (ARG, i64, before), (ARG, i64, rows),
         (ARG, i64, carried), (ARG, i64, last), (ARG, i64, n))
{
    BASE(hs);
    BASE(kept);
    BASE(h_last);
    BASE(us);
    BASE(h_first);
    FLAT(row, rows, n)
    {
        idx w = (idx)n, to = ((idx)at + row) * w, k = 4 * to, u = 3 * row * w;
        idx from = ((idx)before + row) * w;
        GLOBAL const STO *before_h = row < (idx)carried ? hs + from : h_first + row * w;
        SIMD INNER(row, j)
        {
            REAL h = LD(before_h, j);
            REAL m = LD(us, u + 2 * w + j);
            REAL r = SQUASH(LD(kept, k + j) + LD(us, u + j));
            REAL z = SQUASH(LD(kept, k + w + j) + LD(us, u + w + j));
            REAL y = tanh(LD(kept, k + 2 * w + j) + r * m);
            h = (1 - z) * y + z * h;
            ST(kept, k + j, r);
            ST(kept, k + w + j, z);
            ST(kept, k + 2 * w + j, y);
            ST(kept, k + 3 * w + j, m);
            ST(hs, to + j, h);
        }
        if (row >= (idx)last) {
            SIMD INNER(row, j)
            {
                ST(h_last, row * w + j, LD(hs, to + j));
            }
        }
    }
}

/* das: of the sums over the input, dus: over the hidden state; dh becomes the part of the step
 * before's that goes through z. */
KERNEL13(K(gru_step_back), (OUT, STO, das), (OUT, STO, dus), (OUT, STO, earlier), (OUT, STO, dhs),
         (IN, STO, dys), (IN, STO, kept), (IN, STO, hs), (IN, STO, h_first), (ARG, i64, at),
         (ARG, i64, before), (ARG, i64, rows), (ARG, i64, carried), (ARG, i64, n))
{
    BASE(das);
    BASE(dus);
    BASE(earlier);
    BASE(dhs);
    BASE(dys);
    BASE(kept);
    BASE(hs);
    BASE(h_first);
    FLAT(row, rows, n)
    {
        idx w = (idx)n, to = ((idx)at + row) * w, from = ((idx)before + row) * w, k = 4 * to;
        GLOBAL const STO *before_h = row < (idx)carried ? hs + from : h_first + row * w;
        SIMD INNER(row, j)
        {
            REAL r = LD(kept, k + j), z = LD(kept, k + w + j);
            REAL y = LD(kept, k + 2 * w + j), m = LD(kept, k + 3 * w + j);
            REAL h = LD(before_h, j);
            REAL dh = LD(dhs, row * w + j) + LD(dys, to + j);
            REAL dn = dh * (1 - z) * (1 - y * y), dz = dh * (h - y) * z * (1 - z);
            REAL dr = dn * m * r * (1 - r);
            ST(das, 3 * to + j, dr);
            ST(das, 3 * to + w + j, dz);
            ST(das, 3 * to + 2 * w + j, dn);
            ST(dus, 3 * to + j, dr);
            ST(dus, 3 * to + w + j, dz);
            ST(dus, 3 * to + 2 * w + j, dn * r);
            ST(dhs, row * w + j, dh * z);
            ST(earlier, to + j, h);
        }
    }
}

/* hs: in as sums, out as tanh or (relu != 0) relu of them. */
KERNEL7(K(rnn_step), (OUT, STO, hs), (OUT, STO, h_last), (ARG, i64, at), (ARG, i64, rows),
        (ARG, i64, last), (ARG, i64, n), (ARG, i32, relu))
{
    BASE(hs);
    BASE(h_last);
    FLAT(r, rows, n)
    {
        idx w = (idx)n, to = ((idx)at + r) * w;
        SIMD INNER(r, j)
        {
            REAL h = LD(hs, to + j);
            ST(hs, to + j, relu != 0 ? (h <= 0 ? 0 : h) : tanh(h));
        }
        if (r >= (idx)last) {
            SIMD INNER(r, j)
            {
                ST(h_last, r * w + j, LD(hs, to + j));
            }
        }
    }
}

KERNEL12(K(rnn_step_back), (OUT, STO, das), (OUT, STO, earlier), (IN, STO, dhs), (IN, STO, dys),
         (IN, STO, hs), (IN, STO, h_first), (ARG, i64, at), (ARG, i64, before), (ARG, i64, rows),
         (ARG, i64, carried), (ARG, i64, n), (ARG, i32, relu))
{
    BASE(das);
    BASE(earlier);
    BASE(dhs);
    BASE(dys);
    BASE(hs);
    BASE(h_first);
    FLAT(r, rows, n)
    {
        idx w = (idx)n, to = ((idx)at + r) * w, from = ((idx)before + r) * w;
        GLOBAL const STO *before_h = r < (idx)carried ? hs + from : h_first + r * w;
        SIMD INNER(r, j)
        {
            REAL y = LD(hs, to + j), dh = LD(dhs, r * w + j) + LD(dys, to + j);
            REAL slope = relu != 0 ? (y > 0 ? 1 : 0) : 1 - y * y;
            ST(das, to + j, dh * slope);
            ST(earlier, to + j, LD(before_h, j));
        }
    }
}
#undef SQUASH
#endif
