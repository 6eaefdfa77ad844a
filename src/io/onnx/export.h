/* export.h -- a traced module as an ONNX graph: nodes, names of values, and what is written for
 * each operation. */
#ifndef TERN_IO_ONNX_EXPORT_H
#define TERN_IO_ONNX_EXPORT_H
#include "base/keys.h"
#include "io/onnx/graph.h"
#include "tensor/trace.h"
#include <tern/tern.h>

enum {
    ONNX_OPSET = 20,
    ONNX_OUTPUTS = 4,
    ONNX_ATTRIBUTES = 10
}; /* most of a node that is written */

/* A list of messages that grows. */
typedef struct onnx_list {
    void **items;
    size_t n, capacity;
} onnx_list;

/* An initializer, or a constant's tensor, and what it holds. */
typedef struct onnx_weight {
    Onnx__TensorProto *proto;
    tern_tensor *tensor; /* the trace's, or of the scope */
    bool is_inside;      /* it is in the model also where others are in a file beside it */
} onnx_weight;

/* A node with what it points to. */
typedef struct onnx_emitted {
    Onnx__NodeProto node;
    char *outputs[ONNX_OUTPUTS];
    Onnx__AttributeProto *attributes[ONNX_ATTRIBUTES];
} onnx_emitted;

typedef struct onnx_export {
    const char *path;
    tern_module *module;
    /* What the module did, and did with a batch of another size; other_batch is 0 where sizes are
     * fixed. */
    tern_tracing trace, other;
    int64_t batch, other_batch;
    const char **names;  /* of the trace's values; NULL: none yet */
    const char **wanted; /* the names that outputs of the graph are to have; NULL */
    tern_keys taken;     /* all names */
    void *chunks;        /* memory of messages and names */
    size_t left;
    onnx_list nodes, initializers, weights;
    Onnx__NodeProto *last;
    size_t begun;                 /* nodes that there were before the call that is being written */
    const tern_traced_call *call; /* that is being written */
    const char *batch_name;       /* of a vector of the batch's size; NULL: none yet */
    int numbers;                  /* for names */
    bool varies;                  /* something of the call follows the size of the batch */
    tern_status status;           /* the first failure */
    onnx_emitted spare;           /* what is written to after an allocation failed */
    Onnx__AttributeProto spare_attribute;
} onnx_export;

/* What writes a call: its results get names by onnx_give. */
typedef tern_status (*onnx_writer)(onnx_export *w, const tern_traced_call *c);

/* ---- messages (export_graph.c) --------------------------------------------------------------- */
/* Zeroed memory until the end; NULL after a failure, which w->status keeps. */
void *onnx_alloc(onnx_export *w, size_t bytes);
char *onnx_text(onnx_export *w, const char *format, ...) TERN_PRINTF_(2, 3);
/* Takes a name of its own: text, or that with a number; NULL after an error. */
const char *onnx_unique(onnx_export *w, const char *text);
void onnx_append(onnx_export *w, onnx_list *list, void *item);
/* A node of a type with n inputs (NULL: left out) and a result, whose name this is. */
const char *onnx_emit(onnx_export *w, const char *type, const char *const *in, int n);
#define ONNX_EMIT(w, type, ...)                                                                    \
    onnx_emit(w, type, (const char *[]){__VA_ARGS__},                                              \
              (int)(sizeof(const char *[]){__VA_ARGS__} / sizeof(const char *)))
/* One more result of the last node. */
const char *onnx_another(onnx_export *w);
/* Attributes of the last node. */
void onnx_put_int(onnx_export *w, const char *name, int64_t value);
void onnx_put_ints(onnx_export *w, const char *name, const int64_t *list, int n);
void onnx_put_real(onnx_export *w, const char *name, double value);
void onnx_put_text(onnx_export *w, const char *name, const char *text);
/* A list of one text. */
void onnx_put_texts(onnx_export *w, const char *name, const char *text);
/* Constants: a vector of int64, a number of a type (of one dim of size 1 where is_vector). */
const char *onnx_ints_of(onnx_export *w, const int64_t *list, int n);
const char *onnx_number(onnx_export *w, double value, tern_dtype dtype);
/* A tensor under a name that is taken; any other constant. x is there until the end. */
const char *onnx_initializer(onnx_export *w, const char *name, tern_tensor *x);
const char *onnx_constant_of(onnx_export *w, tern_tensor *x);

/* ---- values (export_graph.c) ----------------------------------------------------------------- */
/* Name of a value: a constant's where it has none yet; NULL for -1. */
const char *onnx_value_name(onnx_export *w, int value);
/* Name of input i; NULL where it is left out. */
const char *onnx_in_name(onnx_export *w, int i);
/* Result k of the call is the value of that name. */
tern_status onnx_result(onnx_export *w, int k, const char *name);
/* Whether something needs result k. */
bool onnx_is_used(const onnx_export *w, int k);
/* Result 0. */
tern_status onnx_done(onnx_export *w, const char *name);
tern_shape onnx_in_shape(const onnx_export *w, int i);
tern_shape onnx_out_shape(const onnx_export *w, int k);
tern_dtype onnx_in_dtype(const onnx_export *w, int i);
bool onnx_has(const onnx_export *w, int i);
/* Whether a size of a value follows the batch. */
bool onnx_is_dynamic(const onnx_export *w, int value, int d);
/* A vector of the sizes of a value. A size of the batch's is -1 where it is the only one and
 * `infer`. */
const char *onnx_sizes(onnx_export *w, int value, bool infer);
/* x as the shape of value. */
const char *onnx_reshape_to(onnx_export *w, const char *x, int value);

/* ---- attributes of the call (export_graph.c) ------------------------------------------------- */
/* Those that follow the batch set w->varies. */
int64_t onnx_attr(onnx_export *w, const char *name);
int onnx_attr_list(onnx_export *w, const char *name, int64_t list[TERN_MAX_DIMS]);
double onnx_attr_number(onnx_export *w, const char *name);
/* The path of the module that made the call, "" where there is none or it is gone. */
const char *onnx_path_of_call(onnx_export *w);
/* TERN_ERR_UNSUPPORTED that names the operation and the module's path. */
tern_status onnx_cannot(onnx_export *w, const char *why);

/* ---- the file (export_file.c) ---------------------------------------------------------------- */
/* The graph with its weights, large ones beside it if asked for, or if all are too many for one
 * file. */
tern_status onnx_write_model(onnx_export *w, Onnx__GraphProto *graph, bool beside);
void onnx_free_export(onnx_export *w);

/* ---- operations ------------------------------------------------------------------------------ */
/* What writes an operation of that name, NULL: nothing does (export_ops.c). */
onnx_writer onnx_find_writer(const onnx_export *w, const tern_traced_call *c);
#define WRITER(NAME, function)                                                                     \
    tern_status onnx_write_##function(onnx_export *w, const tern_traced_call *c);
#include "io/onnx/export.def"
#undef WRITER
/* The formula of an elementwise operation; NULL: none (export_formula.c). */
const char *onnx_find_formula(const char *name, bool whole);
tern_status onnx_write_formula(onnx_export *w, const tern_traced_call *c);

#endif
