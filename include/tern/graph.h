/* graph.h -- work recorded once and replayed without the host's part of it.
 *
 *   tern_graph *graph = tern_graph_new("cuda:0");        torch.cuda.CUDAGraph
 *   TERN_CAPTURE(graph) { loss = tern_keep(training_step(model, optimizer, x, y)); }
 *   for (...) {
 *       tern_copy_(x, next_x), tern_copy_(y, next_y);    written where the step reads
 *       tern_graph_replay(graph);
 *   }
 *
 * Inside the block operations of this thread on the graph's device are recorded and do not run;
 * their results hold no values before the first replay. A replay runs them all again, in order, on
 * the same memory: a CUDA graph on "cuda", a list of prepared launches elsewhere, with the same
 * results. What changes from step to step lives on the device and goes on from replay to replay as
 * it would have without the graph: random numbers, the optimizer's step count, the loss scale. An
 * optimizer's options (the learning rate of a scheduler) are looked up at each replay.
 *
 * Memory: what is made inside the block comes from the graph's own pool, and a tensor that is kept
 * beyond it has a new value after every replay. When the recording ends, all other results get
 * places in one piece of memory by when they are needed, and what nobody reads is not computed: a
 * TERN_SCOPE inside of the block, which gives them up before, is what makes a recording small.
 * Where that piece does not fit, the error of the end names how large it is, and the limit. Tensors
 * from outside that the block uses stay valid for the graph even when the program lets go of them.
 * Gradients: zero them (tern_optim_zero_grad) before the backward pass inside the block, so that
 * they are made there.
 *
 * Collectives between processes (tern/dist.h) are part of it: the replay stops there, and goes on
 * when all ranks have come.
 *
 * What needs a value on the host (tern_item, tern_nonzero, a branch on a result), data from another
 * device and tern_synchronize can't be recorded: they are errors that name the operation, and the
 * capture ends without a graph. What other threads do on the device meanwhile runs, and is not
 * recorded. Kernels of the user's own must live as long as the graph. */
#ifndef TERN_GRAPH_H
#define TERN_GRAPH_H
#include <tern/device.h>

TERN_BEGIN_DECLS

typedef struct tern_graph tern_graph;

/* An empty graph for a device (NULL: the default one); NULL after an error. The caller frees it. */
TERN_API tern_graph *tern_graph_new(const char *device);

/* How replays do what was recorded. The results are the same, bit for bit, whatever is chosen. */
typedef struct tern_graph_options {
    bool no_plan; /* each result stays where it was recorded; else those that nobody outside of the
                     recording sees share memory by when they are needed */
    bool no_fusion; /* each operation is a launch of its own; else elementwise ones that follow each
                       other are one, which TERN_FUSE=0 turns off too */
    bool check;     /* replay twice, as it was recorded and as it was planned, and fail with
                     TERN_ERR_STATE where a bit of what outlives the replay differs: what the debug
                     mode (tern/debug.h) does too */
    uint64_t reserved[4];
} tern_graph_options;
/* Returns the default options, as TERN_DEFAULTS takes them. */
TERN_API tern_graph_options tern_graph_defaults(void);
/* Does the same with options; NULL: the defaults. */
TERN_API tern_graph *tern_graph_new_with(const char *device, const tern_graph_options *options);
/* Its tensors stay valid. NULL is fine. */
TERN_API void tern_graph_free(tern_graph *graph);

/* Begin and end recording; TERN_CAPTURE does both. One graph at a time in a thread. A graph that
 * holds a recording refuses to begin another before tern_graph_reset. End gives the error that made
 * the recording unusable, if there was one: the graph is empty then. */
TERN_API tern_status tern_graph_capture_begin(tern_graph *graph);
/* Ends it, with the error that made the recording unusable. */
TERN_API tern_status tern_graph_capture_end(tern_graph *graph);
/* Whether this thread is recording (torch.cuda.is_current_stream_capturing). */
TERN_API bool tern_is_capturing(void);

/* Run what was recorded, behind everything launched before; does not wait for it. */
TERN_API tern_status tern_graph_replay(tern_graph *graph);
/* Make it empty again. */
TERN_API tern_status tern_graph_reset(tern_graph *graph);
/* How many launches, copies and parts of collectives a replay makes; 0 for an empty graph. */
TERN_API int64_t tern_graph_size(const tern_graph *graph);
/* What became of the recording, in lines of plain text: the commands that were fused ("add+gelu")
 * and the bytes that a replay does not move for it, elementwise ones that were not and why, and
 * what the plan of memory saves. New text, to be freed with tern_free_text; NULL after an error. */
TERN_API char *tern_graph_text(const tern_graph *graph);

/* ---- blocks: TERN_CAPTURE(graph) { ... } ----------------------------------------------------
 * Leaving it in any way ends the recording. Where the recording can't begin the error is recorded
 * and the block is passed over; what follows TERN_CAPTURE_HERE(graph); then runs unrecorded. */
typedef struct tern_capture_block {
    int active;
    tern_graph *graph;
} tern_capture_block;
/* Opens the block of TERN_CAPTURE, for other languages. */
TERN_API tern_capture_block tern_capture_block_enter(tern_graph *graph);
/* Ends the recording. */
TERN_API void tern_capture_block_leave(tern_capture_block *block);

#define TERN_CAPTURE(graph)                                                                        \
    TERN_BLOCK_IF_(tern_capture_block, tern_capture_block_enter(graph), tern_capture_block_leave)
#define TERN_CAPTURE_HERE(graph)                                                                   \
    TERN_HERE_(tern_capture_block, tern_capture_block_enter(graph), tern_capture_block_leave)

/* ---- state that outlives a step -------------------------------------------------------------
 * TERN_UNRECORDED { ... }: inside of a recording, run this at once, once, and not in replays, on
 * memory of the program's own: how an optimizer makes its moments in its first step. Else just a
 * block. */
typedef struct tern_unrecorded_block {
    int active;
    tern_graph *graph;
} tern_unrecorded_block;
/* Opens the block of TERN_UNRECORDED. */
TERN_API tern_unrecorded_block tern_unrecorded_block_enter(void);
/* The recording goes on. */
TERN_API void tern_unrecorded_block_leave(tern_unrecorded_block *block);

#define TERN_UNRECORDED                                                                            \
    TERN_BLOCK_(tern_unrecorded_block, tern_unrecorded_block_enter(), tern_unrecorded_block_leave)
#define TERN_UNRECORDED_HERE                                                                       \
    TERN_HERE_(tern_unrecorded_block, tern_unrecorded_block_enter(), tern_unrecorded_block_leave)

/* While this thread records: call refresh(user) before each replay of the graph, once however often
 * it is asked for, until user is forgotten. Else nothing. */
TERN_API tern_status tern_graph_on_replay(tern_status (*refresh)(void *user), void *user);
/* No graph calls a refresh with this user any more. */
TERN_API void tern_graph_forget(const void *user);

TERN_END_DECLS
#endif
