/* buffer.h -- a buffer in a device's memory, as kernel arguments refer to it. */
#ifndef TERN_BASE_BUFFER_H
#define TERN_BASE_BUFFER_H
#include <stddef.h>
#include <stdint.h>

/* A buffer in a device's memory, created by the backend. */
typedef struct tern_buffer {
    void *handle;     /* the backend's handle (a pointer, a cl_mem, ...) */
    uint64_t address; /* the device address, for pointers in tables that kernels read; 0: none */
    void *host;       /* the host address of the same bytes, valid after a sync; NULL: none */
    size_t bytes;
} tern_buffer;

#endif
