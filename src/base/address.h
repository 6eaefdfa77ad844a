/* address.h -- texts that are given as paths and are addresses of a network, or names of a hub. */
#ifndef TERN_BASE_ADDRESS_H
#define TERN_BASE_ADDRESS_H
#include "base/error.h"

/* TERN_ERR_IO, which says what to fetch, for a path that is not there and looks like a URL or as a
 * model's name on the Hugging Face Hub; TERN_OK for others. */
TERN_PRIVATE tern_status tern_refuse_address(const char *function, const char *path);

#endif
