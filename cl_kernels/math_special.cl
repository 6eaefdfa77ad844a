/* math_special.cl -- f32 functions beyond math.cl's: erf, erfc, pow, inverse, log-gamma,
 * remainders. */

/* ---- pairs ------------------------------------------------------------------------------- */

INLINE tern_pair_f32 tern_pair_f32_of(f32 hi, f32 lo)
{
    tern_pair_f32 y;
    y.hi = hi;
    y.lo = lo;
    return y;
}

/* (a + a_low) * (b + b_low): the heads' product is exact, the rest is summed in f32 */
INLINE tern_pair_f32 tern_pair_product_f32(tern_pair_f32 a, tern_pair_f32 b)
{
    f32 a_head = tern_head_f32(a.hi), b_head = tern_head_f32(b.hi);
    f32 a_tail = (a.hi - a_head) + a.lo, b_tail = (b.hi - b_head) + b.lo;
    return tern_pair_sum_f32(a_head * b_head,
                             (a_head * b_tail + a_tail * b_head) + a_tail * b_tail);
}

/* a - b c, exact where b is a/c rounded */
INLINE f32 tern_pair_residual_f32(f32 a, f32 b, f32 c)
{
    f32 b_head = tern_head_f32(b), c_head = tern_head_f32(c), b_tail = b - b_head,
        c_tail = c - c_head;
    return (((a - b_head * c_head) - b_head * c_tail) - b_tail * c_head) - b_tail * c_tail;
}

/* ---- hyperbolic sine and cosine ---------------------------------------------------------- */

/* e^x / 2, which overflows later than e^x */
INLINE f32 tern_half_exp_f32(f32 x)
{
    tern_exp_parts_f32 e = tern_exp_split_f32(x, 0.0f);
    return tern_scale_f32(e.hi + e.lo, e.k - 1u);
}

/* |x| < 1: x + x^3 P(x^2); else (e^|x| - e^-|x|) / 2 */
INLINE f32 tern_sinh_f32(f32 x)
{
    f32 a = tern_fabs_f32(x), z = a * a, e = tern_half_exp_f32(a), p;
    p = 2.78221319e-6f;
    p = p * z + 1.98428956e-4f;
    p = p * z + 8.33331048e-3f;
    p = p * z + 1.66666672e-1f;
    return tern_copysign_f32(a < 1.0f ? a + a * (z * p) : e - 0.25f / e, x);
}

INLINE f32 tern_cosh_f32(f32 x)
{
    f32 e = tern_half_exp_f32(tern_fabs_f32(x));
    return e + 0.25f / e;
}

/* ---- error function ---------------------------------------------------------------------- */

/* |x| < 0.9: x + x P(x^2); else 1 - e^(|x| L(|x|)), x L(x) = log erfc x fitted on [0.9, 3.95],
   beyond which erf is 1 in f32 */
INLINE f32 tern_erf_f32(f32 x)
{
    f32 a = tern_fabs_f32(x), z = a * a, p, l, b;
    tern_pair_f32 sum;
    tern_exp_parts_f32 e;
    p = 7.94321968e-5f;
    p = p * z - 8.03976785e-4f;
    p = p * z + 5.19175362e-3f;
    p = p * z - 2.6855560e-2f;
    p = p * z + 1.12836242e-1f;
    p = p * z - 3.76126289e-1f;
    p = p * z + 1.28379166e-1f;
    b = a > 3.95f ? 3.95f : a;
    l = -1.07670539e-5f;
    l = l * b + 3.18092585e-4f;
    l = l * b - 3.62304831e-3f;
    l = l * b + 2.37204637e-2f;
    l = l * b - 1.06187932e-1f;
    l = l * b - 6.35181308e-1f;
    sum = tern_pair_sum_f32(-1.12864101f, l * b);
    e = tern_exp_split_f32(sum.hi * b, sum.lo * b);
    return tern_copysign_f32(a < 0.9f ? a + a * p : 1.0f - tern_scale_f32(e.hi + e.lo, e.k), x);
}

/* The integral of the normal distribution up to x, to about 1e-7 of 1: e^(-x^2/2) P(|x|) for x < 0,
   one less that for x > 0. P, a minimax fit on [0, 5.2], is what is left of the integral without
   the power. */
INLINE f32 tern_normal_cdf_f32(f32 x)
{
    f32 a = tern_fabs_f32(x), p, q;
    a = a > 5.2f ? 5.2f : a;
    p = -3.24419148e-7f;
    p = p * a + 7.89084424e-6f;
    p = p * a - 8.63644673e-5f;
    p = p * a + 5.71449869e-4f;
    p = p * a - 2.6135731e-3f;
    p = p * a + 9.04901791e-3f;
    p = p * a - 2.55275704e-2f;
    p = p * a + 6.19671531e-2f;
    p = p * a - 1.32825777e-1f;
    p = p * a + 2.49977574e-1f;
    p = p * a - 3.98941159e-1f;
    p = p * a + 0.5f;
    q = p * tern_exp_below_f32(-0.5f * x * x);
    return x > 0.0f ? 1.0f - q : q;
}

#ifdef TERN_EXP2_ROUGH
/* e^x to 21 bits where x is near 0, and to 15 at -88. */
#define TERN_EXP_ROUGH(x) TERN_EXP2_ROUGH((x)*1.44269504f)
/* The normal distribution's to 16 bits, for what is rounded to half precision. */
INLINE f32 tern_normal_cdf_rough(f32 x)
{
    f32 a = tern_fabs_f32(x), q = 2.3177083e-7f;
    a = a > 5.2f ? 5.2f : a;
    q = MULTIPLY_ADD(q, a, -7.3080677e-6f);
    q = MULTIPLY_ADD(q, a, 1.02557759e-4f);
    q = MULTIPLY_ADD(q, a, -8.50376587e-4f);
    q = MULTIPLY_ADD(q, a, 4.6839302e-3f);
    q = MULTIPLY_ADD(q, a, -1.83922298e-2f);
    q = MULTIPLY_ADD(q, a, 5.44705553e-2f);
    q = MULTIPLY_ADD(q, a, -1.28075221e-1f);
    q = MULTIPLY_ADD(q, a, 2.4837483e-1f);
    q = MULTIPLY_ADD(q, a, -3.98720575e-1f);
    q = MULTIPLY_ADD(q, a, 4.99994662e-1f) * TERN_EXP_ROUGH(-0.5f * x * x);
    return x > 0.0f ? 1.0f - q : q;
}
#endif

/* ---- complement of the error function ---------------------------------------------------- */

/* x > 0.45: e^(-x^2) N(t) / (1 + 2x), t = (x - 2) / (x + 2), all in pairs but for the polynomial's
   tail; nearer zero and below it, 1 - erf x. N = (1 + 2x) e^(x^2) erfc x, fitted on 0.45 <= x
   <= 10.1 */
INLINE f32 tern_erfc_f32(f32 x)
{
    f32 a = tern_fabs_f32(x) > 10.5f ? 10.5f : tern_fabs_f32(x), t, p, d, square, square_low, y;
    tern_pair_f32 n, q, e, head;
    tern_exp_parts_f32 parts;
    head.hi = tern_head_f32(a);
    head.lo = a - head.hi;
    square = a * a;
    square_low = ((head.hi * head.hi - square) + 2.0f * head.hi * head.lo) + head.lo * head.lo;
    parts = tern_exp_split_f32(-square, -square_low);
    e = tern_pair_sum_f32(parts.hi, parts.lo);
    t = (a - 2.0f) / (a + 2.0f);
    p = 2.12707979e-4f;
    p = p * t - 3.09927185e-4f;
    p = p * t - 1.46715145e-3f;
    p = p * t + 1.21485780e-3f;
    p = p * t + 8.72665737e-3f;
    p = p * t - 8.02401081e-3f;
    p = p * t - 5.42205721e-2f;
    p = p * t + 1.64050549e-1f;
    p = p * t - 1.66030377e-1f;
    p = p * t - 9.27638113e-2f;
    n = tern_pair_sum_f32(1.27697837f, p * t + 7.82931764e-9f);
    d = 1.0f + 2.0f * a;
    q.hi = n.hi / d;
    q.lo = tern_pair_residual_f32(n.hi, q.hi, d);
    q.lo = (q.lo + n.lo - q.hi * (2.0f * a - (d - 1.0f))) / d;
    y = tern_scale_f32(e.hi * q.hi + (e.hi * q.lo + e.lo * q.hi), parts.k);
    y = x < 0.0f ? 2.0f - y : y;
    return x > -0.9f && x < 0.45f ? 1.0f - tern_erf_f32(x) : x != x ? x : y;
}

/* ---- powers ------------------------------------------------------------------------------ */

/* atanh s for s = f / (2 + f), which is log(1 + f) / 2, to about 2^-38: with z = s^2,
   atanh s = s (1 + z/3 + z^2 Q(z)); s, z/3 and their product are pairs */
INLINE tern_pair_f32 tern_atanh_pair_f32(f32 f)
{
    f32 d = f + 2.0f, d_low = f - (d - 2.0f), q;
    tern_pair_f32 s, z, c, l;
    s.hi = f / d;
    s.lo = (tern_pair_residual_f32(f, s.hi, d) - s.hi * d_low) / d;
    z = tern_pair_product_f32(s, s);
    q = 1.17092684e-1f;
    q = q * z.hi + 1.42735675e-1f;
    q = q * z.hi + 2.00000763e-1f;
    c = tern_pair_product_f32(z, tern_pair_f32_of(0.333333343f, -9.93410776e-9f));
    c = tern_pair_product_f32(s, c);
    l = tern_pair_sum_f32(s.hi, c.hi);
    return tern_pair_sum_f32(l.hi, l.lo + (s.hi * (z.hi * z.hi * q) + c.lo + s.lo));
}

/* A logarithm of x, positive and finite: two is that of 2, scale twice that of e */
INLINE tern_pair_f32 tern_log_pair_f32(f32 x, tern_pair_f32 two, tern_pair_f32 scale)
{
    tern_log_parts_f32 parts = tern_log_split_f32(x);
    tern_pair_f32 l = tern_pair_product_f32(tern_atanh_pair_f32(parts.f), scale), y;
    tern_pair_f32 k = tern_pair_product_f32(tern_pair_f32_of(parts.k, 0.0f), two);
    y = tern_pair_sum_f32(k.hi, l.hi); /* |k two| > |l|, or k = 0 */
    return tern_pair_sum_f32(y.hi, y.lo + (k.lo + l.lo));
}

/* |x|^y = 2^(y log2 |x|) with the product as a pair; then C99's table of special cases (annex
 * F.10.4.4) */
INLINE f32 tern_pow_f32(f32 x, f32 y)
{
    f32 a = tern_fabs_f32(x), y_abs = tern_fabs_f32(y), r, edge;
    u32 whole = tern_round_f32(y) == y;
    u32 odd = whole && y_abs < 16777216.0f && tern_round_f32(0.5f * y) != 0.5f * y;
    u32 sign = odd ? f32_bits(x) & 0x80000000u : 0u;
    f32 power = y_abs > 1e18f ? tern_copysign_f32(1e18f, y) : y;
    tern_pair_f32 l = tern_log_pair_f32(a, tern_pair_f32_of(1.0f, 0.0f),
                                        tern_pair_f32_of(2.88539004f, 3.85192607e-8f));
    tern_pair_f32 e = tern_pair_product_f32(l, tern_pair_f32_of(power, 0.0f));
    r = tern_exp2_pair_f32(e.hi, tern_fabs_f32(e.hi) < 160.0f ? e.lo : 0.0f);
    edge = (a == 0.0f) == (y < 0.0f) ? TERN_INF_F32 : 0.0f; /* of |x| = 0 or inf */
    r = a == 0.0f || a == TERN_INF_F32 ? edge : r;
    r = f32_from_bits(f32_bits(r) ^ sign);
    r = x < 0.0f && a < TERN_INF_F32 && !whole ? TERN_NAN_F32 : r;
    r = a == 1.0f && y_abs == TERN_INF_F32 ? 1.0f : r;
    r = x != x || y != y ? TERN_NAN_F32 : r;
    return x == 1.0f || y == 0.0f ? 1.0f : r;
}

/* ---- inverse trigonometric functions ----------------------------------------------------- */

/* P in asin s = s + s z P(z), z = s^2 <= 1/4 */
INLINE f32 tern_asin_poly_f32(f32 z)
{
    f32 p = 4.21661958e-2f;
    p = p * z + 2.41808556e-2f;
    p = p * z + 4.54697646e-2f;
    p = p * z + 7.49530643e-2f;
    p = p * z + 1.66667521e-1f;
    return p;
}

/* For |x| >= 1/2: acos |x| = 2 asin sqrt(z), z = (1 - |x|) / 2; sqrt z as a pair, its head of 12
 * bits */
INLINE tern_pair_f32 tern_acos_pair_f32(f32 a)
{
    f32 z = 0.5f * (1.0f - a), s = tern_sqrt_f32(z);
    tern_pair_f32 y;
    y.hi = tern_head_f32(s);
    y.lo = z > 0.0f ? (z - y.hi * y.hi) / (s + y.hi) : 0.0f;
    y.lo = 2.0f * (y.lo + s * z * tern_asin_poly_f32(z));
    y.hi = 2.0f * y.hi;
    return y;
}

INLINE f32 tern_asin_f32(f32 x)
{
    f32 a = tern_fabs_f32(x), z = x * x, small = a + a * (z * tern_asin_poly_f32(z));
    tern_pair_f32 c = tern_acos_pair_f32(a);
    f32 large = (1.57079637f - c.hi) - (c.lo + 4.37113883e-8f); /* pi/2 - acos */
    return tern_copysign_f32(a < 0.5f ? small : large, x);
}

INLINE f32 tern_acos_f32(f32 x)
{
    f32 a = tern_fabs_f32(x), z = x * x, p = x * (z * tern_asin_poly_f32(z));
    tern_pair_f32 c = tern_acos_pair_f32(a);
    f32 small = 1.57079637f - (x + (p + 4.37113883e-8f));
    f32 large = x < 0.0f ? 3.14159274f - (c.hi + (c.lo + 8.74227766e-8f)) : c.hi + c.lo;
    return a < 0.5f ? small : large;
}

/* atan of t in [0, 1]: t + t^3 P(t^2) */
INLINE f32 tern_atan_poly_f32(f32 t)
{
    f32 z = t * t, p = 1.13452773e-3f;
    p = p * z - 7.42537808e-3f;
    p = p * z + 2.277763e-2f;
    p = p * z - 4.49832603e-2f;
    p = p * z + 6.76364899e-2f;
    p = p * z - 8.82146209e-2f;
    p = p * z + 1.10612333e-1f;
    p = p * z - 1.42803431e-1f;
    p = p * z + 1.99997157e-1f;
    p = p * z - 3.33333284e-1f;
    return t + t * (z * p);
}

/* |x| > 1: pi/2 - atan(1 / |x|) */
INLINE f32 tern_atan_f32(f32 x)
{
    f32 a = tern_fabs_f32(x), p = tern_atan_poly_f32(a > 1.0f ? 1.0f / a : a);
    return tern_copysign_f32(a > 1.0f ? 1.57079637f - (p + 4.37113883e-8f) : p, x);
}

/* The angle of (x, y): atan of the smaller over the larger of |x| and |y|, then its octant. The
   quotients 0/0 and inf/inf are 0 and 1, as C99 asks. */
INLINE f32 tern_atan2_f32(f32 y, f32 x)
{
    f32 ax = tern_fabs_f32(x), ay = tern_fabs_f32(y);
    f32 large = ax > ay ? ax : ay, small = ax > ay ? ay : ax;
    f32 t = small == large ? (large == 0.0f ? 0.0f : 1.0f) : small / large;
    f32 p = tern_atan_poly_f32(t);
    p = ay > ax ? 1.57079637f - (p + 4.37113883e-8f) : p;
    p = (f32_bits(x) >> 31) != 0u ? 3.14159274f - (p + 8.74227766e-8f) : p;
    return x != x || y != y ? TERN_NAN_F32 : tern_copysign_f32(p, y);
}

/* ---- inverse hyperbolic functions -------------------------------------------------------- */

/* Above 2^24, log(2 |x|); else log1p(|x| + x^2 / (1 + sqrt(1 + x^2))) */
INLINE f32 tern_asinh_f32(f32 x)
{
    f32 a = tern_fabs_f32(x), z = a * a, u = a + z / (1.0f + tern_sqrt_f32(1.0f + z));
    f32 y = tern_log1p_f32(a > 16777216.0f ? a : u) + (a > 16777216.0f ? 0.693147182f : 0.0f);
    return tern_copysign_f32(y, x);
}

/* log1p(t + sqrt(2t + t^2)), t = x - 1; the root is corrected for both roundings */
INLINE f32 tern_acosh_f32(f32 x)
{
    f32 t = x - 1.0f, v = 2.0f * t + t * t, root = tern_sqrt_f32(v);
    f32 lost = tern_pair_residual_f32(v, root, root) + (t * t - (v - 2.0f * t));
    f32 u = root + (t + (root > 0.0f ? 0.5f * lost / root : 0.0f));
    f32 y = tern_log1p_f32(x > 16777216.0f ? x : u) + (x > 16777216.0f ? 0.693147182f : 0.0f);
    return x >= 1.0f ? y : TERN_NAN_F32;
}

/* log1p(2 |x| / (1 - |x|)) / 2, the quotient as 2 |x| + 2 x^2 / (1 - |x|) where that loses less;
 * beyond 1 the argument is below -1 and the result NaN */
INLINE f32 tern_atanh_f32(f32 x)
{
    f32 a = tern_fabs_f32(x), b = 2.0f * a, q = (a < 0.5f ? b * a : b) / (1.0f - a);
    return tern_copysign_f32(0.5f * tern_log1p_f32(a < 0.5f ? b + q : q), x);
}

/* ---- log of |gamma| ---------------------------------------------------------------------- */

/* lgamma w for -0.31 < w < 8. Around 1 and 2 it is y times a polynomial in y = w - 1 or w - 2;
   around its minimum at c = 1.4616 between them, lgamma c + t^2 M(t), t = w - c. Arguments below
   0.69 are raised by 1 (lgamma w = lgamma(w + 1) - log w), those from 3 on lowered to [2, 3). */
INLINE f32 tern_lgamma_small_f32(f32 w)
{
    f32 b = w, product = 1.0f, g, h, m, y, t, l;
    u32 i, near_one = w < 0.23f || (w >= 0.69f && w < 1.23f);
    u32 middle = (w >= 0.23f && w < 0.69f) || (w >= 1.23f && w < 1.74f);
    for (i = 0u; i < 5u; i++) {
        product = b >= 3.0f ? product * (b - 1.0f) : product;
        b = b >= 3.0f ? b - 1.0f : b;
    }
    y = near_one ? (w < 0.23f ? w : w - 1.0f) : b - 2.0f;
    t = ((w < 0.69f ? w : w - 1.0f) - 0.46163213f) - 1.24381501e-8f;
    g = 1.69544265e-1f;
    g = g * y - 1.22186132e-1f;
    g = g * y + 1.1743293e-1f;
    g = g * y - 1.43615305e-1f;
    g = g * y + 1.69898644e-1f;
    g = g * y - 2.07393512e-1f;
    g = g * y + 2.70575315e-1f;
    g = g * y - 4.00685579e-1f;
    g = g * y + 8.22467029e-1f;
    g = -5.77215672e-1f + (g * y + 6.49759846e-9f);
    h = 2.69056509e-5f;
    h = h * y - 1.55817062e-4f;
    h = h * y + 4.81093535e-4f;
    h = h * y - 1.19299721e-3f;
    h = h * y + 2.89448583e-3f;
    h = h * y - 7.38624949e-3f;
    h = h * y + 2.05806624e-2f;
    h = h * y - 6.73522726e-2f;
    h = h * y + 3.22467029e-1f;
    h = 4.22784328e-1f + (h * y + 6.49477361e-9f);
    m = 5.71285281e-3f;
    m = m * t - 1.07698999e-2f;
    m = m * t + 1.80277564e-2f;
    m = m * t - 3.27708349e-2f;
    m = m * t + 6.46230653e-2f;
    m = m * t - 1.4758794e-1f;
    m = m * t + 4.83836144e-1f;
    m = -0.121486291f + (t * t * m + 7.53479945e-10f);
    l = tern_log_f32(w < 0.69f ? tern_fabs_f32(w) : product);
    return (middle ? m : y * (near_one ? g : h)) + (w < 0.69f ? -l : l);
}

/* Stirling's series, w >= 8: (w - 1/2)(log w - 1) + log(2 pi)/2 - 1/2 + 1/(12 w) - 1/(360 w^3) +
   ..., the product in pairs */
INLINE f32 tern_lgamma_large_f32(f32 w)
{
    f32 v = 1.0f / w, z = v * v, half_less = w - 0.5f, s;
    tern_pair_f32 t = tern_log_pair_f32(w, tern_pair_f32_of(0.693147182f, -1.90465421e-9f),
                                        tern_pair_f32_of(2.0f, 0.0f));
    t = tern_pair_sum_f32(t.hi, t.lo - 1.0f);
    s = -0.000595238095f;
    s = s * z + 0.000793650794f;
    s = s * z - 0.00277777778f;
    s = s * z + 0.0833333333f;
    if (half_less * t.hi >= TERN_INF_F32) {
        return TERN_INF_F32;
    }
    t = tern_pair_product_f32(t, tern_pair_f32_of(half_less, 0.0f));
    return t.hi + (t.lo + (0.418938547f + v * s));
}

/* Up to -0.31 by reflection: log(pi / (|x| sin(pi |x|))) - lgamma |x|. Close to its zeros left of
   -2 the two cancel, and only the absolute error stays small. */
INLINE f32 tern_lgamma_f32(f32 x)
{
    f32 a = tern_fabs_f32(x), w = x > -0.31f ? x : a, part = a - tern_floor_f32(a), s, g;
    g = w >= 8.0f ? tern_lgamma_large_f32(w) : tern_lgamma_small_f32(w);
    part = part > 0.5f ? 1.0f - part : part;
    s = part > 0.25f ? tern_cos_poly_f32(3.14159274f * (0.5f - part), 0.0f)
                     : tern_sin_poly_f32(3.14159274f * part, 0.0f);
    g = x > -0.31f ? g : -(tern_log_f32(a * s * 0.318309886f) + g);
    g = x <= 0.0f && part == 0.0f ? TERN_INF_F32 : g;
    return x != x ? x : a == TERN_INF_F32 ? a : g;
}

/* ---- remainders -------------------------------------------------------------------------- */

/* x - trunc(x / y) y, exact: the significands' remainder, the quotient's exponent worked off 40
 * bits at a time */
INLINE f32 tern_fmod_f32(f32 x, f32 y)
{
    u32 ux = f32_bits(x) & 0x7fffffffu, uy = f32_bits(y) & 0x7fffffffu,
        sign = f32_bits(x) & 0x80000000u;
    u32 ex = ux >> 23, ey = uy >> 23, shift, step;
    u64 mx = ux & 0x007fffffu, my = uy & 0x007fffffu;
    f32 r;
    if (ux >= 0x7f800000u || uy > 0x7f800000u || uy == 0u) {
        return TERN_NAN_F32;
    }
    if (ux < uy) {
        return x;
    }
    mx = ex > 0u ? mx | 0x00800000u : mx; /* subnormals have exponent 1 and no leading bit */
    my = ey > 0u ? my | 0x00800000u : my;
    ex = ex > 0u ? ex : 1u;
    ey = ey > 0u ? ey : 1u;
    mx = mx % my;
    for (shift = ex - ey; shift > 0u && mx > 0u; shift -= step) {
        step = shift < 40u ? shift : 40u;
        mx = (mx << step) % my;
    }
    /* mx 2^(ey - 150), by two powers of two, neither below 2^-126; no rounding, for mx < 2^24 and
     * ey >= 1 */
    r = (f32)(i32)(u32)mx * f32_from_bits(((ey >> 1) + 52u) << 23);
    r = r * f32_from_bits((ey - (ey >> 1) + 52u) << 23);
    return f32_from_bits(f32_bits(r) | sign);
}

/* PyTorch's remainder: fmod with the divisor's sign */
INLINE f32 tern_remainder_f32(f32 x, f32 y)
{
    f32 r = tern_fmod_f32(x, y);
    return r != 0.0f && (r < 0.0f) != (y < 0.0f) ? r + y : r;
}
