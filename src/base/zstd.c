/* zstd.c -- libzstd, opened at run time. */
#include "base/zstd.h"
#include "base/lock.h"
#include "base/dynlib.h"

static tern_zstd zstd;
static char reason[256];
static bool there;
static tern_once once = TERN_ONCE_INIT;

static void load(void)
{
    static const char *const symbols[] = {"ZSTD_createDStream",    "ZSTD_freeDStream",
                                          "ZSTD_decompressStream", "ZSTD_isError",
                                          "ZSTD_getErrorName",     NULL};
    there = tern_dynlib_take(TERN_LIBRARY_ZSTD, symbols,
                             (void *const[]){&zstd.create, &zstd.free, &zstd.decompress,
                                             &zstd.is_error, &zstd.error_name},
                             reason, sizeof reason);
}

const tern_zstd *tern_zstd_open(const char *function)
{
    tern_call_once(&once, load);
    if (there)
        return &zstd;
    return tern_fail_null(TERN_ERR_UNSUPPORTED,
                          "%s: libzstd can't be opened (Debian: libzstd1): %s", function, reason);
}
