/* numbers.h -- operations that take a number in place of a tensor.
 *
 * tern_mul(x, 2), tern_mul(x, 0.5) and tern_mul(x, y): if a function of two tensors has a form for
 * a number (tern_mul_scalar), its name takes a number too, which is promoted as in PyTorch: 2 is an
 * integer, 0.5 a real, a bool a bool. A function with a tern_scalar parameter, such as tern_full,
 * tern_fill_ and tern_masked_fill, takes a plain number. A number on the left has functions of its
 * own: tern_rsub_scalar(x, 1) is 1 - x, tern_rdiv_scalar(x, 1) is 1 / x, tern_rpow_scalar(x, 2) is
 * 2 to the power of x. tern_sub(1, x) does not compile; in C, GCC before 14 and clang before 16
 * only warn about it when they do not optimize. tern_sub(0, x) is an error at run time, because 0
 * is a null pointer. tern_arange of integers is int64, and float32 if one of them is a real.
 *
 * The names are still functions: a name without an argument list, or in parentheses ((tern_mul)(x,
 * y)), is the function of its prototype. In C they are macros: an argument with a comma that is not
 * inside parentheses needs parentheses around it. In C++ they are overloads, among which the type
 * of a function pointer selects. TERN_PLAIN_NAMES, defined before the first header of tern, leaves
 * all of this out. */
#ifndef TERN_NUMBERS_H
#define TERN_NUMBERS_H
#include <tern/ops.h>

#ifndef TERN_PLAIN_NAMES
/* clang-format off */
#ifndef __cplusplus

/* ---- a tensor or a number -------------------------------------------------------------------- */

#if defined(__has_attribute)
#if __has_attribute(error)
__attribute__((error("the number goes second; 1 - x is tern_rsub_scalar(x, 1), 1 / x tern_rdiv_scalar(x, 1), 2 to the x tern_rpow_scalar(x, 2)")))
#endif
#endif
void tern_number_in_front_(void); /* there is none */
/* x, which is an address. Older compilers make one of an integer, with a warning. */
static inline tern_tensor *tern_in_front_(tern_tensor *x)
{
#ifdef __OPTIMIZE__
    const int number = (uintptr_t)x + (1 << 20) < 2 << 20 && x;
    if (__builtin_constant_p(number) && number)
        tern_number_in_front_();
#endif
    return x;
}
typedef tern_tensor *(*tern_tensor_form_)(tern_tensor *x, tern_tensor *y);
typedef tern_tensor *(*tern_number_form_)(tern_tensor *x, tern_scalar y);
static inline tern_tensor *tern_with_tensor_(tern_tensor_form_ f, tern_number_form_ g, tern_tensor *x,
                                             tern_tensor *y)
{
    (void)g;
    return f(tern_in_front_(x), y);
}
static inline tern_tensor *tern_with_scalar_(tern_tensor_form_ f, tern_number_form_ g, tern_tensor *x,
                                             tern_scalar y)
{
    (void)f;
    return g(tern_in_front_(x), y);
}
static inline tern_tensor *tern_with_real_(tern_tensor_form_ f, tern_number_form_ g, tern_tensor *x,
                                           double y)
{
    (void)f;
    return g(tern_in_front_(x), tern_scalar_real(y));
}
static inline tern_tensor *tern_with_int_(tern_tensor_form_ f, tern_number_form_ g, tern_tensor *x,
                                          int64_t y)
{
    (void)f;
    return g(tern_in_front_(x), tern_scalar_int(y));
}
static inline tern_tensor *tern_with_bool_(tern_tensor_form_ f, tern_number_form_ g, tern_tensor *x,
                                           bool y)
{
    (void)f;
    return g(tern_in_front_(x), tern_scalar_bool(y));
}
/* One of five, by the type of y: a tensor (or NULL), a tern_scalar, a real, a bool, an integer. */
#define TERN_BY_TYPE_(y, TENSOR, SCALAR, REAL, BOOL, INT)                                              \
    _Generic((y), tern_tensor *: TENSOR, const tern_tensor *: TENSOR, void *: TENSOR,                  \
             tern_scalar: SCALAR, float: REAL, double: REAL, long double: REAL, bool: BOOL,            \
             default: INT)
/* y stands here twice and not more often: calls nest. */
#define TERN_WITH_NUMBER_(f, g, x, y)                                                                  \
    TERN_BY_TYPE_(y, tern_with_tensor_, tern_with_scalar_, tern_with_real_, tern_with_bool_,           \
                  tern_with_int_)(f, g, x, y)
#define tern_add(x, y) TERN_WITH_NUMBER_(tern_add, tern_add_scalar, x, y)
#define tern_add_(x, y) TERN_WITH_NUMBER_(tern_add_, tern_add_scalar_, x, y)
#define tern_sub(x, y) TERN_WITH_NUMBER_(tern_sub, tern_sub_scalar, x, y)
#define tern_sub_(x, y) TERN_WITH_NUMBER_(tern_sub_, tern_sub_scalar_, x, y)
#define tern_mul(x, y) TERN_WITH_NUMBER_(tern_mul, tern_mul_scalar, x, y)
#define tern_mul_(x, y) TERN_WITH_NUMBER_(tern_mul_, tern_mul_scalar_, x, y)
#define tern_div(x, y) TERN_WITH_NUMBER_(tern_div, tern_div_scalar, x, y)
#define tern_div_(x, y) TERN_WITH_NUMBER_(tern_div_, tern_div_scalar_, x, y)
#define tern_floor_divide(x, y) TERN_WITH_NUMBER_(tern_floor_divide, tern_floor_divide_scalar, x, y)
#define tern_floor_divide_(x, y) TERN_WITH_NUMBER_(tern_floor_divide_, tern_floor_divide_scalar_, x, y)
#define tern_trunc_divide(x, y) TERN_WITH_NUMBER_(tern_trunc_divide, tern_trunc_divide_scalar, x, y)
#define tern_trunc_divide_(x, y) TERN_WITH_NUMBER_(tern_trunc_divide_, tern_trunc_divide_scalar_, x, y)
#define tern_fmod(x, y) TERN_WITH_NUMBER_(tern_fmod, tern_fmod_scalar, x, y)
#define tern_fmod_(x, y) TERN_WITH_NUMBER_(tern_fmod_, tern_fmod_scalar_, x, y)
#define tern_remainder(x, y) TERN_WITH_NUMBER_(tern_remainder, tern_remainder_scalar, x, y)
#define tern_remainder_(x, y) TERN_WITH_NUMBER_(tern_remainder_, tern_remainder_scalar_, x, y)
#define tern_pow(x, y) TERN_WITH_NUMBER_(tern_pow, tern_pow_scalar, x, y)
#define tern_pow_(x, y) TERN_WITH_NUMBER_(tern_pow_, tern_pow_scalar_, x, y)
#define tern_float_power(x, y) TERN_WITH_NUMBER_(tern_float_power, tern_float_power_scalar, x, y)
#define tern_maximum(x, y) TERN_WITH_NUMBER_(tern_maximum, tern_maximum_scalar, x, y)
#define tern_maximum_(x, y) TERN_WITH_NUMBER_(tern_maximum_, tern_maximum_scalar_, x, y)
#define tern_minimum(x, y) TERN_WITH_NUMBER_(tern_minimum, tern_minimum_scalar, x, y)
#define tern_minimum_(x, y) TERN_WITH_NUMBER_(tern_minimum_, tern_minimum_scalar_, x, y)
#define tern_fmax(x, y) TERN_WITH_NUMBER_(tern_fmax, tern_fmax_scalar, x, y)
#define tern_fmax_(x, y) TERN_WITH_NUMBER_(tern_fmax_, tern_fmax_scalar_, x, y)
#define tern_fmin(x, y) TERN_WITH_NUMBER_(tern_fmin, tern_fmin_scalar, x, y)
#define tern_fmin_(x, y) TERN_WITH_NUMBER_(tern_fmin_, tern_fmin_scalar_, x, y)
#define tern_clamp_min(x, y) TERN_WITH_NUMBER_(tern_clamp_min, tern_clamp_min_scalar, x, y)
#define tern_clamp_min_(x, y) TERN_WITH_NUMBER_(tern_clamp_min_, tern_clamp_min_scalar_, x, y)
#define tern_clamp_max(x, y) TERN_WITH_NUMBER_(tern_clamp_max, tern_clamp_max_scalar, x, y)
#define tern_clamp_max_(x, y) TERN_WITH_NUMBER_(tern_clamp_max_, tern_clamp_max_scalar_, x, y)
#define tern_copysign(x, y) TERN_WITH_NUMBER_(tern_copysign, tern_copysign_scalar, x, y)
#define tern_copysign_(x, y) TERN_WITH_NUMBER_(tern_copysign_, tern_copysign_scalar_, x, y)
#define tern_heaviside(x, y) TERN_WITH_NUMBER_(tern_heaviside, tern_heaviside_scalar, x, y)
#define tern_heaviside_(x, y) TERN_WITH_NUMBER_(tern_heaviside_, tern_heaviside_scalar_, x, y)
#define tern_logaddexp(x, y) TERN_WITH_NUMBER_(tern_logaddexp, tern_logaddexp_scalar, x, y)
#define tern_logaddexp_(x, y) TERN_WITH_NUMBER_(tern_logaddexp_, tern_logaddexp_scalar_, x, y)
#define tern_logaddexp2(x, y) TERN_WITH_NUMBER_(tern_logaddexp2, tern_logaddexp2_scalar, x, y)
#define tern_logaddexp2_(x, y) TERN_WITH_NUMBER_(tern_logaddexp2_, tern_logaddexp2_scalar_, x, y)
#define tern_hypot(x, y) TERN_WITH_NUMBER_(tern_hypot, tern_hypot_scalar, x, y)
#define tern_hypot_(x, y) TERN_WITH_NUMBER_(tern_hypot_, tern_hypot_scalar_, x, y)
#define tern_atan2(x, y) TERN_WITH_NUMBER_(tern_atan2, tern_atan2_scalar, x, y)
#define tern_atan2_(x, y) TERN_WITH_NUMBER_(tern_atan2_, tern_atan2_scalar_, x, y)
#define tern_multiply(x, y) TERN_WITH_NUMBER_(tern_multiply, tern_multiply_scalar, x, y)
#define tern_multiply_(x, y) TERN_WITH_NUMBER_(tern_multiply_, tern_multiply_scalar_, x, y)
#define tern_subtract(x, y) TERN_WITH_NUMBER_(tern_subtract, tern_subtract_scalar, x, y)
#define tern_subtract_(x, y) TERN_WITH_NUMBER_(tern_subtract_, tern_subtract_scalar_, x, y)
#define tern_divide(x, y) TERN_WITH_NUMBER_(tern_divide, tern_divide_scalar, x, y)
#define tern_divide_(x, y) TERN_WITH_NUMBER_(tern_divide_, tern_divide_scalar_, x, y)
#define tern_true_divide(x, y) TERN_WITH_NUMBER_(tern_true_divide, tern_true_divide_scalar, x, y)
#define tern_true_divide_(x, y) TERN_WITH_NUMBER_(tern_true_divide_, tern_true_divide_scalar_, x, y)
#define tern_arctan2(x, y) TERN_WITH_NUMBER_(tern_arctan2, tern_arctan2_scalar, x, y)
#define tern_arctan2_(x, y) TERN_WITH_NUMBER_(tern_arctan2_, tern_arctan2_scalar_, x, y)
#define tern_eq(x, y) TERN_WITH_NUMBER_(tern_eq, tern_eq_scalar, x, y)
#define tern_ne(x, y) TERN_WITH_NUMBER_(tern_ne, tern_ne_scalar, x, y)
#define tern_lt(x, y) TERN_WITH_NUMBER_(tern_lt, tern_lt_scalar, x, y)
#define tern_le(x, y) TERN_WITH_NUMBER_(tern_le, tern_le_scalar, x, y)
#define tern_gt(x, y) TERN_WITH_NUMBER_(tern_gt, tern_gt_scalar, x, y)
#define tern_ge(x, y) TERN_WITH_NUMBER_(tern_ge, tern_ge_scalar, x, y)
#define tern_logical_and(x, y) TERN_WITH_NUMBER_(tern_logical_and, tern_logical_and_scalar, x, y)
#define tern_logical_or(x, y) TERN_WITH_NUMBER_(tern_logical_or, tern_logical_or_scalar, x, y)
#define tern_logical_xor(x, y) TERN_WITH_NUMBER_(tern_logical_xor, tern_logical_xor_scalar, x, y)
#define tern_bitwise_and(x, y) TERN_WITH_NUMBER_(tern_bitwise_and, tern_bitwise_and_scalar, x, y)
#define tern_bitwise_and_(x, y) TERN_WITH_NUMBER_(tern_bitwise_and_, tern_bitwise_and_scalar_, x, y)
#define tern_bitwise_or(x, y) TERN_WITH_NUMBER_(tern_bitwise_or, tern_bitwise_or_scalar, x, y)
#define tern_bitwise_or_(x, y) TERN_WITH_NUMBER_(tern_bitwise_or_, tern_bitwise_or_scalar_, x, y)
#define tern_bitwise_xor(x, y) TERN_WITH_NUMBER_(tern_bitwise_xor, tern_bitwise_xor_scalar, x, y)
#define tern_bitwise_xor_(x, y) TERN_WITH_NUMBER_(tern_bitwise_xor_, tern_bitwise_xor_scalar_, x, y)
#define tern_bitwise_left_shift(x, y) TERN_WITH_NUMBER_(tern_bitwise_left_shift, tern_bitwise_left_shift_scalar, x, y)
#define tern_bitwise_left_shift_(x, y) TERN_WITH_NUMBER_(tern_bitwise_left_shift_, tern_bitwise_left_shift_scalar_, x, y)
#define tern_bitwise_right_shift(x, y) TERN_WITH_NUMBER_(tern_bitwise_right_shift, tern_bitwise_right_shift_scalar, x, y)
#define tern_bitwise_right_shift_(x, y) TERN_WITH_NUMBER_(tern_bitwise_right_shift_, tern_bitwise_right_shift_scalar_, x, y)
#define tern_greater(x, y) TERN_WITH_NUMBER_(tern_greater, tern_greater_scalar, x, y)
#define tern_greater_equal(x, y) TERN_WITH_NUMBER_(tern_greater_equal, tern_greater_equal_scalar, x, y)
#define tern_less(x, y) TERN_WITH_NUMBER_(tern_less, tern_less_scalar, x, y)
#define tern_less_equal(x, y) TERN_WITH_NUMBER_(tern_less_equal, tern_less_equal_scalar, x, y)
#define tern_not_equal(x, y) TERN_WITH_NUMBER_(tern_not_equal, tern_not_equal_scalar, x, y)
#define tern_xlogy(x, y) TERN_WITH_NUMBER_(tern_xlogy, tern_xlogy_scalar, x, y)
#define tern_xlogy_(x, y) TERN_WITH_NUMBER_(tern_xlogy_, tern_xlogy_scalar_, x, y)
#define tern_prelu_kernel(x, y) TERN_WITH_NUMBER_(tern_prelu_kernel, tern_prelu_kernel_scalar, x, y)
#define tern_prelu_kernel_(x, y) TERN_WITH_NUMBER_(tern_prelu_kernel_, tern_prelu_kernel_scalar_, x, y)

/* The same where it is not the last argument, or there are two. */
typedef struct tern_operand_ {
    bool is_number;
    tern_tensor *tensor;
    tern_scalar number;
} tern_operand_;
static inline tern_operand_ tern_tensor_operand_(tern_tensor *x)
{
    return (tern_operand_){false, x, {TERN_SCALAR_INT, {0}}};
}
static inline tern_operand_ tern_scalar_operand_(tern_scalar x)
{
    return (tern_operand_){true, NULL, x};
}
static inline tern_operand_ tern_real_operand_(double x)
{
    return tern_scalar_operand_(tern_scalar_real(x));
}
static inline tern_operand_ tern_bool_operand_(bool x)
{
    return tern_scalar_operand_(tern_scalar_bool(x));
}
static inline tern_operand_ tern_int_operand_(int64_t x)
{
    return tern_scalar_operand_(tern_scalar_int(x));
}
#define TERN_OPERAND_(x)                                                                               \
    TERN_BY_TYPE_(x, tern_tensor_operand_, tern_scalar_operand_, tern_real_operand_,                   \
                  tern_bool_operand_, tern_int_operand_)(x)
static inline tern_tensor *tern_where_operands_(tern_tensor *condition, tern_operand_ x,
                                                tern_operand_ y)
{
    if (x.is_number)
        return y.is_number ? tern_where_scalars(condition, x.number, y.number)
                           : tern_where_scalar_self(condition, x.number, y.tensor);
    return y.is_number ? tern_where_scalar(condition, x.tensor, y.number)
                       : tern_where(condition, x.tensor, y.tensor);
}
#define tern_where(condition, x, y)                                                                    \
    tern_where_operands_(condition, TERN_OPERAND_(x), TERN_OPERAND_(y))
static inline tern_tensor *tern_div_mode_operand_(tern_tensor *x, tern_operand_ y,
                                                  tern_rounding_mode rounding_mode)
{
    x = tern_in_front_(x);
    return y.is_number ? tern_div_mode_scalar(x, y.number, rounding_mode)
                       : tern_div_mode(x, y.tensor, rounding_mode);
}
#define tern_div_mode(x, y, rounding_mode)                                                             \
    tern_div_mode_operand_(x, TERN_OPERAND_(y), rounding_mode)
static inline tern_tensor *tern_scatter_operand_(tern_tensor *x, int dim, tern_tensor *index,
                                                 tern_operand_ src, tern_reduce_mode reduce)
{
    return src.is_number ? tern_scatter_scalar(x, dim, index, src.number, reduce)
                         : tern_scatter(x, dim, index, src.tensor, reduce);
}
#define tern_scatter(x, dim, index, src, reduce)                                                       \
    tern_scatter_operand_(x, dim, index, TERN_OPERAND_(src), reduce)
static inline tern_tensor *tern_scatter_into_operand_(tern_tensor *x, int dim, tern_tensor *index,
                                                      tern_operand_ src, tern_reduce_mode reduce)
{
    return src.is_number ? tern_scatter_scalar_(x, dim, index, src.number, reduce)
                         : tern_scatter_(x, dim, index, src.tensor, reduce);
}
#define tern_scatter_(x, dim, index, src, reduce)                                                      \
    tern_scatter_into_operand_(x, dim, index, TERN_OPERAND_(src), reduce)
#define tern_lerp(x, end, weight)                                                                      \
    _Generic((weight), tern_tensor *: tern_lerp, const tern_tensor *: tern_lerp, void *: tern_lerp,    \
             default: tern_lerp_scalar)(x, end, weight)

#define TERN_OF_REAL_(y, f, g)                                                                         \
    _Generic((y), tern_tensor *: f, const tern_tensor *: f, void *: f, default: g)
#define tern_quantile(x, q, options)                                                                   \
    TERN_OF_REAL_(q, tern_quantile, tern_quantile_scalar)(x, q, options)
#define tern_nanquantile(x, q, options)                                                                \
    TERN_OF_REAL_(q, tern_nanquantile, tern_nanquantile_scalar)(x, q, options)
static inline tern_tensor *tern_searchsorted_operand_(tern_tensor *boundaries, tern_operand_ values,
                                                      tern_side side)
{
    return values.is_number ? tern_searchsorted_scalar(boundaries, values.number, side)
                            : tern_searchsorted(boundaries, values.tensor, side);
}
#define tern_searchsorted(boundaries, values, side)                                                    \
    tern_searchsorted_operand_(boundaries, TERN_OPERAND_(values), side)
static inline tern_tensor *tern_bucketize_operand_(tern_operand_ values, tern_tensor *boundaries,
                                                   bool right)
{
    return values.is_number ? tern_bucketize_scalar(values.number, boundaries, right)
                            : tern_bucketize(values.tensor, boundaries, right);
}
#define tern_bucketize(values, boundaries, right)                                                      \
    tern_bucketize_operand_(TERN_OPERAND_(values), boundaries, right)
static inline tern_tensor *tern_index_fill_operand_(tern_tensor *x, int dim, tern_tensor *index,
                                                    tern_operand_ value)
{
    return value.is_number ? tern_index_fill(x, dim, index, value.number)
                           : tern_index_fill_tensor(x, dim, index, value.tensor);
}
#define tern_index_fill(x, dim, index, value)                                                          \
    tern_index_fill_operand_(x, dim, index, TERN_OPERAND_(value))
static inline tern_tensor *tern_index_fill_in_operand_(tern_tensor *x, int dim, tern_tensor *index,
                                                       tern_operand_ value)
{
    return value.is_number ? tern_index_fill_(x, dim, index, value.number)
                           : tern_index_fill_tensor_(x, dim, index, value.tensor);
}
#define tern_index_fill_(x, dim, index, value)                                                         \
    tern_index_fill_in_operand_(x, dim, index, TERN_OPERAND_(value))

/* ---- a number -------------------------------------------------------------------------------- */

#define tern_full(shape, value, dtype, device) tern_full(shape, TERN_SCALAR(value), dtype, device)
#define tern_tensor_scalar(value, dtype, device) tern_tensor_scalar(TERN_SCALAR(value), dtype, device)
#define tern_full_like(x, value) tern_full_like(x, TERN_SCALAR(value))
#define tern_new_full(x, shape, value) tern_new_full(x, shape, TERN_SCALAR(value))
#define tern_fill_(x, value) tern_fill_(x, TERN_SCALAR(value))
#define tern_masked_fill(x, mask, value) tern_masked_fill(x, mask, TERN_SCALAR(value))
#define tern_masked_fill_(x, mask, value) tern_masked_fill_(x, mask, TERN_SCALAR(value))
#define tern_addcmul(x, y, z, value) tern_addcmul(x, y, z, TERN_SCALAR(value))
#define tern_addcmul_(x, y, z, value) tern_addcmul_(x, y, z, TERN_SCALAR(value))
#define tern_addcdiv(x, y, z, value) tern_addcdiv(x, y, z, TERN_SCALAR(value))
#define tern_addcdiv_(x, y, z, value) tern_addcdiv_(x, y, z, TERN_SCALAR(value))
#define tern_index_add(x, dim, index, source, value) tern_index_add(x, dim, index, source, TERN_SCALAR(value))
#define tern_index_add_(x, dim, index, source, value) tern_index_add_(x, dim, index, source, TERN_SCALAR(value))
#define tern_rsub_scalar(x, value) tern_rsub_scalar(x, TERN_SCALAR(value))
#define tern_rsub_scalar_(x, value) tern_rsub_scalar_(x, TERN_SCALAR(value))
#define tern_rdiv_scalar(x, value) tern_rdiv_scalar(x, TERN_SCALAR(value))
#define tern_rdiv_scalar_(x, value) tern_rdiv_scalar_(x, TERN_SCALAR(value))
#define tern_rpow_scalar(x, value) tern_rpow_scalar(x, TERN_SCALAR(value))
#define tern_rpow_scalar_(x, value) tern_rpow_scalar_(x, TERN_SCALAR(value))
#define tern_arange(start, end, step, dtype, device)                                                   \
    tern_arange_scalar(TERN_SCALAR(start), TERN_SCALAR(end), TERN_SCALAR(step), dtype, device)

#else /* C++: overloads */
#include <type_traits>

/* ---- a tensor or a number -------------------------------------------------------------------- */

template <class N>
using tern_if_number_ =
    typename std::enable_if<std::is_arithmetic<N>::value || std::is_enum<N>::value ||
                                std::is_same<N, tern_scalar>::value,
                            tern_tensor *>::type;
#define TERN_NUMBER_FORM_(name, parameters, arguments)                                                 \
    template <class N> inline tern_if_number_<N> name parameters { return name arguments; }
#define TERN_TAKES_NUMBER_(name, number_form)                                                          \
    template <class N> inline tern_if_number_<N> name(tern_tensor *x, N y)                             \
    {                                                                                                  \
        return number_form(x, tern_make_scalar(y));                                                    \
    }
TERN_TAKES_NUMBER_(tern_add, tern_add_scalar)
TERN_TAKES_NUMBER_(tern_add_, tern_add_scalar_)
TERN_TAKES_NUMBER_(tern_sub, tern_sub_scalar)
TERN_TAKES_NUMBER_(tern_sub_, tern_sub_scalar_)
TERN_TAKES_NUMBER_(tern_mul, tern_mul_scalar)
TERN_TAKES_NUMBER_(tern_mul_, tern_mul_scalar_)
TERN_TAKES_NUMBER_(tern_div, tern_div_scalar)
TERN_TAKES_NUMBER_(tern_div_, tern_div_scalar_)
TERN_TAKES_NUMBER_(tern_floor_divide, tern_floor_divide_scalar)
TERN_TAKES_NUMBER_(tern_floor_divide_, tern_floor_divide_scalar_)
TERN_TAKES_NUMBER_(tern_trunc_divide, tern_trunc_divide_scalar)
TERN_TAKES_NUMBER_(tern_trunc_divide_, tern_trunc_divide_scalar_)
TERN_TAKES_NUMBER_(tern_fmod, tern_fmod_scalar)
TERN_TAKES_NUMBER_(tern_fmod_, tern_fmod_scalar_)
TERN_TAKES_NUMBER_(tern_remainder, tern_remainder_scalar)
TERN_TAKES_NUMBER_(tern_remainder_, tern_remainder_scalar_)
TERN_TAKES_NUMBER_(tern_pow, tern_pow_scalar)
TERN_TAKES_NUMBER_(tern_pow_, tern_pow_scalar_)
TERN_TAKES_NUMBER_(tern_float_power, tern_float_power_scalar)
TERN_TAKES_NUMBER_(tern_maximum, tern_maximum_scalar)
TERN_TAKES_NUMBER_(tern_maximum_, tern_maximum_scalar_)
TERN_TAKES_NUMBER_(tern_minimum, tern_minimum_scalar)
TERN_TAKES_NUMBER_(tern_minimum_, tern_minimum_scalar_)
TERN_TAKES_NUMBER_(tern_fmax, tern_fmax_scalar)
TERN_TAKES_NUMBER_(tern_fmax_, tern_fmax_scalar_)
TERN_TAKES_NUMBER_(tern_fmin, tern_fmin_scalar)
TERN_TAKES_NUMBER_(tern_fmin_, tern_fmin_scalar_)
TERN_TAKES_NUMBER_(tern_clamp_min, tern_clamp_min_scalar)
TERN_TAKES_NUMBER_(tern_clamp_min_, tern_clamp_min_scalar_)
TERN_TAKES_NUMBER_(tern_clamp_max, tern_clamp_max_scalar)
TERN_TAKES_NUMBER_(tern_clamp_max_, tern_clamp_max_scalar_)
TERN_TAKES_NUMBER_(tern_copysign, tern_copysign_scalar)
TERN_TAKES_NUMBER_(tern_copysign_, tern_copysign_scalar_)
TERN_TAKES_NUMBER_(tern_heaviside, tern_heaviside_scalar)
TERN_TAKES_NUMBER_(tern_heaviside_, tern_heaviside_scalar_)
TERN_TAKES_NUMBER_(tern_logaddexp, tern_logaddexp_scalar)
TERN_TAKES_NUMBER_(tern_logaddexp_, tern_logaddexp_scalar_)
TERN_TAKES_NUMBER_(tern_logaddexp2, tern_logaddexp2_scalar)
TERN_TAKES_NUMBER_(tern_logaddexp2_, tern_logaddexp2_scalar_)
TERN_TAKES_NUMBER_(tern_hypot, tern_hypot_scalar)
TERN_TAKES_NUMBER_(tern_hypot_, tern_hypot_scalar_)
TERN_TAKES_NUMBER_(tern_atan2, tern_atan2_scalar)
TERN_TAKES_NUMBER_(tern_atan2_, tern_atan2_scalar_)
TERN_TAKES_NUMBER_(tern_multiply, tern_multiply_scalar)
TERN_TAKES_NUMBER_(tern_multiply_, tern_multiply_scalar_)
TERN_TAKES_NUMBER_(tern_subtract, tern_subtract_scalar)
TERN_TAKES_NUMBER_(tern_subtract_, tern_subtract_scalar_)
TERN_TAKES_NUMBER_(tern_divide, tern_divide_scalar)
TERN_TAKES_NUMBER_(tern_divide_, tern_divide_scalar_)
TERN_TAKES_NUMBER_(tern_true_divide, tern_true_divide_scalar)
TERN_TAKES_NUMBER_(tern_true_divide_, tern_true_divide_scalar_)
TERN_TAKES_NUMBER_(tern_arctan2, tern_arctan2_scalar)
TERN_TAKES_NUMBER_(tern_arctan2_, tern_arctan2_scalar_)
TERN_TAKES_NUMBER_(tern_eq, tern_eq_scalar)
TERN_TAKES_NUMBER_(tern_ne, tern_ne_scalar)
TERN_TAKES_NUMBER_(tern_lt, tern_lt_scalar)
TERN_TAKES_NUMBER_(tern_le, tern_le_scalar)
TERN_TAKES_NUMBER_(tern_gt, tern_gt_scalar)
TERN_TAKES_NUMBER_(tern_ge, tern_ge_scalar)
TERN_TAKES_NUMBER_(tern_logical_and, tern_logical_and_scalar)
TERN_TAKES_NUMBER_(tern_logical_or, tern_logical_or_scalar)
TERN_TAKES_NUMBER_(tern_logical_xor, tern_logical_xor_scalar)
TERN_TAKES_NUMBER_(tern_bitwise_and, tern_bitwise_and_scalar)
TERN_TAKES_NUMBER_(tern_bitwise_and_, tern_bitwise_and_scalar_)
TERN_TAKES_NUMBER_(tern_bitwise_or, tern_bitwise_or_scalar)
TERN_TAKES_NUMBER_(tern_bitwise_or_, tern_bitwise_or_scalar_)
TERN_TAKES_NUMBER_(tern_bitwise_xor, tern_bitwise_xor_scalar)
TERN_TAKES_NUMBER_(tern_bitwise_xor_, tern_bitwise_xor_scalar_)
TERN_TAKES_NUMBER_(tern_bitwise_left_shift, tern_bitwise_left_shift_scalar)
TERN_TAKES_NUMBER_(tern_bitwise_left_shift_, tern_bitwise_left_shift_scalar_)
TERN_TAKES_NUMBER_(tern_bitwise_right_shift, tern_bitwise_right_shift_scalar)
TERN_TAKES_NUMBER_(tern_bitwise_right_shift_, tern_bitwise_right_shift_scalar_)
TERN_TAKES_NUMBER_(tern_greater, tern_greater_scalar)
TERN_TAKES_NUMBER_(tern_greater_equal, tern_greater_equal_scalar)
TERN_TAKES_NUMBER_(tern_less, tern_less_scalar)
TERN_TAKES_NUMBER_(tern_less_equal, tern_less_equal_scalar)
TERN_TAKES_NUMBER_(tern_not_equal, tern_not_equal_scalar)
TERN_TAKES_NUMBER_(tern_xlogy, tern_xlogy_scalar)
TERN_TAKES_NUMBER_(tern_xlogy_, tern_xlogy_scalar_)
TERN_TAKES_NUMBER_(tern_prelu_kernel, tern_prelu_kernel_scalar)
TERN_TAKES_NUMBER_(tern_prelu_kernel_, tern_prelu_kernel_scalar_)
template <class N> inline tern_if_number_<N> tern_where(tern_tensor *condition, tern_tensor *x, N y)
{
    return tern_where_scalar(condition, x, tern_make_scalar(y));
}
template <class N> inline tern_if_number_<N> tern_where(tern_tensor *condition, N x, tern_tensor *y)
{
    return tern_where_scalar_self(condition, tern_make_scalar(x), y);
}
template <class N, class M>
inline typename std::enable_if<!std::is_pointer<M>::value, tern_if_number_<N>>::type
tern_where(tern_tensor *condition, N x, M y)
{
    return tern_where_scalars(condition, tern_make_scalar(x), tern_make_scalar(y));
}
template <class N>
inline tern_if_number_<N> tern_div_mode(tern_tensor *x, N y, tern_rounding_mode rounding_mode)
{
    return tern_div_mode_scalar(x, tern_make_scalar(y), rounding_mode);
}
template <class N>
inline tern_if_number_<N> tern_scatter(tern_tensor *x, int dim, tern_tensor *index, N src,
                                       tern_reduce_mode reduce)
{
    return tern_scatter_scalar(x, dim, index, tern_make_scalar(src), reduce);
}
template <class N>
inline tern_if_number_<N> tern_scatter_(tern_tensor *x, int dim, tern_tensor *index, N src,
                                        tern_reduce_mode reduce)
{
    return tern_scatter_scalar_(x, dim, index, tern_make_scalar(src), reduce);
}
inline tern_tensor *tern_index_fill(tern_tensor *x, int dim, tern_tensor *index, tern_tensor *value)
{
    return tern_index_fill_tensor(x, dim, index, value);
}
inline tern_tensor *tern_index_fill_(tern_tensor *x, int dim, tern_tensor *index, tern_tensor *value)
{
    return tern_index_fill_tensor_(x, dim, index, value);
}
template <class N>
inline tern_if_number_<N> tern_quantile(tern_tensor *x, N q, const tern_quantile_options *options)
{
    return tern_quantile_scalar(x, static_cast<double>(q), options);
}
template <class N>
inline tern_if_number_<N> tern_nanquantile(tern_tensor *x, N q, const tern_quantile_options *options)
{
    return tern_nanquantile_scalar(x, static_cast<double>(q), options);
}
template <class N>
inline tern_if_number_<N> tern_searchsorted(tern_tensor *boundaries, N value, tern_side side)
{
    return tern_searchsorted_scalar(boundaries, tern_make_scalar(value), side);
}
template <class N>
inline tern_if_number_<N> tern_bucketize(N value, tern_tensor *boundaries, bool right)
{
    return tern_bucketize_scalar(tern_make_scalar(value), boundaries, right);
}
template <class N>
inline tern_if_number_<N> tern_lerp(tern_tensor *x, tern_tensor *end, N weight)
{
    return tern_lerp_scalar(x, end, static_cast<double>(weight));
}

/* ---- a number -------------------------------------------------------------------------------- */

TERN_NUMBER_FORM_(tern_full, (tern_shape shape, N value, tern_dtype dtype, const char *device), (shape, tern_make_scalar(value), dtype, device))
TERN_NUMBER_FORM_(tern_tensor_scalar, (N value, tern_dtype dtype, const char *device), (tern_make_scalar(value), dtype, device))
TERN_NUMBER_FORM_(tern_full_like, (const tern_tensor *x, N value), (x, tern_make_scalar(value)))
TERN_NUMBER_FORM_(tern_new_full, (const tern_tensor *x, tern_shape shape, N value), (x, shape, tern_make_scalar(value)))
TERN_NUMBER_FORM_(tern_fill_, (tern_tensor *x, N value), (x, tern_make_scalar(value)))
TERN_NUMBER_FORM_(tern_masked_fill, (tern_tensor *x, tern_tensor *mask, N value), (x, mask, tern_make_scalar(value)))
TERN_NUMBER_FORM_(tern_masked_fill_, (tern_tensor *x, tern_tensor *mask, N value), (x, mask, tern_make_scalar(value)))
TERN_NUMBER_FORM_(tern_addcmul, (tern_tensor *x, tern_tensor *y, tern_tensor *z, N value), (x, y, z, tern_make_scalar(value)))
TERN_NUMBER_FORM_(tern_addcmul_, (tern_tensor *x, tern_tensor *y, tern_tensor *z, N value), (x, y, z, tern_make_scalar(value)))
TERN_NUMBER_FORM_(tern_addcdiv, (tern_tensor *x, tern_tensor *y, tern_tensor *z, N value), (x, y, z, tern_make_scalar(value)))
TERN_NUMBER_FORM_(tern_addcdiv_, (tern_tensor *x, tern_tensor *y, tern_tensor *z, N value), (x, y, z, tern_make_scalar(value)))
TERN_NUMBER_FORM_(tern_index_add, (tern_tensor *x, int dim, tern_tensor *index, tern_tensor *source, N value), (x, dim, index, source, tern_make_scalar(value)))
TERN_NUMBER_FORM_(tern_index_add_, (tern_tensor *x, int dim, tern_tensor *index, tern_tensor *source, N value), (x, dim, index, source, tern_make_scalar(value)))
TERN_NUMBER_FORM_(tern_index_fill, (tern_tensor *x, int dim, tern_tensor *index, N value), (x, dim, index, tern_make_scalar(value)))
TERN_NUMBER_FORM_(tern_index_fill_, (tern_tensor *x, int dim, tern_tensor *index, N value), (x, dim, index, tern_make_scalar(value)))
TERN_NUMBER_FORM_(tern_rsub_scalar, (tern_tensor *x, N value), (x, tern_make_scalar(value)))
TERN_NUMBER_FORM_(tern_rsub_scalar_, (tern_tensor *x, N value), (x, tern_make_scalar(value)))
TERN_NUMBER_FORM_(tern_rdiv_scalar, (tern_tensor *x, N value), (x, tern_make_scalar(value)))
TERN_NUMBER_FORM_(tern_rdiv_scalar_, (tern_tensor *x, N value), (x, tern_make_scalar(value)))
TERN_NUMBER_FORM_(tern_rpow_scalar, (tern_tensor *x, N value), (x, tern_make_scalar(value)))
TERN_NUMBER_FORM_(tern_rpow_scalar_, (tern_tensor *x, N value), (x, tern_make_scalar(value)))
template <class A, class B, class C>
inline typename std::enable_if<std::is_arithmetic<A>::value && std::is_arithmetic<B>::value &&
                                   std::is_arithmetic<C>::value,
                               tern_tensor *>::type
tern_arange(A start, B end, C step, tern_dtype dtype, const char *device)
{
    return tern_arange_scalar(tern_make_scalar(start), tern_make_scalar(end), tern_make_scalar(step),
                              dtype, device);
}
#endif
/* clang-format on */
#endif
#endif
