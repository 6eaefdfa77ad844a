/* dist.h -- internals of src/dist: the job, its groups, its works (collectives), and the messages
 * that ranks exchange about them.
 *
 * One lock protects all of the job. The thread that holds it calls MPI, and MPI calls never block:
 * the job's own thread tests the calls that are under way and sleeps, and a thread that waits for a
 * work tests them too. A collective begins with an all-gather of headers with its signature, so
 * that data are sent only if all ranks began the same collective. Small data travel inside the
 * header (eager), and headers of later collectives travel while data of earlier ones do. In groups
 * of more than DIST_HEADERS ranks an all-reduce of two numbers replaces the headers. */
#ifndef TERN_DIST_DIST_H
#define TERN_DIST_DIST_H
#include "base/memory.h"
#include "base/os.h"
#include "dist/mpi.h"
#include "tensor/ranks.h"
#include "tensor/storage.h"
#include <stdatomic.h>
#include <tern/dist.h>
#include <tern/nn.h>

typedef enum tern_dist_kind {
    DIST_ALL_REDUCE,
    DIST_REDUCE,
    DIST_BROADCAST,
    DIST_ALL_GATHER,
    DIST_REDUCE_SCATTER,
    DIST_GATHER,
    DIST_SCATTER,
    DIST_ALL_TO_ALL,
    DIST_SEND,
    DIST_RECV,
    DIST_BARRIER,
    DIST_NEW_GROUP,
    DIST_LEAVE
} tern_dist_kind;

enum {
    DIST_LABEL = 48,
    DIST_TEXT = 192,
    DIST_RECORD = 16,
    DIST_MESSAGE = 3072,
    DIST_PIECE = 1 << 28,
    DIST_DIRECT_PIECE = 1 << 22,
    DIST_HEADERS = 32, /* largest group whose ranks all-gather headers */
    DIST_EAGER = 256   /* bytes of data in a header */
};

/* The description of a collective; ranks compare all of it. */
typedef struct tern_dist_deed {
    uint64_t signature;
    char text[DIST_TEXT]; /* such as "all_reduce of 10 float32 'step 3'" */
} tern_dist_deed;

typedef struct tern_dist_header {
    uint64_t signature, ways; /* ways: bits, see device_transport.c */
    char eager[DIST_EAGER];
} tern_dist_header;

typedef enum tern_dist_state {
    WORK_WAITS,   /* an earlier work of its channel comes first */
    WORK_SIGNS,   /* signatures are being compared */
    WORK_DIFFERS, /* signatures differ: deeds are being exchanged */
    WORK_SIGNED,  /* signatures agree: earlier works' data come first */
    WORK_FLOWS,   /* data are being sent */
    WORK_STUCK,   /* an MPI call failed */
    WORK_DONE
} tern_dist_state;

/* The steps of a work whose data go by a transport. The first such work of a group opens the
 * transport. */
typedef enum tern_dist_phase {
    TRANSPORT_ASKS,
    TRANSPORT_MEETS,
    TRANSPORT_OPENS,
    TRANSPORT_FLOWS,
    TRANSPORT_OVER
} tern_dist_phase;

struct tern_dist_group {
    tern_mpi_comm data, control;
    int number;     /* position in order of creation, 0 for the group of all processes */
    int rank, size; /* rank is -1 if this process is no member */
    int *members;   /* the members' ranks in the job */
    double timeout;
    uint64_t count;                /* number of collectives begun */
    const void *place;             /* device of the last work that could use a transport */
    _Atomic(const void *) refused; /* device for which there is no transport */
    tern_transport *transport;
    atomic_bool has_transport; /* transport is that of the last work's devices */
    struct tern_dist_group *next;
};

struct tern_dist_work {
    struct tern_dist_work *next;
    tern_dist_kind kind;
    tern_dist_group *group;
    uint64_t number; /* position among the group's collectives, from 1 on */
    tern_dist_deed deed;
    int root, tag; /* root is the root or the peer, a rank of the group */
    tern_dist_op op;
    tern_dtype dtype;
    int64_t count; /* number of elements, of one rank's part if the tensor has parts of all ranks */
    bool direct;   /* reduced by libtern in the order of ranks, not by MPI */
    bool tree;     /* direct, and as a binary tree over the ranks */
    bool apart;    /* no work under way writes this work's input */
    bool awaited;  /* the thread that began the work waits for it */
    bool behind;   /* an earlier work of the channel was not done at the last check */
    double timeout, asked, begun;

    tern_tensor *in, *out; /* references to the tensors; in is NULL if the work is in place */
    tern_stage *in_stage, *out_stage;
    const void *from;
    void *to;
    bool reads, writes; /* whether `to` is input, and whether it is output, on this rank */

    const void *place;    /* device that a transport can read, or NULL if the data go by way of the
                             host */
    void *event;          /* device event after the kernels that write the input */
    tern_tensor *wide[2]; /* float32 copies of half in and out, if a transport adds them */
    bool ordered;         /* the order of sums is fixed: no transport is used */
    bool by_transport;    /* the group's transport moves the data */
    uint64_t ways;
    tern_transport_card *cards; /* cards of all ranks, then this rank's, while a transport is
                                   made */

    tern_dist_state state;
    tern_mpi_request request[2];
    int requests;
    uint64_t sign[4];          /* all-reduced: signature, its complement, two bits of ways */
    tern_dist_header *headers; /* headers of all ranks, then this rank's; NULL for pairs and large
                                  groups */
    tern_dist_deed *deeds;     /* deeds of all ranks, or of the sender */
    int64_t at, piece;         /* first element and size of the piece that is sent now */
    int phase;
    void *scratch; /* this rank's part from all ranks, for a direct reduction */
    int *integers;

    tern_status status;
    atomic_bool done;
    /* The recorded collective of which this work is only the program's handle, or NULL. */
    struct tern_dist_recorded *recorded;
};

/* A collective's arguments. */
typedef struct tern_dist_request {
    const char *name; /* such as "all_reduce" */
    tern_dist_work w;
    tern_dist_options o;
    /* This rank's part, and the tensor of all ranks' parts; NULL if the kind has none. */
    tern_tensor *one, *all;
    tern_tensor *in, *out; /* one or all, depending on the kind, or NULL */
} tern_dist_request;

/* What each rank sends to all others when it joins the job. */
typedef struct tern_dist_card {
    char host[48];
    int64_t pid;
    uint64_t cores; /* hash of the set of cores that this process may use */
    uint64_t version;
} tern_dist_card;

/* An entry of the flight record. */
typedef struct tern_dist_line {
    char text[DIST_TEXT];
    int group;
    uint64_t number;
    double begun, ended; /* ended is 0 until the work has ended */
    const tern_dist_work *of;
} tern_dist_line;

typedef struct tern_dist_negotiation tern_dist_negotiation; /* struct in negotiation.c */

typedef struct tern_dist_job {
    tern_mutex lock;
    tern_cond wake;      /* wakes the job's thread */
    tern_dist_group all; /* group of all processes, with size 0 if there is no job */
    const tern_mpi *mpi; /* the plugin's functions, or NULL in a job of one process */
    tern_mpi_level level;
    bool ours;    /* the job, not the program, called MPI_Init */
    bool threads; /* the job's thread was started */
    bool helps;   /* threads other than the job's may call MPI */
    bool began, failed, stops, left;
    /* The program called MPI_Init_thread with a level that forbids calls of the job's thread. */
    bool foreign;
    int forks;
    atomic_int drops; /* transports that are being destroyed, by threads of their own */
    int local_rank;
    tern_os_thread thread;
    int helpers;
    tern_mpi_comm negotiation_comm;
    tern_dist_negotiation *negotiation;
    tern_dist_card *cards; /* cards of all ranks */
    tern_dist_work *first; /* works under way, in order of their start */
    /* Works that the job's end cut off; they are never freed, as MPI may use their memory. */
    tern_dist_work *unfinished;
    tern_dist_group *groups;
    int n_groups;
    tern_status status; /* the error that ended the job: all later calls return it */
    char message[DIST_MESSAGE];
    tern_dist_line record[DIST_RECORD];
    uint64_t recorded;
} tern_dist_job;

extern tern_dist_job tern_dist_the_job;

/* ---- record.c -------------------------------------------------------------------------------- */
double tern_dist_now(void);
const char *tern_dist_kind_name(tern_dist_kind kind);
/* Sets work->deed to the work's description, with the label. */
void tern_dist_describe(tern_dist_work *work, const char *label);
void tern_dist_note(const tern_dist_work *work);
void tern_dist_note_end(const tern_dist_work *work);
/* Writes the last n entries at most, newest first. Returns the length of the text. */
size_t tern_dist_lines(char *text, size_t bytes, int n);
/* Writes "rank 2 (host, pid 451)" to text, and returns text. */
const char *tern_dist_name(int rank, char *text, size_t bytes);
/* Appends to the string in text, as snprintf. */
void tern_dist_add(char *text, size_t bytes, const char *format, ...) TERN_PRINTF_(3, 4);

/* ---- launcher.c ------------------------------------------------------------------------------ */
typedef struct tern_dist_launcher {
    const char *families[3]; /* plugins to try, in order; NULL-terminated */
    /* Environment variable with the number of processes or this one's rank, or NULL if there is no
     * launcher. */
    const char *variable;
    int size;       /* number of processes, or 0 if unknown */
    int rank;       /* -1 if unknown */
    int local_rank; /* -1 if unknown */
    bool there;     /* a launcher started this process */
} tern_dist_launcher;
tern_dist_launcher tern_dist_find_launcher(void);
/* Returns the table of the first plugin that opens. If none does, returns NULL and writes each
 * reason to `where`, without recording an error. */
const tern_mpi *tern_dist_open_plugin(const char *const *families, char *where, size_t bytes);

/* ---- negotiation.c: messages about late collectives, on a communicator of their own ---------- */
tern_status tern_dist_negotiation_begin(tern_dist_job *job);
void tern_dist_negotiation_free(tern_dist_job *job);
/* Sends answers and reads one message. Returns whether a message came. */
bool tern_dist_negotiation_step(tern_dist_job *job);
/* Cancels the pending receive by a message to itself, so that MPI can be finalized. */
void tern_dist_negotiation_end(tern_dist_job *job);
/* Returns whether no message to other ranks is still being sent. */
bool tern_dist_negotiation_is_silent(const tern_dist_job *job);
/* Asks the other ranks about a work that is late or in which MPI failed. The job ends with an error
 * that has their answers. */
void tern_dist_ask(tern_dist_job *job, tern_dist_work *work, const char *why);
/* Stops asking about the work, which is done after all. */
void tern_dist_ask_no_more(tern_dist_job *job, const tern_dist_work *work);
/* Ends the job: all works fail with the message, and all ranks are sent it. */
void tern_dist_end(tern_dist_job *job, tern_status status, const char *message);

/* ---- mpi_calls.c ----------------------------------------------------------------------------- */
/* Returns the bitwise operation that equals op on bools (bytes 0 and 1). */
tern_dist_op tern_dist_bits_of(tern_dist_op op);
/* Begins an MPI call of the work. If MPI returns an error, asks the other ranks and returns
 * false. */
bool tern_dist_begin(tern_dist_job *job, tern_dist_work *work, tern_mpi_call call);
/* Returns whether all MPI calls of the work are complete. */
bool tern_dist_all_done(tern_dist_job *job, tern_dist_work *work);
/* Returns whether the work's data travel in the headers. */
bool tern_dist_is_eager(const tern_dist_work *work);

/* ---- steps.c, sum.c -------------------------------------------------------------------------- */
/* Takes the next step of a work, if it can. Returns whether it did. */
bool tern_dist_step(tern_dist_job *job, tern_dist_work *work);
/* Sets out[i] to op over the n rows[r][i] in order of r, divided by `ranks` for the average. Halves
 * are computed in float32. */
void tern_dist_combine(void *out, const void *rows, int n, int64_t count, tern_dtype dtype,
                       tern_dist_op op, int ranks);

/* Sets rows[0] to the sum of the n rows as a binary tree, ((0 + 1) + (2 + 3)) + ..., where n is a
 * power of two. Each sum is rounded to the dtype. */
void tern_dist_combine_tree(void *rows, int n, int64_t count, tern_dtype dtype);

/* ---- memory.c -------------------------------------------------------------------------------- */
/* Sets the host memory of the work's tensors: their own memory on the cpu, else copies. */
tern_status tern_dist_stage(tern_dist_work *work);

/* ---- device_transport.c: from device to device by the vendor's library ----------------------- */
/* Prepares the work for a transport. Returns false if no transport can carry its data. The tensors
 * are set. */
bool tern_dist_offer(tern_dist_work *work);
/* note_way sets the bits for the work's header; choose_way decides by the bits of all headers. The
 * caller holds the lock. */
void tern_dist_note_way(tern_dist_work *work);
void tern_dist_choose_way(tern_dist_work *work);
/* Takes the next step of the work's data. Returns whether it did. If the ranks can't make a
 * transport, by_transport becomes false and the data go by way of the host. */
bool tern_dist_transport_step(tern_dist_job *job, tern_dist_work *work);
/* Rounds a transport's float32 output to the work's half output. */
tern_status tern_dist_narrow(tern_dist_work *work);
/* Frees what tern_dist_offer allocated. */
void tern_dist_withdraw(tern_dist_work *work);
/* Destroys the transports of all groups. After an error this runs on other threads: calls under way
 * may take long to end. */
void tern_dist_drop_transports(tern_dist_job *job);

/* ---- collective.c ---------------------------------------------------------------------------- */
typedef enum tern_dist_way {
    DIST_WAY_ANY,
    DIST_WAY_TREE, /* floating point: a binary tree over the ranks. If each rank adds its own terms
                      as a tree, the whole sum is one tree. */
    DIST_WAY_APART /* no collective under way writes the tensor, so a small one need not wait for
                      others */
} tern_dist_way;
tern_status tern_dist_all_reduce_by(tern_tensor *x, tern_dist_way way,
                                    const tern_dist_options *options);

/* ---- recorded.c: collectives in a capture of the tensors' device ----------------------------- */
/* Records the collective. A replay begins it and waits for it: immediately if the program passed no
 * options.work, else where the program called tern_dist_wait. */
tern_status tern_dist_record(const tern_dist_request *r,
                             tern_status (*begin)(const tern_dist_request *r));
tern_status tern_dist_record_wait(struct tern_dist_recorded *recorded);

/* ---- scalar_all_reduce.c --------------------------------------------------------------------- */
/* Replaces values[i], of n, by their sums over the group's ranks or the greatest; NaN if a rank has
 * NaN. */
tern_status tern_dist_reduce_scalars(tern_dist_group *group, const char *label, double *values,
                                     int n, bool greatest);
/* tern_ranks that decide in each of n groups in turn, so that the processes of all of them decide
 * alike. */
typedef struct tern_dist_ranks {
    tern_ranks ranks; /* first member; its functions check_consistency and first are: */
    tern_dist_group *groups[2];
    int n;
} tern_dist_ranks;
tern_status tern_dist_check_consistency(tern_ranks *ranks, tern_status status, char *text,
                                        size_t bytes, const char *function);
/* A number of -1 means that this process has no part. */
tern_status tern_dist_first(tern_ranks *ranks, int number, int count, bool *leads, bool *own,
                            bool *all);

/* ---- tensor_parallel.c ----------------------------------------------------------------------- */
/* A cut along a dim of that size into parts of the group's ranks. One struct exists for each group,
 * dim and size, and is never freed. */
typedef struct tern_dist_cut {
    /* Must be the first member: all processes, as DistributedDataParallel may have copies of parts
     * on others. */
    tern_dist_ranks of;
    tern_dist_group *group;
    int dim;
    int64_t size; /* size of the dim in the whole tensor */
    struct tern_dist_cut *next;
} tern_dist_cut;
/* Returns the cut if ranks are those of a tensor-parallel layer, else NULL. */
const tern_dist_cut *tern_dist_cut_of(const tern_ranks *ranks);
/* Returns p as a tern_cut, and sets the dim of *whole to its size before the cut. */
tern_cut tern_dist_read_cut(const tern_dist_cut *p, tern_shape *whole);
/* Records TERN_ERR_ARGUMENT if another rank of the group has another part of x. */
tern_status tern_dist_check_cut(const char *function, const char *path, const tern_tensor *x,
                                const tern_dist_group *group);

/* ---- stages.c -------------------------------------------------------------------------------- */
/* Assigns children begin[s] to begin[s + 1] - 1 of the sequential to rank[s], for n stages. Fails
 * with TERN_ERR_ARGUMENT if stages of two ranks share a tensor. */
tern_status tern_dist_set_stages(tern_module *sequential, const int *begin, const int *rank, int n);
/* Sends `whole`, a cpu tensor, from the rank that has x's stage to the other ranks of the pipeline.
 * Does nothing if x is in no stage. */
tern_status tern_dist_share_stage(const tern_tensor *x, tern_tensor *whole);

/* ---- shard_state.c --------------------------------------------------------------------------- */
/* All-gathers the parts `own` of a tensor with that many rows, cut as by tern_chunk. Returns the
 * whole tensor on the cpu, or NULL after an error. */
tern_tensor *tern_dist_gather_rows(tern_tensor *own, int64_t rows, tern_dist_group *group);

/* ---- engine.c -------------------------------------------------------------------------------- */
/* Starts the job's thread, which initializes MPI and its communicators. Waits for at most timeout
 * seconds. */
tern_status tern_dist_start(tern_dist_job *job, double timeout);
/* Ends the job's thread, and finalizes MPI if the job initialized it and left in order. */
void tern_dist_stop(tern_dist_job *job);
/* Begins a work, or returns the error that ended the job. */
tern_status tern_dist_give(tern_dist_job *job, tern_dist_work *work);
/* Returns whether an error ended the job. */
bool tern_dist_has_ended(tern_dist_job *job);
/* Waits until the work is done, and returns its status. */
tern_status tern_dist_await(tern_dist_job *job, tern_dist_work *work);

/* Returns a copy of *what with its buffers, but without tensors, or NULL after TERN_ERR_MEMORY. */
tern_dist_work *tern_dist_work_new(const tern_dist_work *what, const char *label);
/* Frees the work, unless MPI may still use its memory. */
void tern_dist_work_free(tern_dist_work *work);
/* Runs a collective on host memory to its end. */
tern_status tern_dist_run(const tern_dist_work *what, const char *label);

#endif
