/* buffer.h -- a device's memory as arguments of kernels name it. */
#ifndef TERN_BASE_BUFFER_H
#define TERN_BASE_BUFFER_H
#include <stddef.h>
#include <stdint.h>

/* A piece of a device's memory, as the backend made it. */
typedef struct tern_buffer {
    void *handle;     /* the backend's own (pointer, cl_mem, ...) */
    uint64_t address; /* what a kernel may follow as a pointer in a table; 0 where there is none */
    void *host;       /* where the host sees the same bytes after sync; NULL where it does not */
    size_t bytes;
} tern_buffer;

#endif
