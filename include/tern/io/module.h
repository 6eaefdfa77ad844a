/* io/module.h -- a module's parameters and buffers in a file. */
#ifndef TERN_IO_MODULE_H
#define TERN_IO_MODULE_H
#include <tern/io/file.h>

TERN_BEGIN_DECLS

/* The state_dict of m, as safetensors' save_model writes it: of a tied weight the first of its
 * names in alphabetical order, and the others in the metadata. The metadata has "format": "pt" too,
 * which Hugging Face's libraries want to see. Options and errors: tern_save's. */
TERN_API tern_status tern_nn_save(tern_module *m, const char *path,
                                  const tern_save_options *options);
/* Copy the tensors of a file, of any kind and dtype, into those of m, on the devices where these
 * are. A name of a tied weight that the file leaves out is not missing. Nothing of m changes unless
 * all of the file could be read. Errors: those of tern_load and tern_nn_load_state_dict. */
TERN_API tern_status tern_nn_load(tern_module *m, const char *path,
                                  const tern_load_state_dict_options *options);

TERN_END_DECLS
#endif
