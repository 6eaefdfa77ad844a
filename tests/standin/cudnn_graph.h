/* cudnn_graph.h -- what the stand-in's descriptors of cuDNN's backend API are, and what a graph of them becomes. */
#ifndef TERN_TESTS_STANDIN_CUDNN_GRAPH_H
#define TERN_TESTS_STANDIN_CUDNN_GRAPH_H
#include "cudnn_handle.h"

enum { BAD_PARAM = 2000, MISALIGNED = 2003, NOT_FINALIZED = 2002, ALLOCATION = 4003 };
enum { ATTRIBUTES = 16, MOST_STEPS = 32, MOST_TENSORS = 64, SCRATCH = 320, DIMS = 4 };

typedef struct attribute {
    cudnnBackendAttributeName_t name;
    int64_t n;
    _Alignas(8) char values[512];
} attribute;

typedef struct descriptor {
    cudnnBackendDescriptorType_t kind;
    bool finalized;
    int n;
    attribute attributes[ATTRIBUTES];
    struct program *program;  /* of a plan */
    bool refused;             /* of an engine's configuration: it makes no plan */
    struct descriptor *graph; /* of one too */
} descriptor;

typedef struct tensor {
    int64_t id, dims[DIMS], strides[DIMS], extent;
    bool is_matrix; /* three dims */
    cudnnDataType_t type;
    bool is_virtual, by_value;
} tensor;

typedef struct step {
    cudnnBackendDescriptorType_t kind;
    int64_t mode, axis;
    int operands[4]; /* x, b, t, y; -1: none */
} step;

typedef struct program {
    tensor tensors[MOST_TENSORS];
    step steps[MOST_STEPS];
    int n_tensors, n_steps;
} program;

/* cudnn_graph.c: attributes of a descriptor; NULL, and `otherwise`, where it has none. */
const attribute *standin_attribute(const descriptor *d, cudnnBackendAttributeName_t name);
descriptor *standin_pointed(const descriptor *d, cudnnBackendAttributeName_t name);
int64_t standin_number(const descriptor *d, cudnnBackendAttributeName_t name, int64_t otherwise);
/* cudnn_plan.c: a graph's steps, and whether the engine takes them. */
cudnnStatus_t standin_compile(const descriptor *graph, program *p);
bool standin_takes(const program *p);

#endif
