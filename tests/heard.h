/* heard.h -- a handler of warnings that counts them and keeps the last. */
#ifndef TERN_TESTS_HEARD_H
#define TERN_TESTS_HEARD_H
#include <stdio.h>

typedef struct heard {
    int count;
    char kind[32], text[512];
} heard;

static void hear(const char *kind, const char *text, void *user)
{
    heard *h = user;
    h->count++;
    snprintf(h->kind, sizeof h->kind, "%s", kind);
    snprintf(h->text, sizeof h->text, "%s", text);
}

#endif
