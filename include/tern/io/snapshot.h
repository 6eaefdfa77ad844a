/* io/snapshot.h -- a training in a file, from which another process can resume it.
 *
 *   tern_snapshot *snapshot = tern_snapshot_new();
 *   tern_snapshot_add_module(snapshot, "model", model);
 *   tern_snapshot_add_optimizer(snapshot, "optimizer", optimizer);
 *   tern_snapshot_add_int(snapshot, "step", &step);
 *   if (tern_snapshot_latest("runs"))
 *       tern_snapshot_load(snapshot, "runs");
 *   while (step < stop) {
 *       ...
 *       step++;
 *       tern_snapshot_save(snapshot, "runs", &(tern_snapshot_options){.step = step, .keep_last =
 *           2});
 *   }
 *
 * Each snapshot is a safetensors file, step-<number>.safetensors, which Python can read: tensors
 * are called "model.0.weight" or "optimizer.state.0.exp_avg", and numbers are texts in the
 * metadata. It always has the generators of all devices that the process uses. It can be loaded on
 * another kind of device: the state of the default device's generator is then given to the new
 * default device.
 *
 * A module may be sharded over ranks (tern_dist_fully_shard), have tensor-parallel layers
 * (tern_nn_parallelize_module), or have stages on several ranks (tern_dist_pipeline). Then all
 * ranks of its groups, and with layers or stages all ranks of the job, make the same calls of
 * tern_snapshot_save, _wait, _free and _load, with one folder. Each rank writes its parts of
 * parameters, averages and optimizer states, and its generators, to a file in the folder
 * step-<number>.shards (00001-of-00004.safetensors), unless another rank has the same parts. The
 * snapshot's own file is written last, once all parts are on the disk. It names that folder, holds
 * everything else as the first rank has it, and describes how each tensor was cut:
 * "shards.part.model.0.weight": "12x8 1/2@1 0/3@2" is a tensor of shape (12, 8), cut along dim 1
 * into 2 parts and each of these along dim 0 into 3; file f, from 0 on, has part f / 1 % 2 of the
 * first cut and f / 2 % 3 of the second. best.safetensors needs its folder too. Such a snapshot can
 * be loaded by any number of ranks, cut in any of these ways or not at all, and so can one of a
 * single process; each rank reads what it needs. A tensor of another whole shape is TERN_ERR_SHAPE
 * on all ranks, with its name and the rank. The parameters of a stage, and the optimizer's states
 * for them, are only in the files of its rank, with descriptions of their own ("12x8 0/3@4 1:4@1":
 * the last cut is number 1 of 4 stages, and file f has it if f / 1 % 4 is 1); a rank that loads
 * gets the parameters of all stages and the states of its own. If a rank fails, the others get
 * TERN_ERR_PEER, and no snapshot is written or nothing is loaded; an error in the background is
 * reported by the next _wait, _save or _free. Groups that are not those of one mesh
 * (tern_dist_init_device_mesh) are TERN_ERR_UNSUPPORTED.
 *
 * All objects that are added are borrowed, and must live as long as the snapshot is used. */
#ifndef TERN_IO_SNAPSHOT_H
#define TERN_IO_SNAPSHOT_H
#include <tern/amp.h>
#include <tern/data/loader.h>
#include <tern/io/file.h>
#include <tern/metrics.h>

TERN_BEGIN_DECLS

typedef struct tern_snapshot tern_snapshot;

/* Returns an empty snapshot, which the caller frees with tern_snapshot_free. */
TERN_API tern_snapshot *tern_snapshot_new(void);
/* Waits for a save in the background, and frees the snapshot; NULL is fine. */
TERN_API void tern_snapshot_free(tern_snapshot *snapshot);

/* ---- contents of a snapshot ---------------------------------------------------------------------
 * Each object has a name without dots that no other object of the snapshot has. Errors:
 * TERN_ERR_ARGUMENT. */
/* Adds the parameters and persistent buffers of a module. */
TERN_API tern_status tern_snapshot_add_module(tern_snapshot *snapshot, const char *name,
                                              tern_module *module);
/* Adds the states and options of all groups of an optimizer. */
TERN_API tern_status tern_snapshot_add_optimizer(tern_snapshot *snapshot, const char *name,
                                                 tern_optimizer *optimizer);
/* Adds the state of a scheduler, with those of the schedulers that it consists of. */
TERN_API tern_status tern_snapshot_add_lr_scheduler(tern_snapshot *snapshot, const char *name,
                                                    tern_lr_scheduler *scheduler);
/* Adds the scale and the growth counter of a gradient scaler. */
TERN_API tern_status tern_snapshot_add_scaler(tern_snapshot *snapshot, const char *name,
                                              tern_scaler *scaler);
/* Adds the averages of a model and the number of their updates. */
TERN_API tern_status tern_snapshot_add_averaged_model(tern_snapshot *snapshot, const char *name,
                                                      tern_averaged_model *model);
/* Adds a loader: its seed and its position in the epoch. The next loop continues from there,
 * without the items that were already taken. If a training with an optimizer is resumed and a
 * loader that shuffles is not in the snapshot, the loader starts again with the order of the first
 * epoch, and a warning is given. */
TERN_API tern_status tern_snapshot_add_loader(tern_snapshot *snapshot, const char *name,
                                              tern_loader *loader);
/* Adds the states of a metric (tern_metric_each_state). */
TERN_API tern_status tern_snapshot_add_metric(tern_snapshot *snapshot, const char *name,
                                              tern_metric *metric);
/* Adds the best value so far and the number of values since then. */
TERN_API tern_status tern_snapshot_add_early_stopping(tern_snapshot *snapshot, const char *name,
                                                      tern_early_stopping *stopping);
/* Adds a tensor, into which a load copies. */
TERN_API tern_status tern_snapshot_add_tensor(tern_snapshot *snapshot, const char *name,
                                              tern_tensor *x);
/* Adds an integer variable of the program, which is read when the snapshot is saved and written
 * when it is loaded. */
TERN_API tern_status tern_snapshot_add_int(tern_snapshot *snapshot, const char *name,
                                           int64_t *value);
/* Adds a real variable of the program in the same way. */
TERN_API tern_status tern_snapshot_add_real(tern_snapshot *snapshot, const char *name,
                                            double *value);

/* ---- saving and loading ---------------------------------------------------------------------- */

typedef struct tern_snapshot_options {
    int64_t step;    /* the number of the snapshot; 0: one more than the newest */
    int keep_last;   /* keep this many snapshots and remove the oldest; 0: keep all */
    bool is_best;    /* also make this one best.safetensors, which keep_last does not count */
    bool background; /* write on another thread, after all tensors have been copied to the host */
    uint64_t reserved[4];
} tern_snapshot_options;
/* Returns the default options, as TERN_DEFAULTS takes them. */
TERN_API tern_snapshot_options tern_snapshot_defaults(void);

/* Writes a snapshot to a folder, which is created if it does not exist. The file is complete or
 * absent, as with tern_save, and older snapshots are removed only after it is on the disk. It first
 * waits for a save in the background, and returns the error of that if there was one. While an
 * error is recorded nothing is written, and that error is returned. */
TERN_API tern_status tern_snapshot_save(tern_snapshot *snapshot, const char *folder,
                                        const tern_snapshot_options *options);
/* Waits for the save in the background, if there is one, and returns its status, which is recorded
 * on this thread. */
TERN_API tern_status tern_snapshot_wait(tern_snapshot *snapshot);
/* Restores the contents of a file, or of the newest snapshot of a folder. All names, shapes and
 * numbers are checked first, so that after an error nothing has changed. Errors: TERN_ERR_IO;
 * TERN_ERR_STATE if the file and the snapshot do not have the same contents. */
TERN_API tern_status tern_snapshot_load(tern_snapshot *snapshot, const char *path);

/* Returns the path of the newest snapshot in a folder; NULL, without an error, if there is none.
 * The text lives until the next call on this thread. */
TERN_API const char *tern_snapshot_latest(const char *folder);
/* Returns the path of the snapshot that was last saved with is_best, in the same way. */
TERN_API const char *tern_snapshot_best(const char *folder);
/* Returns the number of snapshots in a folder, without the best one; 0 if the folder does not
 * exist. */
TERN_API int tern_snapshot_count(const char *folder);

TERN_END_DECLS
#endif
