/* chain_kernels.h -- the kernels of chains (chain.h): a device has one for all chains of the same
 * rows. */
#ifndef TERN_DEVICE_CHAIN_KERNELS_H
#define TERN_DEVICE_CHAIN_KERNELS_H
#include "device/command.h"

/* One of them, which is made when it is first wanted, or ahead of that by another thread
 * (builds.h). It lasts as long as the place. */
typedef struct tern_chain_kernel tern_chain_kernel;
/* NULL where there is no memory. */
tern_chain_kernel *tern_chain_kernel_of(tern_place *place, const tern_chain *chain,
                                        tern_dtype dtype);
/* Whether no thread makes it any more, and none is going to. */
bool tern_chain_kernel_is_done(const tern_chain_kernel *kernel);
bool tern_chain_kernel_is_under_way(const tern_chain_kernel *kernel);
/* Have it made, once more where memory was missing or compilers were stopped. */
void tern_chain_kernel_make(tern_chain_kernel *kernel);
/* As a job of builds.c: what another thread makes is not waited for. */
void tern_chain_kernel_make_ahead(tern_chain_kernel *kernel);
/* Made where it is not yet. *made is NULL where the backend has none; an error is told by *why and
 * not recorded. */
tern_status tern_chain_kernel_get(tern_chain_kernel *kernel, void **made, const char **why);

/* As the place ends. */
void tern_chain_kernels_end(tern_place *place);

#endif
