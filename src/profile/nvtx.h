/* nvtx.h -- ranges for NVIDIA's tools, if one observes this process. */
#ifndef TERN_PROFILE_NVTX_H
#define TERN_PROFILE_NVTX_H

/* Finds the tool, on the first call. Without a tool the other functions do nothing. */
void tern_nvtx_open(void);
/* Begins a range on this thread, and ends the innermost one. */
void tern_nvtx_push(const char *name);
void tern_nvtx_pop(void);

#endif
