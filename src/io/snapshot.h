/* snapshot.h -- the inside of a snapshot: what belongs to it, and where it lies. */
#ifndef TERN_IO_SNAPSHOT_INSIDE_H
#define TERN_IO_SNAPSHOT_INSIDE_H
#include "base/text.h"
#include "tensor/ranks.h"
#include <stdint.h>
#include <tern/io/snapshot.h>

typedef struct io_snapshot_part io_snapshot_part;

/* A kind of thing that is saved. All tensors and texts begin with the part's name and a dot, but
 * for one that is a single tensor or text, which has its name. */
typedef struct io_part_kind {
    tern_status (*save)(const io_snapshot_part *part, tern_state_dict *to);
    /* Whether it could be loaded; and load it. Nothing changes while apply is false. */
    tern_status (*load)(const io_snapshot_part *part, const tern_state_dict *from, bool apply);
    /* Parameters that ranks share out, by the names of their tensors, or what is before the last
     * dot of these; NULL: none. */
    tern_status (*shared)(const io_snapshot_part *part, tern_state_dict *to);
} io_part_kind;

struct io_snapshot_part {
    char *name;
    const io_part_kind *kind;
    void *object;
};

extern const io_part_kind io_part_module, io_part_optimizer, io_part_lr_scheduler, io_part_scaler,
    io_part_averaged_model, io_part_loader, io_part_metric, io_part_early_stopping, io_part_tensor,
    io_part_int, io_part_real;

/* The generators of all devices in use. */
tern_status io_save_generators(tern_state_dict *to);
tern_status io_load_generators(const tern_state_dict *from, bool apply);

/* Texts "<name>.<field>" and numbers in them; TERN_ERR_STATE where there is none. */
tern_status io_note_int(tern_state_dict *to, const char *name, const char *field, int64_t value);
tern_status io_note_real(tern_state_dict *to, const char *name, const char *field, double value);
tern_status io_read_int(const tern_state_dict *from, const char *name, const char *field,
                        int64_t *value);
tern_status io_read_real(const tern_state_dict *from, const char *name, const char *field,
                         double *value);

/* ---- folders (snapshot_folder.c) ------------------------------------------------------------- */
/* What every snapshot begins with. */
#define IO_SNAPSHOT_FORMAT "tern.snapshot"
/* The greatest number there; -1: there is none. */
int64_t io_snapshot_newest(const char *folder, int *count);
/* "<folder>/step-<number>.safetensors" */
tern_status io_snapshot_path(tern_text *path, const char *folder, int64_t step);
/* Remove the oldest but `saved` until keep are left. */
tern_status io_snapshot_keep(const char *folder, int keep, int64_t saved);
/* best.safetensors becomes the file at path. */
tern_status io_snapshot_make_best(const char *folder, const char *path);

/* ---- several ranks (snapshot_shards.c) ------------------------------------------------------- */
enum { IO_SHARDS_NAME = 64, IO_MOST_GROUPS = 8, IO_MOST_FILES = 1 << 20 };
#define IO_SHARDS_PART "shards.part." /* what the note of a tensor that was cut begins with */
/* Where this rank is among the groups that share tensors out: file number is the sum of its parts
 * in them times steps, as digits are. */
typedef struct io_grid {
    const void *group[IO_MOST_GROUPS];
    int step[IO_MOST_GROUPS], n;
    int number, count; /* of this rank's file, of files */
} io_grid;

/* A save that all ranks take part in. */
typedef struct io_shards {
    tern_ranks *ranks; /* NULL: there is none */
    io_grid grid;
    bool leads, writes;        /* the index; its own file: no rank before it has the same parts */
    char name[IO_SHARDS_NAME]; /* of the folder in the snapshots' */
    tern_state_dict *own;      /* this rank's tensors */
} io_shards;

/* Parameters that ranks share out, and these ranks, or NULL. */
tern_status io_shards_parameters(const io_snapshot_part *parts, int count, tern_state_dict **to,
                                 tern_ranks **ranks);
/* The parameter that a tensor of this name is, or is a state of, where ranks share it out; NULL. */
tern_tensor *io_shards_shared(const tern_state_dict *parameters, const char *key);
/* Groups in the order in which parameters are cut by them; false, and one file, where they are too
 * many. */
bool io_shards_grid(const tern_state_dict *parameters, io_grid *g);
/* "<folder>/<name>/00001-of-00004.safetensors", to be freed; NULL after an error. */
char *io_shards_path(const char *folder, const char *name, int number, int count);
/* "step-12.shards", "step-12.2.shards": the step; -1. */
int64_t io_shards_step(const char *name);
/* All ranks, also those that failed before: where their files go, and the first one's step. */
tern_status io_shards_begin(io_shards *s, tern_ranks *ranks, const tern_state_dict *parameters,
                            const char *folder, int64_t *step, tern_status status);
/* This rank's parts of dict are its own, and no more in dict. */
tern_status io_shards_divide(io_shards *s, const tern_state_dict *parameters,
                             tern_state_dict *dict);
/* This rank's file. */
tern_status io_shards_write(const io_shards *s, const char *folder);
/* All ranks, with how that went: the first one writes the snapshot. */
tern_status io_shards_commit(io_shards *s, const char *folder, tern_status status,
                             tern_status (*write)(void *user), void *user);
void io_shards_end(io_shards *s);

/* ---- parts of what others cut (snapshot_parts.c) --------------------------------------------- */
/* dict, which was read at path, gets this rank's parts of what ranks shared out, or share out
 * now. */
tern_status io_shards_load(const char *path, const tern_state_dict *parameters,
                           tern_state_dict *dict);

#endif
