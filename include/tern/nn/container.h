/* nn/container.h -- modules made of modules, or of parameters. */
#ifndef TERN_NN_CONTAINER_H
#define TERN_NN_CONTAINER_H
#include <tern/nn.h>

TERN_BEGIN_DECLS

/* One after the other, named "0", "1", ...; owns them. If one is NULL all others are freed and the
 * result is NULL. */
TERN_API tern_module *tern_nn_sequential_of(tern_module *const *layers, int n);
/* The same without a forward function: for modules that run them in their own way. */
TERN_API tern_module *tern_nn_module_list_of(tern_module *const *layers, int n);
/* Give a Sequential or a ModuleList one more child, at its end or before the i-th one (negative
 * counts from the end). It is owned from now on (also when this fails). Returns the child. Children
 * that are taken out or freed let those behind them move up. */
TERN_API tern_module *tern_nn_append(tern_module *list, tern_module *child);
/* Before the i-th child. */
TERN_API tern_module *tern_nn_insert(tern_module *list, int i, tern_module *child);

/* Modules by name: filled with tern_nn_add, asked with tern_nn_child. */
TERN_API tern_module *tern_nn_module_dict(void);
/* Parameters named "0", "1", ...; by name, filled with tern_nn_add_parameter. */
TERN_API tern_module *tern_nn_parameter_list_of(tern_tensor *const *tensors, int n);
/* An empty one. */
TERN_API tern_module *tern_nn_parameter_dict(void);
/* One more at the end of a list; returns x. */
TERN_API tern_tensor *tern_nn_append_parameter(tern_module *list, tern_tensor *x);

#ifndef __cplusplus
#define tern_nn_sequential(...)                                                                    \
    tern_nn_sequential_of(                                                                         \
        (tern_module *const[]){__VA_ARGS__},                                                       \
        (int)(sizeof((tern_module *const[]){__VA_ARGS__}) / sizeof(tern_module *)))
#define tern_nn_module_list(...)                                                                   \
    tern_nn_module_list_of(                                                                        \
        (tern_module *const[]){__VA_ARGS__},                                                       \
        (int)(sizeof((tern_module *const[]){__VA_ARGS__}) / sizeof(tern_module *)))
#define tern_nn_parameter_list(...)                                                                \
    tern_nn_parameter_list_of(                                                                     \
        (tern_tensor *const[]){__VA_ARGS__},                                                       \
        (int)(sizeof((tern_tensor *const[]){__VA_ARGS__}) / sizeof(tern_tensor *)))
#endif

TERN_END_DECLS

#ifdef __cplusplus
template <class... M> inline tern_module *tern_nn_sequential(M... layers)
{
    tern_module *const list[] = {layers...};
    return tern_nn_sequential_of(list, static_cast<int>(sizeof...(layers)));
}
template <class... M> inline tern_module *tern_nn_module_list(M... layers)
{
    tern_module *const list[] = {layers...};
    return tern_nn_module_list_of(list, static_cast<int>(sizeof...(layers)));
}
template <class... T> inline tern_module *tern_nn_parameter_list(T... tensors)
{
    tern_tensor *const list[] = {tensors...};
    return tern_nn_parameter_list_of(list, static_cast<int>(sizeof...(tensors)));
}
#endif
#endif
