/* memory.c -- the peak of device memory of GPT-2's and ResNet-50's training steps, counted without a GPU, beside PyTorch's.
 *
 *   memory                        at full size on cuda:0, the tests' stand-in for NVIDIA's libraries, idle: a second, and no memory
 *   memory DEVICE GPT2 RESNET50   with these batches; on other devices than cuda a step is recorded, and nothing runs
 *   memory check                  as the first; ends with 1 where a step takes more than its limit
 *
 * On the stand-in the peaks are a GPU's to the byte (an NVIDIA H200 had 12069.5 and 10453 MiB, both ways). "reserved" is what the
 * driver gave, which is what a card must have; "recorded" is what one recording of the step leaves reserved. PyTorch's columns
 * are computed: eager by memory_peer.py, which counts each storage from the call that makes it to its last holder; torch.compile
 * by what its partitioner keeps. Measured on an H200: eager ResNet-50 5820 MiB (computed 5711, without workspaces), compiled GPT-2
 * 10175 MiB (computed 10216). */
#include "memory_steps.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct peer {
    double eager[2], compiled[2]; /* bytes of a step without inputs, and of each input */
    double limit;                 /* tern's peak over eager's, at full size */
} peer;

/* Limits of what is reserved, and of what a recording leaves reserved, over the peak of what tensors hold. */
static const double reserved_limit = 1.05, recorded_limit = 1.05;

static memory_step steps[] = {{.name = "gpt2", .batch = 16}, {.name = "resnet50", .batch = 128}};
static const peer peers[] = {{{1740.5e6, 962.82e6}, {1896e6, 551e6}, 0.63},
                             {{286.3e6, 44.551e6}, {0, 0}, 1.005}};
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

int main(int argc, char **argv)
{
    const bool check = argc == 2 && strcmp(argv[1], "check") == 0;
    const char *device = argc == 4 ? argv[1] : "cuda:0";
    const double mb = 1e-6;
    int above = 0;
    if (argc != 1 && argc != 4 && !check)
        return fputs("Usage: memory [check | DEVICE GPT2 RESNET50]\n", stderr), 2;
    if (tern_set_default_device(device) != TERN_OK)
        return fprintf(stderr, "memory: %s\n", tern_last_error()), 2;
    printf("%-9s %5s %-9s %10s %10s %10s %10s %10s %6s %10s %6s\n", "MB", "batch", "device",
           "at rest", "peak", "reserved", "recorded", "eager", "ratio", "compiled", "ratio");
    for (int i = 0; i < STEPS; i++) {
        memory_step *s = &steps[i];
        const peer *p = &peers[i];
        tern_memory_stats eager, recorded;
        if (argc == 4)
            s->batch = atoll(argv[2 + i]);
        if (!measure(s, device, &eager, &recorded))
            return fprintf(stderr, "memory: %s\n", tern_last_error()), 2;
        const double peak = (double)eager.allocated_peak, batch = (double)s->batch;
        const double of_eager = p->eager[0] + p->eager[1] * batch,
                     of_compiled = p->compiled[0] + p->compiled[1] * batch;
        printf("%-9s %5lld %-9s %10.1f %10.1f %10.1f %10.1f %10.1f %6.3f", s->name,
               (long long)s->batch, device, (double)eager.allocated * mb, peak * mb,
               (double)eager.reserved_peak * mb, (double)recorded.reserved * mb, of_eager * mb,
               peak / of_eager);
        if (of_compiled > 0)
            printf(" %10.1f %6.3f", of_compiled * mb, peak / of_compiled);
        const bool failed = check && (peak / of_eager > p->limit ||
                                      (double)eager.reserved_peak > reserved_limit * peak ||
                                      (double)recorded.reserved > recorded_limit * peak);
        puts(failed ? "  above the limit" : "");
        above += failed;
    }
    return above > 0;
}
