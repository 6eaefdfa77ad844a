/* nn/state_dict.h -- a module's tensors by name, in memory (PyTorch's state_dict); io.h has them in
 * files. */
#ifndef TERN_NN_STATE_DICT_H
#define TERN_NN_STATE_DICT_H
#include <tern/nn.h>

TERN_BEGIN_DECLS

/* Tensors under names, in the order they came in, and short texts under names of their own beside
 * them (metadata). Freed with tern_state_dict_free. */
typedef struct tern_state_dict tern_state_dict;

/* An empty one. */
TERN_API tern_state_dict *tern_state_dict_new(void);
/* Parameters and persistent buffers of m and all below it, under PyTorch's names, without history
 * and sharing their elements with m: clone it to keep them as they are now. A tied weight is there
 * under each of its names. */
TERN_API tern_state_dict *tern_nn_state_dict(tern_module *m);
/* The same names for copies of the elements, and the same metadata. */
TERN_API tern_state_dict *tern_state_dict_clone(const tern_state_dict *dict);
/* Frees it, and lets go of its tensors; NULL is fine. */
TERN_API void tern_state_dict_free(tern_state_dict *dict);

/* Put x, which is kept, under a name, instead of what is there. */
TERN_API tern_status tern_state_dict_set(tern_state_dict *dict, const char *key, tern_tensor *x);
/* TERN_ERR_ARGUMENT for a name that is not there. */
TERN_API tern_status tern_state_dict_remove(tern_state_dict *dict, const char *key);
/* Borrowed; NULL for a name that is not there, without an error. */
TERN_API tern_tensor *tern_state_dict_get(const tern_state_dict *dict, const char *key);
/* How many there are. */
TERN_API int tern_state_dict_count(const tern_state_dict *dict);
/* The i-th; NULL and an error outside of 0 .. count - 1. */
TERN_API const char *tern_state_dict_key_at(const tern_state_dict *dict, int i);
/* The i-th tensor, borrowed; likewise. */
TERN_API tern_tensor *tern_state_dict_at(const tern_state_dict *dict, int i);

/* Put a text under a name, instead of what is there; NULL takes it away. */
TERN_API tern_status tern_state_dict_set_metadata(tern_state_dict *dict, const char *key,
                                                  const char *value);
/* The text under a name, borrowed; NULL for a name that is not there, without an error. */
TERN_API const char *tern_state_dict_metadata(const tern_state_dict *dict, const char *key);
/* How many texts there are. */
TERN_API int tern_state_dict_metadata_count(const tern_state_dict *dict);
/* The name of the i-th; NULL and an error outside of 0 .. count - 1. */
TERN_API const char *tern_state_dict_metadata_key_at(const tern_state_dict *dict, int i);

/* Visit what tern_nn_state_dict would hold: m's own tensors. */
TERN_API tern_status tern_nn_each_state(tern_module *m, tern_tensor_visit visit, void *user);

/* A name that begins with `from` begins with `to` instead. */
typedef struct tern_key_rename {
    const char *from, *to;
} tern_key_rename;

typedef struct tern_load_state_dict_options {
    bool no_strict; /* names that only one of the two has are no error */
    /* Names of dict that begin with it are taken without it, all others left out; NULL: all are. */
    const char *prefix;
    /* Then the first of these that fits is done to a name of dict, which becomes one of m's. */
    const tern_key_rename *renames;
    int n_renames;
    /* Called with each of them, before anything is copied; NULL: nobody wants to know. */
    void (*missing)(const char *key, void *user);
    void (*unexpected)(const char *key, void *user);
    void *user;
    uint64_t reserved[4];
} tern_load_state_dict_options;
/* Returns the default options, as TERN_DEFAULTS takes them. */
TERN_API tern_load_state_dict_options tern_load_state_dict_defaults(void);

/* Copy the tensors of dict, from any device and dtype, into those of m. Errors: TERN_ERR_STATE,
 * with all missing and unexpected names and all other shapes in the message, m being as it was;
 * TERN_ERR_ARGUMENT where renames make one name of two. */
TERN_API tern_status tern_nn_load_state_dict(tern_module *m, const tern_state_dict *dict,
                                             const tern_load_state_dict_options *options);

TERN_END_DECLS
#endif
