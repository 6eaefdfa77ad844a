/* nccl.c -- the stand-in's NCCL: sums over the devices of one process. It refuses what would hang:
 * a group in which a device is missing, or a call outside of one. */
#include "standin.h"
#include <stdlib.h>
#include <string.h>

enum { SYSTEM_ERROR = 2, INVALID_ARGUMENT = 4, INVALID_USAGE = 5 };

#define X(RESULT, NAME, PARAMETERS) EXPORT RESULT NAME PARAMETERS;
#include "device/cuda/nccl.def"
#undef X
EXPORT long standin_collectives(void);

struct ncclComm {
    int device, rank, n;
    int *together; /* shared: how many communicators of the set are left */
};

typedef struct call {
    ncclComm_t comm;
    const void *from;
    void *to;
    size_t count;
    ncclDataType_t type;
    cudaStream_t stream;
} call;

static _Thread_local int depth, pending;
static _Thread_local call calls[MAX_DEVICES];
static long collectives;

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
        *comms[i] = (struct ncclComm){devices[i], i, n, together};
    }
    return 0;
}

ncclResult_t ncclCommDestroy(ncclComm_t comm)
{
    if (--*comm->together == 0)
        free(comm->together);
    free(comm);
    FAULT(ncclCommDestroy);
    return 0;
}

ncclResult_t ncclGroupStart(void)
{
    FAULT(ncclGroupStart);
    depth++;
    return 0;
}

static size_t size_of(ncclDataType_t type)
{
    return type == ncclUint8                             ? 1
           : type == ncclFloat16 || type == ncclBfloat16 ? 2
           : type == ncclInt32 || type == ncclFloat32    ? 4
                                                         : 8;
}

ncclResult_t ncclAllReduce(const void *from, void *to, size_t count, ncclDataType_t type,
                           ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream)
{
    FAULT(ncclAllReduce);
    if (depth == 0 || pending == MAX_DEVICES || op != ncclSum)
        return INVALID_USAGE;
    if (standin_owner(from, count * size_of(type)) != comm->device ||
        standin_owner(to, count * size_of(type)) != comm->device)
        return INVALID_ARGUMENT;
    calls[pending++] = (call){comm, from, to, count, type, stream};
    return 0;
}

/* ---- the sum ----------------------------------------------------------------------------- */

typedef struct job {
    call calls[MAX_DEVICES];
    int n;
} job;

static void add(const job *j, size_t at, ncclDataType_t type)
{
    static const cudaDataType floats[] = {[ncclFloat16] = CUDA_R_16F,
                                          [ncclFloat32] = CUDA_R_32F,
                                          [ncclFloat64] = CUDA_R_64F,
                                          [ncclBfloat16] = CUDA_R_16BF};
    double sum = 0;
    uint64_t whole = 0; /* its low bytes are the sum of any integer type's */
    size_t size = size_of(type);
    bool is_float = type >= ncclFloat16;
    for (int i = 0; i < j->n; i++) {
        uint64_t bits = 0;
        memcpy(&bits, (const char *)j->calls[i].from + at * size, size);
        whole += bits;
        if (is_float)
            sum += standin_load(j->calls[i].from, (int64_t)at, floats[type]);
    }
    for (int i = 0; i < j->n; i++)
        if (is_float)
            standin_save(j->calls[i].to, (int64_t)at, floats[type], sum);
        else
            memcpy((char *)j->calls[i].to + at * size, &whole, size);
}

static void do_sum(void *data)
{
    const job *j = data;
    for (size_t at = 0; at < j->calls[0].count; at++)
        add(j, at, j->calls[0].type);
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

/* The first stream waits for the others and sums, then they wait for it. */
ncclResult_t ncclGroupEnd(void)
{
    if (depth == 0)
        return INVALID_USAGE;
    if (--depth > 0)
        return 0;
    job j = {.n = pending};
    memcpy(j.calls, calls, sizeof calls);
    pending = 0;
    FAULT(ncclGroupEnd);
    for (int i = 0; i < j.n; i++)
        if (j.calls[i].comm->n != j.n || j.calls[i].comm->rank != i ||
            j.calls[i].comm->together != j.calls[0].comm->together ||
            j.calls[i].count != j.calls[0].count || j.calls[i].type != j.calls[0].type)
            return INVALID_USAGE;
    int current = standin_current();
    bool ok = true;
    for (int i = 1; i < j.n; i++) {
        standin_point point = standin_now(j.calls[i].stream);
        ok = ok && put(&j.calls[0], do_wait, &point, sizeof point);
    }
    ok = ok && (j.n == 0 || put(&j.calls[0], do_sum, &j, sizeof j));
    for (int i = 1; i < j.n; i++) {
        standin_point point = standin_now(j.calls[0].stream);
        ok = ok && put(&j.calls[i], do_wait, &point, sizeof point);
    }
    standin_set_current(current);
    collectives += j.n > 0;
    return ok ? 0 : INVALID_USAGE;
}
