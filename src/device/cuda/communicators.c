/* communicators.c -- NCCL's communicators, for collectives of devices of several processes. Each
 * has a stream of its own. Calls do not block: `over` returns whether a collective has ended. */
#include "device/cuda/cuda.h"
#include <string.h>

typedef struct tern_cuda_communicator {
    tern_place *place;
    int rank, n;
    ncclComm_t comm;
    cudaStream_t stream;
    cudaEvent_t event; /* recorded after the last collective */
    enum { IDLE, BEGUN, MARKED } state;
} tern_cuda_communicator;

enum { NO_TIMING = 2 };

/* Returns the status of NCCL's code; a call in progress is no error. */
static tern_status check(const tern_cuda_communicator *c, ncclResult_t code, const char *call)
{
    return code == ncclInProgress ? TERN_OK : tern_cuda_check_nccl(c->place, code, call);
}

static int version(void)
{
    int number = 0;
    return tern_cuda.has_nccl && tern_cuda.ncclGetVersion(&number) == 0 ? number : 0;
}

static bool is_supported(const tern_collective *t)
{
    return tern_cuda.has_nccl && tern_cuda_collective_is_supported(t);
}

static tern_status bus(tern_place *place, char text[TERN_COMMUNICATOR_BUS])
{
    CUDA_TRY(place,
             cudaDeviceGetPCIBusId(text, TERN_COMMUNICATOR_BUS, tern_cuda_state_of(place)->index));
    return TERN_OK;
}

static tern_status id(tern_place *place, void *made)
{
    TERN_TRY(tern_cuda_enter(place));
    return tern_cuda_check_nccl(place, tern_cuda.ncclGetUniqueId(made), "ncclGetUniqueId");
}

static void drop(void *communicator)
{
    tern_cuda_communicator *c = communicator;
    if (tern_cuda.cudaSetDevice(tern_cuda_state_of(c->place)->index) == 0) {
        if (c->comm)
            tern_cuda.ncclCommAbort(c->comm);
        if (c->event)
            tern_cuda.cudaEventDestroy(c->event);
        if (c->stream)
            tern_cuda.cudaStreamDestroy(c->stream);
    }
    tern_free(c);
}

static tern_status make(tern_cuda_communicator *c, const void *made)
{
    ncclConfig_t config = {sizeof config, 0xcafebeef, 21400, 0};
    ncclUniqueId by;
    memcpy(&by, made, sizeof by);
    TERN_TRY(tern_cuda_enter(c->place));
    CUDA_TRY(c->place, cudaStreamCreateWithFlags(&c->stream, cudaStreamNonBlocking));
    CUDA_TRY(c->place, cudaEventCreateWithFlags(&c->event, NO_TIMING));
    return check(c, tern_cuda.ncclCommInitRankConfig(&c->comm, c->n, by, c->rank, &config),
                 "ncclCommInitRankConfig");
}

static tern_status open(tern_place *place, const void *made, int rank, int n, void **communicator)
{
    tern_cuda_communicator *c = tern_alloc(sizeof *c);
    if (!c)
        return TERN_ERR_MEMORY;
    *c = (tern_cuda_communicator){.place = place, .rank = rank, .n = n};
    tern_status status = make(c, made);
    if (status == TERN_OK)
        *communicator = c;
    else
        drop(c);
    return status;
}

/* Sends this rank's parts to the other ranks and receives theirs, as the kind of t says. */
static ncclResult_t exchange(const tern_cuda_communicator *c, const tern_collective *t)
{
    const size_t bytes = (size_t)t->count * tern_dtype_size(t->dtype);
    const bool every = t->kind == TERN_COLLECTIVE_ALL_TO_ALL, is_root = c->rank == t->root;
    const bool gives = every || (is_root && t->kind == TERN_COLLECTIVE_SCATTER);
    const bool takes = every || (is_root && t->kind == TERN_COLLECTIVE_GATHER);
    const char *from = t->from->buffer ? tern_cuda_memory_of(t->from) : NULL;
    char *to = t->to->buffer ? tern_cuda_memory_of(t->to) : NULL;
    ncclResult_t code = 0;
    for (int peer = 0; peer < c->n && code == 0; peer++) {
        if (gives || (t->kind == TERN_COLLECTIVE_GATHER && peer == t->root))
            code = tern_cuda.ncclSend(from + (gives ? bytes * (size_t)peer : 0), bytes, ncclUint8,
                                      peer, c->comm, c->stream);
        if (code == 0 && (takes || (t->kind == TERN_COLLECTIVE_SCATTER && peer == t->root)))
            code = tern_cuda.ncclRecv(to + (takes ? bytes * (size_t)peer : 0), bytes, ncclUint8,
                                      peer, c->comm, c->stream);
    }
    return code;
}

static tern_status begin(void *communicator, const tern_collective *t, void *event)
{
    tern_cuda_communicator *c = communicator;
    TERN_TRY(tern_cuda_enter(c->place));
    if (event)
        CUDA_TRY(c->place, cudaStreamWaitEvent(c->stream, event, 0));
    TERN_TRY(check(c, tern_cuda.ncclGroupStart(), "ncclGroupStart"));
    ncclResult_t code = t->kind >= TERN_COLLECTIVE_GATHER
                            ? exchange(c, t)
                            : tern_cuda_collective_call(t, 0, c->comm, c->stream);
    const ncclResult_t end = tern_cuda.ncclGroupEnd();
    c->state = BEGUN;
    TERN_TRY(check(c, code, "collective"));
    return check(c, end, "ncclGroupEnd");
}

/* Sets *is_over. The whole collective is on the stream only when the communicator reports no call
 * in progress; an event is recorded then. */
static tern_status over(void *communicator, bool *is_over)
{
    tern_cuda_communicator *c = communicator;
    ncclResult_t how = 0;
    *is_over = false;
    TERN_TRY(tern_cuda_enter(c->place));
    TERN_TRY(check(c, tern_cuda.ncclCommGetAsyncError(c->comm, &how), "ncclCommGetAsyncError"));
    if (how != 0)
        return check(c, how, "communicator");
    if (c->state == BEGUN) {
        CUDA_TRY(c->place, cudaEventRecord(c->event, c->stream));
        c->state = MARKED;
    }
    const cudaError_t code = c->state == IDLE ? 0 : tern_cuda.cudaEventQuery(c->event);
    *is_over = code == 0;
    if (code != cudaErrorNotReady)
        return tern_cuda_check(c->place, code, "cudaEventQuery");
    tern_cuda.cudaGetLastError(); /* clears the error, which the runtime keeps */
    return TERN_OK;
}

const tern_communicators tern_cuda_communicators = {.version = version,
                                                    .is_supported = is_supported,
                                                    .bus = bus,
                                                    .id = id,
                                                    .open = open,
                                                    .begin = begin,
                                                    .over = over,
                                                    .drop = drop};
