/* zlib.c -- zlib, opened at run time. */
#include "base/zlib.h"
#include "base/lock.h"
#ifdef TERN_WITH_ZLIB
#include "base/dynlib.h"
#include <stdio.h>
#include <string.h>

static tern_zlib zlib;
static char reason[256];
static bool there;
static tern_once once = TERN_ONCE_INIT;

static void load(void)
{
    void *library = tern_dynlib_open(TERN_LIBRARY_ZLIB, reason, sizeof reason);
    void *address = library;
#define TAKE(NAME)                                                                                 \
    if (address) {                                                                                 \
        address = tern_dynlib_symbol(library, #NAME);                                              \
        memcpy(&zlib.NAME, &address, sizeof address);                                              \
        if (!address)                                                                              \
            snprintf(reason, sizeof reason, "it has no " #NAME);                                   \
    }
    TAKE(gzdopen)
    TAKE(gzbuffer)
    TAKE(gzread)
    TAKE(gzerror)
    TAKE(gzclose)
    TAKE(deflateInit2_)
    TAKE(deflate)
    TAKE(deflateEnd)
    TAKE(inflateInit2_)
    TAKE(inflate)
    TAKE(inflateEnd)
#undef TAKE
    there = address != NULL;
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
