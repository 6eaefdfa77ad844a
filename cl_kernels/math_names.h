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
#undef isfinite
#undef isinf
#undef isnan
#undef log10
#undef log1p
#undef log2
#undef max
#undef min
#undef round
#undef rsqrt
#undef sign
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
