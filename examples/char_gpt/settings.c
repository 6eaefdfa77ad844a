/* settings.c -- reading the command line. */
#include "settings.h"
#include <getopt.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static const char help[] =
    "Usage: char_gpt [options]\n"
    "  --data PATH     a text file, or a folder of them (default: stories that it makes up)\n"
    "  --device NAME   cpu, opencl:0, cuda:0, auto (default auto)\n"
    "  --steps N       training steps (default 1000)\n"
    "  --layers N  --width N  --heads N  --context N\n"
    "                  the model (default 3, 96, 4, 64)\n"
    "  --batch N       windows of text a step (default 16)\n"
    "  --lr X          largest learning rate (default 0.004)\n"
    "  --seed N        of weights and windows (default 1)\n"
    "  --sample N      characters to write at the end (default 400)\n"
    "  --snapshots F   save the training in folder F, and go on from there\n"
    "  --every N       steps from one snapshot to the next (default 100)\n";

static bool read_count(const char *name, const char *value, int least, int most, int *to)
{
    char *end;
    long n = strtol(value, &end, 10);
    if (*end || end == value || n < least || n > most) {
        fprintf(stderr, "char_gpt: --%s %s: expected a number from %d to %d\n", name, value, least,
                most);
        return false;
    }
    *to = (int)n;
    return true;
}

static bool read_rate(const char *value, double *to)
{
    char *end;
    *to = strtod(value, &end);
    if (*end || end == value || !(*to > 0) || isinf(*to)) {
        fprintf(stderr, "char_gpt: --lr %s: expected a number above 0\n", value);
        return false;
    }
    return true;
}

int settings_read(settings *s, int argc, char **argv)
{
    *s = (settings){.device = "auto",
                    .steps = 1000,
                    .batch = 16,
                    .sample = 400,
                    .every = 100,
                    .lr = 4e-3,
                    .model = {.layers = 3, .width = 96, .heads = 4, .context = 64}};
    int seed = 1;
    const struct {
        const char *name;
        int *to, least, most;
    } counts[] = {
        {"steps", &s->steps, 1, 10000000},       {"layers", &s->model.layers, 1, 64},
        {"width", &s->model.width, 1, 8192},     {"heads", &s->model.heads, 1, 256},
        {"context", &s->model.context, 1, 8192}, {"batch", &s->batch, 1, 8192},
        {"sample", &s->sample, 0, 1000000},      {"seed", &seed, 0, 2147483647},
        {"every", &s->every, 1, 10000000},
    };
    enum { COUNTS = sizeof counts / sizeof *counts };
    struct option list[COUNTS + 6] = {{"data", required_argument, NULL, 'd'},
                                      {"device", required_argument, NULL, 'D'},
                                      {"lr", required_argument, NULL, 'l'},
                                      {"snapshots", required_argument, NULL, 's'},
                                      {"help", no_argument, NULL, 'h'}};
    for (int i = 0; i < COUNTS; i++)
        list[5 + i] = (struct option){counts[i].name, required_argument, NULL, 256 + i};

    int c;
    bool fine = true;
    while (fine && (c = getopt_long(argc, argv, "", list, NULL)) != -1) {
        if (c == 'h') {
            fputs(help, stdout);
            return 1;
        }
        if (c == 'd')
            s->data = optarg;
        else if (c == 'D')
            s->device = optarg;
        else if (c == 's')
            s->snapshots = optarg;
        else if (c == 'l')
            fine = read_rate(optarg, &s->lr);
        else if (c >= 256)
            fine = read_count(counts[c - 256].name, optarg, counts[c - 256].least,
                              counts[c - 256].most, counts[c - 256].to);
        else
            fine = false;
    }
    if (fine && s->model.width % s->model.heads != 0) {
        fprintf(stderr, "char_gpt: --width %d is no multiple of --heads %d\n", s->model.width,
                s->model.heads);
        fine = false;
    }
    if (fine && optind == argc) {
        s->seed = (uint64_t)seed;
        return 0;
    }
    fputs(help, stderr);
    return 3;
}
