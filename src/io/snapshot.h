/* snapshot.h -- internals of a snapshot: its parts and its files. */
#ifndef TERN_IO_SNAPSHOT_INSIDE_H
#define TERN_IO_SNAPSHOT_INSIDE_H
#include "base/text.h"
#include "tensor/ranks.h"
#include <stdint.h>
#include <tern/io/snapshot.h>

typedef struct io_snapshot_part io_snapshot_part;

/* A kind of part. The names of its tensors and texts begin with the part's name and a dot; a part
 * of one tensor or text has only the part's name. */
typedef struct io_part_kind {
    tern_status (*save)(const io_snapshot_part *part, tern_state_dict *to);
    /* Loads the part; if apply is false, only checks whether it could be loaded, and changes
     * nothing. */
    tern_status (*load)(const io_snapshot_part *part, const tern_state_dict *from, bool apply);
    /* Lists parameters that are cut among ranks, by their tensors' names, or these without the last
     * dot and what follows. NULL if the kind has none. */
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

/* Save and load the generators of all devices in use. */
tern_status io_save_generators(tern_state_dict *to);
tern_status io_load_generators(const tern_state_dict *from, bool apply);

/* Save and read numbers as texts "<name>.<field>". Reading fails with TERN_ERR_STATE if the text is
 * missing. */
tern_status io_note_int(tern_state_dict *to, const char *name, const char *field, int64_t value);
tern_status io_note_real(tern_state_dict *to, const char *name, const char *field, double value);
tern_status io_read_int(const tern_state_dict *from, const char *name, const char *field,
                        int64_t *value);
tern_status io_read_real(const tern_state_dict *from, const char *name, const char *field,
                         double *value);

/* ---- folders (snapshot_folder.c) ------------------------------------------------------------- */
/* Metadata "format" of each snapshot. */
#define IO_SNAPSHOT_FORMAT "tern.snapshot"
/* Returns the largest step among the folder's snapshots, or -1, and sets *count to their number. */
int64_t io_snapshot_newest(const char *folder, int *count);
/* Writes "<folder>/step-<step>.safetensors". */
tern_status io_snapshot_path(tern_text *path, const char *folder, int64_t step);
/* Removes the oldest snapshots, but not `saved`, until `keep` are left. */
tern_status io_snapshot_keep(const char *folder, int keep, int64_t saved);
/* Makes best.safetensors the file at path. */
tern_status io_snapshot_make_best(const char *folder, const char *path);

/* ---- several ranks (snapshot_shards.c) ------------------------------------------------------- */
enum { IO_SHARDS_NAME = 64, IO_MOST_GROUPS = 8, IO_MOST_FILES = 1 << 20 };
#define IO_SHARDS_PART "shards.part." /* beginning of the metadata key for a tensor that was cut */
/* This rank's position among the groups that cut tensors: its file's number is the sum of its part
 * in each group times that group's step, as digits of a number. */
typedef struct io_grid {
    const void *group[IO_MOST_GROUPS];
    int step[IO_MOST_GROUPS], n;
    int number, count; /* number of this rank's file, and number of files */
} io_grid;

/* A save by all ranks. */
typedef struct io_shards {
    tern_ranks *ranks; /* ranks among which tensors are cut, or NULL */
    io_grid grid;
    bool leads, writes;        /* leads: this rank writes the index; writes: it writes a file, as no
                                  earlier rank has the same parts */
    char name[IO_SHARDS_NAME]; /* name of the folder of parts */
    tern_state_dict *own;      /* this rank's tensors */
} io_shards;

/* Sets *to to the parameters that are cut among ranks, and *ranks to these ranks, or NULL. */
tern_status io_shards_parameters(const io_snapshot_part *parts, int count, tern_state_dict **to,
                                 tern_ranks **ranks);
/* Returns the parameter that is cut whose tensor or optimizer state has this name, or NULL. */
tern_tensor *io_shards_shared(const tern_state_dict *parameters, const char *key);
/* Lists the groups in the order of the cuts. Returns false if there are too many, with *g as for
 * one file. */
bool io_shards_grid(const tern_state_dict *parameters, io_grid *g);
/* Returns "<folder>/<name>/00001-of-00004.safetensors", which the caller frees, or NULL after an
 * error. */
char *io_shards_path(const char *folder, const char *name, int number, int count);
/* Returns the step of a folder "step-12.shards" or "step-12.2.shards", or -1. */
int64_t io_shards_step(const char *name);
/* Called by all ranks, also after errors (status): agrees on the folder of parts and on the first
 * rank's step. */
tern_status io_shards_begin(io_shards *s, tern_ranks *ranks, const tern_state_dict *parameters,
                            const char *folder, int64_t *step, tern_status status);
/* Moves this rank's parts of dict to s->own. */
tern_status io_shards_divide(io_shards *s, const tern_state_dict *parameters,
                             tern_state_dict *dict);
/* Writes this rank's file. */
tern_status io_shards_write(const io_shards *s, const char *folder);
/* Called by all ranks with their status: if all succeeded, the first rank writes the snapshot. */
tern_status io_shards_commit(io_shards *s, const char *folder, tern_status status,
                             tern_status (*write)(void *user), void *user);
void io_shards_end(io_shards *s);

/* ---- loading of parts that were cut otherwise (snapshot_parts.c) ----------------------------- */
/* Adds to dict, which was read from path, this rank's parts of tensors that were cut when they were
 * saved or are cut now. */
tern_status io_shards_load(const char *path, const tern_state_dict *parameters,
                           tern_state_dict *dict);

#endif
