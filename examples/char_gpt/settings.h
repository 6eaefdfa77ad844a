/* settings.h -- what the command line says. */
#ifndef CHAR_GPT_SETTINGS_H
#define CHAR_GPT_SETTINGS_H
#include "gpt.h"

typedef struct settings {
    const char *device, *data;
    gpt_options model;
    int steps, batch, sample;
    double lr;
    uint64_t seed;
} settings;

/* The defaults, then the options. 0: go on; else the exit status plus one. */
int settings_read(settings *s, int argc, char **argv);

#endif
