/* collective.c -- sums over several devices through NCCL, where it is installed. */
#include "base/dtype.h"
#include "device/cuda/cuda.h"
#include <string.h>

/* The communicators of the devices that worked together last, in their order. */
static struct {
    pthread_mutex_t lock;
    int n, devices[TERN_MOST_TOGETHER];
    ncclComm_t comms[TERN_MOST_TOGETHER];
} group = {.lock = PTHREAD_MUTEX_INITIALIZER};

static const struct {
    ncclDataType_t type;
    bool known;
} types[TERN_DTYPE_END] = {[TERN_F32] = {ncclFloat32, true}, [TERN_F64] = {ncclFloat64, true},
                           [TERN_F16] = {ncclFloat16, true}, [TERN_BF16] = {ncclBfloat16, true},
                           [TERN_I32] = {ncclInt32, true},   [TERN_I64] = {ncclInt64, true},
                           [TERN_U8] = {ncclUint8, true}};

static tern_status check(const tern_place *place, ncclResult_t code, const char *call)
{
    if (code == 0)
        return TERN_OK;
    return tern_fail(TERN_ERR_DEVICE, "%s: NCCL's %s gave %s (%u)", tern_place_info(place)->device,
                     call, tern_cuda.ncclGetErrorString(code), code);
}

/* With the group's lock held. */
static tern_status open_group(tern_place *const *places, int n)
{
    int devices[TERN_MOST_TOGETHER];
    for (int i = 0; i < n; i++)
        devices[i] = tern_cuda_state_of(places[i])->index;
    if (n == group.n && memcmp(devices, group.devices, sizeof *devices * (size_t)n) == 0)
        return TERN_OK;
    for (int i = 0; i < group.n; i++)
        tern_cuda.ncclCommDestroy(group.comms[i]);
    group.n = 0;
    TERN_TRY(
        check(places[0], tern_cuda.ncclCommInitAll(group.comms, n, devices), "ncclCommInitAll"));
    memcpy(group.devices, devices, sizeof devices);
    group.n = n;
    return TERN_OK;
}

/* The calls of one group are one collective: alone each would wait for the others. */
static tern_status sum(tern_place *const *places, const tern_arg *x, int n, int64_t count,
                       ncclDataType_t type)
{
    ncclResult_t code = tern_cuda.ncclGroupStart();
    TERN_TRY(check(places[0], code, "ncclGroupStart"));
    for (int i = 0; i < n && code == 0; i++) {
        char *at = (char *)x[i].buffer->handle + (size_t)x[i].at * x[i].bytes;
        code = tern_cuda.ncclAllReduce(at, at, (size_t)count, type, ncclSum, group.comms[i],
                                       tern_cuda_state_of(places[i])->stream);
    }
    ncclResult_t end = tern_cuda.ncclGroupEnd();
    TERN_TRY(check(places[0], code, "ncclAllReduce"));
    return check(places[0], end, "ncclGroupEnd");
}

tern_status tern_cuda_all_reduce(tern_place *const *places, const tern_arg *x, int n, int64_t count,
                                 tern_dtype dtype, bool *taken)
{
    *taken = false;
    if (!tern_cuda.has_nccl || !types[dtype].known)
        return TERN_OK;
    for (int i = 0; i < n; i++)
        TERN_TRY(tern_cuda_enter(places[i]));
    *taken = true;
    pthread_mutex_lock(&group.lock);
    tern_status status = open_group(places, n);
    if (status == TERN_OK)
        status = sum(places, x, n, count, types[dtype].type);
    pthread_mutex_unlock(&group.lock);
    return status;
}
