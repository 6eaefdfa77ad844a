/* nn/container.h -- modules made of modules. */
#ifndef TERN_NN_CONTAINER_H
#define TERN_NN_CONTAINER_H
#include <tern/nn.h>

TERN_BEGIN_DECLS

/* One after the other, named "0", "1", ...; owns them. If one is NULL all others are freed and the
 * result is NULL. */
TERN_API tern_module *tern_nn_sequential_of(tern_module *const *layers, int n);
#ifndef __cplusplus
#define tern_nn_sequential(...)                                                                    \
    tern_nn_sequential_of(                                                                         \
        (tern_module *const[]){__VA_ARGS__},                                                       \
        (int)(sizeof((tern_module *const[]){__VA_ARGS__}) / sizeof(tern_module *)))
#endif

TERN_END_DECLS

#ifdef __cplusplus
template <class... M> inline tern_module *tern_nn_sequential(M... layers)
{
    tern_module *const list[] = {layers...};
    return tern_nn_sequential_of(list, static_cast<int>(sizeof...(layers)));
}
#endif
#endif
