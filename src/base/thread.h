/* thread.h -- the state of a thread: all that the library stores for each thread, in one variable.
 *
 * The layers above store their part here too; base only declares the fields. In the shared library
 * each read of tern_thread is a call, so a function that reads it often takes its address once.
 * ci/style refuses other thread-local variables. */
#ifndef TERN_BASE_THREAD_H
#define TERN_BASE_THREAD_H
#include "base/buffer.h"
#include <tern/autograd.h>

/* ---- the mode, which is entered and left ------------------------------------------------- */

struct tern_op;
struct tern_tracing;

/* Replaces inputs of the operation by their casts. */
typedef tern_status (*tern_autocast_hook)(const struct tern_op *op, tern_tensor **in, int n);

/* What anomaly detection checks. */
typedef struct tern_anomaly_state {
    bool on, gradients, results;
} tern_anomaly_state;

/* How operations run now. An operation, a backward pass and a recomputing checkpoint change the
 * mode while they run, and restore the mode that was there before. */
typedef struct tern_thread_mode {
    const char *op;             /* the operation that runs, such as "mul"; NULL: none */
    tern_autocast_hook cast;    /* NULL: inputs are not cast */
    struct tern_frame *frame;   /* the checkpoint that stores saved tensors; NULL: nodes do */
    struct tern_tracing *trace; /* the trace that records calls (tensor/trace.h), or NULL */
    bool no_grad;
    tern_anomaly_state anomaly;
} tern_thread_mode;

/* ---- errors ------------------------------------------------------------------------------ */

enum { TERN_MESSAGE_BYTES = 4096, TERN_NAME_BYTES = 256 };

/* The description of a failure. */
typedef struct tern_failure {
    tern_status status;
    bool backward, in_module;
    int line;
    const char *file;
    char operation[TERN_NAME_BYTES], module[TERN_NAME_BYTES], module_type[TERN_NAME_BYTES];
    char message[TERN_MESSAGE_BYTES];
} tern_failure;

/* The recorded error of a thread (error.c). */
typedef struct tern_error_record {
    tern_failure first; /* status TERN_OK: no error is recorded */
    bool handled; /* the program's handler runs: errors in it are recorded, but not passed to it */
    bool held;    /* neither a handler nor a policy applies to errors */
    bool unread;  /* the program has not read the recorded error */
    /* Numbers of the recorded and of the newest failure since the last clear; 0 for none. */
    uint64_t recorded, newest;
    tern_status newest_status;
} tern_error_record;

/* ---- the end of a thread ----------------------------------------------------------------- */

/* A function that is called when the thread ends (thread_end.h). */
typedef struct tern_thread_end {
    void (*run)(void);
    bool waits;
    struct tern_thread_end *next;
} tern_thread_end;

/* ---- tensors ----------------------------------------------------------------------------- */

/* Headers of freed tensors that the thread keeps (tensor/header.c). */
typedef struct tern_headers_kept {
    struct tern_handle *fresh; /* to be reused */
    struct tern_handle *gone;  /* an incomplete batch */
    int count;
} tern_headers_kept;

enum { TERN_SCOPE_DEPTH = 1024 };

/* The tensors of the open scopes (tensor/scope.c). */
typedef struct tern_scope_stack {
    tern_tensor **items;
    size_t count, capacity;
    size_t mark[TERN_SCOPE_DEPTH]; /* the index of each scope's first item; mark[0] is the root's */
    int depth;
    tern_headers_kept *headers;     /* this thread's; set if there are items */
    int64_t opened;                 /* the number of opened scopes, in debug mode */
    struct tern_scope_place *place; /* TERN_SCOPE_DEPTH elements in debug mode, or NULL */
} tern_scope_stack;

/* ---- the rest ---------------------------------------------------------------------------- */

enum {
    TERN_AUTOCAST_KINDS = 4,
    TERN_DEVICE_KINDS = 8,
    TERN_MOST_LABELS = 64,
    TERN_PATH_BYTES = 4096
};

/* The types to which autocast casts. If one is set, the mode has the hook outside operations. */
typedef struct tern_autocast_kinds {
    struct {
        const char *device; /* the device's canonical name */
        tern_dtype dtype;   /* TERN_DTYPE_DEFAULT: autocast is off for the device */
    } kind[TERN_AUTOCAST_KINDS];
} tern_autocast_kinds;

/* The casts of leaves that autocast keeps while a block is open. */
typedef struct tern_kept_casts {
    struct tern_kept_cast *slot; /* hash table by the leaf's address; capacity: a power of two */
    size_t count, capacity;
    int depth; /* number of open blocks */
    bool disabled;
} tern_kept_casts;

/* The labels of calls (TERN_ANOMALY_LABEL), outermost first. */
typedef struct tern_labels {
    const char *open[TERN_MOST_LABELS];
    int depth; /* may exceed TERN_MOST_LABELS; labels beyond that are not stored */
} tern_labels;

/* Nodes of the graph without references, in a list, so that freeing a node needs no recursion. */
typedef struct tern_dead_nodes {
    struct tern_node *first;
    bool draining;
} tern_dead_nodes;

/* Called at the end of the running backward pass, also after an error; the last one registered is
 * called first. status is that of the pass so far; the result replaces it. */
typedef struct tern_after_backward {
    tern_status (*call)(struct tern_after_backward *end, tern_status status);
    struct tern_after_backward *next;
} tern_after_backward;

/* A module and its number; after the module is freed, another one may have the same address. */
typedef struct tern_module_ref {
    const struct tern_module *module; /* NULL: none */
    uint64_t number;
} tern_module_ref;

/* The modules that run: the outermost and the innermost of the nested calls. */
typedef struct tern_modules_running {
    tern_module_ref outermost, innermost;
} tern_modules_running;

/* What errors report about where they happened. A function that calls code of the program saves and
 * restores this (callback.h). */
typedef struct tern_running {
    struct {
        const char *file; /* NULL: unknown */
        int line;
    } at;                 /* set by tern_at and tern_where_enter */
    const char *backward; /* the operation whose backward runs, or NULL */
    tern_modules_running modules;
} tern_running;

/* The place at which a scope was opened. */
typedef struct tern_scope_place {
    int64_t number; /* counted from 1 in each thread; 0: the root scope */
    int depth;
    const char *module; /* the kind of the module whose call opened the scope; else NULL */
    const char *file;   /* NULL: unknown */
    int line;
} tern_scope_place;

/* A stream of random numbers that replaces the generators of all devices while an item of a data
 * set is made. */
typedef struct tern_random_stream {
    uint64_t seed;
    uint64_t taken;           /* groups of four words that were used */
    uint64_t words[3];        /* read by kernels on the host: seed, 0, 0 */
    tern_buffer host;         /* the words, as an argument of kernels on the host */
    struct tern_block *block; /* the words on a device; NULL: not copied yet */
} tern_random_stream;

/* Memory blocks that a thread keeps while it makes the items of a batch. Each item needs blocks of
 * the same sizes as the item before, and threads need not wait for each other's allocations. The
 * blocks count as allocated. */
enum { TERN_KEPT_CLASSES = 64 }; /* by size, up to 16 KiB */
typedef struct tern_kept_blocks {
    struct tern_block *of[TERN_KEPT_CLASSES];
    uint64_t taken; /* how many times a block was reused */
} tern_kept_blocks;

typedef struct tern_thread_state {
    tern_thread_mode mode;
    tern_random_stream *random; /* NULL: the generators of the devices */
    tern_running running;
    uint64_t failures;                    /* number of failures, recorded or not */
    tern_saved_tensors_hooks saved_hooks; /* pack NULL: no hooks */
    const char *called; /* the function named in errors (error.h); NULL: the one that fails */
    tern_after_backward **after_backward; /* for the backward pass that runs; NULL: none runs */
    struct tern_graph *graph;             /* the graph that is recorded; NULL: commands run */
    tern_kept_blocks *blocks;             /* NULL: no blocks are kept */
    bool strict;                          /* within TERN_STRICT */
    /* The numbers of the innermost range that a profiler measures, and of the profiler's run. */
    int64_t range, profile_run;
    /* In debug mode: the device command that runs, or NULL; the scope that ends, or NULL. */
    const char *command;
    const tern_scope_place *ending;

    struct tern_place *default_place; /* NULL: the default device of the process */
    int current_device[TERN_DEVICE_KINDS];

    tern_autocast_kinds autocast;
    tern_kept_casts casts;
    tern_labels labels;
    tern_dead_nodes dead;

    bool in_parallel;      /* the thread runs a parallel loop, and runs nested loops alone */
    bool works_ahead;      /* ahead of the program; tests do not count its calls (memory.h) */
    bool in_warning;       /* the handler of warnings runs: warnings in it are ignored */
    bool skips_init;       /* within TERN_SKIP_INIT */
    bool wants_gradients;  /* the running backward pass returns gradients, adds none to leaves */
    int profile_number;    /* number of the thread in profiles; 0: not numbered yet */
    unsigned casts_made;   /* number of casts of leaves that autocast made one by one */
    unsigned casts_before; /* the same number when the module that runs began */
    struct tern_comm_watch *comm_watch; /* watches what the thread sends to other devices */
    struct tern_shard_unit *shard_root; /* the outermost sharded unit that runs (dist/) */
    void *recording_stream;             /* the stream on which a CUDA graph is recorded, or NULL */

    void *panels;       /* the buffer into which host matrix products pack (cpu/gemm.c) */
    size_t panel_bytes; /* size of panels */

    int foreign_depth; /* depth of nested calls of drivers and other libraries (ending.c) */
    bool calls_exit;   /* the thread called exit() */

    tern_thread_end *ends; /* functions to call at the end of the thread, the newest first */
    tern_thread_end scopes_end, headers_end, error_end, panels_end;

    tern_headers_kept headers;
    tern_scope_stack scopes;
    tern_error_record error;
    char path[TERN_PATH_BYTES]; /* the result of tern_snapshot_latest and similar functions */
} tern_thread_state;

#if defined _WIN32 && !defined __clang__
/* gcc on Windows frees thread-local variables before it calls functions at the end of a thread. */
void *tern_os_thread_memory(size_t bytes);
#define tern_thread (*(tern_thread_state *)tern_os_thread_memory(sizeof(tern_thread_state)))
#else
extern _Thread_local tern_thread_state tern_thread;
#endif

/* Copies *from to *to by members: a loop over bytes is slower, and each module call does this. */
static inline void tern_running_copy(tern_running *to, const tern_running *from)
{
    to->at = from->at;
    to->backward = from->backward;
    to->modules.outermost = from->modules.outermost;
    to->modules.innermost = from->modules.innermost;
}

/* Registers end, which is called once when the running backward pass has ended and must exist until
 * then. Returns false if no pass runs. */
static inline bool tern_await_backward(tern_after_backward *end)
{
    tern_after_backward **ends = tern_thread.after_backward;
    if (!ends)
        return false;
    end->next = *ends;
    *ends = end;
    return true;
}

/* Returns the present mode, to be passed to leave: changes of tern_thread.mode last until then. */
static inline tern_thread_mode tern_thread_enter(void)
{
    return tern_thread.mode;
}
static inline void tern_thread_leave(const tern_thread_mode *outer)
{
    tern_thread.mode = *outer;
}

#endif
