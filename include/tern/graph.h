/* graph.h -- graphs: commands that are recorded once and replayed without running the host code
 * again.
 *
 *   tern_graph *graph = tern_graph_new("cuda:0");        torch.cuda.CUDAGraph
 *   TERN_CAPTURE(graph) { loss = tern_keep(training_step(model, optimizer, x, y)); }
 *   for (...) {
 *       tern_copy_(x, next_x), tern_copy_(y, next_y);    where the recorded step reads its inputs
 *       tern_graph_replay(graph);
 *   }
 *
 * Inside the block the operations of this thread on the graph's device are recorded and do not run;
 * their results have no values before the first replay. A replay runs all of them again, in order,
 * on the same memory: as a CUDA graph on "cuda", as a list of prepared launches on other devices,
 * with the same results. State that changes from step to step is on the device, and continues from
 * replay to replay as it would without a graph: random numbers, the optimizer's step count, the
 * loss scale. The options of an optimizer (the learning rate of a scheduler) are read at each
 * replay.
 *
 * Memory: tensors that are created inside the block come from the graph's own pool, and a tensor
 * that is kept after it has a new value after every replay. When the recording ends, all other
 * results are placed in one block of memory, in which results that are not needed at the same time
 * share memory, and results that nobody reads are not computed. A TERN_SCOPE inside the block,
 * which frees its tensors early, makes that block of memory smaller. If it does not fit, the error
 * of tern_graph_capture_end has its size and the limit. Tensors from outside that the recording
 * uses stay valid for the graph even when the program releases them. Gradients: zero them
 * (tern_optim_zero_grad) before the backward pass inside the block, so that they are created there.
 *
 * Collectives between processes (tern/dist.h) are recorded too: a replay waits there until all
 * ranks have come.
 *
 * An operation that needs a value on the host (tern_item, tern_nonzero, a branch on a result), data
 * from another device, and tern_synchronize cannot be recorded: they are errors that name the
 * operation, and the capture ends without a graph. Commands of other threads on the device run as
 * usual and are not recorded. User kernels must live as long as the graph. One thread at a time may
 * replay a graph or ask for its size and text, which take up fused operations when their
 * kernels are there. */
#ifndef TERN_GRAPH_H
#define TERN_GRAPH_H
#include <tern/device.h>

TERN_BEGIN_DECLS

typedef struct tern_graph tern_graph;

/* Returns an empty graph for a device (NULL: the default one), which the caller frees with
 * tern_graph_free; NULL after an error. */
TERN_API tern_graph *tern_graph_new(const char *device);

/* How replays run a recording. The results are the same, bit for bit, with all options. */
typedef struct tern_graph_options {
    bool no_plan;   /* every result keeps its own memory; else results that are used only inside
                     * the recording share memory when they are not needed at the same time */
    bool no_fusion; /* every operation is a launch of its own; else successive elementwise
                     * operations are fused into one launch (TERN_FUSE=0 turns that off too) */
    bool check;     /* replay twice, as recorded and with memory planned and operations fused, and
                 * fail with TERN_ERR_STATE if a bit of a tensor that outlives the replay
                 * differs; the debug mode (tern/debug.h) does so too */
    uint64_t reserved[4];
} tern_graph_options;
/* Returns the default options, as TERN_DEFAULTS takes them. */
TERN_API tern_graph_options tern_graph_defaults(void);
/* Does the same with options; NULL: the defaults. */
TERN_API tern_graph *tern_graph_new_with(const char *device, const tern_graph_options *options);
/* Frees the graph; its tensors stay valid. NULL is fine. */
TERN_API void tern_graph_free(tern_graph *graph);

/* Begins a recording; TERN_CAPTURE begins and ends one. A thread records one graph at a time.
 * Errors: TERN_ERR_STATE for a graph that has a recording already (tern_graph_reset empties it). */
TERN_API tern_status tern_graph_capture_begin(tern_graph *graph);
/* Ends the recording. If the recording failed it returns that error, and the graph is empty. */
TERN_API tern_status tern_graph_capture_end(tern_graph *graph);
/* Returns whether this thread is recording (torch.cuda.is_current_stream_capturing). */
TERN_API bool tern_is_capturing(void);

/* Runs the recording after all commands that were launched before; does not wait for it. */
TERN_API tern_status tern_graph_replay(tern_graph *graph);
/* Removes the recording, so that the graph is empty again. */
TERN_API tern_status tern_graph_reset(tern_graph *graph);
/* Returns the number of launches, copies and parts of collectives in a replay; 0 for an empty
 * graph. */
TERN_API int64_t tern_graph_size(const tern_graph *graph);
/* Returns a text about the recording: the operations that were fused ("add+gelu"), launches that
 * run side by side as one ("layer_norm_sums x 9"), the bytes of memory traffic that this saves in a
 * replay, elementwise operations that were not fused and why, and the memory that the plan saves.
 * The caller frees it with tern_free_text; NULL after an error. */
TERN_API char *tern_graph_text(const tern_graph *graph);

/* ---- blocks: TERN_CAPTURE(graph) { ... } --------------------------------------------------------
 * Leaving the block in any way ends the recording. If the recording cannot begin, the error is
 * recorded and the block is skipped; the code after TERN_CAPTURE_HERE(graph); runs without being
 * recorded. */
typedef struct tern_capture_block {
    int active;
    tern_graph *graph;
} tern_capture_block;
/* Opens the block of TERN_CAPTURE; bindings of other languages call it. */
TERN_API tern_capture_block tern_capture_block_enter(tern_graph *graph);
/* Ends the recording. */
TERN_API void tern_capture_block_leave(tern_capture_block *block);

#define TERN_CAPTURE(graph)                                                                        \
    TERN_BLOCK_IF_(tern_capture_block, tern_capture_block_enter(graph), tern_capture_block_leave)
#define TERN_CAPTURE_HERE(graph)                                                                   \
    TERN_HERE_(tern_capture_block, tern_capture_block_enter(graph), tern_capture_block_leave)

/* ---- state that outlives a step -----------------------------------------------------------------
 * TERN_UNRECORDED { ... } inside a recording runs its code at once and only once, not in replays,
 * and on memory that does not belong to the graph. Optimizers create their states in it in their
 * first step. Outside of a recording it is an ordinary block. */
typedef struct tern_unrecorded_block {
    int active;
    tern_graph *graph;
} tern_unrecorded_block;
/* Opens the block of TERN_UNRECORDED. */
TERN_API tern_unrecorded_block tern_unrecorded_block_enter(void);
/* Closes the block; the recording continues. */
TERN_API void tern_unrecorded_block_leave(tern_unrecorded_block *block);

#define TERN_UNRECORDED                                                                            \
    TERN_BLOCK_(tern_unrecorded_block, tern_unrecorded_block_enter(), tern_unrecorded_block_leave)
#define TERN_UNRECORDED_HERE                                                                       \
    TERN_HERE_(tern_unrecorded_block, tern_unrecorded_block_enter(), tern_unrecorded_block_leave)

/* While this thread records, registers refresh(user), which is called before each replay of the
 * graph, once even if it was registered several times, until tern_graph_forget(user). Outside of a
 * recording it does nothing. */
TERN_API tern_status tern_graph_on_replay(tern_status (*refresh)(void *user), void *user);
/* Removes the functions that were registered with this user from all graphs. */
TERN_API void tern_graph_forget(const void *user);

TERN_END_DECLS
#endif
