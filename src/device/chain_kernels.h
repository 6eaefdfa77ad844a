/* chain_kernels.h -- the kernels of chains (chain.h): a device has one for all chains of the same
 * rows. */
#ifndef TERN_DEVICE_CHAIN_KERNELS_H
#define TERN_DEVICE_CHAIN_KERNELS_H
#include "device/command.h"

/* The kernel of a chain, which is compiled when it is first needed, or earlier by another thread
 * (builds.h). It exists as long as the place. */
typedef struct tern_chain_kernel tern_chain_kernel;
/* Returns the kernel of the chain, which may have to be compiled; NULL: out of memory. */
tern_chain_kernel *tern_chain_kernel_of(tern_place *place, const tern_chain *chain,
                                        tern_dtype dtype);
/* is_done returns whether the compilation of the kernel has ended, maybe with an error;
 * is_under_way returns whether a thread compiles it now. */
bool tern_chain_kernel_is_done(const tern_chain_kernel *kernel);
bool tern_chain_kernel_is_under_way(const tern_chain_kernel *kernel);
/* Compiles the kernel unless that is done, or waits for the thread that does; compiles it again if
 * that failed for lack of memory or because of tern_compile_stop. */
void tern_chain_kernel_make(tern_chain_kernel *kernel);
/* The same for background threads: returns at once if another thread compiles the kernel or it is
 * done. */
void tern_chain_kernel_make_ahead(tern_chain_kernel *kernel);
/* Compiles the kernel if that was not done before. *compiled becomes NULL if the backend has none;
 * *why then describes an error, which is not recorded. */
tern_status tern_chain_kernel_get(tern_chain_kernel *kernel, void **compiled, const char **why);

/* Frees the kernels of a place that is closed. */
void tern_chain_kernels_end(tern_place *place);

#endif
