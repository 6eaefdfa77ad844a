/* hostile.h -- files that are damaged, odd or made to do harm, and what becomes of them. */
#ifndef TERN_TESTS_HOSTILE_H
#define TERN_TESTS_HOSTILE_H
#include <stdbool.h>
#include <stddef.h>

typedef struct hostile_file {
    const char *name;
    bool accepted;
    const char *says;     /* a part of the error's message; NULL: any */
    unsigned char *bytes; /* to be freed with free */
    size_t size;
} hostile_file;

/* The i-th of safetensors; false behind the last. */
bool hostile_safetensors(int i, hostile_file *file);

#endif
