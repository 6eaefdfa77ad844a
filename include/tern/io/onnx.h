/* io/onnx.h -- ONNX: models as files that other frameworks write and read.
 *
 * Needs libprotobuf-c.so.1 at run time, and Debian's libonnx-dev and protobuf-c-compiler when tern
 * is built (CMake's TERN_ONNX). */
#ifndef TERN_IO_ONNX_H
#define TERN_IO_ONNX_H
#include <tern/nn.h>

TERN_BEGIN_DECLS

/* Whether this build and machine read and write ONNX. */
TERN_API bool tern_onnx_is_available(void);

/* A module that computes the graph in a file, on the cpu until it is moved; freed with
 * tern_nn_free. Initializers of floating point are parameters under their names, in which dots make
 * children; running means and variances are buffers, all else is constant; so too in the graphs of
 * If, Loop and Scan, where the second of a name is NAME_2. tern_nn_forward and tern_nn_call run the
 * nodes in their order, with gradients; Dropout and BatchNormalization follow tern_nn_train and
 * tern_nn_eval (exports are often of evaluation, in which other tools have folded batch norms into
 * convolutions). Sizes are computed by the host and wait for no device.
 *
 * Operator sets 1 to 28 of the default domain; weights in the file or in one beside it. What
 * depends on constants alone is computed once; what depends on parameters and buffers too is kept
 * until one of them is written, or a graph replayed (memory that the module has beside its own; not
 * where gradients for them are recorded). Conditions of If and Loop are read by the host, which
 * waits for the device if they are there; of an If whose condition is constant the other branch is
 * not read. Loops, Scans and SequenceMaps of one call make 1048576 turns at most, or as many as the
 * variable TERN_ONNX_LOOP_LIMIT says. Results are the caller's: none is a view of a parameter, of
 * an input or of what is kept. Errors: TERN_ERR_IO for what is no valid model, TERN_ERR_DTYPE for
 * elements that tern does not compute with, TERN_ERR_UNSUPPORTED, with node, operation and operator
 * set, for what tern has not, and for loops that don't end. */
TERN_API tern_module *tern_onnx_load(const char *path);

typedef struct tern_onnx_export_options {
    const char *const
        *input_names; /* one for each input; NULL: "input", of several "input_0" and so on */
    const char *const *output_names; /* likewise; "output" */
    int n_outputs;                   /* how many results of tern_nn_call are written; 1 */
    bool dynamic_batch; /* dim 0 of the first input, and of those inputs with the same, is any
                          size */
    bool external_data; /* weights go to "<path>.data" */
    uint64_t reserved[4];
} tern_onnx_export_options;
/* Returns the default options, as TERN_DEFAULTS takes them. */
TERN_API tern_onnx_export_options tern_onnx_export_defaults(void);

/* Write what module computes of inputs[n] to path (torch.onnx.export): the module runs once, in
 * evaluation whatever its mode, and the operations that have to do with the inputs are written as
 * operator set 20, IR 9. Parameters and buffers that are used become initializers under their
 * names, what is computed of neither is a constant. What the host does between operations (loops,
 * branches, numbers that it read) is as it was for these inputs, random numbers are those that were
 * drawn; sizes are those of the inputs, but for a dynamic batch, where the module runs twice, with
 * two sizes, and what differs follows the batch.
 *
 * Weights of 2 GiB and more, which no ONNX file can hold, go to a file beside it, as with
 * external_data, but for those of less than 1 KiB. Files are complete or not there, as tern_save's.
 * Errors: TERN_ERR_UNSUPPORTED, with the operation and the module's path, for what ONNX or tern has
 * no form of, or that can't follow the batch; TERN_ERR_ARGUMENT for names that occur twice, for no
 * inputs; those of the module and of files. */
TERN_API tern_status tern_onnx_export(tern_module *module, tern_tensor *const *inputs, int n,
                                      const char *path, const tern_onnx_export_options *options);

TERN_END_DECLS
#endif
