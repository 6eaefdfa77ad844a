/* math_names.h -- the names that elementwise.def uses, for the type being compiled. OpenCL devices
 * may define some of them as macros of their own. */
#undef exp
#undef log
#undef sqrt
#undef sin
#undef cos
#undef tanh
#undef erf
#undef pow
/* Rows of other functions, whose kernels are named for them. */
#undef abs
#undef acos
#undef acosh
#undef asin
#undef asinh
#undef atan
#undef atan2
#undef atanh
#undef ceil
#undef clamp
#undef copysign
#undef cosh
#undef erfc
#undef exp2
#undef expm1
#undef floor
#undef fmax
#undef fmin
#undef fmod
#undef hypot
#undef isfinite
#undef isinf
#undef isnan
#undef log10
#undef log1p
#undef lgamma
#undef log2
#undef max
#undef min
#undef remainder
#undef round
#undef rsqrt
#undef sign
#undef signbit
#undef sinh
#undef tan
#undef trunc
#define exp(x)     FN(tern_exp)(x)
#define log(x)     FN(tern_log)(x)
#define sqrt(x)    FN(tern_sqrt)(x)
#define sin(x)     FN(tern_sin)(x)
#define cos(x)     FN(tern_cos)(x)
#define tanh(x)    FN(tern_tanh)(x)
#define erf(x)     FN(tern_erf)(x)
#define pow(x, y)  FN(tern_pow)(x, y)
#define sigmoid(x) FN(tern_sigmoid)(x)
#define exp2(x) FN(tern_exp2)(x)
#ifdef TERN_EXP2_ROUGH /* to as many bits as half precision asks for */
#define exp_below(x)        TERN_CAT(TERN_EXP_BELOW, IS_HALF)(x)
#define normal_cdf(x)       TERN_CAT(TERN_NORMAL_CDF, IS_HALF)(x)
#define TERN_EXP_BELOW_0(x)  FN(tern_exp_below)(x)
#define TERN_EXP_BELOW_1(x)  TERN_EXP_ROUGH(x)
#define TERN_NORMAL_CDF_0(x) FN(tern_normal_cdf)(x)
#define TERN_NORMAL_CDF_1(x) tern_normal_cdf_rough(x)
#else
#define exp_below(x) FN(tern_exp_below)(x)
#define normal_cdf(x) FN(tern_normal_cdf)(x)
#endif
#define expm1(x) FN(tern_expm1)(x)
#define log2(x) FN(tern_log2)(x)
#define log10(x) FN(tern_log10)(x)
#define log1p(x) FN(tern_log1p)(x)
#define tan(x) FN(tern_tan)(x)
#define asin(x) FN(tern_asin)(x)
#define acos(x) FN(tern_acos)(x)
#define atan(x) FN(tern_atan)(x)
#define sinh(x) FN(tern_sinh)(x)
#define cosh(x) FN(tern_cosh)(x)
#define asinh(x) FN(tern_asinh)(x)
#define acosh(x) FN(tern_acosh)(x)
#define atanh(x) FN(tern_atanh)(x)
#define erfc(x) FN(tern_erfc)(x)
#define erfinv(x) FN(tern_erfinv)(x)
#define lgamma(x) FN(tern_lgamma)(x)
#define digamma(x) FN(tern_digamma)(x)
#define trigamma(x) FN(tern_trigamma)(x)
#define tetragamma(x) FN(tern_tetragamma)(x)
#define logit(x) FN(tern_logit)(x)
#define sinc(x) FN(tern_sinc)(x)
#define floor(x) FN(tern_floor)(x)
#define ceil(x) FN(tern_ceil)(x)
#define round(x) FN(tern_round)(x)
#define trunc(x) FN(tern_trunc)(x)
#define signbit(x) FN(tern_signbit)(x)
#define abs(x) FN(tern_fabs)(x)
#define atan2(x, y) FN(tern_atan2)(x, y)
#define hypot(x, y) FN(tern_hypot)(x, y)
#define copysign(x, y) FN(tern_copysign)(x, y)
#define fmod(x, y) FN(tern_fmod)(x, y)
#define remainder(x, y) FN(tern_remainder)(x, y)
#define floor_divide(x, y) FN(tern_floor_divide)(x, y)
#define trunc_divide(x, y) FN(tern_trunc_divide)(x, y)
#define shift_left(x, y) FN(tern_shift_left)(x, y)
#define shift_right(x, y) FN(tern_shift_right)(x, y)
