/* graph.h -- an ONNX graph as it is run: values by number, nodes in order. */
#ifndef TERN_IO_ONNX_GRAPH_H
#define TERN_IO_ONNX_GRAPH_H
#include "io/onnx/protobuf.h"
#include "base/lock.h"
#include <tern/tern.h>

enum { ONNX_DIMS = 64 }; /* most integers of a list that an operation reads */

typedef struct onnx_graph onnx_graph;
typedef struct onnx_node onnx_node;
typedef struct onnx_body onnx_body;
typedef struct onnx_running onnx_running;

/* A sequence of tensors, each by a reference. It does not change; who holds one has a reference. */
typedef struct onnx_sequence {
    int refs, n;
    tern_tensor *items[];
} onnx_sequence;

/* A value while the graph runs: a tensor or a sequence. */
typedef struct onnx_slot {
    tern_tensor *x;
    onnx_sequence *list;
} onnx_slot;

/* A node while it runs. in: NULL where an input is left out, or is a sequence. out: of the scope
 * that runs. */
typedef struct onnx_call {
    const Onnx__NodeProto *proto;
    tern_tensor **in, **out;
    onnx_sequence **lists_in, **lists_out; /* likewise; lists_out: references that the node gives */
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
    onnx_unary unary; /* one of these three */
    onnx_binary binary;
    onnx_function run;
    uint32_t on_host; /* bit i: input i is read by the host: sizes, axes, numbers */
    bool microsoft;   /* of the domain com.microsoft, not of the default one */
    bool keeps;       /* keeps what it derives of inputs while these stay (onnx_add_derived) */
} onnx_operation;

/* The operation of that name and domain; NULL: tern has none. */
const onnx_operation *onnx_find_operation(const char *domain, const char *name);

typedef enum onnx_source { ONNX_COMPUTED, ONNX_INPUT, ONNX_MEMBER, ONNX_CONSTANT } onnx_source;

/* What a value or a node's results are computed of. Constants and members of the module may be read
 * by what is of members, constants alone by what is of constants. */
typedef enum onnx_origin { ONNX_OF_INPUTS, ONNX_OF_MEMBERS, ONNX_OF_CONSTANTS } onnx_origin;

typedef struct onnx_value {
    const char *name; /* of the model's */
    onnx_source source;
    bool is_buffer;
    char *path;            /* of a member */
    tern_tensor *constant; /* kept */
    int input;             /* which of the module's */
    int n_same;            /* further members that would have its path */
    const onnx_body *body;
    onnx_origin origin; /* of a computed one */
    bool is_watched;    /* a member that a node of members reads */
} onnx_value;

struct onnx_node {
    const Onnx__NodeProto *proto;
    const onnx_operation *operation;
    int *in, *out; /* values, -1 where left out */
    int *dead;     /* values of its body that nobody reads after it */
    int n_dead, n_bodies;
    onnx_body *bodies; /* graphs among its attributes, in their order */
    int derived;       /* first of the values, one for each input, that its operation makes of these
                    alone; -1: it makes none */
    onnx_origin origin; /* results that are not of inputs are kept (kept.c) */
};

/* Nodes in their order, with what comes in and what goes out: the graph, or one among the
 * attributes of a node. Its nodes read values of the bodies around it too. */
struct onnx_body {
    const Onnx__GraphProto *proto;
    onnx_node *nodes;
    int *inputs, *outputs;
    int n_nodes, n_inputs, n_outputs;
};

/* A member that results were kept of: x, by a reference, as it was at that version. */
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
    onnx_value *values; /* of all bodies */
    int n_values;
    onnx_body body;
    tern_tensor **kept; /* one for each value: results of nodes that are not of inputs, once they
                           were computed */
    onnx_watched *watched;
    int n_watched;
    uint64_t replays;    /* of graphs, when results of members were kept first */
    uint64_t generation; /* raised when what is kept of members is dropped */
    tern_mutex lock;     /* of what is kept and watched */
};

/* One call of the module. */
struct onnx_running {
    tern_module *module;
    onnx_graph *graph;
    onnx_slot *slots; /* one for each value; computed ones hold a reference */
    bool training;
    int64_t turns; /* of loops, so far */
    /* What this call keeps and takes: nothing; of constants; of members too, if the generation is
     * this. */
    onnx_origin keeps;
    uint64_t generation;
    tern_tensor **taken; /* one for each value: what is kept, and this call has its part in, also
                            once it is no longer kept */
    bool is_recorded; /* what it computes has no values before a replay: it takes, and keeps none */
};

/* Runs graph, the data of module. */
tern_status onnx_run(tern_module *module, tern_tensor *const *in, int n, tern_tensor **out, int k);
void onnx_free_graph(void *graph);
/* Builds the bodies, values and members of module from g->model (build.c). */
tern_status onnx_build(tern_module *module, onnx_graph *g);
void onnx_free_body(onnx_body *body);
void onnx_free_node(onnx_node *node);
/* Runs a body whose inputs are in[n], each by a reference of the caller's; out[k]: references that
 * the caller gets. */
tern_status onnx_run_body(onnx_running *r, const onnx_body *body, const onnx_slot *in, int n,
                          onnx_slot *out, int k);
/* A node begins a turn of a body that it runs again and again. Turns of all such nodes of a call
 * are counted, so that a small file can't keep a program for years (control.c). */
tern_status onnx_count_turn(const onnx_call *c);
/* Runs a node of constants alone when a model is loaded: its results are constants. slots: of all
 * values, empty. */
tern_status onnx_fold(onnx_graph *g, const onnx_node *node, onnx_slot *slots);
/* The reference is another one, or is given back; nothing of an empty slot. */
onnx_slot onnx_hold(onnx_slot slot);
void onnx_drop(onnx_slot *slot);
/* What a node's results are of, and that this is noted (kept.c). */
onnx_origin onnx_origin_of(const onnx_graph *g, const onnx_node *node);
void onnx_set_origin(onnx_graph *g, onnx_node *node, onnx_origin origin);
/* All nodes are there: list the members to watch. */
tern_status onnx_watch(onnx_graph *g);
/* A call of in[n] begins, whose members are in r->slots. */
void onnx_kept_begin(onnx_running *r, tern_tensor *const *in, int n);
/* The node's results are in slots: whether they were kept. */
bool onnx_kept_take(onnx_running *r, const onnx_node *node);
/* The node's results, in slots, are kept where the call keeps such. */
void onnx_kept_give(onnx_running *r, const onnx_node *node);
/* What make(input i, how) is, kept as results of nodes are where the node has derived values. */
typedef tern_tensor *(*onnx_derivation)(tern_tensor *x, const void *how);
tern_tensor *onnx_derived(const onnx_call *c, int i, onnx_derivation make, const void *how);
/* Whether input i is left out, or the same in every call. */
bool onnx_is_constant(const onnx_call *c, int i);
/* The node has values that are derived of its inputs. */
void onnx_add_derived(onnx_graph *g, const onnx_body *body, onnx_node *node);
void onnx_kept_free(onnx_graph *g);
/* The tensor that a TensorProto holds, on the cpu, of the scope; raw bytes of external data come
 * from a file beside path. */
tern_tensor *onnx_tensor(const Onnx__TensorProto *proto, const char *path);
/* The dtype of a data_type; 0 and TERN_ERR_DTYPE that names what has it. */
tern_dtype onnx_dtype(int64_t data_type, const char *what);
/* The other way round; 0: there is none. */
int onnx_type_of(tern_dtype dtype);

/* The graph of a node's attribute; NULL and an error: there is none. */
const onnx_body *onnx_body_of(const onnx_call *c, const char *name);

/* ---- what operations read -------------------------------------------------------------------- */
#define ONNX_FAIL(c, status, ...) onnx_fail(c, status, __VA_ARGS__)
tern_status onnx_fail(const onnx_call *c, tern_status status, const char *format, ...)
    TERN_PRINTF_(3, 4);
const Onnx__AttributeProto *onnx_attribute(const onnx_call *c, const char *name);
int64_t onnx_int(const onnx_call *c, const char *name, int64_t otherwise);
double onnx_real(const onnx_call *c, const char *name, double otherwise);
/* Whether the text attribute is `text`; `otherwise` where it is not there. */
bool onnx_text_is(const onnx_call *c, const char *name, const char *text, bool otherwise);
/* A list of integers of an attribute: how many, or -1 where it is not there or too long. */
int onnx_ints(const onnx_call *c, const char *name, int64_t list[ONNX_DIMS]);
/* Of input i, which is read by the host: how many, -1 where it is left out, -2 after an error. */
int onnx_input_ints(const onnx_call *c, int i, int64_t list[ONNX_DIMS]);
int onnx_input_reals(const onnx_call *c, int i, double list[ONNX_DIMS]);
/* Of an attribute up to some opset, of input i since. */
int onnx_axes(const onnx_call *c, const char *name, int i, int64_t list[ONNX_DIMS]);
/* Input i, NULL where it is left out. */
tern_tensor *onnx_in(const onnx_call *c, int i);
/* TERN_OK, with out[0], or why there is none. */
tern_status onnx_give(onnx_call *c, tern_tensor *y);
/* The convolution of a Conv or a ConvInteger, by the attributes of the node. */
tern_tensor *onnx_convolve(onnx_call *c, tern_tensor *x, tern_tensor *weight, tern_tensor *bias);
/* Up to operator set 6: the operands broadcast as numpy's do from now on; the data_type that an
 * attribute names (old_sets.c). */
tern_status onnx_align(onnx_call *c);
int64_t onnx_type_in(const onnx_call *c, const char *name);
/* axis with negative ones counted from the end; more than dims where it is beyond them. */
int onnx_axis(int64_t axis, int dims);

#endif
