/* nvtx.h -- ranges for NVIDIA's tools, where one of them watches this process. */
#ifndef TERN_PROFILE_NVTX_H
#define TERN_PROFILE_NVTX_H

/* Once: finds the tool. Without one the others do nothing. */
void tern_nvtx_open(void);
/* A range begins on this thread, and the innermost one ends. */
void tern_nvtx_push(const char *name);
void tern_nvtx_pop(void);

#endif
