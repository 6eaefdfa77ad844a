/* env.h -- the environment variables that tern reads: TERN_DEVICE, TERN_DEBUG, ....
 * docs/environment.md lists them, and `tern env` shows which are set. */
#ifndef TERN_ENV_H
#define TERN_ENV_H
#include <tern/error.h>

TERN_BEGIN_DECLS

/* A variable. Each is read once, when it is first needed, and later changes have no effect (except
 * for TERN_OPENCL_GEMM, which is read at each matrix product). A variable that is set but empty
 * counts as not set, except for TERN_OPENCL_VISIBLE_DEVICES, which then hides all devices. */
typedef struct tern_env_info {
    char name[64];           /* "TERN_DEVICE" */
    const char *value;       /* NULL: it is not set */
    const char *values;      /* the values that it takes: "0|1", "a folder"; "" for a variable that
                         * tern does not know */
    const char *by_default;  /* the default; "" for a variable that tern does not know */
    const char *description; /* a sentence; "" for a variable that tern does not know */
    char problem[320];       /* what is wrong with its name or value; "" if nothing is */
    uint64_t reserved[8];
} tern_env_info;

/* Writes variable i, from 0 on, to *info. First come the variables that tern knows, set or not,
 * then those of the environment that begin with TERN_ and that neither tern nor its tests know.
 * Returns false, with zeros in *info, after the last one, and for NULL. The texts live until the
 * program changes its environment. */
TERN_API bool tern_env_at(int i, tern_env_info *info);

TERN_END_DECLS
#endif
