/* build.h -- what builds a graph from its message: values by name, and which of them are members of
 * the module. */
#ifndef TERN_IO_ONNX_BUILD_H
#define TERN_IO_ONNX_BUILD_H
#include "base/keys.h"
#include "io/onnx/graph.h"

/* What nodes make of a value (onnx_builder.uses). */
enum { ONNX_IS_USED = 1, ONNX_IS_STATISTICS = 2, ONNX_IS_WEIGHT = 4 };

typedef struct onnx_builder {
    onnx_graph *g;
    tern_module *module;
    int *table; /* of `size`: a value and one more, 0 where none is */
    size_t size;
    onnx_body *body;  /* that is being built */
    int first;        /* its first value: names before are those of bodies around it */
    int *last;        /* of each value the node that reads it last */
    uint8_t *uses;    /* of each value */
    onnx_slot *slots; /* of each value, empty between nodes */
    tern_keys paths;  /* of members: which value */
    bool has_weights; /* some initializer is a parameter */
} onnx_builder;

/* The value of a name, of the innermost body that has it; -1: there is none. */
int onnx_find_value(const onnx_builder *b, const char *name);
/* Initializers, whose values begin at first, and Constant nodes of a body: parameters and buffers
 * of the module, or constants (members.c). */
tern_status onnx_add_members(onnx_builder *b, const Onnx__GraphProto *proto, int first);
/* The tensor of reals, of more than one, that a Constant node holds; NULL: it is none. */
Onnx__TensorProto *onnx_weight_in(const onnx_graph *g, const Onnx__NodeProto *p);

#endif
