/* target.c -- a program from bytes, as libFuzzer calls it. TERN_FUZZ_VERBOSE prints each step. */
#include "fuzz.h"
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    fuzz_source source = {bytes, size, 0};
    if (getenv("TERN_FUZZ_VERBOSE"))
        fuzz_log = stderr;
    fuzz_begin();
    fuzz_program(&source);
    fuzz_end();
    return 0;
}
