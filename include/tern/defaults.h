/* defaults.h -- options in which 0 means 0.
 *
 * In a literal, (tern_adamw_options){.weight_decay = w}, a field that is 0 means its default, and
 * NULL for a struct means all defaults. The struct that tern_adamw_defaults() returns has the
 * defaults in its fields and a mark in reserved. With that mark every field is taken literally,
 * even if it is 0:
 *
 *   tern_adamw_options o = tern_adamw_defaults();
 *   o.weight_decay = w;                                  w may be 0
 *   tern_optim_adamw(model, 1e-3, &o);
 *
 *   tern_optim_adamw(model, 1e-3, TERN_DEFAULTS(adamw, .weight_decay = w, .beta1 = b)); the same
 *
 * TERN_DEFAULTS(x, ...) is a const tern_x_options *, and can be used in functions only. In C the
 * struct lives until the end of the enclosing block, in C++ (17 too) until the end of the
 * statement. Up to 12 fields can be assigned; arrays are assigned by element, .output_ratio[0] =
 * 0.5. Every tern_x_options has a tern_x_defaults(). A default that depends on something else is
 * NaN or -1 in that struct, as the comment of the field says. */
#ifndef TERN_DEFAULTS_H
#define TERN_DEFAULTS_H

/* clang-format off */
#define TERN_DEFAULTS(...)                                                                         \
    TERN_DEFAULTS_FORM_(TERN_FIELDS_(__VA_ARGS__, TERN_SET_12_, TERN_SET_11_, TERN_SET_10_,        \
                                     TERN_SET_9_, TERN_SET_8_, TERN_SET_7_, TERN_SET_6_,           \
                                         TERN_SET_5_,                                              \
                                     TERN_SET_4_, TERN_SET_3_, TERN_SET_2_, TERN_SET_1_,           \
                                         TERN_SET_0_,                                              \
                                     ), TERN_DEFAULTS_NAME_(tern_options_, __LINE__), __VA_ARGS__, )
#define TERN_DEFAULTS_FORM_(SET, o, ...) TERN_DEFAULTS_OF_(SET, o, __VA_ARGS__)
#define TERN_FIELDS_(name, a, b, c, d, e, f, g, h, i, j, k, l, n, ...) n
#define TERN_DEFAULTS_NAME_(a, b)     TERN_DEFAULTS_NAME__(a, b)
#define TERN_DEFAULTS_NAME__(a, b)    a##b
#define TERN_DEFAULTS_JOIN_(a, b, c)  a##b##c
#define TERN_SET_0_(o, ...)
#define TERN_SET_1_(o, a, ...) o a;
#define TERN_SET_2_(o, a, ...) o a; TERN_SET_1_(o, __VA_ARGS__)
#define TERN_SET_3_(o, a, ...) o a; TERN_SET_2_(o, __VA_ARGS__)
#define TERN_SET_4_(o, a, ...) o a; TERN_SET_3_(o, __VA_ARGS__)
#define TERN_SET_5_(o, a, ...) o a; TERN_SET_4_(o, __VA_ARGS__)
#define TERN_SET_6_(o, a, ...) o a; TERN_SET_5_(o, __VA_ARGS__)
#define TERN_SET_7_(o, a, ...) o a; TERN_SET_6_(o, __VA_ARGS__)
#define TERN_SET_8_(o, a, ...) o a; TERN_SET_7_(o, __VA_ARGS__)
#define TERN_SET_9_(o, a, ...) o a; TERN_SET_8_(o, __VA_ARGS__)
#define TERN_SET_10_(o, a, ...) o a; TERN_SET_9_(o, __VA_ARGS__)
#define TERN_SET_11_(o, a, ...) o a; TERN_SET_10_(o, __VA_ARGS__)
#define TERN_SET_12_(o, a, ...) o a; TERN_SET_11_(o, __VA_ARGS__)

#ifndef __cplusplus
/* An array of one struct, which is a pointer to it. */
#define TERN_DEFAULTS_OF_(SET, o, name, ...)                                                       \
    ((const TERN_DEFAULTS_JOIN_(tern_, name, _options)[1]){__extension__({                         \
        TERN_DEFAULTS_JOIN_(tern_, name, _options) o = TERN_DEFAULTS_JOIN_(tern_, name,            \
            _defaults)();                                                                          \
        SET(o, __VA_ARGS__) o;                                                                     \
    })})
#else
template <class T> struct tern_held_options {
    T options;
    operator const T *() const { return &options; }
};
template <class T> inline tern_held_options<T> tern_hold_options(const T &options)
{
    return {options};
}
#define TERN_DEFAULTS_OF_(SET, o, name, ...)                                                       \
    tern_hold_options([&] {                                                                        \
        TERN_DEFAULTS_JOIN_(tern_, name, _options) o = TERN_DEFAULTS_JOIN_(tern_, name,            \
            _defaults)();                                                                          \
        SET(o, __VA_ARGS__) return o;                                                              \
    }())
#endif
/* clang-format on */
#endif
