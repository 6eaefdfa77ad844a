/* state_dict.h -- the inside of a state_dict. */
#ifndef TERN_NN_STATE_DICT_INSIDE_H
#define TERN_NN_STATE_DICT_INSIDE_H
#include "base/keys.h"
#include <tern/nn.h>

/* A tensor under its path, in the order of the modules. */
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
    tern_keys keys; /* of the entries */
    tern_state_dict_note *notes;
    int n_notes, notes_capacity;
    tern_keys note_keys;
};

/* tern_nn_load_state_dict, by another name in errors. tied: a name that is missing is no error
 * where the same tensor has another name that is there (safetensors' load_model). check_only:
 * nothing is copied. */
tern_status tern_nn_load_state(tern_module *m, const tern_state_dict *dict,
                               const tern_load_state_dict_options *options, const char *function,
                               bool tied, bool check_only);

/* ---- parts, where ranks share a parameter out (sharded_parameter.c) -------------------------- */
typedef struct tern_part {
    int64_t first[TERN_MAX_DIMS]; /* element of each dim of the whole */
    tern_shape shape;
} tern_part;
/* Whether x is a part of a tensor of that shape. */
bool tern_part_is_of(const tern_tensor *x, const tern_shape *whole);
/* A part of it along a dim; -1: all of it. */
void tern_part_cut(tern_part *p, int dim, int part, int parts);
/* What is this rank's, as x is; all of it where x is whole, or NULL. TERN_ERR_SHAPE, with the name
 * and this rank, where x is a part of a tensor of another shape. */
tern_status tern_part_find(tern_part *p, const tern_shape *whole, const tern_tensor *x,
                           const char *function, const char *name);
/* A view of the whole; NULL after an error. */
tern_tensor *tern_part_take(const tern_part *p, tern_tensor *whole);

#endif
