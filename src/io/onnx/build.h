/* build.h -- internals of building an onnx_graph from its message: finding values by name, and
 * deciding which of them are members of the module. */
#ifndef TERN_IO_ONNX_BUILD_H
#define TERN_IO_ONNX_BUILD_H
#include "base/keys.h"
#include "io/onnx/graph.h"

/* How nodes use a value (bits of onnx_builder.uses). */
enum { ONNX_IS_USED = 1, ONNX_IS_STATISTICS = 2, ONNX_IS_WEIGHT = 4 };

typedef struct onnx_builder {
    onnx_graph *g;
    tern_module *module;
    int *table; /* hash table of `size` entries: a value's index plus 1, or 0 if empty */
    size_t size;
    onnx_body *body;  /* body that is being built */
    int first;        /* first value of that body; values before it belong to the enclosing
                         bodies */
    int *last;        /* for each value, the last node that reads it */
    uint8_t *uses;    /* for each value, ONNX_IS_ bits */
    onnx_slot *slots; /* for each value, empty except while onnx_fold runs */
    tern_keys paths;  /* paths of members, with the index of the value */
    bool has_weights; /* an initializer is a parameter */
} onnx_builder;

/* Returns the value of that name in the innermost body that defines it, or -1. */
int onnx_find_value(const onnx_builder *b, const char *name);
/* Makes the initializers of a body, whose values start at `first`, and its Constant nodes
 * parameters and buffers of the module, or constants (members.c). */
tern_status onnx_add_members(onnx_builder *b, const Onnx__GraphProto *proto, int first);
/* Returns the tensor in a Constant node if it could be a parameter: floating point, with more than
 * one element. Returns NULL otherwise. */
Onnx__TensorProto *onnx_weight_in(const onnx_graph *g, const Onnx__NodeProto *p);

#endif
