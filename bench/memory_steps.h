/* memory_steps.h -- the steps whose memory is counted: GPT-2 124M and ResNet-50, as bench/models.py has them. */
#ifndef BENCH_MEMORY_STEPS_H
#define BENCH_MEMORY_STEPS_H
#include <stdbool.h>
#include <tern/tern.h>

typedef struct memory_step {
    const char *name; /* gpt2 or resnet50 */
    int64_t batch;
    tern_module *model;
    tern_optimizer *optimizer;
    tern_scaler *scaler;
    tern_tensor *x, *y;
} memory_step;

/* On the default device, with zeros for data; bf16 for gpt2, f16 and channels last for resnet50. */
bool memory_step_open(memory_step *s);
void memory_step_close(memory_step *s);
/* One step; mark (may be NULL) is called with "forward", "backward" and "update" as they begin. */
void memory_step_run(memory_step *s, void (*mark)(const char *phase));

#endif
