/* math.cl -- the elementary functions of f32, from + - * / sqrt, selects and bit moves only.
 *
 * One text for OpenCL C, NVRTC and the host, built without contraction: every target gives the same
 * bits. There are no tables and, but for fmod, no loops or branches, so that the host compiler
 * vectorises the callers. Polynomials are minimax fits (Remez, coefficients rounded to f32 one
 * after another) unless a source is named. */

#define TERN_INF_F32 f32_from_bits(0x7f800000u)
#define TERN_NAN_F32 f32_from_bits(0x7fc00000u)

/* ---- signs and pieces -------------------------------------------------------------------- */

/* |x| with the sign of s */
INLINE f32 tern_copysign_f32(f32 x, f32 s)
{
    return f32_from_bits((f32_bits(x) & 0x7fffffffu) | (f32_bits(s) & 0x80000000u));
}

/* bits of a where mask is set, of b elsewhere */
INLINE u32 tern_mask_u32(u32 mask, u32 a, u32 b)
{
    return b ^ ((a ^ b) & mask);
}

/* The upper 12 bits of the significand: a product of two such heads is exact, and so is
   x - head(x). */
INLINE f32 tern_head_f32(f32 x)
{
    return f32_from_bits(f32_bits(x) & 0xfffff000u);
}

/* v * 2^k for |k| <= 252, in two steps so that a subnormal or infinite result comes out right. k is
   an i32 in two's complement; as u32 it may be any rubbish (a NaN's). */
INLINE f32 tern_scale_f32(f32 v, u32 k)
{
    u32 half_k = ((k + 1024u) >> 1) - 512u;
    return v * f32_from_bits((half_k + 127u) << 23) * f32_from_bits((k - half_k + 127u) << 23);
}

/* A value as an unevaluated sum, 48 bits together. tern_pair_sum is exact for |a| >= |b|. */
typedef struct {
    f32 hi, lo;
} tern_pair_f32;

INLINE tern_pair_f32 tern_pair_sum_f32(f32 a, f32 b)
{
    tern_pair_f32 y;
    y.hi = a + b;
    y.lo = b - (y.hi - a);
    return y;
}

/* ---- rounding to integers ---------------------------------------------------------------- */

/* Half to even; one instruction. (Adding and subtracting 2^23 does the same, until a compiler takes
 * the two together.) */
#define tern_round_f32(x) tern_rint_f32(x)

INLINE f32 tern_floor_f32(f32 x)
{
    f32 r = tern_round_f32(x);
    return r - (r > x ? 1.0f : 0.0f);
}

INLINE f32 tern_ceil_f32(f32 x)
{
    f32 r = tern_round_f32(x);
    return tern_copysign_f32(r + (r < x ? 1.0f : 0.0f), x);
}

INLINE f32 tern_trunc_f32(f32 x)
{
    f32 a = tern_fabs_f32(x), r = tern_round_f32(a);
    return tern_copysign_f32(r - (r > a ? 1.0f : 0.0f), x);
}

/* ---- exponentials ------------------------------------------------------------------------ */

/* e^(x + x_low) = 2^k (hi + lo): x = k ln 2 + r, e^r = 1 + r + r^2 q(r) on |r| <= ln(2)/2. ln 2 is
   split so that k * (its upper part) is exact; lo gathers what the roundings of r and 1 + r lost.
   The clamps lie beyond overflow and underflow, and let NaN pass. */
typedef struct {
    f32 hi, lo;
    u32 k;
} tern_exp_parts_f32;

INLINE tern_exp_parts_f32 tern_exp_split_f32(f32 x, f32 x_low)
{
    tern_exp_parts_f32 y;
    f32 t, n, head, tail, r, q;
    x = x > 90.0f ? 90.0f : x;
    x = x < -105.0f ? -105.0f : x;
    t = x * 1.44269504f + 12582912.0f; /* 1.5 * 2^23: k in the low bits of t */
    n = t - 12582912.0f;
    head = x - n * 0.693145752f; /* exact */
    tail = n * 1.42860677e-6f - x_low;
    r = head - tail;
    q = 1.38636446e-3f;
    q = q * r + 8.36760644e-3f;
    q = q * r + 4.16672416e-2f;
    q = q * r + 1.66665331e-1f;
    q = q * r + 0.5f;
    y.hi = 1.0f + r;
    y.lo = ((head - (y.hi - 1.0f)) - tail) + r * r * q;
    y.k = f32_bits(t) - 0x4b400000u;
    return y;
}

INLINE f32 tern_exp_f32(f32 x)
{
    tern_exp_parts_f32 e = tern_exp_split_f32(x, 0.0f);
    return tern_scale_f32(e.hi + e.lo, e.k);
}

/* e^x for x <= 88 whose result is no subnormal: such are 0. Half the work of the above; for sums of
   powers of what the largest was taken from. */
INLINE f32 tern_exp_below_f32(f32 x0)
{
    f32 x = x0 < -88.0f ? -88.0f : x0, t = x * 1.44269504f + 12582912.0f, n = t - 12582912.0f;
    f32 r = (x - n * 0.693145752f) - n * 1.42860677e-6f, q;
    q = 1.38636446e-3f;
    q = q * r + 8.36760644e-3f;
    q = q * r + 4.16672416e-2f;
    q = q * r + 1.66665331e-1f;
    q = q * r + 0.5f;
    q = 1.0f + (r + r * r * q);
    return q * f32_from_bits((f32_bits(t) - 0x4b400000u + 127u) << 23); /* -127: 0 */
}

/* 2^x = 2^k 2^r, 2^r = 1 + r p(r) on |r| <= 1/2; low is a correction to x, as
 * tern_pow_f32 needs it */
INLINE f32 tern_exp2_pair_f32(f32 x, f32 low)
{
    f32 t, n, r, p, a, sum;
    x = x > 160.0f ? 160.0f : x;
    x = x < -160.0f ? -160.0f : x;
    t = x + 12582912.0f;
    n = t - 12582912.0f;
    r = (x - n) + low;
    p = 1.51962231e-5f;
    p = p * r + 1.54667767e-4f;
    p = p * r + 1.33339351e-3f;
    p = p * r + 9.61803831e-3f;
    p = p * r + 5.55041023e-2f;
    p = p * r + 2.40226507e-1f;
    a = r * 0.693147182f;
    sum = 1.0f + a;
    sum = sum + ((a - (sum - 1.0f)) + r * r * p);
    return tern_scale_f32(sum, f32_bits(t) - 0x4b400000u);
}

INLINE f32 tern_exp2_f32(f32 x)
{
    return tern_exp2_pair_f32(x, 0.0f);
}

/* e^x - 1 = 2^k (r + r^2 q + r_low) + (2^k - 1), the two large terms added with their rounding
 * error kept */
INLINE f32 tern_expm1_f32(f32 x0)
{
    f32 x = x0, t, n, hi, r, low, q, scale, a, b, sum, y;
    x = x > 88.8f ? 88.8f : x;
    x = x < -20.0f ? -20.0f : x;
    t = x * 1.44269504f + 12582912.0f;
    n = t - 12582912.0f;
    hi = x - n * 0.693145752f;
    r = hi - n * 1.42860677e-6f;
    low = (hi - r) - n * 1.42860677e-6f;
    q = 1.38636446e-3f;
    q = q * r + 8.36760644e-3f;
    q = q * r + 4.16672416e-2f;
    q = q * r + 1.66665331e-1f;
    q = q * r + 0.5f;
    /* half of everything, doubled at the end: 2^128 is no f32 */
    scale = f32_from_bits((f32_bits(t) - 0x4b400000u + 126u) << 23);
    a = scale - 0.5f;
    b = scale * r;
    sum = a + b;
    low = (b - (sum - a)) + scale * (r * r * q + low); /* |a| >= |b| unless k = 0, where a = 0 */
    y = 2.0f * (sum + low);
    y = tern_fabs_f32(x0) < 1e-4f ? x0 + 0.5f * x0 * x0 : y;
    return tern_copysign_f32(y, x0); /* for -0 */
}

/* ---- logarithms -------------------------------------------------------------------------- */

/* x = 2^k m with m in [sqrt(1/2), sqrt 2), for positive x, subnormal or not: f = m - 1 */
typedef struct {
    f32 k, f;
} tern_log_parts_f32;

INLINE tern_log_parts_f32 tern_log_split_f32(f32 x)
{
    tern_log_parts_f32 y;
    f32 bias = x < 1.17549435e-38f ? 150.0f : 127.0f;
    u32 u = f32_bits(x < 1.17549435e-38f ? x * 8388608.0f : x) + (0x3f800000u - 0x3f3504f3u);
    y.k = (f32)(i32)(u >> 23) - bias;
    y.f = f32_from_bits((u & 0x007fffffu) + 0x3f3504f3u) - 1.0f;
    return y;
}

/* P in log(1 + f) = f - f^2/2 + f^3 P(f), sqrt(1/2) - 1 <= f <= sqrt(2) - 1 */
INLINE f32 tern_log_poly_f32(f32 f)
{
    f32 p = 6.74659982e-2f;
    p = p * f - 1.16755508e-1f;
    p = p * f + 1.18881166e-1f;
    p = p * f - 1.24055982e-1f;
    p = p * f + 1.42195597e-1f;
    p = p * f - 1.66679963e-1f;
    p = p * f + 2.00021178e-1f;
    p = p * f - 2.50000089e-1f;
    p = p * f + 3.33333135e-1f;
    return p;
}

/* y where 0 < x < inf, else what C99 asks of a logarithm: log 0 = -inf, log inf = inf, log(x < 0) =
 * NaN */
INLINE f32 tern_log_edges_f32(f32 x, f32 y)
{
    f32 edge = x == 0.0f ? -TERN_INF_F32 : TERN_NAN_F32;
    y = x < TERN_INF_F32 ? y : x;
    return x > 0.0f ? y : edge;
}

/* log x = k ln2 + f - f^2/2 + f^3 P(f), small terms first */
INLINE f32 tern_log_f32(f32 x)
{
    tern_log_parts_f32 s = tern_log_split_f32(x);
    f32 z = s.f * s.f;
    f32 y = s.f * z * tern_log_poly_f32(s.f) + s.k * 1.42860677e-6f - 0.5f * z;
    return tern_log_edges_f32(x, s.f + y + s.k * 0.693145752f);
}

/* log(1 + f) as head + rest, head of 12 bits, so that a product with a 12 bit constant is exact */
INLINE f32 tern_log_scaled_f32(f32 x, f32 scale_head, f32 scale_tail, f32 two_head, f32 two_tail)
{
    tern_log_parts_f32 s = tern_log_split_f32(x);
    f32 half_z = 0.5f * s.f * s.f;
    f32 head = tern_head_f32(s.f - half_z);
    f32 rest = (s.f - head) - half_z + s.f * s.f * s.f * tern_log_poly_f32(s.f);
    f32 a = s.k * two_head, b = head * scale_head, sum = a + b;
    f32 y =
        (s.k * two_tail + (b - (sum - a))) + (rest * (scale_head + scale_tail) + head * scale_tail);
    return tern_log_edges_f32(x, sum + y);
}

/* log2 x = k + log2(e) log(1 + f), log2(e) in two pieces */
INLINE f32 tern_log2_f32(f32 x)
{
    return tern_log_scaled_f32(x, 1.44238281f, 3.12228396e-4f, 1.0f, 0.0f);
}

/* log10 x = k log10(2) + log10(e) log(1 + f) */
INLINE f32 tern_log10_f32(f32 x)
{
    return tern_log_scaled_f32(x, 0.434204102f, 9.03803375e-5f, 0.301025391f, 4.60503907e-6f);
}

/* log(1 + x): u = 1 + x rounded, and c = (what the rounding lost) / u added; for k = 0, f is x
 * itself */
INLINE f32 tern_log1p_f32(f32 x)
{
    f32 u = 1.0f + x;
    f32 lost = x > 1.0f ? 1.0f - (u - x) : x - (u - 1.0f);
    tern_log_parts_f32 s = tern_log_split_f32(u);
    f32 f = s.k == 0.0f ? x : s.f;
    f32 c = s.k == 0.0f ? 0.0f : lost / u;
    f32 z = f * f;
    f32 y = f * z * tern_log_poly_f32(f) + (s.k * 1.42860677e-6f + c) - 0.5f * z;
    y = f + y + s.k * 0.693145752f;
    y = x == 0.0f ? x : y; /* keeps -0 */
    return tern_log_edges_f32(u, y);
}

/* ---- sine, cosine, tangent --------------------------------------------------------------- */

/* |x| = k quarter turns and the remainder r + low, |r| <= pi/4; sign, 0 or 0x80000000, is to be
 * xored into r */
typedef struct {
    f32 r, low;
    u32 k, sign;
} tern_turn_f32;

/* Cody and Waite's reduction for 0 <= a <= 6000: pi/2 in pieces of 12, 12, 12 and 24 bits, so that
   k times each of the first three is exact, and so are the first two differences */
INLINE tern_turn_f32 tern_near_turns_f32(f32 a)
{
    tern_turn_f32 y;
    f32 t = a * 0.636619772f + 12582912.0f, n = t - 12582912.0f;
    f32 exact = (a - n * 1.5703125f) - n * 4.83751297e-4f, r = exact - n * 7.54953362e-8f;
    f32 low = ((exact - r) - n * 7.54953362e-8f) - n * 2.56334407e-12f;
    y.r = r + low;
    y.low = (r - y.r) + low;
    y.k = f32_bits(t);
    y.sign = 0u;
    return y;
}

/* Payne and Hanek's reduction for a >= 1: a 2/pi mod 4 from 128 bits of 2/pi, without a branch. Let
   a = m 2^(s + 32 j - 25) with a whole m < 2^24 and s in 1..33. Only the bits of 2/pi in a window
   that j chooses matter, the higher ones giving multiples of 4. The product of m 2^s and the window
   is formed mod 2^128 and its upper 64 bits kept: two bits of quarter turns, 62 of fraction. Any
   other a gives rubbish but no harm. */
INLINE tern_turn_f32 tern_far_turns_f32(f32 a)
{
    tern_turn_f32 y;
    u32 u = f32_bits(a), e = u >> 23, shift = e < 126u ? 0u : e - 126u;
    u32 j = (shift - (shift >> 7)) >> 5, s = shift - 32u * j + 1u;
    /* m 2^s = m_high 2^32 + m_low, by way of the exponent */
    f32 m = f32_from_bits((u & 0x007fffffu) | ((s + 118u) << 23));
    i32 m_whole = (i32)m;
    u32 m_high = (u32)m_whole, m_low = (u32)(i32)((m - (f32)m_whole) * 2147483648.0f) << 1;
    /* words j to j + 3 of 2/pi behind 27 zero bits */
    u32 two = 0u - ((j >> 1) & 1u), one = 0u - (j & 1u);
    u32 a0 = tern_mask_u32(two, 0xc882a53fu, 0x00000014u);
    u32 a1 = tern_mask_u32(two, 0x84eafa3eu, 0x5f306dc9u);
    u32 a2 = tern_mask_u32(two, 0xa69bb81bu, 0xc882a53fu);
    u32 a3 = tern_mask_u32(two, 0x6c52b327u, 0x84eafa3eu);
    u32 a4 = tern_mask_u32(two, 0x8872083fu, 0xa69bb81bu);
    u32 w0 = tern_mask_u32(one, a1, a0), w1 = tern_mask_u32(one, a2, a1);
    u32 w2 = tern_mask_u32(one, a3, a2), w3 = tern_mask_u32(one, a4, a3);
    u64 p = ((u64)(m_low * w0 + m_high * w1) << 32) + (u64)m_low * w1 + (u64)m_high * w2 +
            (((u64)m_low * w2) >> 32) + (((u64)m_high * w3) >> 32);
    u32 high = (u32)(p >> 32), low = (u32)p;
    /* the fraction, rounded to the nearest quarter turn, as sign and magnitude in units of 2^-64 */
    u32 f_high = (high << 2) | (low >> 30), f_low = low << 2, flip = 0u - (f_high >> 31);
    f32 f_a = (f32)(i32)((f_high ^ flip) & 0x7fffff80u) * 2.32830644e-10f;
    f32 f_b =
        (f32)(i32)((((f_high ^ flip) & 0x7fu) << 23) | ((f_low ^ flip) >> 9)) * 2.77555756e-17f;
    f32 head = tern_head_f32(f_a + f_b), tail = (f_a - head) + f_b;
    /* times pi/2, as a pair */
    f32 r_head = head * 1.5703125f, r_tail = head * 4.83826792e-4f + tail * 1.57079637f;
    y.r = r_head + r_tail;
    y.low = r_tail - (y.r - r_head);
    y.k = (high + 0x20000000u) >> 30;
    y.sign = flip & 0x80000000u;
    return y;
}

INLINE tern_turn_f32 tern_turns_f32(f32 x)
{
    f32 a = tern_fabs_f32(x);
    u32 beyond = 0u - (u32)(a > 6000.0f);
    tern_turn_f32 y = tern_far_turns_f32(a), small = tern_near_turns_f32(a);
    y.r = a > 6000.0f ? y.r : small.r;
    y.low = a > 6000.0f ? y.low : small.low;
    y.k = tern_mask_u32(beyond, y.k, small.k);
    y.sign = y.sign & beyond;
    return y;
}

/* sin(r + low) = r + low + r^3 S(r^2), |r| <= pi/4 */
INLINE f32 tern_sin_poly_f32(f32 r, f32 low)
{
    f32 z = r * r, s = -1.95180954e-4f;
    s = s * z + 8.33218824e-3f;
    s = s * z - 1.66666552e-1f;
    return r + (low + r * z * s);
}

/* cos(r + low) = 1 - r^2/2 + r^4 C(r^2) - r low */
INLINE f32 tern_cos_poly_f32(f32 r, f32 low)
{
    f32 z = r * r, c = 2.44323273e-5f;
    c = c * z - 1.38873095e-3f;
    c = c * z + 4.16666456e-2f;
    return 1.0f - (0.5f * z - (z * z * c - r * low));
}

/* sin of the turn t, quarter more turns on; sign is xored in */
INLINE f32 tern_sin_turn_f32(tern_turn_f32 t, u32 quarter, u32 sign)
{
    u32 k = t.k + quarter, odd = 0u - (k & 1u);
    u32 s = f32_bits(tern_sin_poly_f32(t.r, t.low)) ^ t.sign;
    u32 c = f32_bits(tern_cos_poly_f32(t.r, t.low));
    return f32_from_bits(((c & odd) | (s & ~odd)) ^ ((k & 2u) << 30) ^ sign);
}

INLINE f32 tern_sin_f32(f32 x)
{
    f32 y = tern_sin_turn_f32(tern_turns_f32(x), 0u, f32_bits(x) & 0x80000000u);
    return tern_fabs_f32(x) < TERN_INF_F32 ? y : x - x;
}

INLINE f32 tern_cos_f32(f32 x)
{
    f32 y = tern_sin_turn_f32(tern_turns_f32(x), 1u, 0u);
    return tern_fabs_f32(x) < TERN_INF_F32 ? y : x - x;
}

/* The same bits for |x| <= 6000 at a third of the cost; rubbish beyond. For loops that look at
 * their chunk first. */
INLINE f32 tern_sin_near_f32(f32 x)
{
    return tern_sin_turn_f32(tern_near_turns_f32(tern_fabs_f32(x)), 0u, f32_bits(x) & 0x80000000u);
}

INLINE f32 tern_cos_near_f32(f32 x)
{
    return tern_sin_turn_f32(tern_near_turns_f32(tern_fabs_f32(x)), 1u, 0u);
}

/* tan(r + low) = r + r^3 T(r^2) + low (1 + r^2), and an odd number of quarter
 * turns on, -1 / that */
INLINE f32 tern_tan_f32(f32 x)
{
    tern_turn_f32 turn = tern_turns_f32(x);
    f32 r = turn.r, z = r * r, t = 4.37647942e-3f;
    t = t * z + 9.11509851e-5f;
    t = t * z + 1.08325081e-2f;
    t = t * z + 2.12845076e-2f;
    t = t * z + 5.40591776e-2f;
    t = t * z + 1.33326739e-1f;
    t = t * z + 3.33333492e-1f;
    t = r + (turn.low * (1.0f + z) + r * z * t);
    t = f32_from_bits(f32_bits((turn.k & 1u) ? -1.0f / t : t) ^ turn.sign ^
                      (f32_bits(x) & 0x80000000u));
    return tern_fabs_f32(x) < TERN_INF_F32 ? t : x - x;
}

/* sin and cos of 2 pi u for u in [0, 1], as Box and Muller's normals need them */
INLINE f32 tern_sinpi_quarter_f32(f32 u, u32 quarter)
{
    f32 t = u * 4.0f + 12582912.0f, f = u * 4.0f - (t - 12582912.0f), r = f * 1.57079637f;
    tern_turn_f32 y;
    y.r = r;
    y.low = f * -4.37113883e-8f;
    y.k = f32_bits(t);
    y.sign = 0u;
    return tern_sin_turn_f32(y, quarter, 0u);
}

INLINE f32 tern_sin2pi_f32(f32 u)
{
    return tern_sinpi_quarter_f32(u, 0u);
}
INLINE f32 tern_cos2pi_f32(f32 u)
{
    return tern_sinpi_quarter_f32(u, 1u);
}

/* ---- hyperbolic functions and the sigmoid ------------------------------------------------ */

/* |x| < 0.82: x + x^3 P(x^2), fitted up to 1; else 1 - 2 / (e^2|x| + 1) */
INLINE f32 tern_tanh_f32(f32 x)
{
    f32 a = tern_fabs_f32(x), z = a * a, p, small, large;
    p = 1.16442097e-4f;
    p = p * z - 8.2187372e-4f;
    p = p * z + 3.04885209e-3f;
    p = p * z - 8.57144594e-3f;
    p = p * z + 2.17744429e-2f;
    p = p * z - 5.39507233e-2f;
    p = p * z + 1.33331746e-1f;
    p = p * z - 3.33333284e-1f;
    small = a + a * (z * p);
    large = 1.0f - 2.0f / (tern_exp_f32(2.0f * a) + 1.0f);
    return tern_copysign_f32(a < 0.82f ? small : large, x);
}

/* With e = e^-|x|: q = e / (1 + e) for x < 0 and 1 - q for x > 0. q is corrected, to first order,
   for the roundings of e and of 1 + e. */
INLINE f32 tern_sigmoid_f32(f32 x)
{
    tern_exp_parts_f32 parts = tern_exp_split_f32(-tern_fabs_f32(x), 0.0f);
    tern_pair_f32 sum = tern_pair_sum_f32(parts.hi, parts.lo);
    f32 e = tern_scale_f32(sum.hi, parts.k), e_low = tern_scale_f32(sum.lo, parts.k);
    f32 d = 1.0f + e, d_low = (e - (d - 1.0f)) + e_low, q = e / d;
    f32 fix = (e_low - q * d_low) * (1.0f - q); /* 1 - q = 1 / d, nearly */
    return x < 0.0f ? q + fix : 1.0f - (q + fix);
}
