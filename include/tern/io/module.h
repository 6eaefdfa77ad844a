/* io/module.h -- a module's parameters and buffers in a file. */
#ifndef TERN_IO_MODULE_H
#define TERN_IO_MODULE_H
#include <tern/io/file.h>

TERN_BEGIN_DECLS

/* Writes the state dict of m as safetensors' save_model does: a tied weight is written under the
 * first of its names in alphabetical order, and the metadata has the others. The metadata also has
 * "format": "pt", which Hugging Face's libraries require. Options and errors are those of
 * tern_save. */
TERN_API tern_status tern_nn_save(tern_module *m, const char *path,
                                  const tern_save_options *options);
/* Copies the tensors of a file, of any format and dtype, into those of m, on whichever devices
 * these are. A name of a tied weight that is not in the file is not missing. m changes only if the
 * whole file can be read. Errors: those of tern_load and tern_nn_load_state_dict. */
TERN_API tern_status tern_nn_load(tern_module *m, const char *path,
                                  const tern_load_state_dict_options *options);

TERN_END_DECLS
#endif
