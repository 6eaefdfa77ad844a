/* nccl_ranks.c -- the stand-in's NCCL between processes: communicators that are not blocking. Ranks meet in files of the
 * working directory that the unique id names; a thread of each communicator does its operations in order, by way of these
 * files. Stricter than NCCL: an operation is not in the stream before the communicator was asked how it does, two ranks
 * on one device or in different operations are errors, and a stream whose operation is not done can't be waited for.
 *
 * TERN_STANDIN_FAIL=ncclOperation:n:code  in the n-th operation of this process code 9 kills it, 19 stops it, 100 is one
 * that never ends, 101 a device that is slow (a second); others are the communicator's error. */
#include "nccl_calls.h"
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#define X(RESULT, NAME, PARAMETERS) EXPORT RESULT NAME PARAMETERS;
#include "device/cuda/nccl.def"
#undef X

enum { MOST_CALLS = 2 * MAX_DEVICES };

/* What a rank is at, for the others to see. */
typedef struct seat {
    atomic_int here, opened; /* it has come; it has the files of all */
    int device;
    atomic_uint_fast64_t gave,
        took; /* operations: its data are in its file; it has those of the others */
    call own; /* the operation, of a group of sends and receives the first */
    size_t sends[MAX_DEVICES]; /* bytes to each rank, of such a group */
} seat;

typedef struct operation {
    struct operation *next;
    call calls[MOST_CALLS];
    int n;
    standin_point before;
    bool done;
    int holders; /* the thread, the stream */
} operation;

struct ranks {
    char name[128];
    ncclComm_t comm;
    seat *seats;
    int files[MAX_DEVICES];
    pthread_t thread;
    atomic_uint how; /* ncclInProgress until all are there, then 0 or an error */
    atomic_bool leaves;
    pthread_mutex_t lock;
    operation *given; /* by a group, and not in the stream */
    operation *first, **last;
    uint64_t count;
};

static void nap(void)
{
    const struct timespec t = {0, 50000};
    nanosleep(&t, NULL);
}

ncclResult_t ncclGetUniqueId(ncclUniqueId *id)
{
    uint64_t number = 0;
    FAULT(ncclGetUniqueId);
    if (getrandom(&number, sizeof number, 0) != sizeof number)
        return SYSTEM_ERROR;
    memset(id, 0, sizeof *id);
    snprintf(id->internal, sizeof id->internal, "nccl.%016llx", (unsigned long long)number);
    return 0;
}

/* ---- meeting ----------------------------------------------------------------------------- */

static void file_name(const struct ranks *r, int rank, char *text, size_t bytes)
{
    snprintf(text, bytes, "%s.%d", r->name, rank);
}

static void fail(struct ranks *r, unsigned code)
{
    atomic_store(&r->how, code);
}

/* Until the number is at least that; false: this rank leaves. */
static bool reaches(struct ranks *r, const atomic_uint_fast64_t *number, uint64_t least)
{
    while (atomic_load(number) < least) {
        if (atomic_load(&r->leaves))
            return false;
        nap();
    }
    return true;
}

static bool all_come(struct ranks *r, bool opened)
{
    for (int i = 0; i < r->comm->n; i++)
        while (!atomic_load(opened ? &r->seats[i].opened : &r->seats[i].here)) {
            if (atomic_load(&r->leaves))
                return false;
            nap();
        }
    return true;
}

static bool open_files(struct ranks *r)
{
    char name[160];
    for (int i = 0; i < r->comm->n; i++) {
        file_name(r, i, name, sizeof name);
        if (i != r->comm->rank && (r->files[i] = open(name, O_RDWR)) < 0)
            return false;
        for (int k = 0; k < i; k++)
            if (r->seats[i].device == r->seats[k].device) {
                fail(r, INVALID_USAGE);
                return false;
            }
    }
    return true;
}

static bool meet(struct ranks *r)
{
    char name[160];
    if (!all_come(r, false) || !open_files(r))
        return false;
    atomic_store(&r->seats[r->comm->rank].opened, 1);
    if (!all_come(r, true))
        return false;
    file_name(r, r->comm->rank, name, sizeof name);
    unlink(name);
    unlink(r->name);
    fail(r, 0);
    return true;
}

/* ---- operations -------------------------------------------------------------------------- */

static void let_go(operation *o)
{
    standin_lock();
    const bool last = --o->holders == 0;
    standin_unlock();
    if (last)
        free(o);
}

/* In the stream: the thread has done it before. */
static void pass(void *data)
{
    operation *o;
    memcpy(&o, data, sizeof o);
    if (!o->done)
        abort(); /* who waits here would hang where a rank does not come */
    let_go(o);
}

static bool write_all(int file, const void *from, size_t bytes, size_t at)
{
    return bytes == 0 || pwrite(file, from, bytes, (off_t)at) == (ssize_t)bytes;
}

static bool read_all(int file, void *to, size_t bytes, size_t at)
{
    return bytes == 0 || pread(file, to, bytes, (off_t)at) == (ssize_t)bytes;
}

/* This rank's data into its file: of sends and receives those of each rank behind the other. */
static bool show(struct ranks *r, const operation *o)
{
    seat *own = &r->seats[r->comm->rank];
    const int file = r->files[r->comm->rank];
    own->own = o->calls[0];
    memset(own->sends, 0, sizeof own->sends);
    if (o->calls[0].kind < SEND)
        return write_all(file, o->calls[0].from, standin_nccl_bytes(&o->calls[0], true), 0);
    size_t at = 0;
    for (int peer = 0; peer < r->comm->n; peer++)
        for (int i = 0; i < o->n; i++)
            if (o->calls[i].kind == SEND && o->calls[i].root == peer) {
                const size_t bytes = standin_nccl_bytes(&o->calls[i], true);
                own->sends[peer] = bytes;
                if (!write_all(file, o->calls[i].from, bytes, at))
                    return false;
                at += bytes;
            }
    return true;
}

/* What was sent to this rank must be received, and nothing else. */
static unsigned receive(struct ranks *r, const operation *o)
{
    const int own = r->comm->rank;
    size_t got[MAX_DEVICES] = {0};
    for (int i = 0; i < o->n; i++) {
        const call *c = &o->calls[i];
        const seat *from = &r->seats[c->root];
        size_t at = 0;
        if (c->kind != RECV)
            continue;
        got[c->root] = standin_nccl_bytes(c, false);
        for (int peer = 0; peer < own; peer++)
            at += from->sends[peer];
        if (from->own.kind < SEND || from->sends[own] != got[c->root] ||
            !read_all(r->files[c->root], c->to, got[c->root], at))
            return INVALID_USAGE;
    }
    for (int i = 0; i < r->comm->n; i++)
        if (r->seats[i].own.kind < SEND || r->seats[i].sends[own] != got[i])
            return INVALID_USAGE;
    return 0;
}

static unsigned collect(struct ranks *r, const operation *o)
{
    const call *own = &o->calls[0];
    job j = {.n = r->comm->n};
    void *from[MAX_DEVICES] = {NULL}, *to[MAX_DEVICES] = {NULL};
    unsigned code = 0;
    for (int i = 0; i < j.n; i++) {
        const call *theirs = &r->seats[i].own;
        struct ncclComm as = {.rank = i, .n = j.n};
        j.calls[i] = *own;
        if (theirs->kind != own->kind || theirs->count != own->count || theirs->type != own->type ||
            theirs->op != own->op || theirs->root != own->root)
            code = INVALID_USAGE;
        j.calls[i].comm = &as;
        const size_t reads = standin_nccl_bytes(&j.calls[i], true),
                     writes = own->count * standin_nccl_size(own->type) * (size_t)j.n;
        j.calls[i].from = from[i] = malloc(reads + 1);
        to[i] = malloc(writes + 1);
        if (i != r->comm->rank)
            j.calls[i].to = to[i];
        if (code == 0 && !read_all(r->files[i], from[i], reads, 0))
            code = SYSTEM_ERROR;
    }
    if (code == 0)
        standin_nccl_do(&j);
    for (int i = 0; i < j.n; i++) {
        free(from[i]);
        free(to[i]);
    }
    return code;
}

static unsigned fault(struct ranks *r)
{
    const unsigned code = standin_fault("ncclOperation");
    if (code == SIGKILL || code == SIGSTOP)
        raise((int)code);
    if (code == 101)
        sleep(1);
    while (code == 100 && !atomic_load(&r->leaves))
        nap();
    return code == SIGKILL || code == SIGSTOP || code >= 100 ? 0 : code;
}

static void run(struct ranks *r, operation *o)
{
    seat *own = &r->seats[r->comm->rank];
    bool all = true;
    standin_run_until(o->before);
    unsigned code = fault(r);
    for (int i = 0; i < r->comm->n && all && code == 0; i++)
        all = reaches(r, &r->seats[i].took, r->count);
    if (all && code == 0 && !show(r, o))
        code = SYSTEM_ERROR;
    if (all && code == 0)
        atomic_store(&own->gave, ++r->count);
    for (int i = 0; i < r->comm->n && all && code == 0; i++)
        all = reaches(r, &r->seats[i].gave, r->count);
    if (all && code == 0)
        code = o->calls[0].kind < SEND ? collect(r, o) : receive(r, o);
    if (all && code == 0)
        atomic_store(&own->took, r->count);
    if (code)
        fail(r, code);
    while ((code || !all) && !atomic_load(&r->leaves))
        nap(); /* it hangs until it is aborted */
    standin_lock();
    o->done = true;
    standin_busy(o->calls[0].stream, -1);
    standin_unlock();
}

static void *work(void *user)
{
    struct ranks *r = user;
    bool met = meet(r);
    if (!met && atomic_load(&r->how) == ncclInProgress && !atomic_load(&r->leaves))
        fail(r, SYSTEM_ERROR);
    for (;;) {
        pthread_mutex_lock(&r->lock);
        operation *o = r->first;
        if (o && !(r->first = o->next))
            r->last = &r->first;
        pthread_mutex_unlock(&r->lock);
        if (o) {
            run(r, o);
            let_go(o);
        } else if (atomic_load(&r->leaves)) {
            return NULL;
        } else {
            nap();
        }
    }
}

/* ---- calls ------------------------------------------------------------------------------- */

bool standin_ranks_are_ready(ncclComm_t comm)
{
    return atomic_load(&comm->ranks->how) == 0 && !comm->ranks->given;
}

bool standin_ranks_give(const call *calls, int n)
{
    struct ranks *r = calls[0].comm->ranks;
    operation *o = calloc(1, sizeof *o);
    if (!o)
        return false;
    for (int i = 0; i < n; i++)
        if (calls[i].stream != calls[0].stream || (n > 1 && calls[i].kind < SEND))
            return false;
    memcpy(o->calls, calls, sizeof *calls * (size_t)n);
    o->n = n;
    o->holders = 2;
    r->given = o;
    return true;
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t *error)
{
    struct ranks *r = comm->ranks;
    FAULT(ncclCommGetAsyncError);
    *error = r ? atomic_load(&r->how) : 0;
    operation *o = r && *error == 0 ? r->given : NULL;
    if (!o)
        return 0;
    *error = ncclInProgress;
    r->given = NULL;
    o->before = standin_now(o->calls[0].stream);
    standin_set_current(comm->device);
    standin_busy(o->calls[0].stream, 1);
    if (!standin_enqueue(o->calls[0].stream, pass, &o, sizeof o))
        return INVALID_USAGE;
    pthread_mutex_lock(&r->lock);
    *r->last = o;
    r->last = &o->next;
    pthread_mutex_unlock(&r->lock);
    return 0;
}

static bool come(struct ranks *r)
{
    char name[160];
    const int file = open(r->name, O_RDWR | O_CREAT, 0600);
    const size_t bytes = sizeof *r->seats * (size_t)r->comm->n;
    if (file < 0 || ftruncate(file, (off_t)bytes) != 0)
        return false;
    r->seats = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    file_name(r, r->comm->rank, name, sizeof name);
    r->files[r->comm->rank] = open(name, O_RDWR | O_CREAT, 0600);
    if (r->seats == MAP_FAILED || r->files[r->comm->rank] < 0)
        return false;
    r->seats[r->comm->rank].device = r->comm->device;
    atomic_store(&r->seats[r->comm->rank].here, 1);
    return true;
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t *comm, int n, ncclUniqueId id, int rank,
                                    ncclConfig_t *config)
{
    FAULT(ncclCommInitRankConfig);
    if (n < 1 || n > MAX_DEVICES || rank < 0 || rank >= n || standin_current() < 0 ||
        config->magic != 0xcafebeef || config->version < 21400 || config->blocking ||
        strncmp(id.internal, "nccl.", 5) != 0)
        return INVALID_ARGUMENT;
    struct ncclComm *made = calloc(1, sizeof *made);
    struct ranks *r = calloc(1, sizeof *r);
    if (!made || !r)
        abort(); /* a test has other things to find */
    *made = (struct ncclComm){.device = standin_current(), .rank = rank, .n = n, .ranks = r};
    snprintf(r->name, sizeof r->name, "%s", id.internal);
    r->comm = made;
    r->last = &r->first;
    atomic_store(&r->how, ncclInProgress);
    pthread_mutex_init(&r->lock, NULL);
    if (!come(r) || pthread_create(&r->thread, NULL, work, r) != 0)
        return SYSTEM_ERROR;
    *comm = made;
    return ncclInProgress;
}

void standin_ranks_leave(ncclComm_t comm)
{
    struct ranks *r = comm->ranks;
    char name[160];
    atomic_store(&r->leaves, true);
    pthread_join(r->thread, NULL);
    if (atomic_load(&r->how) != 0) {
        file_name(r, comm->rank, name, sizeof name);
        unlink(name);
        unlink(r->name);
    }
    for (int i = 0; i < comm->n; i++)
        if (r->files[i] > 0)
            close(r->files[i]);
    munmap(r->seats, sizeof *r->seats * (size_t)comm->n);
    free(r->given);
    pthread_mutex_destroy(&r->lock);
    free(r);
}
