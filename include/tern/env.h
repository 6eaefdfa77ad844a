/* env.h -- the variables of the environment that tern reads: TERN_DEVICE, TERN_DEBUG, ...
 * docs/environment.md lists them, and `tern env` shows what is set. */
#ifndef TERN_ENV_H
#define TERN_ENV_H
#include <tern/error.h>

TERN_BEGIN_DECLS

/* A variable. Each is read once, when it is first needed: what a program sets after that is
 * without effect (but for TERN_OPENCL_GEMM, which is read at each product). One that is set but
 * empty counts as not set, but for TERN_OPENCL_VISIBLE_DEVICES, which then hides all devices. */
typedef struct tern_env_info {
    char name[64];      /* "TERN_DEVICE" */
    const char *value;  /* NULL: it is not set */
    const char *values; /* what it takes: "0|1", "a folder"; "" for one that tern does not know */
    const char *by_default;  /* what holds where it is not set; "" likewise */
    const char *description; /* a sentence; "" likewise */
    char problem[320];       /* what is wrong with its name or value; "": nothing */
    uint64_t reserved[8];
} tern_env_info;

/* Fill *info with variable i, from 0 on: first those that there are, whether they are set or
 * not, then those of the environment whose names begin with TERN_ and that neither tern nor its
 * tests know. Returns false, and zeros, beyond the last one, and for NULL. The texts live until
 * the program changes its environment. */
TERN_API bool tern_env_at(int i, tern_env_info *info);

TERN_END_DECLS
#endif
