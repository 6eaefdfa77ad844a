/* settings.h -- what the command line says. */
#ifndef CHAR_GPT_SETTINGS_H
#define CHAR_GPT_SETTINGS_H
#include "gpt.h"

typedef struct settings {
    const char *device, *data;
    const char *snapshots; /* where to go on from, and to save to; NULL: nothing is saved */
    gpt_options model;
    int steps, batch, sample;
    int every; /* steps from one snapshot to the next */
    double lr;
    uint64_t seed;
} settings;

/* The defaults, then the options. 0: go on; else the exit status plus one. */
int settings_read(settings *s, int argc, char **argv);

#endif
