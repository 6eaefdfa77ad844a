/* export.h -- internals of ONNX export: the nodes and names of the graph, and the functions that
 * write each operation of a traced module. */
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
}; /* limits of a node that is written */

/* A growing array of messages. */
typedef struct onnx_list {
    void **items;
    size_t n, capacity;
} onnx_list;

/* An initializer or the tensor of a constant. */
typedef struct onnx_weight {
    Onnx__TensorProto *proto;
    tern_tensor *tensor; /* owned by the trace or by the current scope */
    bool is_inside;      /* stored in the model even if other weights are in a separate file */
} onnx_weight;

/* A node with the arrays that it points to. */
typedef struct onnx_emitted {
    Onnx__NodeProto node;
    char *outputs[ONNX_OUTPUTS];
    Onnx__AttributeProto *attributes[ONNX_ATTRIBUTES];
} onnx_emitted;

typedef struct onnx_export {
    const char *path;
    tern_module *module;
    /* The trace of the module, and one with another batch size. other_batch is 0 if sizes are
     * fixed. */
    tern_tracing trace, other;
    int64_t batch, other_batch;
    const char **names;  /* names of the trace's values, NULL until set */
    const char **wanted; /* names that outputs of the graph must have, or NULL */
    tern_keys taken;     /* all names in use */
    void *chunks;        /* allocated memory of messages and names */
    size_t left;
    onnx_list nodes, initializers, weights;
    Onnx__NodeProto *last;
    size_t begun;                 /* number of nodes before those of the current call */
    const tern_traced_call *call; /* call that is being written */
    const char *batch_name;       /* vector that holds the batch size, or NULL */
    int numbers;                  /* counter for generated names */
    bool varies;                  /* an attribute of the current call depends on the batch size */
    tern_status status;           /* first failure */
    onnx_emitted spare;           /* written to after a failed allocation */
    Onnx__AttributeProto spare_attribute;
} onnx_export;

/* Writes the nodes of a traced call and sets the names of its results with onnx_result or
 * onnx_done. */
typedef tern_status (*onnx_writer)(onnx_export *w, const tern_traced_call *c);

/* ---- messages (export_graph.c) --------------------------------------------------------------- */
/* Returns zeroed memory that lives until the end of the export, or NULL after a failure, which
 * w->status records. */
void *onnx_alloc(onnx_export *w, size_t bytes);
char *onnx_text(onnx_export *w, const char *format, ...) TERN_PRINTF_(2, 3);
/* Returns a name that no other value has: `text`, with a number appended if it is taken. Returns
 * NULL after an error. */
const char *onnx_unique(onnx_export *w, const char *text);
void onnx_append(onnx_export *w, onnx_list *list, void *item);
/* Adds a node with n inputs (NULL: omitted) and one result. Returns the name of the result. */
const char *onnx_emit(onnx_export *w, const char *type, const char *const *in, int n);
#define ONNX_EMIT(w, type, ...)                                                                    \
    onnx_emit(w, type, (const char *[]){__VA_ARGS__},                                              \
              (int)(sizeof(const char *[]){__VA_ARGS__} / sizeof(const char *)))
/* Adds another result to the last node and returns its name. */
const char *onnx_another(onnx_export *w);
/* Add an attribute to the last node. */
void onnx_put_int(onnx_export *w, const char *name, int64_t value);
void onnx_put_ints(onnx_export *w, const char *name, const int64_t *list, int n);
void onnx_put_real(onnx_export *w, const char *name, double value);
void onnx_put_text(onnx_export *w, const char *name, const char *text);
/* Adds a list that consists of one text. */
void onnx_put_texts(onnx_export *w, const char *name, const char *text);
/* Return the name of a constant: a vector of int64, or a scalar of a dtype. */
const char *onnx_ints_of(onnx_export *w, const int64_t *list, int n);
const char *onnx_number(onnx_export *w, double value, tern_dtype dtype);
/* Adds a tensor as an initializer with a name from onnx_unique, or as a constant. x must live until
 * the end of the export. */
const char *onnx_initializer(onnx_export *w, const char *name, tern_tensor *x);
const char *onnx_constant_of(onnx_export *w, tern_tensor *x);

/* ---- values (export_graph.c) ----------------------------------------------------------------- */
/* Returns the name of a value, which becomes a constant or an initializer if it has no name yet.
 * Returns NULL for -1. */
const char *onnx_value_name(onnx_export *w, int value);
/* Returns the name of input i of the call, or NULL if it is omitted. */
const char *onnx_in_name(onnx_export *w, int i);
/* Makes the value `name` result k of the call. */
tern_status onnx_result(onnx_export *w, int k, const char *name);
/* Returns whether result k of the call is used. */
bool onnx_is_used(const onnx_export *w, int k);
/* Makes the value `name` result 0 of the call. */
tern_status onnx_done(onnx_export *w, const char *name);
tern_shape onnx_in_shape(const onnx_export *w, int i);
tern_shape onnx_out_shape(const onnx_export *w, int k);
tern_dtype onnx_in_dtype(const onnx_export *w, int i);
bool onnx_has(const onnx_export *w, int i);
/* Returns whether size d of a value depends on the batch size. */
bool onnx_is_dynamic(const onnx_export *w, int value, int d);
/* Returns a vector of the sizes of a value. If only one size depends on the batch and `infer` is
 * true, that size is -1. */
const char *onnx_sizes(onnx_export *w, int value, bool infer);
/* Returns x reshaped to the shape of `value`. */
const char *onnx_reshape_to(onnx_export *w, const char *x, int value);

/* ---- attributes of the call (export_graph.c) ------------------------------------------------- */
/* Each of these sets w->varies if the attribute depends on the batch size. */
int64_t onnx_attr(onnx_export *w, const char *name);
int onnx_attr_list(onnx_export *w, const char *name, int64_t list[TERN_MAX_DIMS]);
double onnx_attr_number(onnx_export *w, const char *name);
/* Returns the path of the module that made the call, or "" if there is none or it no longer
 * exists. */
const char *onnx_path_of_call(onnx_export *w);
/* Fails with TERN_ERR_UNSUPPORTED and a message with the operation and the path of the module. */
tern_status onnx_cannot(onnx_export *w, const char *why);

/* ---- the file (export_file.c) ---------------------------------------------------------------- */
/* Writes the model. Large weights go to a separate file if `beside` is true or one file can't hold
 * all weights. */
tern_status onnx_write_model(onnx_export *w, Onnx__GraphProto *graph, bool beside);
void onnx_free_export(onnx_export *w);

/* ---- operations ------------------------------------------------------------------------------ */
/* Returns the function that writes a call, or NULL if there is none (export_ops.c). */
onnx_writer onnx_find_writer(const onnx_export *w, const tern_traced_call *c);
#define WRITER(NAME, function)                                                                     \
    tern_status onnx_write_##function(onnx_export *w, const tern_traced_call *c);
#include "io/onnx/export.def"
#undef WRITER
/* Returns the formula of an elementwise operation, or NULL if there is none (export_formula.c).
 * `whole` selects the formula for integers. */
const char *onnx_find_formula(const char *name, bool whole);
tern_status onnx_write_formula(onnx_export *w, const tern_traced_call *c);

#endif
