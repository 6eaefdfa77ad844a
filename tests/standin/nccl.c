/* nccl.c -- the stand-in's NCCL: collectives of the devices of one process, and the calls of those of several (nccl_ranks.c).
 * It refuses what would hang: a group in which a device is missing, or a call outside of one. */
#include "nccl_calls.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define X(RESULT, NAME, PARAMETERS) EXPORT RESULT NAME PARAMETERS;
#include "device/cuda/nccl.def"
#undef X
EXPORT long standin_collectives(void);

enum { MAX_CALLS = 1024 };
static _Thread_local int depth, pending;
static _Thread_local call calls[MAX_CALLS];
static long collectives;

/* For programs that are not written for the stand-in. */
__attribute__((destructor)) static void tell(void)
{
    if (getenv("TERN_STANDIN_COUNT"))
        fprintf(stderr, "stand-in: %ld collectives of NCCL's\n", collectives);
}

long standin_collectives(void)
{
    return collectives;
}

ncclResult_t ncclGetVersion(int *version)
{
    FAULT(ncclGetVersion);
    *version = 22800;
    return 0;
}

const char *ncclGetErrorString(ncclResult_t result)
{
    return result == INVALID_USAGE ? "invalid usage (stand-in)" : "NCCL error of the stand-in";
}

ncclResult_t ncclCommInitAll(ncclComm_t *comms, int n, const int *devices)
{
    FAULT(ncclCommInitAll);
    if (n < 1 || n > MAX_DEVICES)
        return INVALID_ARGUMENT;
    for (int i = 0; i < n; i++)
        for (int j = 0; j < i; j++)
            if (devices[i] == devices[j] || devices[i] >= standin_devices())
                return INVALID_USAGE;
    int *together = malloc(sizeof *together);
    if (!together)
        return SYSTEM_ERROR;
    *together = n;
    for (int i = 0; i < n; i++) {
        comms[i] = malloc(sizeof **comms);
        if (!comms[i])
            abort(); /* a test has other things to find */
        *comms[i] =
            (struct ncclComm){.device = devices[i], .rank = i, .n = n, .together = together};
    }
    return 0;
}

ncclResult_t ncclCommDestroy(ncclComm_t comm)
{
    if (comm->ranks)
        standin_ranks_leave(comm);
    else if (--*comm->together == 0)
        free(comm->together);
    free(comm);
    FAULT(ncclCommDestroy);
    return 0;
}

ncclResult_t ncclCommAbort(ncclComm_t comm)
{
    return ncclCommDestroy(comm);
}

ncclResult_t ncclGroupStart(void)
{
    FAULT(ncclGroupStart);
    depth++;
    return 0;
}

size_t standin_nccl_size(ncclDataType_t type)
{
    return type == ncclUint8 || type == ncclInt8                            ? 1
           : type == ncclFloat16 || type == ncclBfloat16                    ? 2
           : type == ncclInt32 || type == ncclUint32 || type == ncclFloat32 ? 4
                                                                            : 8;
}

size_t standin_nccl_bytes(const call *c, bool reads)
{
    const size_t one = c->count * standin_nccl_size(c->type);
    const bool at_root = c->comm->rank == c->root;
    switch (c->kind) {
    case REDUCE:
        return reads || at_root ? one : 0;
    case BROADCAST:
        return !reads || at_root ? one : 0;
    case ALL_GATHER:
        return reads ? one : one * (size_t)c->comm->n;
    case REDUCE_SCATTER:
        return reads ? one * (size_t)c->comm->n : one;
    case SEND:
        return reads ? one : 0;
    case RECV:
        return reads ? 0 : one;
    default:
        return one;
    }
}

static ncclResult_t note(call c)
{
    const size_t reads = standin_nccl_bytes(&c, true), writes = standin_nccl_bytes(&c, false);
    if (depth == 0 || pending == MAX_CALLS || c.op > ncclAvg || c.root < 0 || c.root >= c.comm->n ||
        (c.comm->ranks ? !standin_ranks_are_ready(c.comm) : c.kind >= SEND))
        return INVALID_USAGE;
    if ((reads && standin_owner(c.from, reads) != c.comm->device) ||
        (writes && standin_owner(c.to, writes) != c.comm->device))
        return INVALID_ARGUMENT;
    calls[pending++] = c;
    return 0;
}

ncclResult_t ncclAllReduce(const void *from, void *to, size_t count, ncclDataType_t type,
                           ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream)
{
    FAULT(ncclAllReduce);
    return note((call){ALL_REDUCE, comm, from, to, count, type, op, 0, stream, false});
}

ncclResult_t ncclReduce(const void *from, void *to, size_t count, ncclDataType_t type,
                        ncclRedOp_t op, int root, ncclComm_t comm, cudaStream_t stream)
{
    FAULT(ncclReduce);
    return note((call){REDUCE, comm, from, to, count, type, op, root, stream, false});
}

ncclResult_t ncclBroadcast(const void *from, void *to, size_t count, ncclDataType_t type, int root,
                           ncclComm_t comm, cudaStream_t stream)
{
    FAULT(ncclBroadcast);
    return note((call){BROADCAST, comm, from, to, count, type, ncclSum, root, stream, false});
}

ncclResult_t ncclAllGather(const void *from, void *to, size_t count, ncclDataType_t type,
                           ncclComm_t comm, cudaStream_t stream)
{
    FAULT(ncclAllGather);
    return note((call){ALL_GATHER, comm, from, to, count, type, ncclSum, 0, stream, false});
}

ncclResult_t ncclReduceScatter(const void *from, void *to, size_t count, ncclDataType_t type,
                               ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream)
{
    FAULT(ncclReduceScatter);
    return note((call){REDUCE_SCATTER, comm, from, to, count, type, op, 0, stream, false});
}

ncclResult_t ncclSend(const void *from, size_t count, ncclDataType_t type, int peer,
                      ncclComm_t comm, cudaStream_t stream)
{
    FAULT(ncclSend);
    return note((call){SEND, comm, from, NULL, count, type, ncclSum, peer, stream, false});
}

ncclResult_t ncclRecv(void *to, size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                      cudaStream_t stream)
{
    FAULT(ncclRecv);
    return note((call){RECV, comm, NULL, to, count, type, ncclSum, peer, stream, false});
}

/* ---- what they do ------------------------------------------------------------------------ */

static double combined(double a, double b, ncclRedOp_t op)
{
    return op == ncclProd  ? a * b
           : op == ncclMin ? (b < a ? b : a)
           : op == ncclMax ? (b > a ? b : a)
                           : a + b;
}

/* Types of even numbers are signed. Sums and products of any integer type are the low bytes of these. */
static uint64_t combined_bits(uint64_t a, uint64_t b, ncclRedOp_t op, ncclDataType_t type)
{
    const int shift = 64 - 8 * (int)standin_nccl_size(type);
    const bool less = type % 2 ? b < a : (int64_t)(b << shift) < (int64_t)(a << shift);
    return op == ncclProd  ? a * b
           : op == ncclMin ? (less ? b : a)
           : op == ncclMax ? (less ? a : b)
                           : a + b;
}

/* Element `at` of all together, into element `put` of the calls from first to end. */
static void combine(const job *j, size_t at, size_t put, int first, int end)
{
    static const cudaDataType floats[] = {[ncclFloat16] = CUDA_R_16F,
                                          [ncclFloat32] = CUDA_R_32F,
                                          [ncclFloat64] = CUDA_R_64F,
                                          [ncclBfloat16] = CUDA_R_16BF};
    const ncclDataType_t type = j->calls[0].type;
    const ncclRedOp_t op = j->calls[0].op;
    double sum = 0;
    uint64_t whole = 0;
    size_t size = standin_nccl_size(type);
    bool is_float = type >= ncclFloat16;
    for (int i = 0; i < j->n; i++) {
        uint64_t bits = 0;
        memcpy(&bits, (const char *)j->calls[i].from + at * size, size);
        whole = i ? combined_bits(whole, bits, op, type) : bits;
        if (is_float) {
            double x = standin_load(j->calls[i].from, (int64_t)at, floats[type]);
            sum = i ? combined(sum, x, op) : x;
        }
    }
    if (op == ncclAvg)
        sum /= j->n;
    for (int i = first; i < end; i++)
        if (is_float)
            standin_save(j->calls[i].to, (int64_t)put, floats[type], sum);
        else
            memcpy((char *)j->calls[i].to + put * size, &whole, size);
}

void standin_nccl_do(void *data)
{
    const job *j = data;
    const call *c = &j->calls[0];
    const size_t count = c->count, bytes = count * standin_nccl_size(c->type);
    for (int i = 0; i < j->n && c->kind == BROADCAST; i++)
        memmove(j->calls[i].to, j->calls[c->root].from, bytes);
    for (int i = 0; i < j->n * j->n && c->kind == ALL_GATHER; i++)
        memmove((char *)j->calls[i / j->n].to + (size_t)(i % j->n) * bytes, j->calls[i % j->n].from,
                bytes);
    for (size_t at = 0; at < count && c->kind == ALL_REDUCE; at++)
        combine(j, at, at, 0, j->n);
    for (size_t at = 0; at < count && c->kind == REDUCE; at++)
        combine(j, at, at, c->root, c->root + 1);
    for (size_t at = 0; at < count * (size_t)j->n && c->kind == REDUCE_SCATTER; at++)
        combine(j, at, at % count, (int)(at / count), (int)(at / count) + 1);
}

static void do_wait(void *data)
{
    const standin_point *point = data;
    standin_run_until(*point);
}

static bool put(const call *c, standin_work work, const void *data, size_t bytes)
{
    standin_set_current(c->comm->device);
    return standin_enqueue(c->stream, work, data, bytes);
}

/* The collective that calls[first] begins: of each device of its set the first call that is left; false where one lacks,
 * or differs. */
static bool gather_job(int first, int n, job *j)
{
    const call *c = &calls[first];
    j->n = c->comm->n;
    for (int rank = 0; rank < j->n; rank++) {
        int i = first;
        while (i < n && (calls[i].done || calls[i].comm->together != c->comm->together ||
                         calls[i].comm->rank != rank))
            i++;
        if (i == n || calls[i].kind != c->kind || calls[i].count != c->count ||
            calls[i].type != c->type || calls[i].op != c->op || calls[i].root != c->root)
            return false;
        j->calls[rank] = calls[i];
        calls[i].done = true;
    }
    return true;
}

/* The first stream waits for the others and does it, then they wait for it. */
static bool begin(const job *j)
{
    bool ok = true;
    for (int i = 1; i < j->n; i++) {
        standin_point point = standin_now(j->calls[i].stream);
        ok = ok && put(&j->calls[0], do_wait, &point, sizeof point);
    }
    ok = ok && put(&j->calls[0], standin_nccl_do, j, sizeof *j);
    for (int i = 1; i < j->n; i++) {
        standin_point point = standin_now(j->calls[0].stream);
        ok = ok && put(&j->calls[i], do_wait, &point, sizeof point);
    }
    return ok;
}

/* All calls of the group with the communicator of calls[first]. */
static bool give_to_ranks(int first, int n)
{
    call own[2 * MAX_DEVICES];
    int k = 0;
    for (int i = first; i < n; i++)
        if (calls[i].comm == calls[first].comm && k < 2 * MAX_DEVICES) {
            own[k++] = calls[i];
            calls[i].done = true;
        }
    return standin_ranks_give(own, k);
}

ncclResult_t ncclGroupEnd(void)
{
    if (depth == 0)
        return INVALID_USAGE;
    if (--depth > 0)
        return 0;
    const int n = pending, current = standin_current();
    pending = 0;
    FAULT(ncclGroupEnd);
    bool ok = true, goes_on = false;
    for (int i = 0; i < n && ok; i++) {
        job j;
        if (calls[i].done)
            continue;
        if (calls[i].comm->ranks) {
            goes_on = ok = give_to_ranks(i, n);
            collectives += ok;
            continue;
        }
        memset(&j, 0, sizeof j);
        ok = gather_job(i, n, &j) && begin(&j);
        collectives += ok;
    }
    standin_set_current(current);
    return !ok ? INVALID_USAGE : goes_on ? ncclInProgress : 0;
}
