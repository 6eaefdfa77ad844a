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
#define exp(x)     FN(tern_exp)(x)
#define log(x)     FN(tern_log)(x)
#define sqrt(x)    FN(tern_sqrt)(x)
#define sin(x)     FN(tern_sin)(x)
#define cos(x)     FN(tern_cos)(x)
#define tanh(x)    FN(tern_tanh)(x)
#define erf(x)     FN(tern_erf)(x)
#define pow(x, y)  FN(tern_pow)(x, y)
#define sigmoid(x) FN(tern_sigmoid)(x)
