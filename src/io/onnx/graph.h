/* graph.h -- internals of ONNX graphs that run: numbered values, and nodes in the order in which
 * they run. */
#ifndef TERN_IO_ONNX_GRAPH_H
#define TERN_IO_ONNX_GRAPH_H
#include "io/onnx/protobuf.h"
#include "base/lock.h"
#include <tern/tern.h>

enum { ONNX_DIMS = 64 }; /* longest list of integers that an operation reads */

typedef struct onnx_graph onnx_graph;
typedef struct onnx_node onnx_node;
typedef struct onnx_body onnx_body;
typedef struct onnx_running onnx_running;

/* An immutable sequence of tensors. It has a reference count and holds a reference to each
 * tensor. */
typedef struct onnx_sequence {
    int refs, n;
    tern_tensor *items[];
} onnx_sequence;

/* The content of a value while the graph runs: a tensor or a sequence. */
typedef struct onnx_slot {
    tern_tensor *x;
    onnx_sequence *list;
} onnx_slot;

/* One execution of a node. in[i] is NULL if input i is omitted or is a sequence. The tensors in
 * `out` belong to the current scope. */
typedef struct onnx_call {
    const Onnx__NodeProto *proto;
    tern_tensor **in, **out;
    onnx_sequence **lists_in, **lists_out; /* sequences of inputs and outputs; the node hands over a
                                              reference for each in lists_out */
    int n_in, n_out;
    int64_t opset;
    bool training;
    onnx_running *running;
    const onnx_node *node;
} onnx_call;

typedef tern_status (*onnx_function)(onnx_call *c);
typedef tern_tensor *(*onnx_unary)(tern_tensor *x);
typedef tern_tensor *(*onnx_binary)(tern_tensor *x, tern_tensor *y);

typedef struct onnx_operation {
    const char *name;
    onnx_unary unary; /* one of unary, binary and run is set */
    onnx_binary binary;
    onnx_function run;
    uint32_t on_host; /* bit i: the host reads the values of input i, such as sizes or axes */
    bool microsoft;   /* operation of the domain com.microsoft, not of the default one */
    bool keeps;       /* it keeps tensors that it derives from its inputs until an input changes
                         (onnx_add_derived) */
} onnx_operation;

/* Returns the operation of that domain and name, or NULL if tern does not have it. */
const onnx_operation *onnx_find_operation(const char *domain, const char *name);

typedef enum onnx_source { ONNX_COMPUTED, ONNX_INPUT, ONNX_MEMBER, ONNX_CONSTANT } onnx_source;

/* What a value or the results of a node depend on: inputs of the model; members of the module and
 * constants; or constants only. */
typedef enum onnx_origin { ONNX_OF_INPUTS, ONNX_OF_MEMBERS, ONNX_OF_CONSTANTS } onnx_origin;

typedef struct onnx_value {
    const char *name; /* name in the model */
    onnx_source source;
    bool is_buffer;
    char *path;            /* path of a member in the module */
    tern_tensor *constant; /* tensor of a constant, by a reference */
    int input;             /* index of an input among the module's inputs */
    int n_same;            /* number of further members whose name would give the same path */
    const onnx_body *body;
    onnx_origin origin; /* what a computed value depends on */
    bool is_watched;    /* member that a node with results of ONNX_OF_MEMBERS reads */
} onnx_value;

struct onnx_node {
    const Onnx__NodeProto *proto;
    const onnx_operation *operation;
    int *in, *out; /* indices of values, -1 where omitted */
    int *dead;     /* values of its body that no later node reads */
    int n_dead, n_bodies;
    onnx_body *bodies;  /* graphs among its attributes, in their order */
    int derived;        /* first of the values, one for each input, that hold what the operation
                          derives from that input alone; -1 if there are none */
    onnx_origin origin; /* results that do not depend on inputs are kept between calls (kept.c) */
};

/* A list of nodes with inputs and outputs: the main graph, or a graph among the attributes of a
 * node, whose nodes can also read values of the enclosing bodies. */
struct onnx_body {
    const Onnx__GraphProto *proto;
    onnx_node *nodes;
    int *inputs, *outputs;
    int n_nodes, n_inputs, n_outputs;
};

/* A member that kept results depend on: its tensor x, by a reference, and the version of x at that
 * time. */
typedef struct onnx_watched {
    int value;
    tern_tensor *x;
    int64_t version;
} onnx_watched;

struct onnx_graph {
    onnx_budget budget;
    Onnx__ModelProto *model;
    char *path;
    int64_t opset;
    onnx_value *values; /* values of all bodies */
    int n_values;
    onnx_body body;
    tern_tensor **kept; /* one for each value: results of nodes that do not depend on inputs, NULL
                           until computed */
    onnx_watched *watched;
    int n_watched;
    uint64_t replays;    /* tern_storage_replays() when the results of members were first kept */
    uint64_t generation; /* incremented when kept results of members are dropped */
    tern_mutex lock;     /* guards kept, watched, replays and generation */
};

/* One call of the module. */
struct onnx_running {
    tern_module *module;
    onnx_graph *graph;
    onnx_slot *slots; /* one for each value; slots of computed values hold a reference */
    bool training;
    int64_t turns; /* iterations of all loops so far */
    /* Results that this call keeps and reuses: none (ONNX_OF_INPUTS), those of constants, or also
     * those of members, if the graph still has this generation. */
    onnx_origin keeps;
    uint64_t generation;
    tern_tensor **taken; /* one for each value: kept results that this call uses, by a reference, so
                            that they outlive their removal from the graph */
    bool is_recorded;    /* the call is being captured, so its results have no values yet: it reuses
                         kept results and keeps none */
};

/* Calls `module`, whose data is an onnx_graph. */
tern_status onnx_run(tern_module *module, tern_tensor *const *in, int n, tern_tensor **out, int k);
void onnx_free_graph(void *graph);
/* Builds the bodies and values of g and the members of `module` from g->model (build.c). */
tern_status onnx_build(tern_module *module, onnx_graph *g);
void onnx_free_body(onnx_body *body);
void onnx_free_node(onnx_node *node);
/* Runs a body with the inputs in[n], which the caller still owns. Sets out[k] to new references of
 * the caller. */
tern_status onnx_run_body(onnx_running *r, const onnx_body *body, const onnx_slot *in, int n,
                          onnx_slot *out, int k);
/* Counts one iteration of a loop body. The limit is on all loops of a call together, so that a
 * small file can't occupy a program for years (control.c). */
tern_status onnx_count_turn(const onnx_call *c);
/* Runs a node of constants when a model is loaded and makes its results constants. `slots` has an
 * empty slot for each value. */
tern_status onnx_fold(onnx_graph *g, const onnx_node *node, onnx_slot *slots);
/* Adds a reference to the tensor or sequence of a slot. An empty slot is allowed. */
onnx_slot onnx_hold(onnx_slot slot);
void onnx_drop(onnx_slot *slot);
/* Returns what the results of a node depend on (kept.c). */
onnx_origin onnx_origin_of(const onnx_graph *g, const onnx_node *node);
void onnx_set_origin(onnx_graph *g, onnx_node *node, onnx_origin origin);
/* Lists the members to watch, when the graph has all its nodes. */
tern_status onnx_watch(onnx_graph *g);
/* Decides what a call with inputs in[n] keeps and reuses. The slots of members must be set. */
void onnx_kept_begin(onnx_running *r, tern_tensor *const *in, int n);
/* Copies the kept results of a node to their slots. Returns false if they are not kept. */
bool onnx_kept_take(onnx_running *r, const onnx_node *node);
/* Keeps the results of a node, which are in their slots, if the call keeps such results. */
void onnx_kept_give(onnx_running *r, const onnx_node *node);
/* Returns make(input i, how), or the kept result of an earlier call. */
typedef tern_tensor *(*onnx_derivation)(tern_tensor *x, const void *how);
tern_tensor *onnx_derived(const onnx_call *c, int i, onnx_derivation make, const void *how);
/* Returns whether input i is omitted or depends on constants only. */
bool onnx_is_constant(const onnx_call *c, int i);
/* Adds the values that hold what a node derives from each of its inputs. */
void onnx_add_derived(onnx_graph *g, const onnx_body *body, onnx_node *node);
void onnx_kept_free(onnx_graph *g);
/* Returns the tensor of a TensorProto on the cpu, which belongs to the current scope. External data
 * is read from a file in the directory of `path`. */
tern_tensor *onnx_tensor(const Onnx__TensorProto *proto, const char *path);
/* Returns the dtype of a data_type, or 0 after TERN_ERR_DTYPE, whose message contains `what`. */
tern_dtype onnx_dtype(int64_t data_type, const char *what);
/* Returns the data_type of a dtype, or 0 if ONNX has none. */
int onnx_type_of(tern_dtype dtype);

/* Returns the graph in the node's attribute `name`, or NULL after an error. */
const onnx_body *onnx_body_of(const onnx_call *c, const char *name);

/* ---- attributes and inputs of a node --------------------------------------------------------- */
#define ONNX_FAIL(c, status, ...) onnx_fail(c, status, __VA_ARGS__)
tern_status onnx_fail(const onnx_call *c, tern_status status, const char *format, ...)
    TERN_PRINTF_(3, 4);
const Onnx__AttributeProto *onnx_attribute(const onnx_call *c, const char *name);
int64_t onnx_int(const onnx_call *c, const char *name, int64_t otherwise);
double onnx_real(const onnx_call *c, const char *name, double otherwise);
/* Returns whether the text attribute `name` equals `text`, or `otherwise` if the node does not have
 * it. */
bool onnx_text_is(const onnx_call *c, const char *name, const char *text, bool otherwise);
/* Reads an attribute that is a list of integers. Returns their number, or -1 if the attribute is
 * missing or too long. */
int onnx_ints(const onnx_call *c, const char *name, int64_t list[ONNX_DIMS]);
/* Reads the integers of input i on the host. Returns their number, -1 if the input is omitted, or
 * -2 after an error. */
int onnx_input_ints(const onnx_call *c, int i, int64_t list[ONNX_DIMS]);
int onnx_input_reals(const onnx_call *c, int i, double list[ONNX_DIMS]);
/* Reads input i if the node has it, and else the attribute `name`, which older operator sets
 * use. */
int onnx_axes(const onnx_call *c, const char *name, int i, int64_t list[ONNX_DIMS]);
/* Returns input i, or NULL if it is omitted. */
tern_tensor *onnx_in(const onnx_call *c, int i);
/* Sets out[0] to y. Returns TERN_OK, since the error of a NULL y has been recorded. */
tern_status onnx_give(onnx_call *c, tern_tensor *y);
/* Returns the convolution of a Conv or ConvInteger node. */
tern_tensor *onnx_convolve(onnx_call *c, tern_tensor *x, tern_tensor *weight, tern_tensor *bias);
/* Operator sets before 7 (old_sets.c): onnx_align expands the operands so that they broadcast as
 * numpy's do, onnx_type_in reads a data_type from an attribute. */
tern_status onnx_align(onnx_call *c);
int64_t onnx_type_in(const onnx_call *c, const char *name);
/* Returns `axis` counted from the front, or a number larger than `dims` if it is out of range. */
int onnx_axis(int64_t axis, int dims);

#endif
