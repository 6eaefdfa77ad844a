/* address.h -- URLs and names of models on a hub, given where a path is expected. */
#ifndef TERN_BASE_ADDRESS_H
#define TERN_BASE_ADDRESS_H
#include "base/error.h"

/* Returns TERN_ERR_IO, with a message that says what to download, for a path that does not exist
 * and looks like a URL or a model's name on the Hugging Face Hub; TERN_OK for others. */
TERN_PRIVATE tern_status tern_refuse_address(const char *function, const char *path);

#endif
