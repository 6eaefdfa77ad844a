/* thread.h -- the state of a thread: all that the library keeps for each thread, in one variable.
 *
 * The layers above keep their part here too; this layer has no more of it than its shape. Each
 * read of tern_thread in the shared library costs a call, so a function that reads it often takes
 * a pointer once. ci/style refuses a thread's variable elsewhere. */
#ifndef TERN_BASE_THREAD_H
#define TERN_BASE_THREAD_H
#include "base/buffer.h"
#include <tern/autograd.h>

/* ---- the mode: entered and left ---------------------------------------------------------- */

struct tern_op;
struct tern_tracing;

/* Replaces inputs of the operation by casts of them. */
typedef tern_status (*tern_autocast_hook)(const struct tern_op *op, tern_tensor **in, int n);

/* What anomaly detection looks at. */
typedef struct tern_anomaly_state {
    bool on, gradients, results;
} tern_anomaly_state;

/* How operations run now. An operation, a backward pass and a checkpoint that computes again have
 * one of their own inside, and leave it for the one that was there. */
typedef struct tern_thread_mode {
    const char *op;             /* the operation that runs: "mul"; NULL where none does */
    tern_autocast_hook cast;    /* NULL: inputs are not cast */
    struct tern_frame *frame;   /* the checkpoint that saves for backward; NULL: nodes do */
    struct tern_tracing *trace; /* where calls are written down (tensor/trace.h); NULL: nowhere */
    bool no_grad;
    tern_anomaly_state anomaly;
} tern_thread_mode;

/* ---- errors ------------------------------------------------------------------------------ */

enum { TERN_MESSAGE_BYTES = 4096, TERN_NAME_BYTES = 256 };

/* What is known of a failure. */
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
    tern_failure first; /* status TERN_OK: none */
    bool handled; /* the program's handler runs: what fails in it is recorded, and not handled */
    bool held;    /* no handler and no policy applies */
    bool unread;  /* the program has not asked for the error that is recorded */
    /* The numbers of the recorded failure and of the last one since a clear; 0 for none. */
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

/* Headers of tensors that the thread keeps (tensor/header.c). */
typedef struct tern_headers_kept {
    struct tern_handle *fresh; /* to be used again */
    struct tern_handle *gone;  /* a batch that grows */
    int count;
} tern_headers_kept;

enum { TERN_SCOPE_DEPTH = 1024 };

/* The tensors of the open scopes (tensor/scope.c). */
typedef struct tern_scope_stack {
    tern_tensor **items;
    size_t count, capacity;
    size_t mark[TERN_SCOPE_DEPTH]; /* where each open scope begins; mark[0] is the root's */
    int depth;
    tern_headers_kept *headers;     /* this thread's, where there are items */
    int64_t opened;                 /* while debugging */
    struct tern_scope_place *place; /* of TERN_SCOPE_DEPTH open scopes, likewise; or NULL */
} tern_scope_stack;

/* ---- the rest ---------------------------------------------------------------------------- */

enum {
    TERN_AUTOCAST_KINDS = 4,
    TERN_DEVICE_KINDS = 8,
    TERN_MOST_LABELS = 64,
    TERN_PATH_BYTES = 4096
};

/* What autocast casts to; where it is a type, the mode has the hook outside of operations. */
typedef struct tern_autocast_kinds {
    struct {
        const char *device; /* a canonical string of the kind */
        tern_dtype dtype;   /* TERN_DTYPE_DEFAULT: nothing is cast there */
    } kind[TERN_AUTOCAST_KINDS];
} tern_autocast_kinds;

/* Casts of leaves, while a block is open. */
typedef struct tern_kept_casts {
    struct tern_kept_cast *slot; /* of capacity, a power of two: found by the leaf's address */
    size_t count, capacity;
    int depth; /* of open blocks */
    bool disabled;
} tern_kept_casts;

/* Where operations are called (TERN_ANOMALY_LABEL), outermost first. */
typedef struct tern_labels {
    const char *open[TERN_MOST_LABELS];
    int depth; /* may go beyond, where labels are left out */
} tern_labels;

/* Nodes of the graph that nobody holds any more: a list, so that freeing one is no recursion. */
typedef struct tern_dead_nodes {
    struct tern_node *first;
    bool draining;
} tern_dead_nodes;

/* What waits for the end of the backward pass that runs: called then, however it ended, the last
 * that came first. status is that of the pass so far, and what it returns is that from then on. */
typedef struct tern_after_backward {
    tern_status (*call)(struct tern_after_backward *end, tern_status status);
    struct tern_after_backward *next;
} tern_after_backward;

/* A module, and its number: the address alone may be another's by now. */
typedef struct tern_module_ref {
    const struct tern_module *module; /* NULL: none */
    uint64_t number;
} tern_module_ref;

/* The modules that run, between which are others. */
typedef struct tern_modules_running {
    tern_module_ref outermost, innermost;
} tern_modules_running;

/* What errors report of where they happened. Who calls code of the program's in the middle of an
 * own function puts it back (callback.h). */
typedef struct tern_running {
    struct {
        const char *file; /* NULL: not known */
        int line;
    } at;                 /* of tern_at, tern_where_enter */
    const char *backward; /* the operation whose gradient is computed; NULL */
    tern_modules_running modules;
} tern_running;

/* Where a scope was opened. */
typedef struct tern_scope_place {
    int64_t number; /* of its thread's scopes, from 1 on; 0: the root */
    int depth;
    const char *module; /* the scope is that of a module's call: the module's kind; else NULL */
    const char *file;   /* NULL: not known */
    int line;
} tern_scope_place;

/* Random numbers in place of the devices' generators: those of a data set's item. They count on one
 * for all devices. */
typedef struct tern_random_stream {
    uint64_t seed;
    uint64_t taken;           /* groups of four words */
    uint64_t words[3];        /* what kernels of the host read: seed, 0, 0 */
    tern_buffer host;         /* the words, as arguments of kernels of the host name them */
    struct tern_block *block; /* the same words on a device; NULL: on none yet */
} tern_random_stream;

/* Blocks of memory that a thread keeps for itself while it makes the items of a batch, each of
 * which wants what the one before gave back, so that threads do not wait for each other there.
 * They count as allocated. */
enum { TERN_KEPT_CLASSES = 64 }; /* by size: up to 16 KiB */
typedef struct tern_kept_blocks {
    struct tern_block *of[TERN_KEPT_CLASSES];
    uint64_t taken; /* how often one was used again */
} tern_kept_blocks;

typedef struct tern_thread_state {
    tern_thread_mode mode;
    tern_random_stream *random; /* NULL: the devices' generators */
    tern_running running;
    uint64_t failures;                    /* so far, whether they are recorded or not */
    tern_saved_tensors_hooks saved_hooks; /* pack NULL: none */
    const char *called; /* "tern_zero_": named in errors (error.h); NULL: the function that fails */
    tern_after_backward **after_backward; /* of the backward pass that runs; NULL: none does */
    struct tern_graph *graph;             /* what is being recorded; NULL: commands run */
    tern_kept_blocks *blocks;             /* NULL: none are kept */
    bool strict;                          /* within TERN_STRICT */
    /* The number of the innermost range of time that a profiler measures, and of the profiler's
     * run. */
    int64_t range, profile_run;
    /* While debugging: the command of a device; the scope that ends; NULL: nothing, none. */
    const char *command;
    const tern_scope_place *ending;

    struct tern_place *default_place; /* NULL: the process's */
    int current_device[TERN_DEVICE_KINDS];

    tern_autocast_kinds autocast;
    tern_kept_casts casts;
    tern_labels labels;
    tern_dead_nodes dead;

    bool in_parallel;      /* the thread works for a parallel loop, and runs its own alone */
    bool works_ahead;      /* of the program: tests do not count its calls (memory.h) */
    bool in_warning;       /* the handler of warnings runs: what is odd in it is no warning */
    bool skips_init;       /* within TERN_SKIP_INIT */
    bool wants_gradients;  /* the backward pass that runs returns gradients, adds none to leaves */
    int profile_number;    /* of the thread in profiles; 0: it has none yet */
    unsigned casts_made;   /* casts of leaves that autocast made one by one, so far */
    unsigned casts_before; /* the same when the module that runs began */
    struct tern_comm_watch *comm_watch; /* of what the thread sends to other devices */
    struct tern_shard_unit *shard_root; /* the outermost sharded unit that runs (dist/) */
    void *recording_stream;             /* what a CUDA graph is recorded on; NULL: none */

    void *panels;       /* what the thread's products on the host pack into (cpu/gemm.c) */
    size_t panel_bytes; /* of them */

    int foreign_depth; /* calls of drivers and other libraries that the thread is in (ending.c) */
    bool calls_exit;   /* the thread called exit() */

    tern_thread_end *ends; /* what is called at the thread's end, the newest first */
    tern_thread_end scopes_end, headers_end, error_end, panels_end;

    tern_headers_kept headers;
    tern_scope_stack scopes;
    tern_error_record error;
    char path[TERN_PATH_BYTES]; /* that tern_snapshot_latest and the like returned */
} tern_thread_state;

#if defined _WIN32 && !defined __clang__
/* gcc frees its thread-locals there before what is called at the end of a thread. */
void *tern_os_thread_memory(size_t bytes);
#define tern_thread (*(tern_thread_state *)tern_os_thread_memory(sizeof(tern_thread_state)))
#else
extern _Thread_local tern_thread_state tern_thread;
#endif

/* *to = *from, member by member: a loop over bytes costs more, and modules run through here. */
static inline void tern_running_copy(tern_running *to, const tern_running *from)
{
    to->at = from->at;
    to->backward = from->backward;
    to->modules.outermost = from->modules.outermost;
    to->modules.innermost = from->modules.innermost;
}

/* end is called once when the backward pass that runs has ended, and has to live until then; false
 * where none runs. */
static inline bool tern_await_backward(tern_after_backward *end)
{
    tern_after_backward **ends = tern_thread.after_backward;
    if (!ends)
        return false;
    end->next = *ends;
    *ends = end;
    return true;
}

/* The mode there is, to be given to leave: what is changed in tern_thread.mode holds until then. */
static inline tern_thread_mode tern_thread_enter(void)
{
    return tern_thread.mode;
}
static inline void tern_thread_leave(const tern_thread_mode *outer)
{
    tern_thread.mode = *outer;
}

#endif
