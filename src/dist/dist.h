/* dist.h -- inside of src/dist: the job, its groups, its works, and the words that ranks exchange
 * about them.
 *
 * One lock holds all of it; MPI is called by whoever has the lock, and never waits: a thread of the
 * job's own tests what is under way, and naps; who waits for a work helps it. A collective begins
 * with a header from all ranks to all, which has its signature, so that data flow only where all
 * ranks ask for the same; few data travel in the header (eager), and headers of what comes next
 * travel beside data. In large groups it is a sum of two numbers instead. */
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
    DIST_HEADERS = 32, /* ranks, of which each sends its header to all */
    DIST_EAGER = 256   /* bytes that travel in it */
};

/* What a rank does: all of it is compared. */
typedef struct tern_dist_deed {
    uint64_t signature;
    char text[DIST_TEXT]; /* "all_reduce of 10 float32 'step 3'" */
} tern_dist_deed;

typedef struct tern_dist_header {
    uint64_t signature, ways; /* see device_transport.c */
    char eager[DIST_EAGER];
} tern_dist_header;

typedef enum tern_dist_state {
    WORK_WAITS,   /* for what is before it in its channel */
    WORK_SIGNS,   /* signatures are compared */
    WORK_DIFFERS, /* they are not the same: deeds are exchanged */
    WORK_SIGNED,  /* they are: data wait for those of the works before */
    WORK_FLOWS,   /* data */
    WORK_STUCK,   /* MPI failed in it */
    WORK_DONE
} tern_dist_state;

/* Of a work whose data flow by a transport, which is opened when the first one does. */
typedef enum tern_dist_phase {
    TRANSPORT_ASKS,
    TRANSPORT_MEETS,
    TRANSPORT_OPENS,
    TRANSPORT_FLOWS,
    TRANSPORT_OVER
} tern_dist_phase;

struct tern_dist_group {
    tern_mpi_comm data, control;
    int number;     /* in the order in which they were made; 0: all processes */
    int rank, size; /* rank -1: not in it */
    int *members;   /* their numbers in the job */
    double timeout;
    uint64_t count;                /* of collectives that were asked for */
    const void *place;             /* of the last that asked for a transport */
    _Atomic(const void *) refused; /* for which there is none */
    tern_transport *transport;
    atomic_bool has_transport; /* it is that of the devices last asked for */
    struct tern_dist_group *next;
};

struct tern_dist_work {
    struct tern_dist_work *next;
    tern_dist_kind kind;
    tern_dist_group *group;
    uint64_t number; /* of the group's collectives, from 1 on */
    tern_dist_deed deed;
    int root, tag; /* root: in the group */
    tern_dist_op op;
    tern_dtype dtype;
    int64_t count; /* elements, those of one rank where there are parts of all */
    bool direct;   /* summed here, in the order of ranks */
    bool tree;     /* likewise, as a binary tree over them */
    bool apart;    /* no work that is under way writes what it reads */
    bool awaited;  /* who gives it waits for it */
    bool behind;   /* another one of its channel, when last looked at */
    double timeout, asked, begun;

    tern_tensor *in, *out; /* held; in NULL: in place */
    tern_stage *in_stage, *out_stage;
    const void *from;
    void *to;
    bool reads, writes; /* this rank's to, before and after */

    const void *place;    /* of a device whose memory a transport could read; NULL */
    void *event;          /* in its order, behind what made the data */
    tern_tensor *wide[2]; /* in and out in float32, where a transport adds halves */
    bool ordered;         /* the order of sums is promised: no transport keeps it */
    bool by_transport;    /* data go by the transport of the group */
    uint64_t ways;
    tern_transport_card *cards; /* of all ranks, then this one's: when a transport is made */

    tern_dist_state state;
    tern_mpi_request request[2];
    int requests;
    uint64_t sign[4]; /* with ~sign[0], ways' bits */
    tern_dist_header
        *headers;          /* of all ranks, then this one's; NULL: of pairs, and in large groups */
    tern_dist_deed *deeds; /* of all ranks, or of the sender */
    int64_t at, piece;     /* of a large tensor */
    int phase;
    void *scratch; /* direct: what all have for this rank's part */
    int *integers;

    tern_status status;
    atomic_bool done;
    struct tern_dist_recorded *recorded; /* what a recording has of it, and nothing else; NULL */
};

/* A collective as the program asks for it. */
typedef struct tern_dist_request {
    const char *name; /* "all_reduce" */
    tern_dist_work w;
    tern_dist_options o;
    tern_tensor *one, *all; /* this rank's part, and those of all ranks, where there are such */
    tern_tensor *in, *out;  /* of these, as the kind goes */
} tern_dist_request;

/* What ranks say of themselves when they meet. */
typedef struct tern_dist_card {
    char host[48];
    int64_t pid;
    uint64_t cores; /* which this process may use: a number of the set */
    uint64_t version;
} tern_dist_card;

/* A line of the flight record. */
typedef struct tern_dist_line {
    char text[DIST_TEXT];
    int group;
    uint64_t number;
    double begun, ended; /* ended 0: not yet */
    const tern_dist_work *of;
} tern_dist_line;

typedef struct tern_dist_negotiation tern_dist_negotiation; /* negotiation.c */

typedef struct tern_dist_job {
    tern_mutex lock;
    tern_cond wake;      /* the thread */
    tern_dist_group all; /* size 0: there is no job */
    const tern_mpi *mpi; /* NULL: one process, nothing to negotiation to */
    tern_mpi_level level;
    bool ours;    /* MPI was not the program's */
    bool threads; /* the job has its thread */
    bool helps;   /* others may call MPI */
    bool began, failed, stops, left;
    bool foreign; /* the program began MPI, and this job's thread may not call it */
    int forks;
    atomic_int drops; /* transports that threads of their own end */
    int local_rank;
    tern_os_thread thread;
    int helpers;
    tern_mpi_comm negotiation_comm;
    tern_dist_negotiation *negotiation;
    tern_dist_card *cards;      /* of all ranks */
    tern_dist_work *first;      /* under way, in the order in which they were asked for */
    tern_dist_work *unfinished; /* ended with the job while MPI had their memory: it keeps it */
    tern_dist_group *groups;
    int n_groups;
    tern_status status; /* of the job's end: all later calls' */
    char message[DIST_MESSAGE];
    tern_dist_line record[DIST_RECORD];
    uint64_t recorded;
} tern_dist_job;

extern tern_dist_job tern_dist_the_job;

/* ---- record.c -------------------------------------------------------------------------------- */
double tern_dist_now(void);
const char *tern_dist_kind_name(tern_dist_kind kind);
/* Fill work->deed. */
void tern_dist_describe(tern_dist_work *work, const char *label);
void tern_dist_note(const tern_dist_work *work);
void tern_dist_note_end(const tern_dist_work *work);
/* The last lines, at most n, newest first; the length of what there is. */
size_t tern_dist_lines(char *text, size_t bytes, int n);
/* "rank 2 (host, pid 451)" into text, which is returned. */
const char *tern_dist_name(int rank, char *text, size_t bytes);
/* snprintf behind what is in text already. */
void tern_dist_add(char *text, size_t bytes, const char *format, ...) TERN_PRINTF_(3, 4);

/* ---- launcher.c ------------------------------------------------------------------------------ */
typedef struct tern_dist_launcher {
    const char *families[3]; /* of plugins, in the order in which they are tried; NULL-ended */
    const char *variable;    /* that says how many processes there are; NULL: none does */
    int size;                /* 0: not known */
    int rank;                /* -1: not known */
    int local_rank;          /* -1 */
    bool there;              /* something started this process as one of a job */
} tern_dist_launcher;
tern_dist_launcher tern_dist_find_launcher(void);
/* The table of the first plugin that opens; NULL with the reason for each, without recording an
 * error. */
const tern_mpi *tern_dist_open_plugin(const char *const *families, char *where, size_t bytes);

/* ---- negotiation.c: questions on a communicator of their own --------------------------------- */
tern_status tern_dist_negotiation_begin(tern_dist_job *job);
void tern_dist_negotiation_free(tern_dist_job *job);
/* Answer what was asked, hear what came; false where nothing did. */
bool tern_dist_negotiation_step(tern_dist_job *job);
/* Nothing is waited for any more: MPI can be finalized. */
void tern_dist_negotiation_end(tern_dist_job *job);
/* Whether nothing is on its way to others. */
bool tern_dist_negotiation_is_silent(const tern_dist_job *job);
/* The work has waited too long, or MPI failed in it: ask the others, and end the job with what they
 * say. */
void tern_dist_ask(tern_dist_job *job, tern_dist_work *work, const char *why);
/* The work is done after all. */
void tern_dist_ask_no_more(tern_dist_job *job, const tern_dist_work *work);
/* End the job: all works fail, all ranks are notified. */
void tern_dist_end(tern_dist_job *job, tern_status status, const char *message);

/* ---- mpi_calls.c ----------------------------------------------------------------------------- */
/* Of bools, whose values are 0 and 1. */
tern_dist_op tern_dist_bits_of(tern_dist_op op);
/* Begin a call of the work's; false where MPI refuses, and the others are asked. */
bool tern_dist_begin(tern_dist_job *job, tern_dist_work *work, tern_mpi_call call);
/* Whether all that was begun is done. */
bool tern_dist_all_done(tern_dist_job *job, tern_dist_work *work);
/* Whether its data travel in the headers. */
bool tern_dist_is_eager(const tern_dist_work *work);

/* ---- steps.c, sum.c -------------------------------------------------------------------------- */
/* Go on with a work; whether something happened. */
bool tern_dist_step(tern_dist_job *job, tern_dist_work *work);
/* out[i] = op over r of the n rows[r][i], in that order, over ranks for the average; halves in
 * float32. */
void tern_dist_combine(void *out, const void *rows, int n, int64_t count, tern_dtype dtype,
                       tern_dist_op op, int ranks);

/* rows[0] = their sum as a binary tree, ((0 + 1) + (2 + 3)) + ...; each node of it is rounded to
 * the dtype. n: a power of two. */
void tern_dist_combine_tree(void *rows, int n, int64_t count, tern_dtype dtype);

/* ---- memory.c -------------------------------------------------------------------------------- */
/* Find the host's memory of the work's tensors: copies of them, but on the cpu. */
tern_status tern_dist_stage(tern_dist_work *work);

/* ---- device_transport.c: from device to device by their vendor's library --------------------- */
/* Whether a transport could carry the data of the work, whose tensors are there; the work is made
 * ready for it. */
bool tern_dist_offer(tern_dist_work *work);
/* With the lock held: note for the header what it asks for; and, once all headers are there, what
 * comes of it. */
void tern_dist_note_way(tern_dist_work *work);
void tern_dist_choose_way(tern_dist_work *work);
/* Takes the next step of the work's data, and returns whether something happened. A work that the
 * transport refuses goes by way of the host from then on, as others do. */
bool tern_dist_transport_step(tern_dist_job *job, tern_dist_work *work);
/* What came, into the work's out: of wide ones. */
tern_status tern_dist_narrow(tern_dist_work *work);
/* Let go of what an offer took. */
void tern_dist_withdraw(tern_dist_work *work);
/* Drops the transports of all groups; of a job that ended on a thread of its own, as what is under
 * way may take a while to end. */
void tern_dist_drop_transports(tern_dist_job *job);

/* ---- collective.c ---------------------------------------------------------------------------- */
typedef enum tern_dist_way {
    DIST_WAY_ANY,
    DIST_WAY_TREE, /* of floating point: a binary tree over the ranks; with a tree of what each rank
                      has before it is one tree over all */
    DIST_WAY_APART /* nothing that is under way writes the tensor: a small one does not wait for
                      that */
} tern_dist_way;
tern_status tern_dist_all_reduce_by(tern_tensor *x, tern_dist_way way,
                                    const tern_dist_options *options);

/* ---- recorded.c: inside of a capture of the tensors' device ---------------------------------- */
/* A replay begins it, and ends it where the program did not ask for the work: else where the
 * program waits. */
tern_status tern_dist_record(const tern_dist_request *r,
                             tern_status (*begin)(const tern_dist_request *r));
tern_status tern_dist_record_wait(struct tern_dist_recorded *recorded);

/* ---- scalar_all_reduce.c --------------------------------------------------------------------- */
/* values[i], of n, become their sums over the group's ranks, or the greatest; NaN where one is. */
tern_status tern_dist_reduce_scalars(tern_dist_group *group, const char *label, double *values,
                                     int n, bool greatest);
/* tern_ranks that agree in one group after the other, of n, so that it is of all that are in one of
 * them. */
typedef struct tern_dist_ranks {
    tern_ranks ranks; /* first; check_consistency and first are: */
    tern_dist_group *groups[2];
    int n;
} tern_dist_ranks;
tern_status tern_dist_check_consistency(tern_ranks *ranks, tern_status status, char *text,
                                        size_t bytes, const char *function);
/* number -1: this process has none of them. */
tern_status tern_dist_first(tern_ranks *ranks, int number, int count, bool *leads, bool *own,
                            bool *all);

/* ---- tensor_parallel.c ----------------------------------------------------------------------- */
/* Parts of a group's ranks along one dim of that size: one for each such, which stays. */
typedef struct tern_dist_cut {
    tern_dist_ranks
        of; /* first: all processes, as others may have copies by DistributedDataParallel */
    tern_dist_group *group;
    int dim;
    int64_t size; /* of the whole */
    struct tern_dist_cut *next;
} tern_dist_cut;
/* What ranks are, where they are those of a layer that is shared out; NULL. */
const tern_dist_cut *tern_dist_cut_of(const tern_ranks *ranks);
/* The cut, and the size of x's dim that it was made of. */
tern_cut tern_dist_read_cut(const tern_dist_cut *p, tern_shape *whole);
/* TERN_ERR_ARGUMENT where another rank of the group has another part of x. */
tern_status tern_dist_check_cut(const char *function, const char *path, const tern_tensor *x,
                                const tern_dist_group *group);

/* ---- stages.c -------------------------------------------------------------------------------- */
/* Children begin[s] to begin[s + 1] of the sequential are rank[s]'s, of n stages. TERN_ERR_ARGUMENT
 * where one shares a tensor with a stage of another rank. */
tern_status tern_dist_set_stages(tern_module *sequential, const int *begin, const int *rank, int n);
/* whole, on the cpu, of what x is or stands for: from the rank that has x to the others of the
 * pipeline. Nothing where x is in none. */
tern_status tern_dist_share_stage(const tern_tensor *x, tern_tensor *whole);

/* ---- shard_state.c --------------------------------------------------------------------------- */
/* The rows of all ranks, on the cpu, of which this rank has own, as tern_chunk cuts; NULL after an
 * error. */
tern_tensor *tern_dist_gather_rows(tern_tensor *own, int64_t rows, tern_dist_group *group);

/* ---- engine.c -------------------------------------------------------------------------------- */
/* Start the thread, and MPI on it, with the world's communicators; waits for at most timeout
 * seconds. */
tern_status tern_dist_start(tern_dist_job *job, double timeout);
/* End the thread, and MPI where that may be. */
void tern_dist_stop(tern_dist_job *job);
/* Begin a work, or refuse: once the job has ended. */
tern_status tern_dist_give(tern_dist_job *job, tern_dist_work *work);
/* Whether a failure ended the job. */
bool tern_dist_has_ended(tern_dist_job *job);
/* Until it is done; its status. */
tern_status tern_dist_await(tern_dist_job *job, tern_dist_work *work);

/* A work of which everything but its tensors is set; NULL after TERN_ERR_MEMORY. */
tern_dist_work *tern_dist_work_new(const tern_dist_work *what, const char *label);
/* Nothing where MPI may still have its memory. */
void tern_dist_work_free(tern_dist_work *work);
/* A collective on the host's memory, from start to end. */
tern_status tern_dist_run(const tern_dist_work *what, const char *label);

#endif
