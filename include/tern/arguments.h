/* arguments.h -- functions that can be called with fewer arguments, or with a plain value in place
 * of a struct of options.
 *
 *   tern_std(x), tern_var(x)           correction 1, as torch.std(x) and torch.var(x)
 *   tern_nn_train(m)                   training mode, as m.train()
 *   tern_nn_dropout(0.1)               p, as torch.nn.Dropout(0.1); so do dropout1d, 2d, 3d,
 *                                      alpha_dropout, feature_alpha_dropout
 *   tern_load("model.pt", "cpu")       map_location, as torch.load(path, "cpu")
 *
 * The calls with all arguments work too. In C these names are macros, as those in numbers.h are: a
 * name without an argument list is the function. TERN_PLAIN_NAMES, defined before the first header
 * of tern, leaves all of them out. */
#ifndef TERN_ARGUMENTS_H
#define TERN_ARGUMENTS_H
#include <tern/io.h>
#include <tern/nn.h>
#include <tern/ops.h>
#include <tern/pointers.h>

#ifndef TERN_PLAIN_NAMES
/* clang-format off */
#ifndef __cplusplus
/* A second argument that is not given is 1. */
#define TERN_ELSE_ONE_(f, ...)                                                                     \
    TERN_JOIN_3_(TERN_ELSE_ONE_, TERN_COUNT_(__VA_ARGS__), _)(f, __VA_ARGS__)
#define TERN_ELSE_ONE_1_(f, x)    (f)(x, 1)
#define TERN_ELSE_ONE_2_(f, x, y) (f)(x, y)
#define TERN_ELSE_ONE_3_(f, ...)  (f)(__VA_ARGS__) /* an error of the compiler */
#define tern_std(...)      TERN_ELSE_ONE_(tern_std, __VA_ARGS__)
#define tern_var(...)      TERN_ELSE_ONE_(tern_var, __VA_ARGS__)
#define tern_nn_train(...) TERN_ELSE_ONE_(tern_nn_train, __VA_ARGS__)
static inline const tern_dropout_options *tern_dropout_given_(const tern_dropout_options *options,
                                                              double p, tern_dropout_options *space)
{
    (void)p, (void)space;
    return options;
}
static inline const tern_dropout_options *tern_dropout_of_(const void *options, double p,
                                                           tern_dropout_options *space)
{
    (void)options;
    *space = tern_dropout_defaults();
    space->p = p == 0 ? TERN_ZERO : p;
    return space;
}
/* These are never called: with them a compiler counts the arguments, and refuses a second one. */
int tern_dropout_number_(double p);
int tern_dropout_options_(const tern_dropout_options *options);
/* The argument is variadic for the commas of &(tern_dropout_options){...}; it is computed once. */
#define TERN_IF_NUMBER_(number, other, ...)                                                        \
    _Generic((__VA_ARGS__), float: number, double: number, long double: number, int: number,       \
        default: other)
#define TERN_DROPOUT_(f, ...)                                                                      \
    (f)(TERN_IF_NUMBER_(tern_dropout_of_, tern_dropout_given_, __VA_ARGS__)(                       \
        _Generic((__VA_ARGS__), float: NULL, double: NULL, long double: NULL, int: NULL,           \
                 default: (__VA_ARGS__)),                                                          \
        _Generic((__VA_ARGS__), float: (__VA_ARGS__), double: (__VA_ARGS__),                       \
                 long double: (__VA_ARGS__), int: (__VA_ARGS__), default: 0),                      \
        &(tern_dropout_options){                                                                   \
            .p = 0 * sizeof(TERN_IF_NUMBER_(tern_dropout_number_, tern_dropout_options_,           \
                                            __VA_ARGS__)(__VA_ARGS__))}))
#define tern_nn_dropout(...) TERN_DROPOUT_(tern_nn_dropout, __VA_ARGS__)
#define tern_nn_dropout1d(...) TERN_DROPOUT_(tern_nn_dropout1d, __VA_ARGS__)
#define tern_nn_dropout2d(...) TERN_DROPOUT_(tern_nn_dropout2d, __VA_ARGS__)
#define tern_nn_dropout3d(...) TERN_DROPOUT_(tern_nn_dropout3d, __VA_ARGS__)
#define tern_nn_alpha_dropout(...) TERN_DROPOUT_(tern_nn_alpha_dropout, __VA_ARGS__)
#define tern_nn_feature_alpha_dropout(...) TERN_DROPOUT_(tern_nn_feature_alpha_dropout, __VA_ARGS__)

static inline tern_state_dict *tern_load_to_(const char *path, const char *device)
{
    tern_load_options options = tern_load_defaults();
    options.map_location = device;
    return (tern_load)(path, &options);
}
#define tern_load(path, ...)                                                                       \
    _Generic((__VA_ARGS__), char *: tern_load_to_, const char *: tern_load_to_,                    \
             default: (tern_load))(path, (__VA_ARGS__))
#else
#include <type_traits>
extern "C++" {
inline tern_tensor *tern_std(tern_tensor *x)
{
    return tern_std(x, 1);
}
inline tern_tensor *tern_var(tern_tensor *x)
{
    return tern_var(x, 1);
}
inline tern_module *tern_nn_train(tern_module *m)
{
    return tern_nn_train(m, true);
}
/* Reals alone, so that NULL and 0 stay what they were. */
#define TERN_DROPOUT_(f)                                                                           \
    template <class P, typename std::enable_if<std::is_floating_point<P>::value, int>::type = 0>   \
    inline tern_module *f(P p)                                                                     \
    {                                                                                              \
        tern_dropout_options options = tern_dropout_defaults();                                    \
        options.p = p == 0 ? TERN_ZERO : static_cast<double>(p);                                   \
        return f(&options);                                                                        \
    }
TERN_DROPOUT_(tern_nn_dropout)
TERN_DROPOUT_(tern_nn_dropout1d)
TERN_DROPOUT_(tern_nn_dropout2d)
TERN_DROPOUT_(tern_nn_dropout3d)
TERN_DROPOUT_(tern_nn_alpha_dropout)
TERN_DROPOUT_(tern_nn_feature_alpha_dropout)
#undef TERN_DROPOUT_
template <class C, typename std::enable_if<std::is_same<C, const char *>::value || std::is_same<C,
    char *>::value, int>::type = 0>
inline tern_state_dict *tern_load(const char *path, C device)
{
    tern_load_options options = tern_load_defaults();
    options.map_location = device;
    return tern_load(path, &options);
}
}
#endif
/* clang-format on */
#endif
#endif
