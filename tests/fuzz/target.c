/* target.c -- a program from bytes, as libFuzzer calls it. TERN_FUZZ_VERBOSE prints each step. */
#include "fuzz.h"
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

/* Bytes are choices, or the text of a program as it is in the corpus: that begins with a name and a
 * bracket, and has only characters that are printed. */
static char *text_of(const uint8_t *bytes, size_t size)
{
    size_t name = 0;
    while (name < size && (isalnum(bytes[name]) || bytes[name] == '_' || bytes[name] == '.'))
        name++;
    if (name < 3 || name == size || bytes[name] != '(')
        return NULL;
    for (size_t i = 0; i < size; i++)
        if (!isprint(bytes[i]) && bytes[i] != '\n')
            return NULL;
    char *text = calloc(1, size + 1);
    return text ? memcpy(text, bytes, size) : NULL;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    fuzz_source source = {bytes, size, 0};
    if (getenv("TERN_FUZZ_VERBOSE"))
        fuzz_log = stderr;
    char *text = text_of(bytes, size);
    fuzz_begin();
    if (text)
        fuzz_run_text(text);
    else
        fuzz_program(&source);
    fuzz_end();
    free(text);
    return 0;
}
