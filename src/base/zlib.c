/* zlib.c -- zlib, opened at run time. */
#include "base/zlib.h"
#include "base/lock.h"
#ifdef TERN_WITH_ZLIB
#include "base/dynlib.h"

static tern_zlib zlib;
static char reason[256];
static bool there;
static tern_once once = TERN_ONCE_INIT;

static void load(void)
{
    static const char *const symbols[] = {
        "gzdopen", "gzbuffer",   "gzread",        "gzerror", "gzclose",    "deflateInit2_",
        "deflate", "deflateEnd", "inflateInit2_", "inflate", "inflateEnd", NULL};
    there = tern_dynlib_take(TERN_LIBRARY_ZLIB, symbols,
                             (void *const[]){&zlib.gzdopen, &zlib.gzbuffer, &zlib.gzread,
                                             &zlib.gzerror, &zlib.gzclose, &zlib.deflateInit2_,
                                             &zlib.deflate, &zlib.deflateEnd, &zlib.inflateInit2_,
                                             &zlib.inflate, &zlib.inflateEnd},
                             reason, sizeof reason);
}

const tern_zlib *tern_zlib_open(const char *function)
{
    tern_call_once(&once, load);
    if (there)
        return &zlib;
    return tern_fail_null(TERN_ERR_UNSUPPORTED, "%s: zlib can't be opened (Debian: zlib1g): %s",
                          function, reason);
}
#else

const tern_zlib *tern_zlib_open(const char *function)
{
    return tern_fail_null(TERN_ERR_UNSUPPORTED,
                          "%s: tern was built without zlib: configure it with -DTERN_ZLIB=ON and "
                          "zlib's headers (Debian: zlib1g-dev)",
                          function);
}
#endif
