/* cudnn_graph.h -- what the stand-in's descriptors of cuDNN's backend API are, and what a graph of them becomes. */
#ifndef TERN_TESTS_STANDIN_CUDNN_GRAPH_H
#define TERN_TESTS_STANDIN_CUDNN_GRAPH_H
#include "cudnn_handle.h"

enum { BAD_PARAM = 2000, MISALIGNED = 2003, NOT_FINALIZED = 2002, ALLOCATION = 4003 };
enum { ATTRIBUTES = 16, MOST_STEPS = 32, MOST_TENSORS = 64, SCRATCH = 320, DIMS = 5 };

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
    struct program *program; /* of a plan */
    int engine; /* of a plan or an engine's configuration, which is of a graph: the first makes no plan */
    struct descriptor *graph;
    unsigned plan; /* a plan's number, from 1 on */
} descriptor;

/* Its dims are the last of DIMS; those before them are 1. */
typedef struct tensor {
    int64_t id, dims[DIMS], strides[DIMS], extent, ndim;
    cudnnDataType_t type;
    bool is_virtual, by_value;
} tensor;

typedef struct step {
    cudnnBackendDescriptorType_t kind;
    int64_t mode, axis;
    int operands[4]; /* x, b, t, y; -1: none */
    int64_t stride[DIMS], padding[DIMS],
        dilation[DIMS]; /* of a convolution, as its tensors' dims */
} step;

typedef struct program {
    tensor tensors[MOST_TENSORS];
    step steps[MOST_STEPS];
    int n_tensors, n_steps;
} program;

/* What a convolution's step has: x, weight and y, whichever of them it computes; dims from the first of n, channels and what is
 * spatial on. */
typedef struct convolved {
    int x, w, y, first;
    int64_t groups;
} convolved;
/* The last dims, of rows and columns. */
enum { ROW = DIMS - 2, COLUMN = DIMS - 1 };

/* cudnn_graph.c: attributes of a descriptor; NULL, and `otherwise`, where it has none. */
const attribute *standin_attribute(const descriptor *d, cudnnBackendAttributeName_t name);
descriptor *standin_pointed(const descriptor *d, cudnnBackendAttributeName_t name);
int64_t standin_number(const descriptor *d, cudnnBackendAttributeName_t name, int64_t otherwise);
/* Whether the plan was not destroyed: its kernels, which a CUDA graph has too, end with it. */
bool standin_plan_is_there(unsigned plan);
/* cudnn.c, for tests: run convolutions are counted there, those of graphs with the algorithm 8 + engine, and kept waiting. */
void standin_count_convolution(cudaStream_t stream, int pass, int algorithm);
/* cudnn_program.c: a graph's steps, whether an engine takes them, and how many products are among them. */
cudnnStatus_t standin_compile(const descriptor *graph, program *p);
bool standin_takes(const program *p);
int standin_products(const program *p);
/* Of a step the pass of a convolution (y, x, weight), -1 of others; and what that has. */
int standin_pass(const step *s);
convolved standin_convolved(const program *p, const step *s);

#endif
