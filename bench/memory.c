/* memory.c -- the peak of device memory of GPT-2's and ResNet-50's training steps, counted without a GPU, beside PyTorch's.
 *
 *   memory                        at full size on cuda:0, the tests' stand-in for NVIDIA's libraries, idle: a second, and no memory
 *   memory DEVICE GPT2 RESNET50   with these batches; on other devices than cuda a step is recorded, and nothing runs
 *   memory check                  as the first; ends with 1 where one of the three limits of a step is passed
 *
 * On the stand-in the peaks are a GPU's to the byte (an NVIDIA H200 had 12069.5 and 10453 MiB, both ways).
 * "reserved" is what the driver gave, which is what a card must have; "recorded" is what one recording of the step leaves reserved. */
#include "memory_steps.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What PyTorch's eager step holds is a line through two runs of memory_peer.py (PyTorch 2.15), which counts each storage from the call that
 * makes it to its last holder: `gpt2 8` and `gpt2 16` print 9443.0 and 17145.6 MB, `resnet50 64` and `resnet50 128` 3124.4 and
 * 5988.8. An H200 measured 5820 MiB for the last, with cuDNN's workspaces, which are 109 more. What torch.compile's step holds is
 * torch.cuda.max_memory_allocated() of an H200 at that batch: 10175 MiB. */
typedef struct peer {
    double eager[2]; /* bytes of a step without inputs, and of each input */
    int64_t batch;   /* full size */
    double compiled; /* bytes at full size; 0 was not measured */
    double peak;     /* the limit of tern's peak over eager's, at full size */
    double reserved; /* that of what is reserved over tern's peak */
    double recorded; /* that of what a recording leaves reserved over tern's peak */
} peer;

/* The limits are what was counted when they were set, rounded up in their last place: a step that takes more is to say why. */
static const peer peers[] = {{{1740.4e6, 962.825e6}, 16, 10175.0 * (1 << 20), 0.461, 1.02, 1.04},
                             {{260.0e6, 44.756e6}, 128, 0, 0.938, 1.03, 1.03}};
static memory_step steps[] = {{.name = "gpt2", .batch = 16}, {.name = "resnet50", .batch = 128}};
enum { STEPS = sizeof steps / sizeof *steps };

/* Statistics after a recording of the step, with the peak on the way there. */
static void record(memory_step *s, const char *device, tern_memory_stats *stats)
{
    tern_reset_peak_memory_stats(device);
    tern_graph *graph = tern_graph_new(device);
    TERN_CAPTURE (graph)
        TERN_SCOPE
            memory_step_run(s, NULL);
    tern_empty_cache(device);
    tern_memory_get_stats(device, stats);
    tern_graph_free(graph);
}

static bool measure(memory_step *s, const char *device, tern_memory_stats *eager,
                    tern_memory_stats *recorded)
{
    const bool runs = strncmp(device, "cuda", 4) == 0;
    if (!memory_step_open(s))
        return false;
    for (int i = 0; runs && i < 3; i++) {
        tern_reset_peak_memory_stats(device);
        TERN_SCOPE
            memory_step_run(s, NULL);
    }
    tern_memory_get_stats(device, eager);
    tern_empty_cache(device);
    for (int i = 0; i < 2; i++) /* the optimizer has its state then */
        record(s, device, recorded);
    memory_step_close(s);
    tern_scope_clear();
    tern_empty_cache(device);
    if (!runs)
        *eager = *recorded;
    return tern_last_status() == TERN_OK;
}

/* Whether a ratio is above its limit, which is told. */
static int above(const char *what, double ratio, double limit)
{
    if (ratio <= limit)
        return 0;
    printf("    above the limit: %s is %.4f, at most %.3f\n", what, ratio, limit);
    return 1;
}

/* A row of the table; how many limits are passed. */
static int print_step(const memory_step *s, const peer *p, const char *device, bool check,
                      const tern_memory_stats *eager, const tern_memory_stats *recorded)
{
    const double mb = 1e-6, peak = (double)eager->allocated_peak;
    const double of_eager = p->eager[0] + p->eager[1] * (double)s->batch,
                 reserved = (double)eager->reserved_peak, left = (double)recorded->reserved;
    printf("%-9s %5lld %-9s %10.1f %10.1f %10.1f %10.1f %10.1f %6.3f", s->name, (long long)s->batch,
           device, (double)eager->allocated * mb, peak * mb, reserved * mb, left * mb,
           of_eager * mb, peak / of_eager);
    if (p->compiled > 0 && s->batch == p->batch)
        printf(" %10.1f %6.3f", p->compiled * mb, peak / p->compiled);
    putchar('\n');
    if (!check)
        return 0;
    return above("peak / eager", peak / of_eager, p->peak) +
           above("reserved / peak", reserved / peak, p->reserved) +
           above("recorded / peak", left / peak, p->recorded);
}

int main(int argc, char **argv)
{
    const bool check = argc == 2 && strcmp(argv[1], "check") == 0;
    const char *device = argc == 4 ? argv[1] : "cuda:0";
    int passed = 0; /* limits */
    if (argc != 1 && argc != 4 && !check)
        return fputs("Usage: memory [check | DEVICE GPT2 RESNET50]\n", stderr), 2;
    if (tern_set_default_device(device) != TERN_OK)
        return fprintf(stderr, "memory: %s\n", tern_last_error()), 2;
    printf("%-9s %5s %-9s %10s %10s %10s %10s %10s %6s %10s %6s\n", "MB", "batch", "device",
           "at rest", "peak", "reserved", "recorded", "eager", "ratio", "compiled", "ratio");
    for (int i = 0; i < STEPS; i++) {
        memory_step *s = &steps[i];
        tern_memory_stats eager, recorded;
        if (argc == 4)
            s->batch = atoll(argv[2 + i]);
        if (!measure(s, device, &eager, &recorded))
            return fprintf(stderr, "memory: %s\n", tern_last_error()), 2;
        passed += print_step(s, &peers[i], device, check, &eager, &recorded);
    }
    return passed > 0;
}
