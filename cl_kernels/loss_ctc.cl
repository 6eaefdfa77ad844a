/* loss_ctc.cl -- connectionist temporal classification (Graves et al. 2006). */
#if IS_FLOAT && !IS_HALF
/* log(e^a + e^b) */
INLINE REAL K(tern_log_add)(REAL a, REAL b)
{
    REAL high = a > b ? a : b, low = a > b ? b : a;
    return low == MINUS_INF ? high : high + FN(tern_log1p)(exp(low - high));
}

/* A class, blank instead of what is none. */
INLINE idx K(tern_ctc_class)(i64 target, i64 classes, i64 blank)
{
    return (idx)(target >= 0 && target < classes ? target : blank);
}

/* The sequence of a target of length L is blank, first class, blank, ..., last class, blank: 2 L +
 * 1 states. sums[b][t][s] is the log of the summed probability of all ways to be in state s at time
 * t: from the start (back 0), or to the end. x[t][b] are log probabilities. In steps of time, a
 * group for each of the batch; a length that does not fit is the fault `code` and makes the loss
 * 0. */
KERNEL15(K(ctc_sums), (OUT, STO, sums), (OUT, STO, losses), (IN, STO, xs), (IN, i64, targets),
         (IN, i64, starts), (IN, i64, x_lengths), (IN, i64, y_lengths), (OUT, i64, fault),
         (ARG, i64, steps), (ARG, i64, batch), (ARG, i64, classes), (ARG, i64, states),
         (ARG, i64, blank), (ARG, i32, back), (ARG, i32, code))
{
    BASE(sums);
    BASE(losses);
    BASE(xs);
    BASE(targets);
    BASE(starts);
    BASE(x_lengths);
    BASE(y_lengths);
    BASE(fault);
    GROUPS(b, batch)
    {
        idx length = (idx)x_lengths[b], targets_in = (idx)y_lengths[b], first = (idx)starts[b];
        idx fits = x_lengths[b] >= 0 && x_lengths[b] <= steps && y_lengths[b] >= 0 &&
                   y_lengths[b] <= (states - 1) / 2;
        idx used = fits ? 2 * targets_in + 1 : 0;
        length = fits ? length : 0;
        if (LID == 0 && !fits)
            FAULT(fault, code, x_lengths[b], y_lengths[b]);
        for (idx step = 0; step < (idx)steps; step++) {
            idx t = back != 0 ? length - 1 - step : step;
            idx row = (b * (idx)steps + t) * (idx)states, x = (t * (idx)batch + b) * (idx)classes;
            idx before = back != 0 ? row + (idx)states : row - (idx)states;
            idx now = step < length ? used : 0;
            LANES(s, now)
            {
                /* q: the state counted from where the walk starts; p steps to the one before it */
                idx q = back != 0 ? used - 1 - s : s, p = back != 0 ? 1 : -1;
                idx label = (idx)blank, other = (idx)blank;
                REAL sum = MINUS_INF;
                if (s % 2 == 1)
                    label = K(tern_ctc_class)(targets[first + s / 2], classes, blank);
                if (step == 0) {
                    sum = q < 2 ? 0 : sum;
                } else {
                    sum = sums[before + s];
                    if (q > 0)
                        sum = K(tern_log_add)(sum, sums[before + s + p]);
                    if (q > 1 && s % 2 == 1)
                        other = K(tern_ctc_class)(targets[first + s / 2 + p], classes, blank);
                    if (q > 1 && s % 2 == 1 && other != label)
                        sum = K(tern_log_add)(sum, sums[before + s + 2 * p]);
                }
                sums[row + s] = sum + xs[x + label];
            }
            BARRIER();
        }
        if (LID == 0 && back == 0) {
            idx row = (b * (idx)steps + length - 1) * (idx)states;
            REAL sum = targets_in == 0 ? 0 : MINUS_INF; /* of no time at all */
            if (length > 0) {
                sum = sums[row + used - 1];
                if (used > 1)
                    sum = K(tern_log_add)(sum, sums[row + used - 2]);
            }
            losses[b] = fits ? -sum : 0;
        }
    }
}

/* dx[t][b][c] = dy[b] (e^x - e^(z + loss - x)), e^z being the sum of alpha beta over the states of
 * class c and sums their logarithms added; 0 beyond the length, and where the loss is infinite and
 * zero_infinity. An item for each t and b; dxs holds z first. */
KERNEL15(K(ctc_gradient), (OUT, STO, dxs), (IN, STO, dys), (IN, STO, xs), (IN, STO, sums),
         (IN, STO, losses), (IN, i64, targets), (IN, i64, starts), (IN, i64, x_lengths),
         (IN, i64, y_lengths), (ARG, i64, steps), (ARG, i64, batch), (ARG, i64, classes),
         (ARG, i64, states), (ARG, i64, blank), (ARG, i32, zero_infinity))
{
    BASE(dxs);
    BASE(dys);
    BASE(xs);
    BASE(sums);
    BASE(losses);
    BASE(targets);
    BASE(starts);
    BASE(x_lengths);
    BASE(y_lengths);
    ITEMS(i, steps *batch)
    {
        idx t = i / (idx)batch, b = i - t * (idx)batch, x = i * (idx)classes;
        idx row = (b * (idx)steps + t) * (idx)states, first = (idx)starts[b];
        i64 of_y = y_lengths[b];
        idx used = of_y >= 0 && of_y <= (states - 1) / 2 ? 2 * (idx)of_y + 1 : 0;
        idx counts = t < x_lengths[b] && x_lengths[b] <= steps && used > 0;
        if (zero_infinity != 0 && -losses[b] == MINUS_INF)
            counts = 0;
        for (idx c = 0; c < (idx)classes; c++)
            dxs[x + c] = counts ? MINUS_INF : 0;
        if (counts) {
            REAL dy = dys[b], loss = losses[b];
            for (idx s = 0; s < used; s++) {
                idx label = (idx)blank;
                if (s % 2 == 1)
                    label = K(tern_ctc_class)(targets[first + s / 2], classes, blank);
                dxs[x + label] = K(tern_log_add)(dxs[x + label], sums[row + s]);
            }
            for (idx c = 0; c < (idx)classes; c++) {
                REAL p = xs[x + c];
                dxs[x + c] = dy * (exp(p) - exp(dxs[x + c] + loss - p));
            }
        }
    }
}
#endif
