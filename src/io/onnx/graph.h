/* graph.h -- an ONNX graph as it is run: values by number, nodes in order. */
#ifndef TERN_IO_ONNX_GRAPH_H
#define TERN_IO_ONNX_GRAPH_H
#include "io/onnx/protobuf.h"
#include <tern/tern.h>

enum { ONNX_DIMS = 64 }; /* most integers of a list that an operation reads */

typedef struct onnx_graph onnx_graph;

/* A node while it runs. in: NULL where an input is left out. out: of the scope that runs. */
typedef struct onnx_call {
    const Onnx__NodeProto *proto;
    tern_tensor **in, **out;
    int n_in, n_out;
    int64_t opset;
    bool training;
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
} onnx_operation;

/* The operation of that name in the default domain; NULL: tern has none. */
const onnx_operation *onnx_find_operation(const char *name);

typedef enum onnx_source { ONNX_COMPUTED, ONNX_INPUT, ONNX_MEMBER, ONNX_CONSTANT } onnx_source;

typedef struct onnx_value {
    const char *name; /* of the model's */
    onnx_source source;
    bool is_buffer;
    char *path;            /* of a member */
    tern_tensor *constant; /* kept */
    int input;             /* which of the module's */
    int last_use;          /* node */
} onnx_value;

typedef struct onnx_node {
    const Onnx__NodeProto *proto;
    const onnx_operation *operation;
    int *in, *out; /* values, -1 where left out */
} onnx_node;

struct onnx_graph {
    onnx_budget budget;
    Onnx__ModelProto *model;
    char *path;
    int64_t opset;
    onnx_value *values;
    onnx_node *nodes;
    int n_values, n_nodes, n_inputs, n_outputs;
    int *outputs;
};

/* Runs graph, the data of module. */
tern_status onnx_run(tern_module *module, tern_tensor *const *in, int n, tern_tensor **out, int k);
void onnx_free_graph(void *graph);
/* The tensor that a TensorProto holds, on the cpu, of the scope; raw bytes of external data come
 * from a file beside path. */
tern_tensor *onnx_tensor(const Onnx__TensorProto *proto, const char *path);
/* The dtype of a data_type; 0 and TERN_ERR_DTYPE that names what has it. */
tern_dtype onnx_dtype(int64_t data_type, const char *what);
/* The other way round; 0: there is none. */
int onnx_type_of(tern_dtype dtype);

/* ---- what operations read -------------------------------------------------------------------- */
#define ONNX_FAIL(c, status, ...) onnx_fail(c, status, __VA_ARGS__)
tern_status onnx_fail(const onnx_call *c, tern_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
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
/* axis with negative ones counted from the end; more than dims where it is beyond them. */
int onnx_axis(int64_t axis, int dims);

#endif
