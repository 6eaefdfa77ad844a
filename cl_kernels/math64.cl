/* math64.cl -- the elementary functions of f64: math.cl's, with longer polynomials; clarity before
 * speed.
 *
 * The same rules: + - * / sqrt, selects and bit moves, no contraction, the same bits on every
 * target. See math.cl for the arguments; a comment here says only what differs. */
#if TERN_F64
#ifndef INLINE64
#define INLINE64 INLINE
#endif

#define TERN_INF_F64 f64_from_bits((u64)0x7ff00000u << 32)
#define TERN_NAN_F64 f64_from_bits((u64)0x7ff80000u << 32)

/* ---- signs and pieces -------------------------------------------------------------------- */

INLINE64 u64 tern_sign_f64(f64 x)
{
    return f64_bits(x) & ((u64)1 << 63);
}

/* |x| with the sign of s */
INLINE64 f64 tern_copysign_f64(f64 x, f64 s)
{
    return f64_from_bits((f64_bits(x) & ~((u64)1 << 63)) | tern_sign_f64(s));
}

/* The upper 26 bits of the significand: a product of two such heads is exact. */
INLINE64 f64 tern_head_f64(f64 x)
{
    return f64_from_bits(f64_bits(x) & ~(u64)0x07ffffffu);
}

/* v * 2^k for |k| <= 2044 */
INLINE64 f64 tern_scale_f64(f64 v, u64 k)
{
    u64 half_k = ((k + 8192u) >> 1) - 4096u;
    return v * f64_from_bits((half_k + 1023u) << 52) * f64_from_bits((k - half_k + 1023u) << 52);
}

typedef struct {
    f64 hi, lo;
} tern_pair_f64;

INLINE64 tern_pair_f64 tern_pair_f64_of(f64 hi, f64 lo)
{
    tern_pair_f64 y;
    y.hi = hi;
    y.lo = lo;
    return y;
}

/* exact for |a| >= |b| */
INLINE64 tern_pair_f64 tern_pair_sum_f64(f64 a, f64 b)
{
    f64 sum = a + b;
    return tern_pair_f64_of(sum, b - (sum - a));
}

INLINE64 tern_pair_f64 tern_pair_product_f64(tern_pair_f64 a, tern_pair_f64 b)
{
    f64 a_head = tern_head_f64(a.hi), b_head = tern_head_f64(b.hi);
    f64 a_tail = (a.hi - a_head) + a.lo, b_tail = (b.hi - b_head) + b.lo;
    return tern_pair_sum_f64(a_head * b_head,
                             (a_head * b_tail + a_tail * b_head) + a_tail * b_tail);
}

/* a - b c, exact where b is a/c rounded, but for 2^-106 of a */
INLINE64 f64 tern_pair_residual_f64(f64 a, f64 b, f64 c)
{
    f64 b_head = tern_head_f64(b), c_head = tern_head_f64(c), b_tail = b - b_head,
        c_tail = c - c_head;
    return (((a - b_head * c_head) - b_head * c_tail) - b_tail * c_head) - b_tail * c_tail;
}

/* ---- rounding to integers ---------------------------------------------------------------- */

#define tern_round_f64(x) tern_rint_f64(x)

INLINE64 f64 tern_floor_f64(f64 x)
{
    f64 r = tern_round_f64(x);
    return r - (r > x ? 1.0 : 0.0);
}

INLINE64 f64 tern_ceil_f64(f64 x)
{
    f64 r = tern_round_f64(x);
    return tern_copysign_f64(r + (r < x ? 1.0 : 0.0), x);
}

INLINE64 f64 tern_trunc_f64(f64 x)
{
    f64 a = tern_fabs_f64(x), r = tern_round_f64(a);
    return tern_copysign_f64(r - (r > a ? 1.0 : 0.0), x);
}

/* ---- exponentials ------------------------------------------------------------------------ */

/* q in e^r = 1 + r + r^2 q(r), |r| <= ln(2)/2 */
INLINE64 f64 tern_exp_poly_f64(f64 r)
{
    f64 q;
    q = 2.4978392449280443e-8;
    q = q * r + 2.7625301823933815e-7;
    q = q * r + 2.7557641524769684e-6;
    q = q * r + 2.480150841930394e-5;
    q = q * r + 1.9841269464808937e-4;
    q = q * r + 1.3888888926983302e-3;
    q = q * r + 8.3333333335009318e-3;
    q = q * r + 4.1666666666603555e-2;
    q = q * r + 1.6666666666666433e-1;
    return q * r + 0.5;
}

/* e^(x + x_low) = 2^k (hi + lo) */
typedef struct {
    f64 hi, lo;
    u64 k;
} tern_exp_parts_f64;

INLINE64 tern_exp_parts_f64 tern_exp_split_f64(f64 x, f64 x_low)
{
    tern_exp_parts_f64 y;
    f64 t, n, head, tail, r;
    x = x > 711.0 ? 711.0 : x;
    x = x < -750.0 ? -750.0 : x;
    t = x * 1.4426950408889634 + 6755399441055744.0; /* 1.5 * 2^52 */
    n = t - 6755399441055744.0;
    head = x - n * 0.69314718048553914; /* 33 bits: exact */
    tail = n * 7.4406171100123968e-11 - x_low;
    r = head - tail;
    y.hi = 1.0 + r;
    y.lo = ((head - (y.hi - 1.0)) - tail) + r * r * tern_exp_poly_f64(r);
    y.k = f64_bits(t) - ((u64)0x43380000u << 32);
    return y;
}

INLINE64 f64 tern_exp_f64(f64 x)
{
    tern_exp_parts_f64 e = tern_exp_split_f64(x, 0.0);
    return tern_scale_f64(e.hi + e.lo, e.k);
}

/* e^x / 2, which overflows later than e^x */
INLINE64 f64 tern_half_exp_f64(f64 x)
{
    tern_exp_parts_f64 e = tern_exp_split_f64(x, 0.0);
    return tern_scale_f64(e.hi + e.lo, e.k - 1u);
}

/* 2^(x + low) = 2^k e^(r ln 2), the product r ln 2 as a pair */
INLINE64 f64 tern_exp2_pair_f64(f64 x, f64 low)
{
    f64 t, r, q, sum;
    tern_pair_f64 p;
    x = x > 1200.0 ? 1200.0 : x;
    x = x < -1200.0 ? -1200.0 : x;
    t = x + 6755399441055744.0;
    r = x - (t - 6755399441055744.0);
    p = tern_pair_product_f64(tern_pair_f64_of(r, low),
                              tern_pair_f64_of(0.69314718055994529, 2.3190468138462996e-17));
    q = p.hi * p.hi * tern_exp_poly_f64(p.hi);
    sum = 1.0 + p.hi;
    sum = sum + ((p.hi - (sum - 1.0)) + p.lo + q);
    return tern_scale_f64(sum, f64_bits(t) - ((u64)0x43380000u << 32));
}

INLINE64 f64 tern_exp2_f64(f64 x)
{
    return tern_exp2_pair_f64(x, 0.0);
}

/* e^x - 1 = 2^k (r + r^2 q + low) + (2^k - 1), all halved, since 2^1024 is no f64 */
INLINE64 f64 tern_expm1_f64(f64 x0)
{
    f64 x = x0, t, n, head, tail, r, low, scale, a, b, sum;
    x = x > 709.9 ? 709.9 : x;
    x = x < -50.0 ? -50.0 : x;
    t = x * 1.4426950408889634 + 6755399441055744.0;
    n = t - 6755399441055744.0;
    head = x - n * 0.69314718048553914;
    tail = n * 7.4406171100123968e-11;
    r = head - tail;
    low = (head - r) - tail;
    scale = f64_from_bits((f64_bits(t) - ((u64)0x43380000u << 32) + 1022u) << 52);
    a = scale - 0.5;
    b = scale * r;
    sum = a + b;
    low = (b - (sum - a)) + scale * (r * r * tern_exp_poly_f64(r) + low);
    sum = tern_fabs_f64(x0) < 1e-8 ? x0 + 0.5 * x0 * x0 : 2.0 * (sum + low);
    return tern_copysign_f64(sum, x0);
}

/* ---- logarithms -------------------------------------------------------------------------- */

/* x = 2^k (1 + f), sqrt(1/2) <= 1 + f < sqrt 2 */
typedef struct {
    f64 k, f;
} tern_log_parts_f64;

INLINE64 tern_log_parts_f64 tern_log_split_f64(f64 x)
{
    tern_log_parts_f64 y;
    u64 root = ((u64)0x3fe6a09eu << 32) | 0x667f3bcdu; /* of 1/2 */
    f64 bias = x < 2.2250738585072014e-308 ? 1075.0 : 1023.0;
    u64 u = f64_bits(x < 2.2250738585072014e-308 ? x * 4503599627370496.0 : x);
    u = u + (((u64)0x3ff00000u << 32) - root);
    y.k = (f64)(i32)(u32)(u >> 52) - bias;
    y.f = f64_from_bits((u & (((u64)0x000fffffu << 32) | 0xffffffffu)) + root) - 1.0;
    return y;
}

/* log(1 + f) - f + f^2/2 = s (f^2/2 + R(s^2)), s = f / (2 + f), R = z (2/3 + 2/5 z + ...) (fdlibm's
 * form) */
INLINE64 f64 tern_log_tail_f64(f64 f)
{
    f64 s = f / (2.0 + f), z = s * s, p;
    p = 1.4795845320697304e-1;
    p = p * z + 1.5314061353618227e-1;
    p = p * z + 1.8183563887058407e-1;
    p = p * z + 2.2222198581989636e-1;
    p = p * z + 2.8571428742298216e-1;
    p = p * z + 3.9999999999415098e-1;
    p = p * z + 6.666666666666734e-1;
    return s * (0.5 * f * f + z * p);
}

/* y where 0 < x < inf, else what C99 asks of a logarithm */
INLINE64 f64 tern_log_edges_f64(f64 x, f64 y)
{
    f64 edge = x == 0.0 ? -TERN_INF_F64 : TERN_NAN_F64;
    y = x < TERN_INF_F64 ? y : x;
    return x > 0.0 ? y : edge;
}

INLINE64 f64 tern_log_f64(f64 x)
{
    tern_log_parts_f64 s = tern_log_split_f64(x);
    f64 y = tern_log_tail_f64(s.f) + s.k * 7.4406171100123968e-11 - 0.5 * s.f * s.f;
    return tern_log_edges_f64(x, s.k * 0.69314718048553914 + (s.f + y));
}

/* k two + scale log(1 + f), the leading terms exact or with their rounding error kept */
INLINE64 f64 tern_log_scaled_f64(f64 x, f64 scale_head, f64 scale_tail, f64 two_head, f64 two_tail)
{
    tern_log_parts_f64 s = tern_log_split_f64(x);
    f64 half_z = 0.5 * s.f * s.f, head = tern_head_f64(s.f - half_z);
    f64 rest = ((s.f - head) - half_z) + tern_log_tail_f64(s.f);
    tern_pair_f64 sum = tern_pair_sum_f64(s.k * two_head, head * scale_head);
    f64 y = (s.k * two_tail + sum.lo) + (rest * (scale_head + scale_tail) + head * scale_tail);
    return tern_log_edges_f64(x, sum.hi + y);
}

INLINE64 f64 tern_log2_f64(f64 x)
{
    return tern_log_scaled_f64(x, 1.4426950216293335, 1.9259629911266175e-8, 1.0, 0.0);
}

INLINE64 f64 tern_log10_f64(f64 x)
{
    return tern_log_scaled_f64(x, 0.43429447710514069, 4.7981111416159728e-9, 0.30102999566383914,
                               1.4205023227266099e-13);
}

INLINE64 f64 tern_log1p_f64(f64 x)
{
    f64 u = 1.0 + x, lost = x > 1.0 ? 1.0 - (u - x) : x - (u - 1.0);
    tern_log_parts_f64 s = tern_log_split_f64(u);
    f64 f = s.k == 0.0 ? x : s.f, c = s.k == 0.0 ? 0.0 : lost / u;
    f64 y = tern_log_tail_f64(f) + (s.k * 7.4406171100123968e-11 + c) - 0.5 * f * f;
    y = s.k * 0.69314718048553914 + (f + y);
    return tern_log_edges_f64(u, x == 0.0 ? x : y);
}

/* ---- sine, cosine, tangent --------------------------------------------------------------- */

/* |x| = k quarter turns and r + low, 0 <= r <= pi/4, signed by sign */
typedef struct {
    f64 r, low;
    u32 k;
    u64 sign;
} tern_turn_f64;

/* Payne and Hanek: |x| = M 2^(L - 53), L >= 0. 192 bits of 2/pi from 55 places above the binary
   point of 2^L 2/pi, times M, mod 2^192, are |x| 2/pi mod 4 in units of 2^-190; the upper 128 bits
   are used. */
INLINE64 tern_turn_f64 tern_turns_f64(f64 x)
{
    /* clang-format off */
    const u32 two_over_pi[40] = { /* behind 55 zero bits */
        0x00000000u, 0x00000145u, 0xf306dc9cu, 0x882a53f8u, 0x4eafa3eau, 0x69bb81b6u,
        0xc52b3278u, 0x872083fcu, 0xa2c757bdu, 0x778ac36eu, 0x48dc7484u, 0x9ba5c00cu,
        0x925dd413u, 0xa32439fcu, 0x3bd63962u, 0x534e7dd1u, 0x046bea5du, 0x768909d3u,
        0x38e04d68u, 0xbefc8273u, 0x23ac7306u, 0xa673e939u, 0x08bf177bu, 0xf250763fu,
        0xf12fffbcu, 0x0b301fdeu, 0x5e2316b4u, 0x14da3edau, 0x6cfd9e4fu, 0x96136e9eu,
        0x8c7ecd3cu, 0xbfd45aeau, 0x4f758fd7u, 0xcbe2f67au, 0x0e73ef14u, 0xa525d4d7u,
        0xf6bf623fu, 0x1aba10acu, 0x06608df8u, 0xf6d757e1u};
    /* clang-format on */
    tern_turn_f64 y;
    f64 a = tern_fabs_f64(x), head, tail;
    u32 e = (u32)(f64_bits(a) >> 52), shift, i;
    u64 m = (f64_bits(a) & (((u64)0x000fffffu << 32) | 0xffffffffu)) | ((u64)1 << 52);
    u64 m_low = m & 0xffffffffu, m_high = m >> 32, high = 0, carry = 0, low_carry = 0,
        high_carry = 0;
    u64 top = 0, rest = 0, flip;
    tern_pair_f64 r;
    y.r = a;
    y.low = 0.0;
    y.k = 0u;
    y.sign = 0;
    if (!(a > 0.78539816339744828) || e > 2046u) {
        return y;
    }
    shift = e - 1022u;
    /* long multiplication, from the least word on; the last four words of it end
     * up in top and rest */
    for (i = 6u; i > 0u; i--) {
        u32 j = (shift >> 5) + i - 1u;
        u64 word = (((u64)two_over_pi[j] << 32 | two_over_pi[j + 1u]) << (shift & 31u)) >> 32;
        u64 low = m_low * word,
            sum = (low & 0xffffffffu) + low_carry + (high & 0xffffffffu) + high_carry + carry;
        rest = rest >> 32 | top << 32;
        top = top >> 32 | sum << 32;
        carry = sum >> 32;
        low_carry = low >> 32;
        high_carry = high >> 32;
        high = m_high * word;
    }
    y.k = (u32)((top + ((u64)1 << 61)) >> 62);
    top = top << 2 | rest >> 62;
    rest = rest << 2;
    flip = (u64)0 - (top >> 63);
    y.sign = flip & ((u64)1 << 63);
    top = top ^ flip;
    rest = rest ^ flip;
    /* 53 bits and the next 62, in quarter turns */
    head = (f64)(i64)(top & ~(u64)0x3ffu) * 5.4210108624275222e-20;
    tail = (f64)(i64)((top & 0x3ffu) << 52 | rest >> 12) * 1.2037062152420224e-35;
    r = tern_pair_sum_f64(head, tail);
    r = tern_pair_product_f64(r, tern_pair_f64_of(1.5707963267948966, 6.123233995736766e-17));
    y.r = r.hi;
    y.low = r.lo;
    return y;
}

INLINE64 f64 tern_sin_poly_f64(f64 r, f64 low)
{
    f64 z = r * r, s;
    s = -7.5784755825499457e-13;
    s = s * z + 1.6058361884662593e-10;
    s = s * z - 2.5052104872018101e-8;
    s = s * z + 2.7557319214028016e-6;
    s = s * z - 1.984126984125473e-4;
    s = s * z + 8.3333333333333228e-3;
    s = s * z - 1.6666666666666666e-1;
    return r + (low * (1.0 - 0.5 * z) + r * (z * s));
}

INLINE64 f64 tern_cos_poly_f64(f64 r, f64 low)
{
    f64 z = r * r, w = 1.0 - 0.5 * z, c;
    c = -1.1358424020724448e-11;
    c = c * z + 2.0875698709164898e-9;
    c = c * z - 2.7557314163901514e-7;
    c = c * z + 2.4801587288799435e-5;
    c = c * z - 1.3888888888872973e-3;
    c = c * z + 4.1666666666666595e-2;
    return w + (((1.0 - w) - 0.5 * z) + (z * z * c - r * low));
}

INLINE64 f64 tern_sin_turn_f64(tern_turn_f64 t, u32 quarter)
{
    u32 k = t.k + quarter;
    u64 s = f64_bits(tern_sin_poly_f64(t.r, t.low)) ^ t.sign;
    u64 c = f64_bits(tern_cos_poly_f64(t.r, t.low));
    return f64_from_bits(((k & 1u) != 0u ? c : s) ^ ((u64)(k & 2u) << 62));
}

INLINE64 f64 tern_sin_f64(f64 x)
{
    f64 y = tern_sin_turn_f64(tern_turns_f64(x), 0u);
    return tern_fabs_f64(x) < TERN_INF_F64 ? f64_from_bits(f64_bits(y) ^ tern_sign_f64(x)) : x - x;
}

INLINE64 f64 tern_cos_f64(f64 x)
{
    f64 y = tern_sin_turn_f64(tern_turns_f64(x), 1u);
    return tern_fabs_f64(x) < TERN_INF_F64 ? y : x - x;
}

/* sine over cosine */
INLINE64 f64 tern_tan_f64(f64 x)
{
    tern_turn_f64 t = tern_turns_f64(x);
    f64 y = tern_sin_turn_f64(t, 0u) / tern_sin_turn_f64(t, 1u);
    return tern_fabs_f64(x) < TERN_INF_F64 ? f64_from_bits(f64_bits(y) ^ tern_sign_f64(x)) : x - x;
}

/* sin and cos of 2 pi u for u in [0, 1] */
INLINE64 f64 tern_sinpi_quarter_f64(f64 u, u32 quarter)
{
    f64 t = u * 4.0 + 6755399441055744.0, f = u * 4.0 - (t - 6755399441055744.0);
    tern_pair_f64 r = tern_pair_product_f64(
        tern_pair_f64_of(f, 0.0), tern_pair_f64_of(1.5707963267948966, 6.123233995736766e-17));
    tern_turn_f64 y;
    y.r = r.hi;
    y.low = r.lo;
    y.k = (u32)f64_bits(t) & 3u;
    y.sign = 0;
    return tern_sin_turn_f64(y, quarter);
}

INLINE64 f64 tern_sin2pi_f64(f64 u)
{
    return tern_sinpi_quarter_f64(u, 0u);
}
INLINE64 f64 tern_cos2pi_f64(f64 u)
{
    return tern_sinpi_quarter_f64(u, 1u);
}

/* ---- hyperbolic functions and the sigmoid ------------------------------------------------ */

INLINE64 f64 tern_tanh_f64(f64 x)
{
    f64 a = tern_fabs_f64(x), z = a * a, p, large = 1.0 - 2.0 / (tern_exp_f64(2.0 * a) + 1.0);
    p = 2.1271448762732377e-8;
    p = p * z - 2.3272371021586123e-7;
    p = p * z + 1.2702105072767697e-6;
    p = p * z - 4.7554918191728325e-6;
    p = p * z + 1.4276173118029796e-5;
    p = p * z - 3.8060173526946072e-5;
    p = p * z + 9.6225253242134221e-5;
    p = p * z - 2.3883193621914849e-4;
    p = p * z + 5.8993113813828935e-4;
    p = p * z - 1.455811284407413e-3;
    p = p * z + 3.5921240355616421e-3;
    p = p * z - 8.863235048135883e-3;
    p = p * z + 2.1869488498058802e-2;
    p = p * z - 5.3968253966448013e-2;
    p = p * z + 1.333333333332897e-1;
    p = p * z - 3.3333333333333298e-1;
    return tern_copysign_f64(a < 1.0 ? a + a * (z * p) : large, x);
}

INLINE64 f64 tern_sigmoid_f64(f64 x)
{
    tern_exp_parts_f64 parts = tern_exp_split_f64(-tern_fabs_f64(x), 0.0);
    tern_pair_f64 sum = tern_pair_sum_f64(parts.hi, parts.lo);
    f64 e = tern_scale_f64(sum.hi, parts.k), e_low = tern_scale_f64(sum.lo, parts.k);
    f64 d = 1.0 + e, d_low = (e - (d - 1.0)) + e_low, q = e / d;
    q = q + (e_low - q * d_low) * (1.0 - q);
    return x < 0.0 ? q : 1.0 - q;
}

INLINE64 f64 tern_sinh_f64(f64 x)
{
    f64 a = tern_fabs_f64(x), z = a * a, e = tern_half_exp_f64(a), p;
    p = 7.7587441804500738e-13;
    p = p * z + 1.6057259925967056e-10;
    p = p * z + 2.5052123134613812e-8;
    p = p * z + 2.7557319157085994e-6;
    p = p * z + 1.9841269841431824e-4;
    p = p * z + 8.3333333333331476e-3;
    p = p * z + 1.6666666666666669e-1;
    return tern_copysign_f64(a < 1.0 ? a + a * (z * p) : e - 0.25 / e, x);
}

INLINE64 f64 tern_cosh_f64(f64 x)
{
    f64 e = tern_half_exp_f64(tern_fabs_f64(x));
    return e + 0.25 / e;
}

#endif /* TERN_F64 */
