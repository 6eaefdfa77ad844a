/* dist.h -- processes that compute together: torch.distributed's vocabulary over MPI.
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
 * MPI is no part of libtern: a plugin made for it (lib/tern/libtern_mpi_<family>.so) is opened by
 * the first function above. A program that no launcher started is a job of one process, where all
 * of this works without MPI; so does all of it before tern_dist_init_process_group.
 *
 * All ranks of a group call the same collectives in the same order. One that dies, stops, leaves
 * one out or asks for something else is TERN_ERR_PEER on all the others within the timeout, with
 * its rank, its host and what it did in the message, and tensors that were to be changed as they
 * were unless data had begun to flow. After that every call here fails with the same error: the
 * program saves what it has and returns from main.
 *
 * Tensors are dense and of any dtype and device; sums of halves are computed in float32. Gradients
 * do not flow through. In a forked child they are TERN_ERR_STATE.
 *
 * Inside a capture (tern/graph.h) of their device collectives are recorded: a replay begins them,
 * and waits for them where the program did, in the middle of its launches, with their errors. All
 * ranks record the same, and replay as often. Others (of tensors elsewhere, of objects, barriers)
 * are TERN_ERR_STATE there. */
#ifndef TERN_DIST_H
#define TERN_DIST_H
#include <tern/tensor.h>

TERN_BEGIN_DECLS

/* ---- the job --------------------------------------------------------------------------------- */

typedef struct tern_dist_init_options {
    double timeout; /* seconds that the others are waited for; 0: 30 minutes */
    /* This process's default device from then on. A bare kind ("cuda", "opencl") is that kind's
     * device of this rank's number among those of its host, from the first again where there are
     * fewer. NULL: as it was. */
    const char *device;
    uint64_t reserved[4];
} tern_dist_init_options;
/* Returns the default options, as TERN_DEFAULTS takes them. */
TERN_API tern_dist_init_options tern_dist_init_defaults(void);

/* Join the job that the launcher started, which all its processes do. backend: "mpi"; NULL: MPI
 * where a launcher started this process (Open MPI's and MPICH's mpirun, Slurm, PMIx), else a job of
 * one process. How many processes there are, the launcher's environment and MPI must agree on: an
 * MPI that is not the launcher's is an error that names both numbers. Threads of the cpu are the
 * cores that this process may use, shared with the ranks of its host that may use the same, unless
 * OMP_NUM_THREADS says otherwise. Errors: TERN_ERR_STATE where there is a group already, and in a
 * forked child; TERN_ERR_UNSUPPORTED without a plugin for the launcher's MPI, and where the program
 * began MPI for one thread (MPI_THREAD_MULTIPLE is wanted, or _SERIALIZED if it does not call MPI
 * itself meanwhile); TERN_ERR_ARGUMENT; TERN_ERR_PEER where a rank does not come, or has another
 * version of tern. MPI that the program began is its to end. PyTorch:
 * torch.distributed.init_process_group. */
TERN_API tern_status tern_dist_init_process_group(const char *backend,
                                                  const tern_dist_init_options *options);
/* Leave the job, when all ranks do so; groups and works end with it. After TERN_ERR_PEER nobody is
 * waited for, and MPI is left as it is: the program is to return from main, and the launcher ends
 * the job with its exit code. */
TERN_API tern_status tern_dist_destroy_process_group(void);
/* Whether tern_dist_init_process_group was called and tern_dist_destroy_process_group was not. */
TERN_API bool tern_dist_is_initialized(void);
/* Whether a plugin for MPI can be opened. Records no error. */
TERN_API bool tern_dist_is_available(void);
/* The library that is used, its plugin and how it runs ("MPICH 4.0.2, ..."); why there is none; ""
 * before. */
TERN_API const char *tern_dist_notes(void);

/* Some of the processes of a job; NULL is all of them. */
typedef struct tern_dist_group tern_dist_group;

/* This process's number in the group, from 0 on; -1 where it does not belong to it. */
TERN_API int tern_dist_get_rank(const tern_dist_group *group);
/* How many processes are in the group. */
TERN_API int tern_dist_get_world_size(const tern_dist_group *group);
/* This process's number among those of its host. */
TERN_API int tern_dist_get_local_rank(void);
/* "mpi", "nccl" once tensors of the group go from CUDA device to CUDA device (docs/dist.md), or
 * "local" for a job of one process. */
TERN_API const char *tern_dist_get_backend(const tern_dist_group *group);
/* A group of the processes of these numbers, which become its ranks in this order; all processes of
 * the job call it, those that do not belong to it too. It ends with the job. timeout: 0 is the
 * job's. NULL after an error. PyTorch: torch.distributed.new_group. */
TERN_API tern_dist_group *tern_dist_new_group(const int *ranks, int n, double timeout);

/* ---- collectives ----------------------------------------------------------------------------- */

/* How values are combined. Of bools TERN_DIST_SUM, _MAX and _BOR are "or", _PRODUCT, _MIN and _BAND
 * "and". */
typedef enum tern_dist_op {
    TERN_DIST_SUM = 0,
    TERN_DIST_AVG = 1, /* the sum over the number of ranks; of floating point only */
    TERN_DIST_PRODUCT = 2,
    TERN_DIST_MIN = 3,
    TERN_DIST_MAX = 4,
    TERN_DIST_BAND = 5, /* bits; of integers and bools only */
    TERN_DIST_BOR = 6,
    TERN_DIST_BXOR = 7
} tern_dist_op;

/* A collective that is under way. */
typedef struct tern_dist_work tern_dist_work;

typedef struct tern_dist_options {
    tern_dist_op op;
    tern_dist_group *group; /* NULL: all processes */
    /* Where a handle is to go: the call returns at once, and the tensors are not to be touched
     * before tern_dist_wait. */
    tern_dist_work **work;
    const char *label; /* what errors call it, of up to 47 bytes; the same on all ranks */
    double timeout;    /* seconds; 0: the group's */
    int tag;           /* of tern_dist_send and tern_dist_recv: those of one tag meet */
    uint64_t reserved[4];
} tern_dist_options;
/* Returns the default options, as TERN_DEFAULTS takes them. */
TERN_API tern_dist_options tern_dist_defaults(void);

/* Until it is done; its status. The handle ends with this. NULL is TERN_ERR_ARGUMENT. */
TERN_API tern_status tern_dist_wait(tern_dist_work *work);
/* Whether it is done, or has failed: tern_dist_wait will not wait. */
TERN_API bool tern_dist_is_completed(const tern_dist_work *work);

/* Options NULL: the sum, over all processes, waited for. src and dst are numbers in the job, as in
 * PyTorch, also where a group is given. Errors of all: TERN_ERR_ARGUMENT for what is not dense, a
 * rank that is not there, a group that this process is not in; TERN_ERR_SHAPE; TERN_ERR_DTYPE;
 * TERN_ERR_PEER.
 *
 * Order of sums: as MPI has it, where all ranks get the same bits and another run of the same job
 * does too; with tern_use_deterministic(true) in the order of ranks, the same bits with every
 * library. */

/* x becomes the sum of all ranks' x, of one shape and dtype. */
TERN_API tern_status tern_dist_all_reduce(tern_tensor *x, const tern_dist_options *options);
/* The same on rank dst alone; the others' x stay. */
TERN_API tern_status tern_dist_reduce(tern_tensor *x, int dst, const tern_dist_options *options);
/* x becomes rank src's. */
TERN_API tern_status tern_dist_broadcast(tern_tensor *x, int src, const tern_dist_options *options);
/* out: (N, ...) or (N size, ...), the x of all N ranks, one after the other. */
TERN_API tern_status tern_dist_all_gather_into_tensor(tern_tensor *out, tern_tensor *x,
                                                      const tern_dist_options *options);
/* x: N times out's elements; out becomes the sum of the parts that are this rank's. */
TERN_API tern_status tern_dist_reduce_scatter_tensor(tern_tensor *out, tern_tensor *x,
                                                     const tern_dist_options *options);
/* all: on rank dst, the x of all ranks one after the other; NULL elsewhere. */
TERN_API tern_status tern_dist_gather(tern_tensor *x, tern_tensor *all, int dst,
                                      const tern_dist_options *options);
/* x becomes this rank's part of rank src's all, which is NULL elsewhere. */
TERN_API tern_status tern_dist_scatter(tern_tensor *x, tern_tensor *all, int src,
                                       const tern_dist_options *options);
/* Part i of x goes to rank i, whose part for this rank comes to place i of out: N equal parts. */
TERN_API tern_status tern_dist_all_to_all_single(tern_tensor *out, tern_tensor *x,
                                                 const tern_dist_options *options);
/* x to rank dst, which receives a tensor of as many elements of the dtype. */
TERN_API tern_status tern_dist_send(tern_tensor *x, int dst, const tern_dist_options *options);
/* x from rank src. Those of one tag arrive in the order in which they were sent. */
TERN_API tern_status tern_dist_recv(tern_tensor *x, int src, const tern_dist_options *options);
/* tern_dist_send that returns at once; NULL after an error. */
TERN_API tern_dist_work *tern_dist_isend(tern_tensor *x, int dst, const tern_dist_options *options);
/* tern_dist_recv that returns at once; NULL after an error. */
TERN_API tern_dist_work *tern_dist_irecv(tern_tensor *x, int src, const tern_dist_options *options);
/* Until all ranks of the group have come. Like every collective it names those that do not
 * (torch.distributed.monitored_barrier too). */
TERN_API tern_status tern_dist_barrier(const tern_dist_options *options);
/* The same by its other name. */
TERN_API tern_status tern_dist_monitored_barrier(const tern_dist_options *options);

/* ---- bytes ----------------------------------------------------------------------------------- */

/* Rank src's data, *bytes of it, on all ranks: new memory, to be freed with tern_free_text, with a
 * zero byte behind it;
 * *bytes becomes its size. On the others data is not looked at. NULL after an error
 * (torch.distributed.broadcast_object_list). */
TERN_API void *tern_dist_broadcast_object(const void *data, size_t *bytes, int src,
                                          const tern_dist_options *options);
/* The data of all ranks one after the other, sizes[i] bytes of rank i's, as above; sizes has room
 * for as many as there are ranks (torch.distributed.all_gather_object). */
TERN_API void *tern_dist_all_gather_object(const void *data, size_t bytes, size_t *sizes,
                                           const tern_dist_options *options);

/* What this process did last, oldest first, a line each: number, what, size, label, how long ago it
 * began and whether it is done. To be freed with tern_free_text; NULL after an error. */
TERN_API char *tern_dist_flight_record(void);

TERN_END_DECLS
#endif
