/* communicators.c -- what devices of several processes do together: communicators of NCCL, each
 * with a stream of its own. They are not blocking, and are asked how they do. */
#include "device/cuda/cuda.h"
#include <string.h>

typedef struct tern_cuda_link {
    tern_place *place;
    int rank, n;
    ncclComm_t comm;
    cudaStream_t stream;
    cudaEvent_t event; /* behind the last that was begun */
    enum { IDLE, BEGUN, MARKED } state;
} tern_cuda_link;

enum { NO_TIMING = 2 };

/* What was begun may go on by itself. */
static tern_status check(const tern_cuda_link *l, ncclResult_t code, const char *call)
{
    return code == ncclInProgress ? TERN_OK : tern_cuda_check_nccl(l->place, code, call);
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

static tern_status bus(tern_place *place, char text[TERN_LINK_BUS])
{
    CUDA_TRY(place, cudaDeviceGetPCIBusId(text, TERN_LINK_BUS, tern_cuda_state_of(place)->index));
    return TERN_OK;
}

static tern_status id(tern_place *place, void *made)
{
    TERN_TRY(tern_cuda_enter(place));
    return tern_cuda_check_nccl(place, tern_cuda.ncclGetUniqueId(made), "ncclGetUniqueId");
}

static void drop(void *link)
{
    tern_cuda_link *l = link;
    if (tern_cuda.cudaSetDevice(tern_cuda_state_of(l->place)->index) == 0) {
        if (l->comm)
            tern_cuda.ncclCommAbort(l->comm);
        if (l->event)
            tern_cuda.cudaEventDestroy(l->event);
        if (l->stream)
            tern_cuda.cudaStreamDestroy(l->stream);
    }
    tern_free(l);
}

static tern_status make(tern_cuda_link *l, const void *made)
{
    ncclConfig_t config = {sizeof config, 0xcafebeef, 21400, 0};
    ncclUniqueId by;
    memcpy(&by, made, sizeof by);
    TERN_TRY(tern_cuda_enter(l->place));
    CUDA_TRY(l->place, cudaStreamCreateWithFlags(&l->stream, cudaStreamNonBlocking));
    CUDA_TRY(l->place, cudaEventCreateWithFlags(&l->event, NO_TIMING));
    return check(l, tern_cuda.ncclCommInitRankConfig(&l->comm, l->n, by, l->rank, &config),
                 "ncclCommInitRankConfig");
}

static tern_status open(tern_place *place, const void *made, int rank, int n, void **link)
{
    tern_cuda_link *l = tern_alloc(sizeof *l);
    if (!l)
        return TERN_ERR_MEMORY;
    *l = (tern_cuda_link){.place = place, .rank = rank, .n = n};
    tern_status status = make(l, made);
    if (status == TERN_OK)
        *link = l;
    else
        drop(l);
    return status;
}

/* To and from each rank that has something for this one, or is to have something of it. */
static ncclResult_t exchange(const tern_cuda_link *l, const tern_collective *t)
{
    const size_t bytes = (size_t)t->count * tern_dtype_size(t->dtype);
    const bool every = t->kind == TERN_COLLECTIVE_ALL_TO_ALL, is_root = l->rank == t->root;
    const bool gives = every || (is_root && t->kind == TERN_COLLECTIVE_SCATTER);
    const bool takes = every || (is_root && t->kind == TERN_COLLECTIVE_GATHER);
    const char *from = t->from->buffer ? tern_cuda_memory_of(t->from) : NULL;
    char *to = t->to->buffer ? tern_cuda_memory_of(t->to) : NULL;
    ncclResult_t code = 0;
    for (int peer = 0; peer < l->n && code == 0; peer++) {
        if (gives || (t->kind == TERN_COLLECTIVE_GATHER && peer == t->root))
            code = tern_cuda.ncclSend(from + (gives ? bytes * (size_t)peer : 0), bytes, ncclUint8,
                                      peer, l->comm, l->stream);
        if (code == 0 && (takes || (t->kind == TERN_COLLECTIVE_SCATTER && peer == t->root)))
            code = tern_cuda.ncclRecv(to + (takes ? bytes * (size_t)peer : 0), bytes, ncclUint8,
                                      peer, l->comm, l->stream);
    }
    return code;
}

static tern_status begin(void *link, const tern_collective *t, void *event)
{
    tern_cuda_link *l = link;
    TERN_TRY(tern_cuda_enter(l->place));
    if (event)
        CUDA_TRY(l->place, cudaStreamWaitEvent(l->stream, event, 0));
    TERN_TRY(check(l, tern_cuda.ncclGroupStart(), "ncclGroupStart"));
    ncclResult_t code = t->kind >= TERN_COLLECTIVE_GATHER
                            ? exchange(l, t)
                            : tern_cuda_collective_call(t, 0, l->comm, l->stream);
    const ncclResult_t end = tern_cuda.ncclGroupEnd();
    l->state = BEGUN;
    TERN_TRY(check(l, code, "collective"));
    return check(l, end, "ncclGroupEnd");
}

/* The stream has it all once the communicator goes on with nothing. */
static tern_status over(void *link, bool *is_over)
{
    tern_cuda_link *l = link;
    ncclResult_t how = 0;
    *is_over = false;
    TERN_TRY(tern_cuda_enter(l->place));
    TERN_TRY(check(l, tern_cuda.ncclCommGetAsyncError(l->comm, &how), "ncclCommGetAsyncError"));
    if (how != 0)
        return check(l, how, "communicator");
    if (l->state == BEGUN) {
        CUDA_TRY(l->place, cudaEventRecord(l->event, l->stream));
        l->state = MARKED;
    }
    const cudaError_t code = l->state == IDLE ? 0 : tern_cuda.cudaEventQuery(l->event);
    *is_over = code == 0;
    if (code != cudaErrorNotReady)
        return tern_cuda_check(l->place, code, "cudaEventQuery");
    tern_cuda.cudaGetLastError(); /* the runtime keeps it for whoever asks next */
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
