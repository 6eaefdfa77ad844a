/* traffic.h -- what the files of the program behind bench/traffic share. */
#ifndef BENCH_TRAFFIC_H
#define BENCH_TRAFFIC_H
#include <stdbool.h>
#include <tern/tern.h>

/* ---- a step of training (traffic_steps.c) ---- */
typedef struct step {
    const char *name, *title;
    tern_dtype dtype;       /* of autocast; TERN_F32: none */
    int64_t batch;          /* how many inputs; 0: as many as it has */
    int may, recorded, aim; /* commands, those of its recording */
    double most;            /* bytes over the least; 0: not held */
    tern_module *model;
    tern_optimizer *optimizer;
    tern_tensor *x, *y;
    tern_tensor *(*loss)(tern_tensor *output, tern_tensor *y);
    double parameters;      /* how many numbers */
    double attention_bytes; /* least of all attention in it */
} step;

enum { STEPS = 14 };
/* Number i without its model. */
step step_at(int i);
/* Its model and data on a device, with values that do not matter. */
bool step_open(step *s, const char *device);
void step_close(step *s);
/* One step of training; the loss. */
tern_tensor *step_run(step *s);

/* ---- what a command costs (traffic_cost.c) ---- */
typedef enum kind { KIND_KERNEL, KIND_PRODUCT, KIND_CONVOLUTION, KIND_COPY, KINDS } kind;
typedef enum rate { RATE_F32, RATE_TF32, RATE_HALF, RATES } rate;
typedef struct cost {
    const char *name;
    kind kind;
    double read, written, flops;
    rate rate;    /* of the flops */
    double least; /* bytes that no fusion would save */
} cost;
struct tern_command;
cost cost_of(const struct tern_command *command, const step *s);

typedef struct hardware {
    const char *name, *source;
    double bytes; /* a second */
    double flops[RATES];
    double replayed, launched; /* seconds a command, in a graph and out of one */
} hardware;
enum { MACHINES = 3 };
extern const hardware machines[MACHINES];
/* Seconds for one command, without what its launches cost. */
double cost_time(const cost *c, const hardware *h);

#endif
