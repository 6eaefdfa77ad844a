/* plugin.c -- the plugin for an MPI library: the only file that includes mpi.h. */
#include "dist/mpi.h"
#include <mpi.h>
#include <stdio.h>
#include <string.h>
#include <tern/dist.h>

#if defined(OPEN_MPI)
#define FAMILY "openmpi"
#elif defined(MPICH) || defined(MPICH_VERSION)
#define FAMILY "mpich"
#else
#define FAMILY "abi"
#endif

_Static_assert(sizeof(MPI_Comm) <= sizeof(tern_mpi_comm), "a handle fits");
_Static_assert(sizeof(MPI_Request) <= sizeof(tern_mpi_request), "a handle fits");

static MPI_Comm comm_of(tern_mpi_comm handle)
{
    MPI_Comm comm;
    memcpy(&comm, &handle, sizeof comm);
    return comm;
}

static tern_mpi_comm comm_to(MPI_Comm comm)
{
    tern_mpi_comm handle = 0;
    memcpy(&handle, &comm, sizeof comm);
    return handle;
}

static MPI_Datatype type_of(int dtype)
{
    switch (dtype) {
    case TERN_F32:
        return MPI_FLOAT;
    case TERN_F64:
        return MPI_DOUBLE;
    case TERN_I8:
        return MPI_INT8_T;
    case TERN_I16:
        return MPI_INT16_T;
    case TERN_I32:
        return MPI_INT32_T;
    case TERN_I64:
        return MPI_INT64_T;
    case TERN_U8:
        return MPI_UINT8_T;
    case TERN_U16:
        return MPI_UINT16_T;
    case TERN_U32:
        return MPI_UINT32_T;
    case TERN_U64:
        return MPI_UINT64_T;
    default:
        return MPI_DATATYPE_NULL;
    }
}

static MPI_Op op_of(int op)
{
    switch (op) {
    case TERN_DIST_SUM:
        return MPI_SUM;
    case TERN_DIST_PRODUCT:
        return MPI_PROD;
    case TERN_DIST_MIN:
        return MPI_MIN;
    case TERN_DIST_MAX:
        return MPI_MAX;
    case TERN_DIST_BAND:
        return MPI_BAND;
    case TERN_DIST_BOR:
        return MPI_BOR;
    case TERN_DIST_BXOR:
        return MPI_BXOR;
    default:
        return MPI_OP_NULL;
    }
}

/* ---- the library ----------------------------------------------------------------------------- */

static int init(bool *ours, tern_mpi_level *level)
{
    int there = 0, ended = 0, has = MPI_THREAD_SINGLE, error = 0;
    MPI_Finalized(&ended);
    if (ended)
        return MPI_ERR_OTHER;
    MPI_Initialized(&there);
    *ours = !there;
    error = there ? MPI_Query_thread(&has) : MPI_Init_thread(NULL, NULL, MPI_THREAD_MULTIPLE, &has);
    *level = has >= MPI_THREAD_MULTIPLE     ? TERN_MPI_MULTIPLE
             : has >= MPI_THREAD_SERIALIZED ? TERN_MPI_SERIALIZED
                                            : TERN_MPI_FUNNELED;
    return error;
}

static void describe(char *text, size_t bytes)
{
    char version[MPI_MAX_LIBRARY_VERSION_STRING];
    int length = 0;
    if (MPI_Get_library_version(version, &length) != MPI_SUCCESS)
        length = 0;
    version[length] = '\0';
    version[strcspn(version, ",\n")] = '\0';
    for (char *c = version; *c; c++)
        if (*c == '\t')
            *c = ' ';
    snprintf(text, bytes, "%s", version);
}

/* Writes MPI's text of the error. MPICH's is a name, then a stack of calls with addresses, of which
 * only the reason in the last line is kept. */
static void explain(int error, char *text, size_t bytes)
{
    char words[MPI_MAX_ERROR_STRING + 1];
    int length = 0;
    if (MPI_Error_string(error, words, &length) != MPI_SUCCESS)
        length = 0;
    words[length] = '\0';
    char *calls = strstr(words, ", error stack:"), *why = calls ? strrchr(calls, '\n') : NULL;
    why = why ? strstr(why, ": ") : NULL;
    if (calls)
        *calls = '\0';
    snprintf(text, bytes, "%s%s", words, why ? why : "");
}

static int copy_of(MPI_Comm comm, tern_mpi_comm *copy)
{
    MPI_Comm made = MPI_COMM_NULL;
    int error = MPI_Comm_dup(comm, &made);
    if (!error)
        error = MPI_Comm_set_errhandler(made, MPI_ERRORS_RETURN);
    *copy = comm_to(made);
    return error;
}

static int world(int *rank, int *size, tern_mpi_comm *copies, int n)
{
    int error = MPI_Comm_rank(MPI_COMM_WORLD, rank);
    if (!error)
        error = MPI_Comm_size(MPI_COMM_WORLD, size);
    for (int i = 0; i < n && !error; i++)
        error = copy_of(MPI_COMM_WORLD, &copies[i]);
    return error;
}

static int split(tern_mpi_comm comm, int color, int key, tern_mpi_comm *part)
{
    MPI_Comm made = MPI_COMM_NULL;
    int error = MPI_Comm_split(comm_of(comm), color < 0 ? MPI_UNDEFINED : color, key, &made);
    if (!error && made != MPI_COMM_NULL)
        error = MPI_Comm_set_errhandler(made, MPI_ERRORS_RETURN);
    *part = comm_to(made);
    return error;
}

static int release(tern_mpi_comm *comm)
{
    MPI_Comm c = comm_of(*comm);
    int error = c == MPI_COMM_NULL ? 0 : MPI_Comm_free(&c);
    *comm = comm_to(c);
    return error;
}

static int test(tern_mpi_request *request, bool *done)
{
    MPI_Request r;
    int flag = 0;
    memcpy(&r, request, sizeof r);
    int error = MPI_Test(&r, &flag, MPI_STATUS_IGNORE);
    memcpy(request, &r, sizeof r);
    *done = flag;
    return error;
}

/* ---- nonblocking calls ----------------------------------------------------------------------- */

/* Writes four arrays of one integer a rank: counts and offsets of all ranks' parts, then this
 * rank's count, repeated, and its multiples. */
static void share_out(int count, int ranks, int rank, int *integers)
{
    int *counts = integers, *places = counts + ranks, *own = places + ranks, *behind = own + ranks;
    int each = (int)(((int64_t)count + ranks - 1) / ranks);
    for (int i = 0; i < ranks; i++) {
        int64_t from = (int64_t)i * each, left = count - from;
        counts[i] = left < 0 ? 0 : left < each ? (int)left : each;
        places[i] = left < 0 ? count : (int)from;
    }
    for (int i = 0; i < ranks; i++) {
        own[i] = counts[rank];
        behind[i] = i * counts[rank];
    }
}

static int begin_shared(const tern_mpi_call *c, int n, MPI_Datatype type, MPI_Comm comm, int rank,
                        int size, MPI_Request *r)
{
    int *counts = c->integers, *places = counts + size, *own = places + size, *behind = own + size;
    share_out(n, size, rank, c->integers);
    switch (c->kind) {
    case TERN_MPI_EXCHANGE:
        return MPI_Ialltoallv(c->in, counts, places, type, c->out, own, behind, type, comm, r);
    case TERN_MPI_SPREAD:
        return MPI_Iallgatherv(MPI_IN_PLACE, 0, type, c->out, counts, places, type, comm, r);
    default:
        return MPI_Igatherv(c->in, counts[rank], type, c->out, counts, places, type, c->root, comm,
                            r);
    }
}

static int begin_request(const tern_mpi_call *c, MPI_Request *r)
{
    MPI_Comm comm = comm_of(c->comm);
    MPI_Datatype type = type_of(c->dtype);
    MPI_Op op = op_of(c->op);
    int n = (int)c->count, rank = 0, size = 1, error = MPI_Comm_rank(comm, &rank);
    const void *in = c->in;
    if (!error)
        error = MPI_Comm_size(comm, &size);
    if (error)
        return error;
    switch (c->kind) {
    case TERN_MPI_SEND:
        return MPI_Isend(in, n, type, c->root, c->tag, comm, r);
    case TERN_MPI_RECEIVE:
        return MPI_Irecv(c->out, n, type, c->root < 0 ? MPI_ANY_SOURCE : c->root, c->tag, comm, r);
    case TERN_MPI_BROADCAST:
        return MPI_Ibcast(c->out, n, type, c->root, comm, r);
    case TERN_MPI_ALL_REDUCE:
        return MPI_Iallreduce(MPI_IN_PLACE, c->out, n, type, op, comm, r);
    case TERN_MPI_REDUCE:
        return rank == c->root ? MPI_Ireduce(MPI_IN_PLACE, c->out, n, type, op, c->root, comm, r)
                               : MPI_Ireduce(c->out, NULL, n, type, op, c->root, comm, r);
    case TERN_MPI_REDUCE_SCATTER:
        return MPI_Ireduce_scatter_block(in, c->out, n, type, op, comm, r);
    case TERN_MPI_ALL_GATHER:
        return MPI_Iallgather(in ? in : MPI_IN_PLACE, in ? n : 0, type, c->out, n, type, comm, r);
    case TERN_MPI_GATHER:
        return MPI_Igather(in, n, type, c->out, n, type, c->root, comm, r);
    case TERN_MPI_SCATTER:
        return MPI_Iscatter(in, n, type, c->out, n, type, c->root, comm, r);
    case TERN_MPI_ALL_TO_ALL:
        return MPI_Ialltoall(in, n, type, c->out, n, type, comm, r);
    default:
        return begin_shared(c, n, type, comm, rank, size, r);
    }
}

static int begin(const tern_mpi_call *call, tern_mpi_request *request)
{
    MPI_Request r = MPI_REQUEST_NULL;
    int error = begin_request(call, &r);
    *request = 0;
    memcpy(request, &r, sizeof r);
    return error;
}

__attribute__((visibility("default"))) const tern_mpi *tern_mpi_plugin(void);

const tern_mpi *tern_mpi_plugin(void)
{
    static const tern_mpi table = {
        .version = TERN_MPI_VERSION,
        .family = FAMILY,
        .init = init,
        .finalize = MPI_Finalize,
        .describe = describe,
        .explain = explain,
        .world = world,
        .split = split,
        .release = release,
        .begin = begin,
        .test = test,
    };
    return &table;
}
