/* nn/container.h -- modules that hold other modules, or parameters. */
#ifndef TERN_NN_CONTAINER_H
#define TERN_NN_CONTAINER_H
#include <tern/nn.h>

TERN_BEGIN_DECLS

/* A module that runs layers one after the other; their names are "0", "1", .... It owns them. If
 * one of them is NULL, all others are freed and the result is NULL. */
TERN_API tern_module *tern_nn_sequential_of(tern_module *const *layers, int n);
/* A list of modules without a forward function, for a module that runs them in its own way
 * (torch.nn.ModuleList). It owns them, as tern_nn_sequential_of does. */
TERN_API tern_module *tern_nn_module_list_of(tern_module *const *layers, int n);
/* Appends a child to a Sequential or ModuleList, which owns it from then on and frees it if the
 * call fails. Returns the child. When a child is removed or freed, those after it move up by
 * one. */
TERN_API tern_module *tern_nn_append(tern_module *list, tern_module *child);
/* Inserts a child before the i-th child; a negative i counts from the end. Otherwise it does what
 * tern_nn_append does. */
TERN_API tern_module *tern_nn_insert(tern_module *list, int i, tern_module *child);

/* An empty module whose children have names: tern_nn_add adds one, tern_nn_child returns one
 * (torch.nn.ModuleDict). */
TERN_API tern_module *tern_nn_module_dict(void);
/* A module that holds parameters named "0", "1", ... (torch.nn.ParameterList). */
TERN_API tern_module *tern_nn_parameter_list_of(tern_tensor *const *tensors, int n);
/* An empty module whose parameters have names; tern_nn_add_parameter adds one
 * (torch.nn.ParameterDict). */
TERN_API tern_module *tern_nn_parameter_dict(void);
/* Appends a parameter to a parameter list and returns x. */
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
