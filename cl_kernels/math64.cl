/* math64.cl -- placeholder */
#define tern_exp_f64 __builtin_exp
#define tern_log_f64 __builtin_log
#define tern_sin_f64 __builtin_sin
#define tern_cos_f64 __builtin_cos
#define tern_tanh_f64 __builtin_tanh
#define tern_erf_f64 __builtin_erf
#define tern_pow_f64 __builtin_pow
#define tern_sigmoid_f64(x) (1.0 / (1.0 + __builtin_exp(-(x))))
