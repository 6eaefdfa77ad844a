/* common.c -- the command line, and random numbers. */
#include "common.h"
#include <stdlib.h>
#include <string.h>

static bool take(const option_row *list, const char *name, const char *value)
{
    for (const option_row *o = list; o->name; o++) {
        if (strcmp(o->name, name) != 0)
            continue;
        if (o->text)
            *o->text = value;
        else if (o->number)
            *o->number = atoi(value);
        else
            *o->seed = strtoull(value, NULL, 10);
        return true;
    }
    return false;
}

bool read_options(int argc, char **argv, const option_row *list, const char **words, int n)
{
    for (int i = 1; i < argc; i++) {
        if (argv[i][0] != '-') {
            if (n-- <= 0)
                return false;
            *words++ = argv[i];
            continue;
        }
        if (i + 1 == argc || strncmp(argv[i], "--", 2) != 0 ||
            !take(list, argv[i] + 2, argv[i + 1]))
            return false;
        i++;
    }
    return true;
}

size_t number_below(uint64_t *state, size_t n)
{
    *state ^= *state >> 12;
    *state ^= *state << 25;
    *state ^= *state >> 27;
    return (size_t)((*state * UINT64_C(2685821657736338717)) >> 33) % n;
}
