/* core.c -- devices, memory and lazy streams of the stand-in. */
#include "standin.h"
#include "faults/points.h"
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

static pthread_mutex_t lock;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static _Thread_local int current = -1;

static void start(void)
{
    pthread_mutexattr_t recursive;
    pthread_mutexattr_init(&recursive);
    pthread_mutexattr_settype(&recursive, PTHREAD_MUTEX_RECURSIVE);
    pthread_mutex_init(&lock, &recursive);
}

void standin_lock(void)
{
    pthread_once(&once, start);
    pthread_mutex_lock(&lock);
}

void standin_unlock(void)
{
    pthread_mutex_unlock(&lock);
}

bool standin_is_idle(void)
{
    const char *idle = getenv("TERN_STANDIN_IDLE");
    return idle && *idle == '1';
}

/* ---- faults and devices ------------------------------------------------------------------ */

unsigned standin_fault(const char *function)
{
    static struct {
        char name[64];
        unsigned long calls;
    } counts[128];
    const char *plan = getenv("TERN_STANDIN_FAIL");
    unsigned code = (unsigned)fault_point(function);
    if (!plan || code)
        return code;
    standin_lock();
    int i = 0;
    while (i < 127 && counts[i].name[0] && strcmp(counts[i].name, function) != 0)
        i++;
    snprintf(counts[i].name, sizeof counts[i].name, "%s", function);
    counts[i].calls++;
    size_t n = strlen(function);
    for (const char *p = plan; p && *p; p = strchr(p, ',') ? strchr(p, ',') + 1 : NULL) {
        char *end;
        if (strncmp(p, function, n) != 0 || p[n] != ':')
            continue;
        unsigned long call = strtoul(p + n + 1, &end, 10);
        if (call == counts[i].calls && *end == ':')
            code = (unsigned)strtoul(end + 1, NULL, 10);
    }
    standin_unlock();
    return code;
}

int standin_devices(void)
{
    const char *wanted = getenv("TERN_STANDIN_DEVICES"), *mask = getenv("CUDA_VISIBLE_DEVICES");
    int n = wanted ? atoi(wanted) : 1;
    if (mask) { /* enough of it for tests: a list of numbers */
        int seen = 0;
        char *end;
        for (const char *p = mask; strtol(p, &end, 10) >= 0 && end != p && strtol(p, NULL, 10) < n;
             p = end + (*end == ','))
            seen++;
        n = seen;
    }
    return n < MAX_DEVICES ? n : MAX_DEVICES;
}

int standin_current(void)
{
    return current;
}

void standin_set_current(int device)
{
    current = device;
}

/* ---- memory ------------------------------------------------------------------------------ */

typedef struct block {
    struct block *next;
    char *memory;
    size_t bytes;
    int device;
    bool mapped; /* behind addresses that were reserved */
} block;

static block *blocks;
static size_t used[MAX_DEVICES];

static size_t capacity(void)
{
    const char *bytes = getenv("TERN_STANDIN_MEMORY");
    return bytes ? strtoull(bytes, NULL, 10) : (size_t)1 << 30;
}

void *standin_alloc(int device, size_t bytes)
{
    standin_lock();
    block *b = used[device] + bytes <= capacity() ? malloc(sizeof *b) : NULL;
    void *memory = NULL;
    if (b && posix_memalign(&memory, 256, bytes ? bytes : 1) == 0) {
        if (!standin_is_idle())
            memset(memory, 0xfb, bytes);
        *b = (block){.next = blocks, .memory = memory, .bytes = bytes, .device = device};
        blocks = b;
        used[device] += bytes;
    } else {
        free(b);
        memory = NULL;
    }
    standin_unlock();
    return memory;
}

bool standin_free(void *memory)
{
    bool found = false;
    standin_lock();
    for (block **b = &blocks; *b; b = &(*b)->next)
        if ((*b)->memory == memory && !(*b)->mapped) {
            block *gone = *b;
            *b = gone->next;
            used[gone->device] -= gone->bytes;
            free(gone->memory);
            free(gone);
            found = true;
            break;
        }
    standin_unlock();
    return found;
}

static const block *block_at(uintptr_t at)
{
    for (const block *b = blocks; b; b = b->next)
        if (at >= (uintptr_t)b->memory && at - (uintptr_t)b->memory < b->bytes)
            return b;
    return NULL;
}

int standin_owner(const void *at, size_t bytes)
{
    uintptr_t from = (uintptr_t)at;
    standin_lock();
    const block *b = block_at(from);
    int owner = b ? b->device : -1;
    /* Mapped memory goes on where more of it is mapped. */
    while (b && bytes > (uintptr_t)b->memory + b->bytes - from) {
        bytes -= (uintptr_t)b->memory + b->bytes - from;
        from = (uintptr_t)b->memory + b->bytes;
        const block *next = b->mapped ? block_at(from) : NULL;
        b = next && next->mapped && next->device == owner ? next : NULL;
        if (!b)
            owner = -2;
    }
    standin_unlock();
    return owner;
}

/* ---- addresses without memory, and memory behind them -------------------------------------- */

void *standin_reserve(size_t bytes, size_t alignment)
{
    char *all = mmap(NULL, bytes + alignment, PROT_NONE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (all == MAP_FAILED)
        return NULL;
    const size_t before = (alignment - (uintptr_t)all % alignment) % alignment;
    if (before)
        munmap(all, before);
    if (alignment > before)
        munmap(all + before + bytes, alignment - before);
    return all + before;
}

bool standin_take(int device, size_t bytes)
{
    standin_lock();
    const bool fits = used[device] + bytes <= capacity();
    if (fits)
        used[device] += bytes;
    standin_unlock();
    return fits;
}

void standin_give(int device, size_t bytes)
{
    standin_lock();
    used[device] -= bytes;
    standin_unlock();
}

/* In the list of blocks it is one, so that who owns an address is known. */
bool standin_map(int device, void *at, size_t bytes)
{
    block *b = malloc(sizeof *b);
    if (!b || mprotect(at, bytes, PROT_READ | PROT_WRITE) != 0) {
        free(b);
        return false;
    }
    if (!standin_is_idle())
        memset(at, 0xfb, bytes);
    standin_lock();
    *b = (block){.next = blocks, .memory = at, .bytes = bytes, .device = device, .mapped = true};
    blocks = b;
    standin_unlock();
    return true;
}

bool standin_unmap(void *at, size_t bytes)
{
    bool found = false;
    standin_lock();
    for (block **b = &blocks; *b; b = &(*b)->next)
        if ((*b)->mapped && (*b)->memory == at && (*b)->bytes == bytes) {
            block *gone = *b;
            *b = gone->next;
            free(gone);
            found = true;
            break;
        }
    standin_unlock();
    /* Anew, so that nothing that was there is found again. */
    return found && mmap(at, bytes, PROT_NONE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0) == at;
}

void standin_usage(int device, size_t *in_use, size_t *total)
{
    standin_lock();
    *in_use = used[device];
    *total = capacity();
    standin_unlock();
}

/* ---- streams ----------------------------------------------------------------------------- */

typedef struct command {
    struct command *next;
    standin_work work;
    _Alignas(16) char data[];
} command;

struct CUgraph_st {
    command *first, **last;
    int holders; /* its handles, and the replays under way */
};

struct CUstream_st {
    int device;
    command *first, **last;
    uint64_t put, done;
    standin_graph *recording; /* what is put goes there */
    unsigned failed;          /* as a context that a kernel broke: it stays so */
    bool runs;                /* by itself, while it is not busy */
    int busy;
};

cudaStream_t standin_stream_new(void)
{
    cudaStream_t stream = calloc(1, sizeof *stream);
    if (!stream)
        return NULL;
    stream->device = current;
    stream->last = &stream->first;
    return stream;
}

bool standin_enqueue(cudaStream_t stream, standin_work work, const void *data, size_t bytes)
{
    if (!stream || stream->device != current)
        return false;
    command *c = malloc(sizeof *c + bytes);
    if (!c)
        return false;
    c->next = NULL;
    c->work = work;
    memcpy(c->data, data, bytes);
    standin_lock();
    if (stream->recording) {
        *stream->recording->last = c;
        stream->recording->last = &c->next;
    } else {
        *stream->last = c;
        stream->last = &c->next;
        stream->put++;
    }
    standin_unlock();
    return true;
}

static unsigned long commands;

unsigned long standin_commands(void)
{
    standin_lock();
    unsigned long n = commands;
    standin_unlock();
    return n;
}

static void do_nothing(void *data)
{
    (void)data;
}

bool standin_command(cudaStream_t stream, standin_work work, const void *data, size_t bytes)
{
    standin_lock();
    commands++;
    standin_unlock();
    return standin_is_idle() ? standin_enqueue(stream, do_nothing, data, 0)
                             : standin_enqueue(stream, work, data, bytes);
}

/* ---- graphs ------------------------------------------------------------------------------ */

bool standin_record(cudaStream_t stream)
{
    standin_graph *graph = stream->recording ? NULL : calloc(1, sizeof *graph);
    if (graph) {
        graph->last = &graph->first;
        graph->holders = 1;
        stream->recording = graph;
    }
    return graph != NULL;
}

standin_graph *standin_recorded(cudaStream_t stream)
{
    standin_graph *graph = stream->recording;
    stream->recording = NULL;
    return graph;
}

bool standin_is_recording(cudaStream_t stream)
{
    return stream->recording != NULL;
}

void standin_hold(standin_graph *graph)
{
    standin_lock();
    graph->holders++;
    standin_unlock();
}

void standin_drop(standin_graph *graph)
{
    standin_lock();
    bool last_one = --graph->holders == 0;
    standin_unlock();
    for (command *c = graph->first, *next; last_one && c; c = next) {
        next = c->next;
        free(c);
    }
    if (last_one)
        free(graph);
}

static void run_graph(void *data)
{
    standin_graph *graph;
    memcpy(&graph, data, sizeof graph);
    for (command *c = graph->first; c; c = c->next)
        c->work(c->data);
    standin_drop(graph);
}

bool standin_replay(cudaStream_t stream, standin_graph *graph)
{
    standin_hold(graph);
    if (standin_enqueue(stream, run_graph, &graph, sizeof graph))
        return true;
    standin_drop(graph);
    return false;
}

standin_point standin_now(cudaStream_t stream)
{
    standin_lock();
    standin_point point = {stream, stream->put};
    standin_unlock();
    return point;
}

void standin_run_until(standin_point point)
{
    cudaStream_t s = point.stream;
    standin_lock();
    while (s->done < point.at && s->first) {
        command *c = s->first;
        s->first = c->next;
        if (!s->first)
            s->last = &s->first;
        s->done++;
        if (!s->failed)
            c->work(c->data);
        free(c);
    }
    standin_unlock();
}

void standin_busy(cudaStream_t stream, int more)
{
    standin_lock();
    stream->runs = true;
    stream->busy += more;
    standin_unlock();
}

bool standin_passed(standin_point point)
{
    standin_lock();
    if (point.stream->runs && !point.stream->busy)
        standin_run_until(point);
    bool passed = point.stream->done >= point.at;
    standin_unlock();
    return passed;
}

unsigned standin_drain(cudaStream_t stream)
{
    standin_lock();
    standin_run_until(standin_now(stream));
    unsigned fault = standin_fault("kernel"); /* a kernel that broke the context */
    stream->failed = stream->failed ? stream->failed : fault;
    unsigned code = stream->failed;
    standin_unlock();
    return code;
}

void standin_stream_free(cudaStream_t stream)
{
    standin_drain(stream);
    free(stream);
}
