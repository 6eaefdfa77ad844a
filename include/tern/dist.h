/* dist.h -- several processes that train together: the functions of torch.distributed, over MPI.
 *
 *   mpirun -n 4 ./train            (or srun; docs/dist.md shows how to start a job)
 *
 *   tern_dist_init_process_group(NULL, NULL);
 *   int rank = tern_dist_get_rank(NULL), ranks = tern_dist_get_world_size(NULL);
 *   ...
 *   tern_dist_all_reduce(gradient, &(tern_dist_options){.op = TERN_DIST_AVG});
 *   ...
 *   tern_dist_destroy_process_group();
 *
 * libtern is not linked to MPI: tern_dist_init_process_group opens a plugin
 * (lib/tern/libtern_mpi_<family>.so). A program that was not started by a launcher is a job of one
 * process, in which all functions work without MPI; so they do before tern_dist_init_process_group.
 *
 * All ranks of a group call the same collectives in the same order. If a rank dies, stops, leaves
 * out a collective or calls another one, all others get TERN_ERR_PEER within the timeout, with the
 * rank, its host and what it did in the message. Tensors are then unchanged unless the transfer had
 * begun. After that every call here fails with the same error: the program should save its work and
 * return from main.
 *
 * Tensors are dense, of any dtype and on any device; float16 and bfloat16 are summed in float32.
 * Collectives have no gradients. In a forked child process they are TERN_ERR_STATE.
 *
 * Inside a capture (tern/graph.h) of their device, collectives are recorded: a replay begins them,
 * waits for them where the program did, and returns their errors. All ranks record the same
 * collectives and replay equally often. Collectives of tensors on other devices or of objects, and
 * barriers, are TERN_ERR_STATE there. */
#ifndef TERN_DIST_H
#define TERN_DIST_H
#include <tern/tensor.h>

TERN_BEGIN_DECLS

/* ---- the job --------------------------------------------------------------------------------- */

typedef struct tern_dist_init_options {
    double timeout; /* how long to wait for other ranks, in seconds; 0: 30 minutes */
    /* The default device of this process. A kind without a number ("cuda", "opencl") means the
     * device of that kind whose number is this rank's number on its host; if there are fewer
     * devices, ranks share them in turn. NULL: no change. */
    const char *device;
    uint64_t reserved[4];
} tern_dist_init_options;
/* Returns the default options, as TERN_DEFAULTS takes them. */
TERN_API tern_dist_init_options tern_dist_init_defaults(void);

/* Joins the job that the launcher started; all its processes call this
 * (torch.distributed.init_process_group). backend is "mpi", or NULL: MPI if a launcher started this
 * process (Open MPI's or MPICH's mpirun, Slurm, PMIx), else a job of one process. The environment
 * of the launcher and MPI must agree on the number of processes: an MPI that does not belong to the
 * launcher is an error that names both numbers. The cpu device uses as many threads as this process
 * has cores, divided by the ranks of this host that may use the same cores, unless OMP_NUM_THREADS
 * is set. MPI that the program has initialised is finalised by the program. Errors: TERN_ERR_STATE
 * if there is a group already, and in a forked child process; TERN_ERR_UNSUPPORTED without a plugin
 * for the launcher's MPI, and if the program has initialised MPI for one thread (it must be
 * MPI_THREAD_MULTIPLE, or _SERIALIZED if the program does not call MPI itself meanwhile);
 * TERN_ERR_ARGUMENT; TERN_ERR_PEER if a rank does not come, or has another version of tern. */
TERN_API tern_status tern_dist_init_process_group(const char *backend,
                                                  const tern_dist_init_options *options);
/* Leaves the job; all ranks call this. Groups and handles of collectives become invalid. After
 * TERN_ERR_PEER it waits for nobody and does not finalise MPI: the program should return from main,
 * and the launcher ends the job with its exit code. */
TERN_API tern_status tern_dist_destroy_process_group(void);
/* Returns whether tern_dist_init_process_group was called and tern_dist_destroy_process_group was
 * not. */
TERN_API bool tern_dist_is_initialized(void);
/* Returns whether a plugin for MPI can be opened. Records no error. */
TERN_API bool tern_dist_is_available(void);
/* Returns a text about the MPI library in use, its plugin and its settings ("MPICH 4.0.2, ..."), or
 * about why there is none; "" before tern_dist_init_process_group. */
TERN_API const char *tern_dist_notes(void);

/* A group of processes of a job; NULL means all of them. */
typedef struct tern_dist_group tern_dist_group;

/* Returns the number of this process in the group, from 0 on; -1 if it does not belong to it. */
TERN_API int tern_dist_get_rank(const tern_dist_group *group);
/* Returns the number of processes in the group. */
TERN_API int tern_dist_get_world_size(const tern_dist_group *group);
/* Returns the number of this process among those of its host. */
TERN_API int tern_dist_get_local_rank(void);
/* Returns "mpi", "nccl" once tensors of the group are sent between CUDA devices directly
 * (docs/dist.md), or "local" for a job of one process. */
TERN_API const char *tern_dist_get_backend(const tern_dist_group *group);
/* Makes a group of the processes with these numbers, which become its ranks in this order
 * (torch.distributed.new_group). All processes of the job call this, also those that do not belong
 * to the group. The group lives until the job ends. timeout 0 means that of the job. NULL after an
 * error. */
TERN_API tern_dist_group *tern_dist_new_group(const int *ranks, int n, double timeout);

/* ---- collectives ----------------------------------------------------------------------------- */

/* How elements are combined. For bools TERN_DIST_SUM, _MAX and _BOR are "or", and _PRODUCT, _MIN
 * and _BAND are "and". */
typedef enum tern_dist_op {
    TERN_DIST_SUM = 0,
    TERN_DIST_AVG = 1, /* the sum divided by the number of ranks; floating point only */
    TERN_DIST_PRODUCT = 2,
    TERN_DIST_MIN = 3,
    TERN_DIST_MAX = 4,
    TERN_DIST_BAND = 5, /* bitwise; integers and bools only */
    TERN_DIST_BOR = 6,
    TERN_DIST_BXOR = 7
} tern_dist_op;

/* The handle of a collective that is in progress. */
typedef struct tern_dist_work tern_dist_work;

typedef struct tern_dist_options {
    tern_dist_op op;
    tern_dist_group *group; /* NULL: all processes */
    /* Where to store a handle. The call then returns at once, and the tensors must not be used
     * before tern_dist_wait. */
    tern_dist_work **work;
    const char *label; /* the name in errors, up to 47 bytes; the same on all ranks */
    double timeout;    /* seconds; 0: the group's */
    int tag;           /* for tern_dist_send and tern_dist_recv, which match by tag */
    uint64_t reserved[4];
} tern_dist_options;
/* Returns the default options, as TERN_DEFAULTS takes them. */
TERN_API tern_dist_options tern_dist_defaults(void);

/* Waits until the collective is complete and returns its status. The handle is freed. NULL is
 * TERN_ERR_ARGUMENT. */
TERN_API tern_status tern_dist_wait(tern_dist_work *work);
/* Returns whether the collective is complete or has failed, so that tern_dist_wait will not
 * wait. */
TERN_API bool tern_dist_is_completed(const tern_dist_work *work);

/* Options NULL means: sum, all processes, wait. src and dst are numbers in the job even if a group
 * is given, as in PyTorch. Errors of all functions: TERN_ERR_ARGUMENT for a tensor that is not
 * dense, a rank that does not exist, and a group that does not contain this process;
 * TERN_ERR_SHAPE; TERN_ERR_DTYPE; TERN_ERR_PEER.
 *
 * The order in which elements are summed is that of MPI: all ranks get the same bits, and so does
 * another run of the same job. With tern_use_deterministic(true) it is the order of the ranks, and
 * every library gives the same bits. */

/* Sets x on every rank to the sum of the x of all ranks, which have one shape and dtype. */
TERN_API tern_status tern_dist_all_reduce(tern_tensor *x, const tern_dist_options *options);
/* Does the same on rank dst only; the x of the others do not change. */
TERN_API tern_status tern_dist_reduce(tern_tensor *x, int dst, const tern_dist_options *options);
/* Copies the x of rank src to the x of all ranks. */
TERN_API tern_status tern_dist_broadcast(tern_tensor *x, int src, const tern_dist_options *options);
/* Writes the x of all N ranks, one after the other, to out, which is (N, ...) or (N size, ...). */
TERN_API tern_status tern_dist_all_gather_into_tensor(tern_tensor *out, tern_tensor *x,
                                                      const tern_dist_options *options);
/* Sums the x of all ranks, and writes part r of N equal parts of the sum to out on rank r. x has N
 * times the elements of out. */
TERN_API tern_status tern_dist_reduce_scatter_tensor(tern_tensor *out, tern_tensor *x,
                                                     const tern_dist_options *options);
/* Writes the x of all ranks, one after the other, to all on rank dst; all is NULL on the other
 * ranks. */
TERN_API tern_status tern_dist_gather(tern_tensor *x, tern_tensor *all, int dst,
                                      const tern_dist_options *options);
/* Writes part r of rank src's all to x on rank r; all is NULL on the other ranks. */
TERN_API tern_status tern_dist_scatter(tern_tensor *x, tern_tensor *all, int src,
                                       const tern_dist_options *options);
/* Sends part i of N equal parts of x to rank i, and writes the part that rank i sent to part i of
 * out. */
TERN_API tern_status tern_dist_all_to_all_single(tern_tensor *out, tern_tensor *x,
                                                 const tern_dist_options *options);
/* Sends x to rank dst, which receives a tensor with the same number of elements and the same
 * dtype. */
TERN_API tern_status tern_dist_send(tern_tensor *x, int dst, const tern_dist_options *options);
/* Receives x from rank src. Messages with the same tag arrive in the order in which they were
 * sent. */
TERN_API tern_status tern_dist_recv(tern_tensor *x, int src, const tern_dist_options *options);
/* Does what tern_dist_send does, but returns a handle at once; NULL after an error. */
TERN_API tern_dist_work *tern_dist_isend(tern_tensor *x, int dst, const tern_dist_options *options);
/* Does what tern_dist_recv does, but returns a handle at once; NULL after an error. */
TERN_API tern_dist_work *tern_dist_irecv(tern_tensor *x, int src, const tern_dist_options *options);
/* Waits until all ranks of the group have called it. Like every collective it names the ranks that
 * do not come, as torch.distributed.monitored_barrier does. */
TERN_API tern_status tern_dist_barrier(const tern_dist_options *options);
/* Another name of tern_dist_barrier. */
TERN_API tern_status tern_dist_monitored_barrier(const tern_dist_options *options);

/* ---- bytes ----------------------------------------------------------------------------------- */

/* Sends *bytes bytes of data from rank src to all ranks, and returns them as new memory with a zero
 * byte after them; *bytes becomes their number (torch.distributed.broadcast_object_list). On the
 * other ranks data is ignored. The caller frees the result with tern_free_text; NULL after an
 * error. */
TERN_API void *tern_dist_broadcast_object(const void *data, size_t *bytes, int src,
                                          const tern_dist_options *options);
/* Returns the data of all ranks, one after the other, as new memory with a zero byte after it.
 * sizes[i] becomes the number of bytes of rank i; it has room for all ranks
 * (torch.distributed.all_gather_object). The caller frees the result with tern_free_text; NULL
 * after an error. */
TERN_API void *tern_dist_all_gather_object(const void *data, size_t bytes, size_t *sizes,
                                           const tern_dist_options *options);

/* Returns a text with the last collectives of this process, oldest first, one per line: number,
 * kind, size, label, when it began, and whether it is complete. The caller frees it with
 * tern_free_text; NULL after an error. */
TERN_API char *tern_dist_flight_record(void);

TERN_END_DECLS
#endif
