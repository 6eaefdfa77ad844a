/* traffic.c -- the commands of a training step on the cuda device, counted from its recorded launches without a GPU.
 *
 *   bench_traffic                  the table of all steps
 *   bench_traffic MODEL [bf16 | f16]     one step by kinds of commands, largest first
 *   bench_traffic check            1 where a step has more commands or bytes than traffic_steps.def allows
 *   bench_traffic measure MODEL [bf16 | f16 [DEVICE [BATCH]]]   beside the time that it takes on a device (f32: no half),
 *                                                               cuda:0 where none is named
 *   bench_traffic on DEVICE BATCH MODEL [bf16 | f16]   as recorded on another device, of which nothing runs: a command is
 *                                                a command, of BATCH inputs
 *
 * TERN_CUDA_PATH names the stand-in (tests/standin), which counts what it is given and, idle, runs nothing of it. The
 * times are a model's (traffic_cost.c). */
#include "clock.h"
#include "device/recording.h"
#include "traffic.h"
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

typedef struct line {
    cost sum; /* of all with its name */
    unsigned long commands;
    double times[MACHINES];
} line;

enum { LINES = 256, WARM = 40 };
typedef struct count {
    line lines[LINES];
    int n;
    unsigned long eager, replayed;
    double read, written, least, replays[MACHINES], eagers[MACHINES], flops[RATES];
} count;

static unsigned long (*commands)(void);
static const char *device = "cuda:0";
static int warm = WARM;

/* The stand-in's count; a real GPU has none, and a launch counts as one. */
static bool find_standin(void)
{
    char path[4096];
    const char *folder = getenv("TERN_CUDA_PATH");
    snprintf(path, sizeof path, "%s/libcuda.so.1", folder ? folder : "");
    void *library = folder ? dlopen(path, RTLD_NOW) : NULL;
    void *found = library ? dlsym(library, "standin_commands") : NULL;
    memcpy(&commands, &found, sizeof found);
    return found != NULL;
}

/* ---- counting ---- */

static void add(count *t, const cost *c, unsigned long n)
{
    int i = 0;
    while (i < t->n && strcmp(t->lines[i].sum.name, c->name) != 0)
        i++;
    if (i == LINES)
        return;
    line *l = &t->lines[i];
    if (i == t->n) {
        *l = (line){.sum = {.name = c->name, .kind = c->kind}};
        t->n++;
    }
    l->commands += n;
    l->sum.read += c->read;
    l->sum.written += c->written;
    l->sum.flops += c->flops;
    t->replayed += n;
    t->read += c->read;
    t->written += c->written;
    t->least += c->least;
    t->flops[c->rate] += c->flops;
    for (int m = 0; m < MACHINES; m++) {
        double seconds = cost_time(c, &machines[m]);
        l->times[m] += seconds + (double)n * machines[m].replayed;
        t->replays[m] += seconds + (double)n * machines[m].replayed;
        t->eagers[m] += seconds;
    }
}

/* The steps before make the optimizer's state, and find the memory that each step takes again. */
static tern_graph *record(step *s, count *t)
{
    unsigned long before = 0;
    for (int i = 0; i < warm; i++)
        TERN_SCOPE {
            before = commands ? commands() : 0;
            step_run(s);
        }
    t->eager = commands ? commands() - before : 0;
    tern_graph *graph = tern_graph_new(device);
    TERN_CAPTURE (graph)
        TERN_SCOPE
            step_run(s);
    return graph;
}

static bool count_nodes(const step *s, tern_graph *graph, count *t)
{
    for (int64_t i = 0; i < tern_graph_size(graph); i++) {
        const tern_command *command = &graph->nodes[i]->command;
        unsigned long before = commands ? commands() : 0;
        bool taken = true;
        if (commands && tern_command_run(graph->place, command, &taken) != TERN_OK)
            return false;
        cost c = cost_of(command, s);
        if (warm == 0 && c.rate == RATE_TF32) /* of CUDA alone */
            c.rate = RATE_F32;
        add(t, &c, commands ? commands() - before : 1);
    }
    t->least += s->attention_bytes;
    for (int m = 0; m < MACHINES; m++)
        t->eagers[m] += (double)t->eager * machines[m].launched;
    return tern_last_status() == TERN_OK;
}

static bool count_step(step *s, count *t)
{
    memset(t, 0, sizeof *t);
    bool fine = step_open(s, device);
    tern_graph *graph = fine ? record(s, t) : NULL;
    fine = fine && graph && count_nodes(s, graph, t);
    tern_graph_free(graph);
    step_close(s);
    tern_scope_clear();
    tern_empty_cache(device);
    if (!fine)
        fprintf(stderr, "traffic: %s: %s\n", s->title, tern_last_error());
    return fine;
}

/* ---- printing ---- */

static double times_least(const count *t)
{
    return t->least > 0 ? (t->read + t->written) / t->least : 0;
}

static int by_time(const void *a, const void *b)
{
    const line *x = a, *y = b;
    return (x->times[0] < y->times[0]) - (x->times[0] > y->times[0]);
}

static void print_machines(const count *t)
{
    for (int m = 0; m < MACHINES; m++)
        printf("%s (%s): %.3f ms replayed, %.3f ms launched one by one, %.3f ms of it memory at "
               "%.2f TB/s; the least bytes alone take %.3f ms\n",
               machines[m].name, machines[m].source, 1e3 * t->replays[m], 1e3 * t->eagers[m],
               1e3 * (t->read + t->written) / machines[m].bytes, machines[m].bytes * 1e-12,
               1e3 * t->least / machines[m].bytes);
}

static void print_step(const step *s, count *t)
{
    static const char *const kinds[] = {"kernel", "product", "convolution", "copy"};
    printf(
        "%s%s: %lu commands (%lu replayed), %.1f MB read, %.1f MB written, %.2f times the least\n",
        s->title,
        s->dtype == TERN_F32    ? ""
        : s->dtype == TERN_BF16 ? ", bf16"
                                : ", f16",
        t->eager, t->replayed, t->read * 1e-6, t->written * 1e-6, times_least(t));
    printf("flops: %.4g G in float32, %.4g G in TensorFloat-32, %.4g G in half precision\n\n",
           1e-9 * t->flops[RATE_F32], 1e-9 * t->flops[RATE_TF32], 1e-9 * t->flops[RATE_HALF]);
    qsort(t->lines, (size_t)t->n, sizeof *t->lines, by_time);
    printf("%-28s %-12s %8s %12s %12s %12s %12s\n", "name", "kind", "commands", "MB read",
           "MB written", "GFLOP", "us on H200");
    for (int i = 0; i < t->n; i++) {
        const line *l = &t->lines[i];
        printf("%-28s %-12s %8lu %12.3f %12.3f %12.4g %12.1f\n", l->sum.name, kinds[l->sum.kind],
               l->commands, l->sum.read * 1e-6, l->sum.written * 1e-6, l->sum.flops * 1e-9,
               1e6 * l->times[0]);
    }
    putchar('\n');
    print_machines(t);
    puts("A model: each command reads and writes each of its tensors once, and takes the longer of "
         "memory and\narithmetic beside its launch. Nothing of it was measured.");
}

static int print_table(void)
{
    printf("%-28s %6s %9s %9s %5s %10s %9s %12s\n", "step", "dtype", "commands", "replayed", "aim",
           "MB", "of least", "ms on H200");
    for (int i = 0; i < STEPS; i++) {
        step s = step_at(i);
        static count t;
        if (!count_step(&s, &t))
            return 1;
        printf("%-28s %6s %9lu %9lu %5d %10.1f %9.2f %12.3f\n", s.title, tern_dtype_name(s.dtype),
               t.eager, t.replayed, s.aim, (t.read + t.written) * 1e-6, times_least(&t),
               1e3 * t.replays[0]);
    }
    return 0;
}

/* ---- what is asked ---- */

/* ResNet-50 and GPT-2 take memory by the gigabyte, of which nothing is touched. */
static int check(void)
{
    int failed = 0;
    for (int i = 0; i < STEPS; i++) {
        step s = step_at(i);
        static count t;
        if (!s.may)
            continue;
        if (!count_step(&s, &t))
            return 1;
        double bytes = times_least(&t);
        bool more = t.eager > (unsigned long)s.may || t.replayed > (unsigned long)s.recorded ||
                    (s.most > 0 && bytes > s.most);
        printf("%s%s %s: %lu commands, recorded %lu, may have %d and %d; %.3f times the least "
               "bytes, may have %g\n",
               more ? "FAILED " : "", s.title, tern_dtype_name(s.dtype), t.eager, t.replayed, s.may,
               s.recorded, bytes, s.most);
        failed += more;
    }
    return failed > 0;
}

static void replay(void *user, long n)
{
    for (long i = 0; i < n; i++)
        tern_graph_replay(user);
    tern_synchronize(device);
}

static void run_steps(void *user, long n)
{
    for (long i = 0; i < n; i++)
        TERN_SCOPE
            step_run(user);
    tern_synchronize(device);
}

static int measure(step *s)
{
    static count t;
    warm = 3;
    if (!step_open(s, device))
        return 1;
    tern_graph *graph = record(s, &t);
    if (!graph || !count_nodes(s, graph, &t))
        return 1;
    double eager = clock_turn(run_steps, s, 2), seconds = clock_turn(replay, graph, 2);
    printf("%s (%s, batch %lld) on %s, %s: %.3f ms measured, recorded %.3f ms", s->title,
           tern_dtype_name(s->dtype), (long long)tern_size(s->x, 0), device,
           tern_device_name(device), 1e3 * eager, 1e3 * seconds);
    for (int m = 0; m < MACHINES && strncmp(device, "cuda", 4) == 0; m++)
        printf("; the model says %.3f of %s (%.2f times)", 1e3 * t.replays[m], machines[m].name,
               t.replays[m] / seconds);
    putchar('\n');
    tern_graph_free(graph);
    step_close(s);
    return tern_last_status() != TERN_OK;
}

static tern_dtype dtype_named(const char *name)
{
    return strcmp(name, "bf16") == 0 ? TERN_BF16 : strcmp(name, "f16") == 0 ? TERN_F16 : TERN_F32;
}

int main(int argc, char **argv)
{
    bool measures = argc > 2 && strcmp(argv[1], "measure") == 0;
    int64_t batch = 0;
    if (argc > 4 && strcmp(argv[1], "on") == 0) {
        device = argv[2];
        batch = atoll(argv[3]);
        warm = 0;
        argc -= 3;
        argv += 3;
    } else if (measures) {
        device = argc > 4 ? argv[4] : device;
        batch = argc > 5 ? atoll(argv[5]) : 0;
        find_standin();
    } else if (!find_standin()) {
        fputs("traffic: TERN_CUDA_PATH has to name the stand-in's folder\n", stderr);
        return 2;
    }
    if (argc == 1 || strcmp(argv[1], "check") == 0)
        return argc == 1 ? print_table() : check();
    const char *name = argv[1 + measures];
    tern_dtype dtype = dtype_named(argc > 2 + measures ? argv[2 + measures] : "f32");
    for (int i = 0; i < STEPS; i++) {
        step s = step_at(i);
        static count t;
        if (strcmp(s.name, name) != 0 || s.dtype != dtype)
            continue;
        s.batch = batch;
        if (measures)
            return measure(&s);
        if (!count_step(&s, &t))
            return 1;
        print_step(&s, &t);
        return 0;
    }
    fprintf(stderr, "traffic: there is no step %s of %s\n", name, tern_dtype_name(dtype));
    return 2;
}
