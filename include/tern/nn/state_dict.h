/* nn/state_dict.h -- the tensors of a module by name, in memory (PyTorch's state_dict). io.h reads
 * and writes files of them. */
#ifndef TERN_NN_STATE_DICT_H
#define TERN_NN_STATE_DICT_H
#include <tern/nn.h>

TERN_BEGIN_DECLS

/* A state dict holds tensors by name, in the order in which they were added, and short texts by
 * name (metadata). tern_state_dict_free frees it. */
typedef struct tern_state_dict tern_state_dict;

/* Returns an empty state dict, which the caller frees with tern_state_dict_free. */
TERN_API tern_state_dict *tern_state_dict_new(void);
/* Returns the parameters and persistent buffers of m and of all modules below it, under PyTorch's
 * names. The tensors have no history and share their elements with m: clone the dict to keep the
 * values of now. A tied weight is in it under each of its names. The caller frees it with
 * tern_state_dict_free; NULL after an error. */
TERN_API tern_state_dict *tern_nn_state_dict(tern_module *m);
/* Returns a state dict with copies of the elements under the same names, and with the same
 * metadata. */
TERN_API tern_state_dict *tern_state_dict_clone(const tern_state_dict *dict);
/* Frees a state dict and releases its tensors; NULL is fine. */
TERN_API void tern_state_dict_free(tern_state_dict *dict);

/* Adds x, which the dict keeps, under a name, or replaces the tensor of that name. */
TERN_API tern_status tern_state_dict_set(tern_state_dict *dict, const char *key, tern_tensor *x);
/* Removes a tensor. Errors: TERN_ERR_ARGUMENT for a name that does not exist. */
TERN_API tern_status tern_state_dict_remove(tern_state_dict *dict, const char *key);
/* Returns the tensor of a name, borrowed; NULL, without an error, if there is none. */
TERN_API tern_tensor *tern_state_dict_get(const tern_state_dict *dict, const char *key);
/* Returns how many tensors there are. */
TERN_API int tern_state_dict_count(const tern_state_dict *dict);
/* Returns the name of the i-th tensor; NULL and an error unless i is in 0 .. count - 1. */
TERN_API const char *tern_state_dict_key_at(const tern_state_dict *dict, int i);
/* Returns the i-th tensor, borrowed; NULL and an error unless i is in 0 .. count - 1. */
TERN_API tern_tensor *tern_state_dict_at(const tern_state_dict *dict, int i);

/* Adds a text under a name, or replaces the text of that name; a value of NULL removes it. */
TERN_API tern_status tern_state_dict_set_metadata(tern_state_dict *dict, const char *key,
                                                  const char *value);
/* Returns the text of a name, borrowed; NULL, without an error, if there is none. */
TERN_API const char *tern_state_dict_metadata(const tern_state_dict *dict, const char *key);
/* How many texts there are. */
TERN_API int tern_state_dict_metadata_count(const tern_state_dict *dict);
/* Returns the name of the i-th text; NULL and an error unless i is in 0 .. count - 1. */
TERN_API const char *tern_state_dict_metadata_key_at(const tern_state_dict *dict, int i);

/* Visits the tensors that tern_nn_state_dict would return: m's own tensors. */
TERN_API tern_status tern_nn_each_state(tern_module *m, tern_tensor_visit visit, void *user);

/* A renaming: names that begin with `from` begin with `to` instead. */
typedef struct tern_key_rename {
    const char *from, *to;
} tern_key_rename;

typedef struct tern_load_state_dict_options {
    bool no_strict; /* missing and unexpected names are no error */
    /* Only names of dict that begin with prefix are loaded, without the prefix; NULL loads all. */
    const char *prefix;
    /* Then the first renaming that matches is applied to a name of dict, to give a name of m. */
    const tern_key_rename *renames;
    int n_renames;
    /* Called for each missing or unexpected name, before anything is copied; may be NULL. */
    void (*missing)(const char *key, void *user);
    void (*unexpected)(const char *key, void *user);
    void *user;
    uint64_t reserved[4];
} tern_load_state_dict_options;
/* Returns the default options, as TERN_DEFAULTS takes them. */
TERN_API tern_load_state_dict_options tern_load_state_dict_defaults(void);

/* Copies the tensors of dict, from any device and dtype, into those of m. Errors, after which m is
 * unchanged: TERN_ERR_STATE, with all missing and unexpected names and all different shapes in the
 * message; TERN_ERR_ARGUMENT if renames give two tensors the same name. */
TERN_API tern_status tern_nn_load_state_dict(tern_module *m, const tern_state_dict *dict,
                                             const tern_load_state_dict_options *options);

TERN_END_DECLS
#endif
