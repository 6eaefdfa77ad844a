/* collective.c -- collectives of several devices in one process, through NCCL if installed. */
#include "base/dtype.h"
#include "base/lock.h"
#include "device/cuda/cuda.h"
#include <string.h>

/* The communicators of a list of devices. Those of the last SETS lists are kept. */
typedef struct set {
    int n, devices[TERN_MOST_COLLECTIVE_DEVICES];
    ncclComm_t comms[TERN_MOST_COLLECTIVE_DEVICES];
} set;
enum { SETS = 4 };
static struct {
    tern_mutex lock;
    unsigned next; /* the next set to be replaced */
    set sets[SETS];
} kept = {.lock = TERN_MUTEX_INIT};

/* Types of NCCL's reductions. A reduction of bools is the maximum or minimum of bytes. */
static const struct {
    ncclDataType_t type;
    bool known;
} types[TERN_DTYPE_END] = {
    [TERN_F32] = {ncclFloat32, true}, [TERN_F64] = {ncclFloat64, true},
    [TERN_F16] = {ncclFloat16, true}, [TERN_BF16] = {ncclBfloat16, true},
    [TERN_I32] = {ncclInt32, true},   [TERN_I64] = {ncclInt64, true},
    [TERN_U8] = {ncclUint8, true},    [TERN_I8] = {ncclInt8, true},
    [TERN_U32] = {ncclUint32, true},  [TERN_U64] = {ncclUint64, true},
    [TERN_BOOL] = {ncclUint8, true},
};

static const struct {
    ncclRedOp_t op;
    bool known, of_bools;
} ops[] = {
    [TERN_DIST_SUM] = {ncclSum, true, false},      [TERN_DIST_AVG] = {ncclAvg, true, false},
    [TERN_DIST_PRODUCT] = {ncclProd, true, false}, [TERN_DIST_MIN] = {ncclMin, true, false},
    [TERN_DIST_MAX] = {ncclMax, true, false},      [TERN_DIST_BAND] = {ncclMin, false, true},
    [TERN_DIST_BOR] = {ncclMax, false, true},      [TERN_DIST_BXOR] = {ncclMax, false, false},
};

tern_status tern_cuda_check_nccl(const tern_place *place, ncclResult_t code, const char *call)
{
    if (code == 0)
        return TERN_OK;
    return tern_fail(TERN_ERR_DEVICE, "%s: NCCL's %s gave %s (%u)", tern_place_info(place)->device,
                     call, tern_cuda.ncclGetErrorString(code), code);
}

/* Sets *found to the communicators of the n places, which are created if need be. The caller holds
 * the lock. */
static tern_status open_set(tern_place *const *places, int n, const set **found)
{
    int devices[TERN_MOST_COLLECTIVE_DEVICES];
    for (int i = 0; i < n; i++)
        devices[i] = tern_cuda_state_of(places[i])->index;
    for (int k = 0; k < SETS; k++) {
        *found = &kept.sets[k];
        if (n == kept.sets[k].n &&
            memcmp(devices, kept.sets[k].devices, sizeof *devices * (size_t)n) == 0)
            return TERN_OK;
    }
    set *s = &kept.sets[kept.next++ % SETS];
    for (int i = 0; i < s->n; i++)
        tern_cuda.ncclCommDestroy(s->comms[i]);
    s->n = 0;
    TERN_TRY(tern_cuda_check_nccl(places[0], tern_cuda.ncclCommInitAll(s->comms, n, devices),
                                  "ncclCommInitAll"));
    memcpy(s->devices, devices, sizeof devices);
    s->n = n;
    *found = s;
    return TERN_OK;
}

static bool adds(const tern_collective *t)
{
    return t->kind <= TERN_COLLECTIVE_REDUCE || t->kind == TERN_COLLECTIVE_REDUCE_SCATTER;
}

bool tern_cuda_collective_is_supported(const tern_collective *t)
{
    return !adds(t) || (types[t->dtype].known &&
                        (t->dtype == TERN_BOOL ? ops[t->op].of_bools : ops[t->op].known));
}

/* Calls NCCL for device i. Collectives that only move elements move bytes. */
ncclResult_t tern_cuda_collective_call(const tern_collective *t, int i, ncclComm_t comm,
                                       cudaStream_t stream)
{
    const void *from = tern_cuda_memory_of(&t->from[i]);
    void *to = tern_cuda_memory_of(&t->to[i]);
    const ncclDataType_t type = adds(t) ? types[t->dtype].type : ncclUint8;
    const size_t count = (size_t)t->count * (adds(t) ? 1 : tern_dtype_size(t->dtype));
    const ncclRedOp_t op = ops[t->op].op;
    switch (t->kind) {
    case TERN_COLLECTIVE_ALL_REDUCE:
        return tern_cuda.ncclAllReduce(from, to, count, type, op, comm, stream);
    case TERN_COLLECTIVE_REDUCE:
        return tern_cuda.ncclReduce(from, to, count, type, op, t->root, comm, stream);
    case TERN_COLLECTIVE_BROADCAST:
        return tern_cuda.ncclBroadcast(from, to, count, type, t->root, comm, stream);
    case TERN_COLLECTIVE_ALL_GATHER:
        return tern_cuda.ncclAllGather(from, to, count, type, comm, stream);
    default:
        return tern_cuda.ncclReduceScatter(from, to, count, type, op, comm, stream);
    }
}

/* Makes all calls in one NCCL group: a single call would wait for the other devices. */
static tern_status run(tern_place *const *places, int n, const tern_collective *list, int k,
                       const set *s)
{
    static const char *const names[] = {"ncclAllReduce", "ncclReduce", "ncclBroadcast",
                                        "ncclAllGather", "ncclReduceScatter"};
    ncclResult_t code = tern_cuda.ncclGroupStart();
    TERN_TRY(tern_cuda_check_nccl(places[0], code, "ncclGroupStart"));
    int j = 0;
    for (; j < k && code == 0; j += code == 0)
        for (int i = 0; i < n && code == 0; i++)
            code = tern_cuda_collective_call(&list[j], i, s->comms[i],
                                             tern_cuda_state_of(places[i])->stream);
    ncclResult_t end = tern_cuda.ncclGroupEnd();
    TERN_TRY(tern_cuda_check_nccl(places[0], code, names[list[j < k ? j : 0].kind]));
    return tern_cuda_check_nccl(places[0], end, "ncclGroupEnd");
}

tern_status tern_cuda_collectives(tern_place *const *places, int n, const tern_collective *list,
                                  int k, bool *taken)
{
    const set *s = NULL;
    *taken = false;
    for (int j = 0; j < k; j++)
        if (!tern_cuda.has_nccl || !tern_cuda_collective_is_supported(&list[j]))
            return TERN_OK;
    for (int i = 0; i < n; i++)
        TERN_TRY(tern_cuda_enter(places[i]));
    *taken = true;
    tern_mutex_lock(&kept.lock);
    tern_status status = open_set(places, n, &s);
    if (status == TERN_OK)
        status = run(places, n, list, k, s);
    tern_mutex_unlock(&kept.lock);
    return status;
}
