/* objects.h -- what programs of modules hold beside tensors, each in a slot of its kind. */
#ifndef TERN_TESTS_FUZZ_OBJECTS_H
#define TERN_TESTS_FUZZ_OBJECTS_H
#include "fuzz.h"

enum { FUZZ_MODULES = 8, FUZZ_OBJECTS = 4 };

typedef struct fuzz_objects {
    tern_module *modules[FUZZ_MODULES];
    fuzz_shapes shapes[FUZZ_MODULES]; /* what each module takes */
    tern_optimizer *optimizers[FUZZ_OBJECTS];
    tern_lr_scheduler *schedulers[FUZZ_OBJECTS];
    tern_scaler *scalers[FUZZ_OBJECTS];
    tern_averaged_model *averages[FUZZ_OBJECTS];
    tern_state_dict *dicts[FUZZ_OBJECTS];
    tern_graph *graphs[FUZZ_OBJECTS];
} fuzz_objects;
extern fuzz_objects fuzz_held;

/* The i-th object of a kind; NULL where there is none. */
#define FUZZ_OBJECT(kind, i)                                                                       \
    ((uint64_t)(i) < sizeof fuzz_held.kind / sizeof *fuzz_held.kind ? fuzz_held.kind[i] : NULL)
tern_module *fuzz_module(int64_t i);
/* The same without gradients: one that was recorded is a ring with its parameter. */
tern_module *fuzz_without_grads(int64_t i);
/* The module, which is out of its slot and the callee's. */
tern_module *fuzz_take(int64_t i);
/* Likewise, for module `to`; NULL, and left where it is, if it is that one, which refuses itself. */
tern_module *fuzz_give(int64_t to, int64_t i);
/* The same where the callee gives it back, or leaves it alone: freed at the end. */
tern_module *fuzz_take_back(int64_t i);
/* Put a new one into a slot; what was there lives on until the end, as graphs may use it. */
int fuzz_put_module(int64_t i, tern_module *m);
int fuzz_put_optimizer(int64_t i, tern_optimizer *optimizer);
int fuzz_put_scheduler(int64_t i, tern_lr_scheduler *scheduler);

int fuzz_leave_autocast(void);

#endif
