/* graph.h -- the inside of a graph, for capture.c and graph.c. */
#ifndef TERN_DEVICE_GRAPH_H
#define TERN_DEVICE_GRAPH_H
#include "device/capture.h"
#include "device/place.h"
#include "types_host.h"

#include "shapes.h"

/* Something to run; its arguments, and the values they refer to, follow it in memory. */
typedef enum tern_node_kind {
    TERN_NODE_LAUNCH,
    TERN_NODE_USER,
    TERN_NODE_GEMM,
    TERN_NODE_CONVOLUTION,
    TERN_NODE_COPY,
    TERN_NODE_ZERO
} tern_node_kind;
typedef struct tern_node {
    tern_node_kind kind;
    union {
        struct {
            void *kernel;
            tern_grid grid;
            tern_kernel_grid user_grid;
            tern_arg *args;
            int n;
        } launch;
        tern_gemm gemm;
        struct {
            tern_convolution call;
            tern_conv_shape shape;
        } convolution;
        struct {
            const tern_buffer *from, *to;
            size_t from_at, to_at, bytes;
        } copy;
    } what;
} tern_node;

typedef struct tern_refresh {
    tern_status (*run)(void *user);
    void *user;
} tern_refresh;

struct tern_graph {
    tern_place *place;
    tern_graph *next; /* of all graphs */
    tern_node **nodes;
    int64_t n_nodes, room;
    bool recorded, failed; /* failed: what was recorded is of no use */
    bool faults;           /* some kernel reports faults */
    int64_t taken;         /* groups of random numbers a replay */
    tern_refresh *refreshes;
    int n_refreshes;
    tern_block **held; /* from outside, used by nodes */
    int64_t n_held, room_held;
    tern_block **constants;
    int n_constants;
    tern_block *pool;               /* every block of it, by its `of_pool` */
    tern_block *idle[SIZE_CLASSES]; /* those that no tensor has */
    void *made;                     /* the vendor's form, NULL: nodes are run one by one */
};

#endif
