/* math_rows.cl -- functions that rows of .def files need and math.cl does not have, for the type
 * being compiled: written once for f32 and f64, and once for i32 and i64. */
/* Once for each type of MATH_..., however many element types are computed in it. */
#undef ROW_MATH_IS_NEW
#if IS_WIDE && !defined(ROW_MATH_F64)
#define ROW_MATH_F64
#define ROW_MATH_IS_NEW
#elif IS_FLOAT && !IS_WIDE && !defined(ROW_MATH_F32)
#define ROW_MATH_F32
#define ROW_MATH_IS_NEW
#elif IS_I64 && !defined(ROW_MATH_I64)
#define ROW_MATH_I64
#define ROW_MATH_IS_NEW
#elif !IS_FLOAT && !IS_I64 && !defined(ROW_MATH_I32)
#define ROW_MATH_I32
#define ROW_MATH_IS_NEW
#endif

#ifndef ROW_MATH_IS_NEW
#elif IS_FLOAT
#if IS_WIDE
#define ROW_MATH INLINE64
#else
#define ROW_MATH INLINE
#endif
#define PI_ C(3.141592653589793)

ROW_MATH i32 FN(tern_signbit)(REAL x)
{
    return FN(tern_copysign)(1, x) < 0;
}

/* floor(x / y) as Python has it: x - remainder, divided, is whole but for one rounding. */
ROW_MATH REAL FN(tern_floor_divide)(REAL x, REAL y)
{
    REAL mod = FN(tern_fmod)(x, y), q = (x - mod) / y, f;
    q = mod != 0 && (y < 0) != (mod < 0) ? q - 1 : q;
    f = FN(tern_floor)(q);
    f = q - f > C(0.5) ? f + 1 : f;
    f = q == 0 ? FN(tern_copysign)(0, x / y) : f;
    return y == 0 ? x / y : f;
}

ROW_MATH REAL FN(tern_trunc_divide)(REAL x, REAL y)
{
    return FN(tern_trunc)(x / y);
}

/* sqrt(x^2 + y^2), scaled where a square would leave the range */
ROW_MATH REAL FN(tern_hypot)(REAL x, REAL y)
{
#if IS_WIDE
    REAL most = C(1e150), least = C(1e-150), down = C(0x1p-600), up = C(0x1p600);
#else
    REAL most = C(1e18), least = C(1e-18), down = C(0x1p-64), up = C(0x1p96);
#endif
    REAL a = FN(tern_fabs)(x), b = FN(tern_fabs)(y), large = a > b ? a : b, scale, back;
    scale = large > most ? down : (large < least ? up : 1);
    back = large > most ? 1 / down : (large < least ? 1 / up : 1);
    REAL r = FN(tern_sqrt)((a * scale) * (a * scale) + (b * scale) * (b * scale)) * back;
    return a - a != 0 && a == a ? a : (b - b != 0 && b == b ? b : r);
}

/* log(x / (1 - x)); around 1/2, where that is near 0, 2 atanh(2 x - 1), whose argument is exact */
ROW_MATH REAL FN(tern_logit)(REAL x)
{
    REAL t = 2 * x - 1;
    return FN(tern_fabs)(t) < C(0.5) ? 2 * FN(tern_atanh)(t) : FN(tern_log)(x / (1 - x));
}

/* sin(pi x) for any x: x less the nearest whole number is exact */
ROW_MATH REAL FN(tern_sinpi)(REAL x)
{
    REAL n = FN(tern_round)(x), r = x - n, s = FN(tern_sin2pi)(C(0.5) * FN(tern_fabs)(r));
    s = r < 0 ? -s : s;
    return 2 * FN(tern_round)(C(0.5) * n) != n ? -s : s;
}

ROW_MATH REAL FN(tern_sinc)(REAL x)
{
    return FN(tern_fabs)(x) < C(1e-9) ? 1 : FN(tern_sinpi)(x) / (PI_ * x);
}

/* Giles, Approximating the erfinv function (2010), or sqrt(-log(1 - |x|)) in the far tail; then
 * Halley's steps on erf, or on erfc where 1 - |x| is the better known. */
ROW_MATH REAL FN(tern_erfinv)(REAL x)
{
    REAL a = FN(tern_fabs)(x), rest = 1 - a, w = -FN(tern_log)(rest * (1 + a)), t, p, q, y;
    t = w - C(2.5);
    p = C(2.81022636e-08);
    p = p * t + C(3.43273939e-07);
    p = p * t - C(3.5233877e-06);
    p = p * t - C(4.39150654e-06);
    p = p * t + C(0.00021858087);
    p = p * t - C(0.00125372503);
    p = p * t - C(0.00417768164);
    p = p * t + C(0.246640727);
    p = p * t + C(1.50140941);
    t = FN(tern_sqrt)(w) - 3;
    q = C(-0.000200214257);
    q = q * t + C(0.000100950558);
    q = q * t + C(0.00134934322);
    q = q * t - C(0.00367342844);
    q = q * t + C(0.00573950773);
    q = q * t - C(0.0076224613);
    q = q * t + C(0.00943887047);
    q = q * t + C(1.00167406);
    q = q * t + C(2.83297682);
    y = a * (w < 5 ? p : q);
#if IS_WIDE
    t = w + C(0.12);
    y = w < 14 ? y : FN(tern_sqrt)(t - C(0.5) * FN(tern_log)(t));
    for (i32 step = 0; step < 3; step++)
#endif
    {
        REAL e = a < C(0.5) ? FN(tern_erf)(y) - a : rest - FN(tern_erfc)(y);
        REAL u = e / (C(1.1283791670955126) * FN(tern_exp)(-y * y));
        y = y - u / (1 + y * u);
    }
    y = a == 0 ? a : y;
    y = a == 1 ? 1 / rest : y;
    return a <= 1 ? FN(tern_copysign)(y, x) : FN(tern_log)(-1 - 0 * a);
}

/* d/dx lgamma x and its next two derivatives: upwards to 10 by recurrence, then the asymptotic
 * series; left of 0 by reflection. */
ROW_MATH REAL FN(tern_digamma)(REAL x)
{
    REAL r = x - FN(tern_round)(x), s = 0, w = x < 0 ? 1 - x : x, v, z, y;
    REAL turn = x < 0 ? PI_ / FN(tern_tan)(PI_ * r) : 0;
    for (i32 i = 0; i < 10; i++) {
        s = w < 10 ? s - 1 / w : s;
        w = w < 10 ? w + 1 : w;
    }
    v = 1 / w;
    z = v * v;
    y = C(0.083333333333333333);
    y = y * z - C(0.021092796092796094);
    y = y * z + C(0.007575757575757576);
    y = y * z - C(0.004166666666666667);
    y = y * z + C(0.003968253968253968);
    y = y * z - C(0.008333333333333333);
    y = y * z + C(0.083333333333333333);
    y = (FN(tern_log)(w) - C(0.5) * v - z * y) + s - turn;
    y = x < 0 && r == 0 ? r / r : y;
    return x == 0 ? -1 / x : y;
}

ROW_MATH REAL FN(tern_trigamma)(REAL x)
{
    REAL s = 0, w = x < 0 ? 1 - x : x, v, z, y, sine = FN(tern_sinpi)(x);
    for (i32 i = 0; i < 10; i++) {
        v = 1 / w;
        s = w < 10 ? s + v * v : s;
        w = w < 10 ? w + 1 : w;
    }
    v = 1 / w;
    z = v * v;
    y = C(-0.25311355311355311);
    y = y * z + C(0.075757575757575758);
    y = y * z - C(0.033333333333333333);
    y = y * z + C(0.023809523809523808);
    y = y * z - C(0.033333333333333333);
    y = y * z + C(0.16666666666666667);
    y = v * (1 + C(0.5) * v + z * y) + s;
    return x < 0 ? PI_ * PI_ / (sine * sine) - y : y;
}

ROW_MATH REAL FN(tern_tetragamma)(REAL x)
{
    REAL s = 0, w = x < 0 ? 1 - x : x + 0, v, z, y, sine = FN(tern_sinpi)(x);
    for (i32 i = 0; i < 10; i++) {
        v = 1 / w;
        s = w < 10 ? s - 2 * v * v * v : s;
        w = w < 10 ? w + 1 : w;
    }
    v = 1 / w;
    z = v * v;
    y = C(-3.2904761904761905);
    y = y * z + C(0.83333333333333333);
    y = y * z - C(0.3);
    y = y * z + C(0.16666666666666667);
    y = y * z - C(0.16666666666666667);
    y = y * z + C(0.5);
    y = s - z * (1 + v + z * y);
    REAL cosine = FN(tern_sinpi)(x + C(0.5));
    return x < 0 ? y - 2 * PI_ * PI_ * PI_ * cosine / (sine * sine * sine) : y;
}
#undef ROW_MATH
#undef PI_
#else
/* Integers: what divides by 0 gives 0, what overflows wraps. */
#define FN_WIDTH_ ((REAL)(sizeof(REAL) * 8))
#define FN_WHOLE_(NAME)                                                                            \
    INLINE REAL FN(NAME)(REAL x)                                                                   \
    {                                                                                              \
        return x;                                                                                  \
    }
FN_WHOLE_(tern_floor)
FN_WHOLE_(tern_ceil)
FN_WHOLE_(tern_round)
FN_WHOLE_(tern_trunc)
INLINE i32 FN(tern_signbit)(REAL x)
{
    return x < 0;
}
INLINE REAL FN(tern_fmod)(REAL x, REAL y)
{
    REAL divisor = y == 0 || y == -1 ? 1 : y; /* the smallest number / -1 would trap */
    return x % divisor;
}
INLINE REAL FN(tern_remainder)(REAL x, REAL y)
{
    REAL r = FN(tern_fmod)(x, y);
    return r != 0 && (r < 0) != (y < 0) ? r + y : r;
}
INLINE REAL FN(tern_trunc_divide)(REAL x, REAL y)
{
    REAL divisor = y == 0 || y == -1 ? 1 : y;
    return y == 0 ? 0 : (y == -1 ? (REAL)(0 - (u64)x) : x / divisor);
}
INLINE REAL FN(tern_floor_divide)(REAL x, REAL y)
{
    REAL r = FN(tern_fmod)(x, y);
    return FN(tern_trunc_divide)(x, y) - (r != 0 && (r < 0) != (y < 0) ? 1 : 0);
}
/* Shifts by the width and more leave nothing, or the sign. */
INLINE REAL FN(tern_shift_left)(REAL x, REAL y)
{
    return y < 0 || y >= FN_WIDTH_ ? 0 : (REAL)((u64)x << y);
}
INLINE REAL FN(tern_shift_right)(REAL x, REAL y)
{
    REAL none = y < 0 || y >= FN_WIDTH_ ? 1 : 0;
    return none ? (x < 0 ? -1 : 0) : x >> (none ? 0 : y);
}
/* x to the y by squaring; a negative y leaves 1, -1 or 0, as in PyTorch. */
INLINE REAL FN(tern_pow)(REAL x, REAL y)
{
    u64 result = 1, square = (u64)x;
    if (y < 0)
        return x == 1 ? 1 : (x == -1 ? (y & 1 ? -1 : 1) : 0);
    for (u64 n = (u64)y; n != 0; n >>= 1) {
        result = n & 1 ? result * square : result;
        square *= square;
    }
    return (REAL)result;
}
#undef FN_WIDTH_
#undef FN_WHOLE_
#endif
