/* state_dict.h -- internals of a state_dict. */
#ifndef TERN_NN_STATE_DICT_INSIDE_H
#define TERN_NN_STATE_DICT_INSIDE_H
#include "base/keys.h"
#include <tern/nn.h>

/* A tensor and its path; entries are in the order of the modules. */
typedef struct tern_state_dict_entry {
    char *key;
    tern_tensor *x;
} tern_state_dict_entry;

typedef struct tern_state_dict_note {
    char *key, *value;
} tern_state_dict_note;

struct tern_state_dict {
    tern_state_dict_entry *entries;
    int count, capacity;
    tern_keys keys; /* index of the entries by key */
    tern_state_dict_note *notes;
    int n_notes, notes_capacity;
    tern_keys note_keys;
};

/* tern_nn_load_state_dict with another name in errors. tied: a missing name is no error if dict has
 * another name of the same tensor (safetensors' load_model). check_only: nothing is copied. */
tern_status tern_nn_load_state(tern_module *m, const tern_state_dict *dict,
                               const tern_load_state_dict_options *options, const char *function,
                               bool tied, bool check_only);

/* ---- parts of parameters that are cut among ranks (sharded_parameter.c) ---------------------- */
typedef struct tern_part {
    int64_t first[TERN_MAX_DIMS]; /* offset of the part in each dim of the whole */
    tern_shape shape;
} tern_part;
/* Returns whether x is a part of a tensor of that shape. */
bool tern_part_is_of(const tern_tensor *x, const tern_shape *whole);
/* Reduces p to its part number `part` of `parts` along dim. A number of -1 leaves p unchanged. */
void tern_part_cut(tern_part *p, int dim, int part, int parts);
/* Sets *p to the part of a tensor of shape *whole that x is; to all of it if x is not cut or NULL.
 * TERN_ERR_SHAPE, with the name and this rank, if x is a part of a tensor of another shape. */
tern_status tern_part_find(tern_part *p, const tern_shape *whole, const tern_tensor *x,
                           const char *function, const char *name);
/* Returns a view of the part in the whole tensor, or NULL after an error. */
tern_tensor *tern_part_take(const tern_part *p, tern_tensor *whole);

#endif
