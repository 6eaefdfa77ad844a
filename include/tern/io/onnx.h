/* io/onnx.h -- ONNX: models in files that other frameworks write and read.
 *
 * It needs libprotobuf-c.so.1 at run time, and Debian's libonnx-dev and protobuf-c-compiler when
 * tern is built (CMake's TERN_ONNX). */
#ifndef TERN_IO_ONNX_H
#define TERN_IO_ONNX_H
#include <tern/nn.h>

TERN_BEGIN_DECLS

/* Returns whether this build, on this machine, reads and writes ONNX. */
TERN_API bool tern_onnx_is_available(void);

/* Returns a module that computes the graph of a file, on the cpu until it is moved. The caller
 * frees it with tern_nn_free. Floating point initializers are parameters under their names, in
 * which dots separate children; running means and variances are buffers; all other initializers are
 * constants. The same holds for initializers in the graphs of If, Loop and Scan, where the second
 * of a name is called NAME_2. tern_nn_forward and tern_nn_call run the nodes in their order, with
 * gradients. Dropout and BatchNormalization follow tern_nn_train and tern_nn_eval; exported models
 * are often in evaluation mode, with batch norms already folded into convolutions. The host
 * computes sizes, and waits for no device to do so.
 *
 * Operator sets 1 to 28 of the default domain are supported, with weights in the file or in another
 * file beside it. Values that depend only on constants are computed once. Values that depend only
 * on constants, parameters and buffers are kept until one of these is written or a graph is
 * replayed; that takes memory, and is not done where gradients for them are recorded. The host
 * reads the conditions of If and Loop, and waits for the device if they are on one; if the
 * condition of an If is constant, the other branch is not read. The loops, scans and SequenceMaps
 * of one call make at most 1048576 iterations, or the number in the variable TERN_ONNX_LOOP_LIMIT.
 * Results belong to the caller: none of them is a view of a parameter, of an input or of a value
 * that is kept. Errors: TERN_ERR_IO for a file that is not a valid model, TERN_ERR_DTYPE for dtypes
 * that tern does not compute with, TERN_ERR_UNSUPPORTED, with the node, operation and operator set,
 * for operations that tern does not have and for loops that do not end. */
TERN_API tern_module *tern_onnx_load(const char *path);

typedef struct tern_onnx_export_options {
    const char *const
        *input_names; /* one for each input; NULL: "input", or "input_0" and so on for several */
    const char *const *output_names; /* one for each output; NULL: "output", or "output_0" and so
                                      * on */
    int n_outputs;                   /* the number of results of tern_nn_call to write; default 1 */
    bool dynamic_batch; /* dim 0 of the first input, and of all inputs with the same dim 0, may
                         * have any size */
    bool external_data; /* write the weights to "<path>.data" */
    uint64_t reserved[4];
} tern_onnx_export_options;
/* Returns the default options, as TERN_DEFAULTS takes them. */
TERN_API tern_onnx_export_options tern_onnx_export_defaults(void);

/* Writes the computation of module for inputs[n] to a file (torch.onnx.export). The module runs
 * once, in evaluation mode whatever its mode is, and the operations that depend on the inputs are
 * written in operator set 20, IR 9. Parameters and buffers that are used become initializers under
 * their names; values that depend on neither are constants. What the host does between operations
 * (loops, branches, numbers that it reads) is fixed as it was for these inputs, and random numbers
 * are those that were drawn. Sizes are those of the inputs. With dynamic_batch the module runs
 * twice, with two batch sizes, and sizes that differ follow the batch.
 *
 * An ONNX file cannot hold weights of 2 GiB and more: they are written to a file beside it, as with
 * external_data, except for tensors of less than 1 KiB. Files are complete or absent, as with
 * tern_save. Errors: TERN_ERR_UNSUPPORTED, with the operation and the path of the module, for
 * operations that ONNX or tern cannot express or that cannot follow the batch; TERN_ERR_ARGUMENT
 * for names that occur twice and for no inputs; the errors of the module and of writing files. */
TERN_API tern_status tern_onnx_export(tern_module *module, tern_tensor *const *inputs, int n,
                                      const char *path, const tern_onnx_export_options *options);

TERN_END_DECLS
#endif
