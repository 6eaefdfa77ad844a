/* frame.h -- the inside of a checkpoint's frame. */
#ifndef TERN_TENSOR_FRAME_H
#define TERN_TENSOR_FRAME_H
#include "tensor/node.h"
#include "device/device.h"

/* An input as it was. */
typedef struct tern_frame_input {
    tern_tensor *tensor; /* a leaf that requires a gradient as it is, others without history */
    int64_t version;
    int64_t number; /* in the outer frame, which has the tensor; else -1 */
    bool requires_grad, is_leaf;
} tern_frame_input;

/* One run of a checkpointed function. */
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
    bool again;       /* ... for the second time */
    bool done;        /* it was run again */
    int64_t let_go;   /* tensors in the first run */
    tern_saved *kept; /* those of the second run; handed out one by one */
    int64_t n_kept, capacity;
};

/* Let go of the inputs; of what the second run saved. */
void tern_frame_forget_inputs(tern_frame *frame);
void tern_frame_forget_kept(tern_frame *frame);
/* Let go of x, which is given away, or keep it the second time; its number. -1 after an error. */
int64_t tern_frame_number(tern_frame *frame, tern_tensor *x);

#endif
