/* io/onnx.h -- ONNX: models as files that other frameworks write.
 *
 * Needs libprotobuf-c.so.1 at run time, and Debian's libonnx-dev and protobuf-c-compiler when tern is built
 * (CMake's TERN_ONNX). */
#ifndef TERN_IO_ONNX_H
#define TERN_IO_ONNX_H
#include <tern/nn.h>

TERN_BEGIN_DECLS

/* Whether this build and machine read ONNX. */
TERN_API bool tern_onnx_is_available(void);

/* A module that computes the graph in a file, on the cpu until it is moved; freed with tern_nn_free.
 * Initializers of floating point are parameters under their names, in which dots make children;
 * running means and variances are buffers, all else is constant. tern_nn_forward and tern_nn_call run
 * the nodes in their order, with gradients; Dropout and BatchNormalization follow tern_nn_train and
 * tern_nn_eval (exports are often of evaluation, in which other tools have folded batch norms into
 * convolutions). Sizes are computed by the host and wait for no device.
 *
 * Operator sets 7 to 28 of the default domain; weights in the file or in one beside it. Errors:
 * TERN_ERR_IO for what is no valid model, TERN_ERR_DTYPE for elements that tern does not compute with,
 * TERN_ERR_UNSUPPORTED, with node, operation and operator set, for control flow and what tern has not. */
TERN_API tern_module *tern_onnx_load(const char *path);

TERN_END_DECLS
#endif
