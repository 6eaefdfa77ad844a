/* math64_special.cl -- f64 functions beyond math64.cl's: erf, erfc, pow, inverse, log-gamma,
 * remainders. */
#if TERN_F64

/* ---- error function ---------------------------------------------------------------------- */

/* erfc a for 0.44 <= a: e^(-a^2) N(t) / (1 + 2a), t = (a - 3) / (a + 3) */
INLINE64 f64 tern_erfc_large_f64(f64 a)
{
    f64 t, p, d, square, square_low, low, q;
    tern_pair_f64 n, e, head;
    tern_exp_parts_f64 parts;
    a = a > 28.0 ? 28.0 : a;
    head = tern_pair_f64_of(tern_head_f64(a), a - tern_head_f64(a));
    square = a * a;
    square_low = ((head.hi * head.hi - square) + 2.0 * head.hi * head.lo) + head.lo * head.lo;
    parts = tern_exp_split_f64(-square, -square_low);
    e = tern_pair_sum_f64(parts.hi, parts.lo);
    t = (a - 3.0) / (a + 3.0);
    p = 1.9244063527572615e-9;
    p = p * t - 6.0946320585277551e-9;
    p = p * t - 1.6338725529395675e-8;
    p = p * t + 3.9397489741497796e-8;
    p = p * t + 1.0610776258304409e-7;
    p = p * t - 1.4084762096280974e-7;
    p = p * t - 6.2007792416879913e-7;
    p = p * t + 3.5736106984127342e-7;
    p = p * t + 3.4741811638072305e-6;
    p = p * t - 7.321326120345604e-7;
    p = p * t - 2.0101174527213634e-5;
    p = p * t + 4.9497663645373526e-6;
    p = p * t + 1.2509949319499503e-4;
    p = p * t - 1.0515986962159212e-4;
    p = p * t - 7.7983229397261865e-4;
    p = p * t + 1.8886903689796799e-3;
    p = p * t + 2.5293918182391225e-3;
    p = p * t - 2.3770514919379072e-2;
    p = p * t + 6.8308027343852717e-2;
    p = p * t - 1.1927366341528287e-1;
    p = p * t + 1.2964515870276411e-1;
    p = p * t - 4.7562294353451079e-2;
    p = p * t - 1.356211061245812e-1;
    n = tern_pair_sum_f64(1.2530080582697296, p * t + 4.5051272367829491e-17);
    d = 1.0 + 2.0 * a;
    q = n.hi / d;
    low = ((tern_pair_residual_f64(n.hi, q, d) + n.lo) - q * (2.0 * a - (d - 1.0))) / d;
    return tern_scale_f64(e.hi * q + (e.hi * low + e.lo * q), parts.k);
}

INLINE64 f64 tern_erf_f64(f64 x)
{
    f64 a = tern_fabs_f64(x), z = a * a, p;
    p = 6.4862126456525086e-11;
    p = p * z - 1.164817367129614e-9;
    p = p * z + 1.4722576456889126e-8;
    p = p * z - 1.6358554844956162e-7;
    p = p * z + 1.6461687381310228e-6;
    p = p * z - 1.492563311687609e-5;
    p = p * z + 1.2055332503912726e-4;
    p = p * z - 8.548327014555869e-4;
    p = p * z + 5.2239776253357045e-3;
    p = p * z - 2.6866170645123651e-2;
    p = p * z + 1.1283791670955097e-1;
    p = p * z - 3.7612638903183754e-1;
    p = p * z + 1.2837916709551259e-1;
    return x != x ? x : tern_copysign_f64(a < 0.9 ? a + a * p : 1.0 - tern_erfc_large_f64(a), x);
}

INLINE64 f64 tern_erfc_f64(f64 x)
{
    f64 y = tern_erfc_large_f64(tern_fabs_f64(x));
    y = x < 0.0 ? 2.0 - y : y;
    return x > -0.9 && x < 0.45 ? 1.0 - tern_erf_f64(x) : x != x ? x : y;
}

/* The integral of the normal distribution up to x. */
INLINE64 f64 tern_normal_cdf_f64(f64 x)
{
    return 0.5 * (1.0 + tern_erf_f64(0.7071067811865476 * x));
}

INLINE64 f64 tern_exp_below_f64(f64 x)
{
    return tern_exp_f64(x);
}

/* ---- powers ------------------------------------------------------------------------------ */

/* log x = pair of 2 atanh s plus k ln 2: here atanh s, s = (m - 1) / (m + 1), as a pair */
INLINE64 tern_pair_f64 tern_atanh_pair_f64(f64 f)
{
    f64 d = f + 2.0, d_low = f - (d - 2.0), q;
    tern_pair_f64 s, z, c, l;
    s.hi = f / d;
    s.lo = (tern_pair_residual_f64(f, s.hi, d) - s.hi * d_low) / d;
    z = tern_pair_product_f64(s, s);
    q = 5.9943499598942941e-2;
    q = q * z.hi + 5.8374283392274379e-2;
    q = q * z.hi + 6.6681577529350569e-2;
    q = q * z.hi + 7.6922784609003314e-2;
    q = q * z.hi + 9.0909094347742872e-2;
    q = q * z.hi + 1.1111111108771482e-1;
    q = q * z.hi + 1.4285714285722542e-1;
    q = q * z.hi + 1.999999999999999e-1;
    c = tern_pair_product_f64(z, tern_pair_f64_of(0.33333333333333331, 1.8503717077085941e-17));
    c = tern_pair_product_f64(s, c);
    l = tern_pair_sum_f64(s.hi, c.hi);
    return tern_pair_sum_f64(l.hi, l.lo + (s.hi * (z.hi * z.hi * q) + c.lo + s.lo));
}

/* k two + scale atanh s: the logarithm of x in the base that two and scale stand for */
INLINE64 tern_pair_f64 tern_log_pair_f64(f64 x, tern_pair_f64 two, tern_pair_f64 scale)
{
    tern_log_parts_f64 parts = tern_log_split_f64(x);
    tern_pair_f64 l = tern_pair_product_f64(tern_atanh_pair_f64(parts.f), scale), y;
    tern_pair_f64 k = tern_pair_product_f64(tern_pair_f64_of(parts.k, 0.0), two);
    y = tern_pair_sum_f64(k.hi, l.hi); /* |k two| > |l| or 0 */
    return tern_pair_sum_f64(y.hi, y.lo + (k.lo + l.lo));
}

INLINE64 f64 tern_pow_f64(f64 x, f64 y)
{
    f64 a = tern_fabs_f64(x), y_abs = tern_fabs_f64(y), r, edge;
    u32 whole = tern_round_f64(y) == y;
    u32 odd = whole && y_abs < 9007199254740992.0 && tern_round_f64(0.5 * y) != 0.5 * y;
    f64 power = y_abs > 1e30 ? tern_copysign_f64(1e30, y) : y;
    tern_pair_f64 l =
        tern_log_pair_f64(a, tern_pair_f64_of(1.0, 0.0),
                          tern_pair_f64_of(2.8853900817779268, 4.0710547481862066e-17));
    tern_pair_f64 e = tern_pair_product_f64(l, tern_pair_f64_of(power, 0.0));
    r = tern_exp2_pair_f64(e.hi, tern_fabs_f64(e.hi) < 1200.0 ? e.lo : 0.0);
    edge = (a == 0.0) == (y < 0.0) ? TERN_INF_F64 : 0.0;
    r = a == 0.0 || a == TERN_INF_F64 ? edge : r;
    r = odd ? tern_copysign_f64(r, x) : r;
    r = x < 0.0 && a < TERN_INF_F64 && !whole ? TERN_NAN_F64 : r;
    r = a == 1.0 && y_abs == TERN_INF_F64 ? 1.0 : r;
    r = x != x || y != y ? TERN_NAN_F64 : r;
    return x == 1.0 || y == 0.0 ? 1.0 : r;
}

/* ---- inverse trigonometric functions ----------------------------------------------------- */

INLINE64 f64 tern_asin_poly_f64(f64 z)
{
    f64 p;
    p = 3.2653502649845026e-2;
    p = p * z - 2.1037833185372279e-2;
    p = p * z + 2.1734108831686801e-2;
    p = p * z + 3.6957624256900587e-3;
    p = p * z + 1.0782985795255377e-2;
    p = p * z + 1.1398440540074968e-2;
    p = p * z + 1.3980876147342414e-2;
    p = p * z + 1.7351607558020832e-2;
    p = p * z + 2.2372215224658307e-2;
    p = p * z + 3.0381942699807703e-2;
    p = p * z + 4.4642857174767563e-2;
    p = p * z + 7.499999999970651e-2;
    p = p * z + 1.666666666666676e-1;
    return p;
}

/* acos a for a >= 1/2: 2 asin sqrt((1 - a) / 2) */
INLINE64 tern_pair_f64 tern_acos_pair_f64(f64 a)
{
    f64 z = 0.5 * (1.0 - a), s = tern_sqrt_f64(z), head = tern_head_f64(s);
    f64 low = z > 0.0 ? (z - head * head) / (s + head) : 0.0;
    return tern_pair_f64_of(2.0 * head, 2.0 * (low + s * z * tern_asin_poly_f64(z)));
}

INLINE64 f64 tern_asin_f64(f64 x)
{
    f64 a = tern_fabs_f64(x), z = x * x, small = a + a * (z * tern_asin_poly_f64(z));
    tern_pair_f64 c = tern_acos_pair_f64(a);
    f64 large = (1.5707963267948966 - c.hi) - (c.lo - 6.123233995736766e-17);
    return x != x || a > 1.0 ? TERN_NAN_F64 : tern_copysign_f64(a < 0.5 ? small : large, x);
}

INLINE64 f64 tern_acos_f64(f64 x)
{
    f64 a = tern_fabs_f64(x), z = x * x, p = x * (z * tern_asin_poly_f64(z));
    tern_pair_f64 c = tern_acos_pair_f64(a);
    f64 small = 1.5707963267948966 - (x + (p - 6.123233995736766e-17));
    f64 large =
        x < 0.0 ? 3.1415926535897931 - (c.hi + (c.lo - 1.2246467991473532e-16)) : c.hi + c.lo;
    return x != x || a > 1.0 ? TERN_NAN_F64 : a < 0.5 ? small : large;
}

/* atan of t in [0, 1] */
INLINE64 f64 tern_atan_poly_f64(f64 t)
{
    f64 z = t * t, p;
    p = -8.6544081570981672e-6;
    p = p * z + 1.0387383057493384e-4;
    p = p * z - 5.9290177271168062e-4;
    p = p * z + 2.1516109013620614e-3;
    p = p * z - 5.6124290160105535e-3;
    p = p * z + 1.1317705081719061e-2;
    p = p * z - 1.8614252032983933e-2;
    p = p * z + 2.6151706100521227e-2;
    p = p * z - 3.2785451331104963e-2;
    p = p * z + 3.8210073866580069e-2;
    p = p * z - 4.2863912297639729e-2;
    p = p * z + 4.7449261754103356e-2;
    p = p * z - 5.2594337889195562e-2;
    p = p * z + 5.8817161500354764e-2;
    p = p * z - 6.6665837213038176e-2;
    p = p * z + 7.692299711452405e-2;
    p = p * z - 9.0909085472086648e-2;
    p = p * z + 1.1111111086442932e-1;
    p = p * z - 1.4285714285036372e-1;
    p = p * z + 1.9999999999990439e-1;
    p = p * z - 3.3333333333333287e-1;
    return t + t * (z * p);
}

INLINE64 f64 tern_atan_f64(f64 x)
{
    f64 a = tern_fabs_f64(x), p = tern_atan_poly_f64(a > 1.0 ? 1.0 / a : a);
    return tern_copysign_f64(a > 1.0 ? 1.5707963267948966 - (p - 6.123233995736766e-17) : p, x);
}

INLINE64 f64 tern_atan2_f64(f64 y, f64 x)
{
    f64 ax = tern_fabs_f64(x), ay = tern_fabs_f64(y);
    f64 large = ax > ay ? ax : ay, small = ax > ay ? ay : ax;
    f64 t = small == large ? (large == 0.0 ? 0.0 : 1.0) : small / large;
    f64 p = tern_atan_poly_f64(t);
    p = ay > ax ? 1.5707963267948966 - (p - 6.123233995736766e-17) : p;
    p = tern_sign_f64(x) != 0u ? 3.1415926535897931 - (p - 1.2246467991473532e-16) : p;
    return x != x || y != y ? TERN_NAN_F64 : tern_copysign_f64(p, y);
}

/* ---- inverse hyperbolic functions -------------------------------------------------------- */

/* beyond 2^28, log 2|x| */
INLINE64 f64 tern_asinh_f64(f64 x)
{
    f64 a = tern_fabs_f64(x), z = a * a, u = a + z / (1.0 + tern_sqrt_f64(1.0 + z));
    f64 y = a > 268435456.0 ? tern_log_f64(a) + 0.69314718055994529 : tern_log1p_f64(u);
    return tern_copysign_f64(y, x);
}

INLINE64 f64 tern_acosh_f64(f64 x)
{
    f64 t = x - 1.0, u = t + tern_sqrt_f64(2.0 * t + t * t);
    f64 y = x > 268435456.0 ? tern_log_f64(x) + 0.69314718055994529 : tern_log1p_f64(u);
    return x >= 1.0 ? y : TERN_NAN_F64;
}

INLINE64 f64 tern_atanh_f64(f64 x)
{
    f64 a = tern_fabs_f64(x), b = 2.0 * a, q = (a < 0.5 ? b * a : b) / (1.0 - a);
    return tern_copysign_f64(0.5 * tern_log1p_f64(a < 0.5 ? b + q : q), x);
}

/* ---- log of |gamma| ---------------------------------------------------------------------- */

/* lgamma w for -0.31 < w < 8. Around 1 and 2 it is y times a polynomial in y = w - 1 or w - 2;
   around its minimum at c = 1.4616 between them, lgamma c + t^2 M(t), t = w - c. Arguments below
   0.69 are raised by 1 (lgamma w = lgamma(w + 1) - log w), those from 3 on lowered to [2, 3). */
INLINE64 f64 tern_lgamma_small_f64(f64 w)
{
    f64 b = w, product = 1.0, g, h, m, y, t, l;
    u32 i, near_one = w < 0.23 || (w >= 0.69 && w < 1.23);
    u32 middle = (w >= 0.23 && w < 0.69) || (w >= 1.23 && w < 1.74);
    for (i = 0u; i < 5u; i++) {
        product = b >= 3.0 ? product * (b - 1.0) : product;
        b = b >= 3.0 ? b - 1.0 : b;
    }
    y = near_one ? (w < 0.23 ? w : w - 1.0) : b - 2.0;
    t = ((w < 0.69 ? w : w - 1.0) - 0.46163214496836225) - 9.5499954299656974e-17;
    g = 1.5600550097049573e-1;
    g = g * y - 4.0984257523365285e-2;
    g = g * y + 3.1730025856588844e-2;
    g = g * y - 6.3694578857265274e-2;
    g = g * y + 6.4841060762185126e-2;
    g = g * y - 6.608410625702188e-2;
    g = g * y + 7.1306377167760518e-2;
    g = g * y - 7.6968042266575443e-2;
    g = g * y + 8.3357928295748299e-2;
    g = g * y - 9.095278222413325e-2;
    g = g * y + 1.0009937665055051e-1;
    g = g * y - 1.113342909439423e-1;
    g = g * y + 1.255096704961276e-1;
    g = g * y - 1.4404989648319763e-1;
    g = g * y + 1.6955717699066308e-1;
    g = g * y - 2.0738555103030309e-1;
    g = g * y + 2.7058080842780807e-1;
    g = g * y - 4.0068563438652788e-1;
    g = g * y + 8.224670334241132e-1;
    g = -5.7721566490153287e-1 + (g * y + 3.66637151327661e-18);
    h = -1.9616015590288919e-10;
    h = h * y + 2.0434829194704756e-9;
    h = h * y - 1.0334783101198409e-8;
    h = h * y + 3.4759952759342762e-8;
    h = h * y - 9.1077851898579725e-8;
    h = h * y + 2.0805932302025614e-7;
    h = h * y - 4.4891466989852928e-7;
    h = h * y + 9.5583257155053596e-7;
    h = h * y - 2.0395951376932863e-6;
    h = h * y + 4.3749072770644569e-6;
    h = h * y - 9.4394551879615596e-6;
    h = h * y + 2.0507200881657176e-5;
    h = h * y - 4.492623705069036e-5;
    h = h * y + 9.9457513573168984e-5;
    h = h * y - 2.2315475852989047e-4;
    h = h * y + 5.0966952471937074e-4;
    h = h * y - 1.1927539116995309e-3;
    h = h * y + 2.8905103307418616e-3;
    h = h * y - 7.3855510286740507e-3;
    h = h * y + 2.0580808427784546e-2;
    h = h * y - 6.7352301053198088e-2;
    h = h * y + 3.224670334241132e-1;
    h = 4.2278433509846713e-1 + (h * y + 4.9425267018249102e-18);
    m = -3.3318165825918313e-5;
    m = m * t + 6.6310570205728724e-5;
    m = m * t - 9.4896248784987654e-5;
    m = m * t + 1.4343819277297726e-4;
    m = m * t - 2.2439211950524559e-4;
    m = m * t + 3.5194538769868359e-4;
    m = m * t - 5.5421148240951043e-4;
    m = m * t + 8.7823172544120389e-4;
    m = m * t - 1.4022508396555155e-3;
    m = m * t + 2.2597648362011153e-3;
    m = m * t - 3.6845696214856502e-3;
    m = m * t + 6.1005360204580347e-3;
    m = m * t - 1.0314223036473308e-2;
    m = m * t + 1.7970675115209899e-2;
    m = m * t - 3.278854108848233e-2;
    m = m * t + 6.4624940238912756e-2;
    m = m * t - 1.4758772299453071e-1;
    m = m * t + 4.838361227238106e-1;
    m = -0.12148629053584961 + (t * t * m + 3.3649914684731378e-18);
    l = tern_log_f64(w < 0.69 ? tern_fabs_f64(w) : product);
    return (middle ? m : y * (near_one ? g : h)) + (w < 0.69 ? -l : l);
}

/* Stirling's series, w >= 8: (w - 1/2)(log w - 1) + log(2 pi)/2 - 1/2 + 1/(12 w) - 1/(360 w^3) +
   ..., the product in pairs */
INLINE64 f64 tern_lgamma_large_f64(f64 w)
{
    f64 v = 1.0 / w, z = v * v, half_less = w - 0.5, s;
    tern_pair_f64 t =
        tern_log_pair_f64(w, tern_pair_f64_of(0.69314718055994529, 2.3190468138462996e-17),
                          tern_pair_f64_of(2.0, 0.0));
    t = tern_pair_sum_f64(t.hi, t.lo - 1.0);
    s = -1.3924322169059011;
    s = s * z + 0.17964437236883057;
    s = s * z - 0.029550653594771242;
    s = s * z + 0.00641025641025641;
    s = s * z - 0.0019175269175269176;
    s = s * z + 0.00084175084175084171;
    s = s * z - 0.00059523809523809529;
    s = s * z + 0.00079365079365079365;
    s = s * z - 0.0027777777777777779;
    s = s * z + 0.083333333333333329;
    if (half_less * t.hi >= TERN_INF_F64) {
        return TERN_INF_F64;
    }
    t = tern_pair_product_f64(t, tern_pair_f64_of(half_less, 0.0));
    return t.hi + (t.lo + (0.41893853320467273 + v * s));
}

/* Up to -0.31 by reflection: log(pi / (|x| sin(pi |x|))) - lgamma |x|. Close to its zeros left of
   -2 the two cancel, and only the absolute error stays small. */
INLINE64 f64 tern_lgamma_f64(f64 x)
{
    f64 a = tern_fabs_f64(x), w = x > -0.31 ? x : a, part = a - tern_floor_f64(a), s, g;
    g = w >= 8.0 ? tern_lgamma_large_f64(w) : tern_lgamma_small_f64(w);
    part = part > 0.5 ? 1.0 - part : part;
    s = part > 0.25 ? tern_cos_poly_f64(3.1415926535897931 * (0.5 - part), 0.0)
                    : tern_sin_poly_f64(3.1415926535897931 * part, 0.0);
    g = x > -0.31 ? g : -(tern_log_f64(a * s * 0.31830988618379067) + g);
    g = x <= 0.0 && part == 0.0 ? TERN_INF_F64 : g;
    return x != x ? x : a == TERN_INF_F64 ? a : g;
}

/* ---- remainders -------------------------------------------------------------------------- */

INLINE64 f64 tern_fmod_f64(f64 x, f64 y)
{
    u64 most = ~((u64)1 << 63), implied = (u64)1 << 52, inf = (u64)0x7ff00000u << 32;
    u64 ux = f64_bits(x) & most, uy = f64_bits(y) & most, mx = ux & (implied - 1u),
        my = uy & (implied - 1u);
    u32 ex = (u32)(ux >> 52), ey = (u32)(uy >> 52), shift, step;
    f64 r;
    if (ux >= inf || uy > inf || uy == 0u) {
        return TERN_NAN_F64;
    }
    if (ux < uy) {
        return x;
    }
    mx = ex > 0u ? mx | implied : mx;
    my = ey > 0u ? my | implied : my;
    ex = ex > 0u ? ex : 1u;
    ey = ey > 0u ? ey : 1u;
    mx = mx % my;
    for (shift = ex - ey; shift > 0u && mx > 0u; shift -= step) {
        step = shift < 11u ? shift : 11u;
        mx = (mx << step) % my;
    }
    /* mx 2^(ey - 1075), exact: two normal powers of two */
    r = (f64)(i64)mx * f64_from_bits((u64)((ey >> 1) + 485u) << 52);
    r = r * f64_from_bits((u64)(ey - (ey >> 1) + 486u) << 52);
    return f64_from_bits(f64_bits(r) | tern_sign_f64(x));
}

INLINE64 f64 tern_remainder_f64(f64 x, f64 y)
{
    f64 r = tern_fmod_f64(x, y);
    return r != 0.0 && (r < 0.0) != (y < 0.0) ? r + y : r;
}

#endif /* TERN_F64 */
