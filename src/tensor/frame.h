/* frame.h -- the fields of a checkpoint's frame. */
#ifndef TERN_TENSOR_FRAME_H
#define TERN_TENSOR_FRAME_H
#include "tensor/node.h"
#include "device/device.h"

/* An input of the function as it was when the function ran first. */
typedef struct tern_frame_input {
    tern_tensor *tensor; /* a leaf that requires a gradient, or the detached input */
    int64_t version;
    int64_t number; /* its number in the outer frame, which recomputes it; -1: in `tensor` */
    bool requires_grad, is_leaf;
} tern_frame_input;

/* One call of tern_checkpoint. */
struct tern_frame {
    atomic_int refs;
    tern_checkpoint_function call;
    void *data;
    void (*free_data)(void *data);
    tern_frame_input *in;
    int n, k;
    tern_frame *outer;
    tern_autocast_hook cast;
    tern_autocast_kinds autocast;
    bool preserve_rng;
    tern_rng_note *rng;
    int n_rng;
    bool running;
    bool again;       /* the function runs for the second time */
    bool done;        /* the second run has succeeded */
    int64_t let_go;   /* tensors that the first run did not save */
    tern_saved *kept; /* the tensors that the second run saved; each slot of a node takes one */
    int64_t n_kept, capacity;
};

/* Release the inputs, and the tensors that the second run saved. */
void tern_frame_forget_inputs(tern_frame *frame);
void tern_frame_forget_kept(tern_frame *frame);
/* Takes a reference of x, and returns the number of x in the frame. In the first run x is released,
 * in the second run it is stored. Returns -1 after an error. */
int64_t tern_frame_number(tern_frame *frame, tern_tensor *x);

#endif
