/* math.cl -- the elementary functions of f32, from + - * / sqrt, selects and bit moves only.
 *
 * One text for OpenCL C, NVRTC and the host, built without contraction: every target gives the same bits. There
 * are no tables and, but for fmod, no loops or branches, so that the host compiler vectorises the callers.
 * Polynomials are minimax fits (Remez, coefficients rounded to f32 one after another) unless a source is named.
 */

#define TERN_INF_F32 f32_from_bits(0x7f800000u)
#define TERN_NAN_F32 f32_from_bits(0x7fc00000u)

/* ---- signs and pieces ---- */

/* |x| with the sign of s */
INLINE f32 tern_copysign_f32(f32 x, f32 s) {
    return f32_from_bits((f32_bits(x) & 0x7fffffffu) | (f32_bits(s) & 0x80000000u));
}

/* bits of a where mask is set, of b elsewhere */
INLINE u32 tern_mask_u32(u32 mask, u32 a, u32 b) { return b ^ ((a ^ b) & mask); }

/* The upper 12 bits of the significand: a product of two such heads is exact, and so is x - head(x). */
INLINE f32 tern_head_f32(f32 x) { return f32_from_bits(f32_bits(x) & 0xfffff000u); }

/* v * 2^k for |k| <= 252, in two steps so that a subnormal or infinite result comes out right. k is an i32 in
   two's complement; as u32 it may be any rubbish (a NaN's) without undefined behaviour. */
INLINE f32 tern_scale_f32(f32 v, u32 k) {
    u32 half_k = ((k + 1024u) >> 1) - 512u;
    return v * f32_from_bits((half_k + 127u) << 23) * f32_from_bits((k - half_k + 127u) << 23);
}

/* A value as an unevaluated sum, 48 bits together */
typedef struct {
    f32 hi, lo;
} tern_pair_f32;

INLINE tern_pair_f32 tern_pair_f32_of(f32 hi, f32 lo) {
    tern_pair_f32 y;
    y.hi = hi;
    y.lo = lo;
    return y;
}

INLINE tern_pair_f32 tern_pair_sum_f32(f32 a, f32 b) { /* exact for |a| >= |b| */
    tern_pair_f32 y;
    y.hi = a + b;
    y.lo = b - (y.hi - a);
    return y;
}

/* (a + a_low) * (b + b_low): the heads' product is exact, the rest is summed in f32 */
INLINE tern_pair_f32 tern_pair_product_f32(tern_pair_f32 a, tern_pair_f32 b) {
    f32 a_head = tern_head_f32(a.hi), b_head = tern_head_f32(b.hi);
    f32 a_tail = (a.hi - a_head) + a.lo, b_tail = (b.hi - b_head) + b.lo;
    return tern_pair_sum_f32(a_head * b_head, (a_head * b_tail + a_tail * b_head) + a_tail * b_tail);
}

/* a - b c, exact where b is a/c rounded */
INLINE f32 tern_pair_residual_f32(f32 a, f32 b, f32 c) {
    f32 b_head = tern_head_f32(b), c_head = tern_head_f32(c), b_tail = b - b_head, c_tail = c - c_head;
    return (((a - b_head * c_head) - b_head * c_tail) - b_tail * c_head) - b_tail * c_tail;
}

/* ---- rounding to integers: adding 2^23 leaves no fraction bits, and the adder rounds half to even ---- */

INLINE f32 tern_round_f32(f32 x) {
    f32 a = tern_fabs_f32(x), r = (a + 8388608.0f) - 8388608.0f;
    return a < 8388608.0f ? tern_copysign_f32(r, x) : x;
}

INLINE f32 tern_floor_f32(f32 x) {
    f32 r = tern_round_f32(x);
    return r - (r > x ? 1.0f : 0.0f);
}

INLINE f32 tern_ceil_f32(f32 x) {
    f32 r = tern_round_f32(x);
    return tern_copysign_f32(r + (r < x ? 1.0f : 0.0f), x);
}

INLINE f32 tern_trunc_f32(f32 x) {
    f32 a = tern_fabs_f32(x), r = tern_round_f32(a);
    return tern_copysign_f32(r - (r > a ? 1.0f : 0.0f), x);
}

/* ---- exponentials ---- */

/* e^(x + x_low) = 2^k (hi + lo): x = k ln 2 + r, e^r = 1 + r + r^2 q(r) on |r| <= ln(2)/2. ln 2 is split so that
   k * (its upper part) is exact; lo gathers what the roundings of r and 1 + r lost. The clamps lie beyond
   overflow and underflow, and let NaN pass. */
typedef struct {
    f32 hi, lo;
    u32 k;
} tern_exp_parts_f32;

INLINE tern_exp_parts_f32 tern_exp_split_f32(f32 x, f32 x_low) {
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

INLINE f32 tern_exp_f32(f32 x) {
    tern_exp_parts_f32 e = tern_exp_split_f32(x, 0.0f);
    return tern_scale_f32(e.hi + e.lo, e.k);
}

/* e^x / 2, which overflows later than e^x */
INLINE f32 tern_half_exp_f32(f32 x) {
    tern_exp_parts_f32 e = tern_exp_split_f32(x, 0.0f);
    return tern_scale_f32(e.hi + e.lo, e.k - 1u);
}

/* 2^x = 2^k 2^r, 2^r = 1 + r p(r) on |r| <= 1/2; low is a correction to x, as tern_pow_f32 needs it */
INLINE f32 tern_exp2_pair_f32(f32 x, f32 low) {
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

INLINE f32 tern_exp2_f32(f32 x) { return tern_exp2_pair_f32(x, 0.0f); }

/* e^x - 1 = 2^k (r + r^2 q + r_low) + (2^k - 1), the two large terms added with their rounding error kept */
INLINE f32 tern_expm1_f32(f32 x0) {
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

/* ---- logarithms ---- */

/* x = 2^k m with m in [sqrt(1/2), sqrt 2), for positive x, subnormal or not: f = m - 1 */
typedef struct {
    f32 k, f;
} tern_log_parts_f32;

INLINE tern_log_parts_f32 tern_log_split_f32(f32 x) {
    tern_log_parts_f32 y;
    f32 bias = x < 1.17549435e-38f ? 150.0f : 127.0f;
    u32 u = f32_bits(x < 1.17549435e-38f ? x * 8388608.0f : x) + (0x3f800000u - 0x3f3504f3u);
    y.k = (f32)(i32)(u >> 23) - bias;
    y.f = f32_from_bits((u & 0x007fffffu) + 0x3f3504f3u) - 1.0f;
    return y;
}

/* P in log(1 + f) = f - f^2/2 + f^3 P(f), sqrt(1/2) - 1 <= f <= sqrt(2) - 1 */
INLINE f32 tern_log_poly_f32(f32 f) {
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

/* y where 0 < x < inf, else what C99 asks of a logarithm: log 0 = -inf, log inf = inf, log(x < 0) = NaN */
INLINE f32 tern_log_edges_f32(f32 x, f32 y) {
    f32 edge = x == 0.0f ? -TERN_INF_F32 : TERN_NAN_F32;
    y = x < TERN_INF_F32 ? y : x;
    return x > 0.0f ? y : edge;
}

/* log x = k ln2 + f - f^2/2 + f^3 P(f), small terms first */
INLINE f32 tern_log_f32(f32 x) {
    tern_log_parts_f32 s = tern_log_split_f32(x);
    f32 z = s.f * s.f;
    f32 y = s.f * z * tern_log_poly_f32(s.f) + s.k * 1.42860677e-6f - 0.5f * z;
    return tern_log_edges_f32(x, s.f + y + s.k * 0.693145752f);
}

/* log(1 + f) as head + rest, head of 12 bits, so that a product with a 12 bit constant is exact */
INLINE f32 tern_log_scaled_f32(f32 x, f32 scale_head, f32 scale_tail, f32 two_head, f32 two_tail) {
    tern_log_parts_f32 s = tern_log_split_f32(x);
    f32 half_z = 0.5f * s.f * s.f;
    f32 head = tern_head_f32(s.f - half_z);
    f32 rest = (s.f - head) - half_z + s.f * s.f * s.f * tern_log_poly_f32(s.f);
    f32 a = s.k * two_head, b = head * scale_head, sum = a + b;
    f32 y = (s.k * two_tail + (b - (sum - a))) + (rest * (scale_head + scale_tail) + head * scale_tail);
    return tern_log_edges_f32(x, sum + y);
}

/* log2 x = k + log2(e) log(1 + f), log2(e) in two pieces */
INLINE f32 tern_log2_f32(f32 x) {
    return tern_log_scaled_f32(x, 1.44238281f, 3.12228396e-4f, 1.0f, 0.0f);
}

/* log10 x = k log10(2) + log10(e) log(1 + f) */
INLINE f32 tern_log10_f32(f32 x) {
    return tern_log_scaled_f32(x, 0.434204102f, 9.03803375e-5f, 0.301025391f, 4.60503907e-6f);
}

/* log(1 + x): u = 1 + x rounded, and c = (what the rounding lost) / u added; for k = 0, f is x itself */
INLINE f32 tern_log1p_f32(f32 x) {
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

/* ---- sine, cosine, tangent ---- */

/* |x| = quarter turns k and the remainder r + low, -pi/4 <= r <= pi/4 as |r| and its sign */
typedef struct {
    f32 r, low;
    u32 k, sign; /* sign: 0 or 0x80000000, of r */
} tern_turn_f32;

/* Payne and Hanek's reduction for every f32: |x| 2/pi mod 4 from 128 bits of 2/pi, no branch. With
   |x| = m 2^(32 j + s - 27) 2^1, s in 1..33, the bits of 2/pi above the window chosen by j are multiples of 4. The
   product of the 56 bits of m 2^s and the window is formed mod 2^128 and its upper 64 bits kept: two bits
   of quarter turns, 62 of fraction. |x| < pi/4 is its own remainder. */
INLINE tern_turn_f32 tern_turns_f32(f32 x) {
    tern_turn_f32 y;
    u32 u = f32_bits(x) & 0x7fffffffu;
    f32 a = f32_from_bits(u);
    u32 e = u >> 23, shift = e < 126u ? 0u : e - 126u;
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
    f32 f_b = (f32)(i32)((((f_high ^ flip) & 0x7fu) << 23) | ((f_low ^ flip) >> 9)) * 2.77555756e-17f;
    f32 head = tern_head_f32(f_a + f_b), tail = (f_a - head) + f_b;
    /* times pi/2, as a pair */
    f32 r_head = head * 1.5703125f, r_tail = head * 4.83826792e-4f + tail * 1.57079637f;
    f32 r = r_head + r_tail;
    u32 big = 0u - (u32)(a > 0.785398185f);
    y.r = a > 0.785398185f ? r : a;
    y.low = a > 0.785398185f ? r_tail - (r - r_head) : 0.0f;
    y.k = ((high + 0x20000000u) >> 30) & big;
    y.sign = flip & big & 0x80000000u;
    return y;
}

/* sin(r + low) = r + low + r^3 S(r^2), |r| <= pi/4 */
INLINE f32 tern_sin_poly_f32(f32 r, f32 low) {
    f32 z = r * r, s = -1.95180954e-4f;
    s = s * z + 8.33218824e-3f;
    s = s * z - 1.66666552e-1f;
    return r + (low + r * z * s);
}

/* cos(r + low) = 1 - r^2/2 + r^4 C(r^2) - r low */
INLINE f32 tern_cos_poly_f32(f32 r, f32 low) {
    f32 z = r * r, c = 2.44323273e-5f;
    c = c * z - 1.38873095e-3f;
    c = c * z + 4.16666456e-2f;
    return 1.0f - (0.5f * z - (z * z * c - r * low));
}

/* sin of the turn t, quarter more turns on; sign is xored in */
INLINE f32 tern_sin_turn_f32(tern_turn_f32 t, u32 quarter, u32 sign) {
    u32 k = t.k + quarter, odd = 0u - (k & 1u);
    u32 s = f32_bits(tern_sin_poly_f32(t.r, t.low)) ^ t.sign;
    u32 c = f32_bits(tern_cos_poly_f32(t.r, t.low));
    return f32_from_bits(((c & odd) | (s & ~odd)) ^ ((k & 2u) << 30) ^ sign);
}

INLINE f32 tern_sin_f32(f32 x) {
    f32 y = tern_sin_turn_f32(tern_turns_f32(x), 0u, f32_bits(x) & 0x80000000u);
    return tern_fabs_f32(x) < TERN_INF_F32 ? y : x - x;
}

INLINE f32 tern_cos_f32(f32 x) {
    f32 y = tern_sin_turn_f32(tern_turns_f32(x), 1u, 0u);
    return tern_fabs_f32(x) < TERN_INF_F32 ? y : x - x;
}

/* tan(r + low) = r + r^3 T(r^2) + low (1 + r^2), and an odd number of quarter turns on, -1 / that */
INLINE f32 tern_tan_f32(f32 x) {
    tern_turn_f32 turn = tern_turns_f32(x);
    f32 r = turn.r, z = r * r, t = 4.37647942e-3f;
    t = t * z + 9.11509851e-5f;
    t = t * z + 1.08325081e-2f;
    t = t * z + 2.12845076e-2f;
    t = t * z + 5.40591776e-2f;
    t = t * z + 1.33326739e-1f;
    t = t * z + 3.33333492e-1f;
    t = r + (turn.low * (1.0f + z) + r * z * t);
    t = f32_from_bits(f32_bits((turn.k & 1u) ? -1.0f / t : t) ^ turn.sign ^ (f32_bits(x) & 0x80000000u));
    return tern_fabs_f32(x) < TERN_INF_F32 ? t : x - x;
}

/* sin and cos of 2 pi u for u in [0, 1], as Box and Muller's normals need them */
INLINE f32 tern_turned_f32(f32 u, u32 quarter) {
    f32 t = u * 4.0f + 12582912.0f, f = u * 4.0f - (t - 12582912.0f), r = f * 1.57079637f;
    tern_turn_f32 y;
    y.r = r;
    y.low = f * -4.37113883e-8f;
    y.k = f32_bits(t);
    y.sign = 0u;
    return tern_sin_turn_f32(y, quarter, 0u);
}

INLINE f32 tern_sin2pi_f32(f32 u) { return tern_turned_f32(u, 0u); }
INLINE f32 tern_cos2pi_f32(f32 u) { return tern_turned_f32(u, 1u); }

/* ---- hyperbolic functions and the sigmoid ---- */

/* |x| < 1: x + x^3 P(x^2); else 1 - 2 / (e^2|x| + 1) */
INLINE f32 tern_tanh_f32(f32 x) {
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
    return tern_copysign_f32(a < 1.0f ? small : large, x);
}

/* With e = e^-|x|: q = e / (1 + e) for x < 0 and 1 - q for x > 0. q is corrected, to first order, for the
   roundings of e and of 1 + e. */
INLINE f32 tern_sigmoid_f32(f32 x) {
    tern_exp_parts_f32 parts = tern_exp_split_f32(-tern_fabs_f32(x), 0.0f);
    tern_pair_f32 sum = tern_pair_sum_f32(parts.hi, parts.lo);
    f32 e = tern_scale_f32(sum.hi, parts.k), e_low = tern_scale_f32(sum.lo, parts.k);
    f32 d = 1.0f + e, d_low = (e - (d - 1.0f)) + e_low, q = e / d;
    f32 fix = (e_low - q * d_low) * (1.0f - q); /* 1 - q = 1 / d, nearly */
    return x < 0.0f ? q + fix : 1.0f - (q + fix);
}

/* |x| < 1: x + x^3 P(x^2); else (e^|x| - e^-|x|) / 2 */
INLINE f32 tern_sinh_f32(f32 x) {
    f32 a = tern_fabs_f32(x), z = a * a, e = tern_half_exp_f32(a), p;
    p = 2.78221319e-6f;
    p = p * z + 1.98428956e-4f;
    p = p * z + 8.33331048e-3f;
    p = p * z + 1.66666672e-1f;
    return tern_copysign_f32(a < 1.0f ? a + a * (z * p) : e - 0.25f / e, x);
}

INLINE f32 tern_cosh_f32(f32 x) {
    f32 e = tern_half_exp_f32(tern_fabs_f32(x));
    return e + 0.25f / e;
}

/* ---- error function ---- */

/* |x| < 0.9: x + x P(x^2); else 1 - e^(|x| L(|x|)), x L(x) = log erfc x fitted on [0.9, 3.95], beyond which erf
   is 1 in f32 */
INLINE f32 tern_erf_f32(f32 x) {
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

/* x > 0.45: e^(-x^2) N(t) / (1 + 2x), t = (x - 2) / (x + 2), all in pairs but for the polynomial's tail; nearer
   zero and below it, 1 - erf x. N = (1 + 2x) e^(x^2) erfc x, fitted on 0.45 <= x <= 10.1 */
INLINE f32 tern_erfc_f32(f32 x) {
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

/* ---- powers ---- */

/* atanh s for s = f / (2 + f), which is log(1 + f) / 2, to about 2^-38: with z = s^2,
   atanh s = s (1 + z/3 + z^2 Q(z)); s, z/3 and their product are pairs */
INLINE tern_pair_f32 tern_atanh_pair_f32(f32 f) {
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
INLINE tern_pair_f32 tern_log_pair_f32(f32 x, tern_pair_f32 two, tern_pair_f32 scale) {
    tern_log_parts_f32 parts = tern_log_split_f32(x);
    tern_pair_f32 l = tern_pair_product_f32(tern_atanh_pair_f32(parts.f), scale), y;
    tern_pair_f32 k = tern_pair_product_f32(tern_pair_f32_of(parts.k, 0.0f), two);
    y = tern_pair_sum_f32(k.hi, l.hi); /* |k two| > |l|, or k = 0 */
    return tern_pair_sum_f32(y.hi, y.lo + (k.lo + l.lo));
}

/* |x|^y = 2^(y log2 |x|) with the product as a pair; then C99's table of special cases (annex F.10.4.4) */
INLINE f32 tern_pow_f32(f32 x, f32 y) {
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

/* ---- inverse trigonometric functions ---- */

/* P in asin s = s + s z P(z), z = s^2 <= 1/4 */
INLINE f32 tern_asin_poly_f32(f32 z) {
    f32 p = 4.21661958e-2f;
    p = p * z + 2.41808556e-2f;
    p = p * z + 4.54697646e-2f;
    p = p * z + 7.49530643e-2f;
    p = p * z + 1.66667521e-1f;
    return p;
}

/* For |x| >= 1/2: acos |x| = 2 asin sqrt(z), z = (1 - |x|) / 2; sqrt z as a pair, its head of 12 bits */
INLINE tern_pair_f32 tern_acos_pair_f32(f32 a) {
    f32 z = 0.5f * (1.0f - a), s = tern_sqrt_f32(z);
    tern_pair_f32 y;
    y.hi = tern_head_f32(s);
    y.lo = z > 0.0f ? (z - y.hi * y.hi) / (s + y.hi) : 0.0f;
    y.lo = 2.0f * (y.lo + s * z * tern_asin_poly_f32(z));
    y.hi = 2.0f * y.hi;
    return y;
}

INLINE f32 tern_asin_f32(f32 x) {
    f32 a = tern_fabs_f32(x), z = x * x, small = a + a * (z * tern_asin_poly_f32(z));
    tern_pair_f32 c = tern_acos_pair_f32(a);
    f32 large = (1.57079637f - c.hi) - (c.lo + 4.37113883e-8f); /* pi/2 - acos */
    return tern_copysign_f32(a < 0.5f ? small : large, x);
}

INLINE f32 tern_acos_f32(f32 x) {
    f32 a = tern_fabs_f32(x), z = x * x, p = x * (z * tern_asin_poly_f32(z));
    tern_pair_f32 c = tern_acos_pair_f32(a);
    f32 small = 1.57079637f - (x + (p + 4.37113883e-8f));
    f32 large = x < 0.0f ? 3.14159274f - (c.hi + (c.lo + 8.74227766e-8f)) : c.hi + c.lo;
    return a < 0.5f ? small : large;
}

/* atan of t in [0, 1]: t + t^3 P(t^2) */
INLINE f32 tern_atan_poly_f32(f32 t) {
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
INLINE f32 tern_atan_f32(f32 x) {
    f32 a = tern_fabs_f32(x), p = tern_atan_poly_f32(a > 1.0f ? 1.0f / a : a);
    return tern_copysign_f32(a > 1.0f ? 1.57079637f - (p + 4.37113883e-8f) : p, x);
}

/* The angle of (x, y): atan of the smaller over the larger of |x| and |y|, then its octant. The quotients 0/0 and
   inf/inf are 0 and 1, as C99 asks. */
INLINE f32 tern_atan2_f32(f32 y, f32 x) {
    f32 ax = tern_fabs_f32(x), ay = tern_fabs_f32(y);
    f32 large = ax > ay ? ax : ay, small = ax > ay ? ay : ax;
    f32 t = small == large ? (large == 0.0f ? 0.0f : 1.0f) : small / large;
    f32 p = tern_atan_poly_f32(t);
    p = ay > ax ? 1.57079637f - (p + 4.37113883e-8f) : p;
    p = (f32_bits(x) >> 31) != 0u ? 3.14159274f - (p + 8.74227766e-8f) : p;
    return x != x || y != y ? TERN_NAN_F32 : tern_copysign_f32(p, y);
}

/* ---- inverse hyperbolic functions ---- */

/* Above 2^24, log(2 |x|); else log1p(|x| + x^2 / (1 + sqrt(1 + x^2))) */
INLINE f32 tern_asinh_f32(f32 x) {
    f32 a = tern_fabs_f32(x), z = a * a, u = a + z / (1.0f + tern_sqrt_f32(1.0f + z));
    f32 y = tern_log1p_f32(a > 16777216.0f ? a : u) + (a > 16777216.0f ? 0.693147182f : 0.0f);
    return tern_copysign_f32(y, x);
}

/* log1p(t + sqrt(2t + t^2)), t = x - 1 */
INLINE f32 tern_acosh_f32(f32 x) {
    f32 t = x - 1.0f, u = t + tern_sqrt_f32(2.0f * t + t * t);
    f32 y = tern_log1p_f32(x > 16777216.0f ? x : u) + (x > 16777216.0f ? 0.693147182f : 0.0f);
    return x >= 1.0f ? y : TERN_NAN_F32;
}

/* log1p(2 |x| / (1 - |x|)) / 2, the quotient as 2 |x| + 2 x^2 / (1 - |x|) where that loses less; beyond 1 the argument is below -1 and the result NaN */
INLINE f32 tern_atanh_f32(f32 x) {
    f32 a = tern_fabs_f32(x), b = 2.0f * a, q = (a < 0.5f ? b * a : b) / (1.0f - a);
    return tern_copysign_f32(0.5f * tern_log1p_f32(a < 0.5f ? b + q : q), x);
}

/* ---- log of |gamma| ---- */

/* lgamma w for w > -0.31: near 1 and 2, (w - 1)(w - 2) times a polynomial in w - 1 or w - 2; lower arguments are
   raised by 1 (lgamma w = lgamma(w + 1) - log w), those from 3 to 8 lowered to [2, 3) */
INLINE f32 tern_lgamma_small_f32(f32 w) {
    f32 b = w, product = 1.0f, a_poly, b_poly, y, l;
    u32 i, near_one = w < 0.36f || (w >= 0.69f && w < 1.36f);
    for (i = 0u; i < 5u; i++) {
        product = b >= 3.0f ? product * (b - 1.0f) : product;
        b = b >= 3.0f ? b - 1.0f : b;
    }
    y = near_one ? (w < 0.36f ? w : w - 1.0f) : w < 0.69f ? w - 1.0f : b - 2.0f;
    a_poly = 4.47999313e-2f;
    a_poly = a_poly * y - 6.03254959e-2f;
    a_poly = a_poly * y + 5.38396798e-2f;
    a_poly = a_poly * y - 5.74239641e-2f;
    a_poly = a_poly * y + 6.65754825e-2f;
    a_poly = a_poly * y - 7.7380389e-2f;
    a_poly = a_poly * y + 9.22451839e-2f;
    a_poly = a_poly * y - 1.15145363e-1f;
    a_poly = a_poly * y + 1.55434191e-1f;
    a_poly = a_poly * y - 2.45251372e-1f;
    a_poly = a_poly * y + 5.77215672e-1f;
    b_poly = -1.07362639e-5f;
    b_poly = b_poly * y + 4.50252301e-5f;
    b_poly = b_poly * y - 9.55430878e-5f;
    b_poly = b_poly * y + 1.82796372e-4f;
    b_poly = b_poly * y - 3.99537385e-4f;
    b_poly = b_poly * y + 9.14141303e-4f;
    b_poly = b_poly * y - 2.10942607e-3f;
    b_poly = b_poly * y + 4.99893771e-3f;
    b_poly = b_poly * y - 1.23840785e-2f;
    b_poly = b_poly * y + 3.29649821e-2f;
    b_poly = b_poly * y - 1.00317307e-1f;
    b_poly = b_poly * y + 4.22784328e-1f;
    l = tern_log_f32(w < 0.69f ? tern_fabs_f32(w) : product);
    return (near_one ? y * (y - 1.0f) * a_poly : y * (y + 1.0f) * b_poly) + (w < 0.69f ? -l : l);
}

/* Stirling's series, w >= 8: (w - 1/2)(log w - 1) + log(2 pi)/2 - 1/2 + 1/(12 w) - 1/(360 w^3) + ..., the product in
   pairs */
INLINE f32 tern_lgamma_large_f32(f32 w) {
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

/* Up to -0.31 by reflection: log(pi / (|x| sin(pi |x|))) - lgamma |x|. Close to its zeros left of -2 the two cancel,
   and only the absolute error stays small. */
INLINE f32 tern_lgamma_f32(f32 x) {
    f32 a = tern_fabs_f32(x), w = x > -0.31f ? x : a, part = a - tern_floor_f32(a), s, g;
    g = w >= 8.0f ? tern_lgamma_large_f32(w) : tern_lgamma_small_f32(w);
    part = part > 0.5f ? 1.0f - part : part;
    s = part > 0.25f ? tern_cos_poly_f32(3.14159274f * (0.5f - part), 0.0f) : tern_sin_poly_f32(3.14159274f * part, 0.0f);
    g = x > -0.31f ? g : -(tern_log_f32(a * s * 0.318309886f) + g);
    g = x <= 0.0f && part == 0.0f ? TERN_INF_F32 : g;
    return x != x ? x : a == TERN_INF_F32 ? a : g;
}

/* ---- remainders ---- */

/* x - trunc(x / y) y, exact: the significands' remainder, the quotient's exponent worked off 40 bits at a time */
INLINE f32 tern_fmod_f32(f32 x, f32 y) {
    u32 ux = f32_bits(x) & 0x7fffffffu, uy = f32_bits(y) & 0x7fffffffu, sign = f32_bits(x) & 0x80000000u;
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
    /* mx 2^(ey - 150), by two powers of two, neither below 2^-126; no rounding, for mx < 2^24 and ey >= 1 */
    r = (f32)(i32)(u32)mx * f32_from_bits(((ey >> 1) + 52u) << 23);
    r = r * f32_from_bits((ey - (ey >> 1) + 52u) << 23);
    return f32_from_bits(f32_bits(r) | sign);
}

/* PyTorch's remainder: fmod with the divisor's sign */
INLINE f32 tern_remainder_f32(f32 x, f32 y) {
    f32 r = tern_fmod_f32(x, y);
    return r != 0.0f && (r < 0.0f) != (y < 0.0f) ? r + y : r;
}
