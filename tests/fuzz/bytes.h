/* bytes.h -- fuzzers whose inputs are files: what each of them gives, and the program that changes files of a corpus. */
#ifndef TERN_FUZZ_BYTES_H
#define TERN_FUZZ_BYTES_H
#include <stddef.h>
#include <stdint.h>

/* One input; aborts where something is wrong. */
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

/* Words of a text format that are put in, NULL-ended; a fuzzer of binary files defines none. */
extern const char *const fuzz_words[] __attribute__((weak));

#endif
