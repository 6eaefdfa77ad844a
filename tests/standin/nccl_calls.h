/* nccl_calls.h -- what the files of the stand-in's NCCL share. */
#ifndef TERN_TESTS_STANDIN_NCCL_CALLS_H
#define TERN_TESTS_STANDIN_NCCL_CALLS_H
#include "standin.h"

enum { SYSTEM_ERROR = 2, INVALID_ARGUMENT = 4, INVALID_USAGE = 5 };

struct ncclComm {
    int device, rank, n;
    int *together;       /* of one process: how many communicators of the set are left */
    struct ranks *ranks; /* of several; NULL */
};

typedef enum kind { ALL_REDUCE, REDUCE, BROADCAST, ALL_GATHER, REDUCE_SCATTER, SEND, RECV } kind;

typedef struct call {
    kind kind;
    ncclComm_t comm;
    const void *from;
    void *to;
    size_t count;
    ncclDataType_t type;
    ncclRedOp_t op;
    int root; /* or the peer */
    cudaStream_t stream;
    bool done; /* its collective is under way */
} call;

typedef struct job {
    call calls[MAX_DEVICES]; /* in the order of ranks */
    int n;
} job;

size_t standin_nccl_size(ncclDataType_t type);
/* Bytes that the call reads, or writes. */
size_t standin_nccl_bytes(const call *c, bool reads);
/* Do a job. */
void standin_nccl_do(void *job);

/* ---- nccl_ranks.c ---- */
bool standin_ranks_are_ready(ncclComm_t comm);
/* A group of calls of one communicator; false: it can't be. */
bool standin_ranks_give(const call *calls, int n);
void standin_ranks_leave(ncclComm_t comm);

#endif
