/* io/snapshot.h -- a whole training in a file, to go on from after its process has ended.
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
 * Each snapshot is a safetensors file, step-<number>.safetensors, which Python reads too: tensors
 * as "model.0.weight" and "optimizer.state.0.exp_avg", numbers as texts in its metadata. The
 * generators of all devices that the process uses are always in it. It may be loaded on another
 * kind of device: the state of the default device's generator goes to the default device there.
 *
 * Where a module in it is sharded over ranks (tern_dist_fully_shard), or has layers that ranks
 * share out (tern_nn_parallelize_module), or stages on several (tern_dist_pipeline), all ranks that
 * are in its groups, and with layers or stages all ranks of the job, call tern_snapshot_save,
 * _wait, _free and _load alike, with one folder. Each writes its parts of parameters, averages and
 * optimizer states into a folder beside, step-<number>.shards/00001-of-00004.safetensors, with its
 * generators, unless another has the same parts; the snapshot's own file, which names the folder,
 * says how each tensor was cut ("shards.part.model.0.weight": "12x8 1/2@1 0/3@2", of shape (12,
 * 8), along dim 1 in 2 parts, each along dim 0 in 3; file f, from 0 on, has number f / 1 % 2 and f
 * / 2 % 3 of them) and has the rest as the first rank has it, comes last, once all parts are on the
 * disk. It is loaded by any number of ranks, cut in any of these ways or not, as one that a single
 * process saved is; each reads what it needs. A tensor of another whole shape is TERN_ERR_SHAPE on
 * all, with its name and the rank. What a stage has, and an optimizer's states for it, is in the
 * files of its rank alone, with its notes ("12x8 0/3@4 1:4@1": the last cut is number 1 of 4
 * stages, file f has it where f / 1 % 4 is 1); a rank that loads gets parameters of all stages, and
 * states of its own. A rank that fails is TERN_ERR_PEER on the others, and no snapshot, or nothing
 * is loaded on any; one in the background is there after the next _wait, _save or _free. Groups
 * that are not those of one mesh (tern_dist_init_device_mesh) are TERN_ERR_UNSUPPORTED.
 * best.safetensors needs its folder too.
 *
 * What is added is borrowed and must live as long as the snapshot is used. */
#ifndef TERN_IO_SNAPSHOT_H
#define TERN_IO_SNAPSHOT_H
#include <tern/amp.h>
#include <tern/data/loader.h>
#include <tern/io/file.h>
#include <tern/metrics.h>

TERN_BEGIN_DECLS

typedef struct tern_snapshot tern_snapshot;

/* An empty one, to be freed with tern_snapshot_free. */
TERN_API tern_snapshot *tern_snapshot_new(void);
/* Waits for a save in the background, and frees the snapshot; NULL is fine. */
TERN_API void tern_snapshot_free(tern_snapshot *snapshot);

/* ---- what belongs to it -------------------------------------------------------------------------
 * Under a name that nothing else in it has, without dots. Errors: TERN_ERR_ARGUMENT. */
/* Parameters and persistent buffers. */
TERN_API tern_status tern_snapshot_add_module(tern_snapshot *snapshot, const char *name,
                                              tern_module *module);
/* States and options of all groups. */
TERN_API tern_status tern_snapshot_add_optimizer(tern_snapshot *snapshot, const char *name,
                                                 tern_optimizer *optimizer);
/* Where it is, with the schedulers that it is made of. */
TERN_API tern_status tern_snapshot_add_lr_scheduler(tern_snapshot *snapshot, const char *name,
                                                    tern_lr_scheduler *scheduler);
/* Its scale and count. */
TERN_API tern_status tern_snapshot_add_scaler(tern_snapshot *snapshot, const char *name,
                                              tern_scaler *scaler);
/* The averages and how many updates they are of. */
TERN_API tern_status tern_snapshot_add_averaged_model(tern_snapshot *snapshot, const char *name,
                                                      tern_averaged_model *model);
/* Its seed, and how far it is in its epoch: the next loop goes on there, without what was given. A
 * loader that shuffles and is not in the snapshot that a training with an optimizer goes on from
 * begins with the order of before, which a warning says. */
TERN_API tern_status tern_snapshot_add_loader(tern_snapshot *snapshot, const char *name,
                                              tern_loader *loader);
/* The states that it gathered (tern_metric_each_state). */
TERN_API tern_status tern_snapshot_add_metric(tern_snapshot *snapshot, const char *name,
                                              tern_metric *metric);
/* The best value so far, and how long ago that was. */
TERN_API tern_status tern_snapshot_add_early_stopping(tern_snapshot *snapshot, const char *name,
                                                      tern_early_stopping *stopping);
/* A tensor, into which is copied. */
TERN_API tern_status tern_snapshot_add_tensor(tern_snapshot *snapshot, const char *name,
                                              tern_tensor *x);
/* A whole number of the program's, read when it is saved and written when it is loaded. */
TERN_API tern_status tern_snapshot_add_int(tern_snapshot *snapshot, const char *name,
                                           int64_t *value);
/* A real one. */
TERN_API tern_status tern_snapshot_add_real(tern_snapshot *snapshot, const char *name,
                                            double *value);

/* ---- saving and loading ---------------------------------------------------------------------- */

typedef struct tern_snapshot_options {
    int64_t step;    /* its number; 0: one more than the newest's */
    int keep_last;   /* remove the oldest until there are so many; 0: keep all */
    bool is_best;    /* best.safetensors is this one from now on, which is not counted */
    bool background; /* write on another thread, once all tensors were copied to the host */
    uint64_t reserved[4];
} tern_snapshot_options;
/* Returns the default options, as TERN_DEFAULTS takes them. */
TERN_API tern_snapshot_options tern_snapshot_defaults(void);

/* Write a snapshot into a folder, which is made where it is not there; complete or not there, as
 * what tern_save writes. Others are removed after it is on the disk. Waits for a save in the
 * background that is not done, whose error is this one's then. Refused while an error is
 * recorded. */
TERN_API tern_status tern_snapshot_save(tern_snapshot *snapshot, const char *folder,
                                        const tern_snapshot_options *options);
/* Until the save in the background is done, if there is one; its status, recorded on this
 * thread. */
TERN_API tern_status tern_snapshot_wait(tern_snapshot *snapshot);
/* Put back what is in a file, or in the newest of a folder. All names, shapes and numbers are
 * checked first: an error changes nothing. Errors: TERN_ERR_IO; TERN_ERR_STATE where the file and
 * the snapshot have not the same things in them. */
TERN_API tern_status tern_snapshot_load(tern_snapshot *snapshot, const char *path);

/* The path of the newest snapshot in a folder; NULL where there is none, without an error. Lives
 * until the thread's next call. */
TERN_API const char *tern_snapshot_latest(const char *folder);
/* The path of the one that was saved last with is_best; likewise. */
TERN_API const char *tern_snapshot_best(const char *folder);
/* How many snapshots there are in a folder, without the best one; 0 where there is no folder. */
TERN_API int tern_snapshot_count(const char *folder);

TERN_END_DECLS
#endif
