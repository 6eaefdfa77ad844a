/* bytes.h -- fuzzers whose inputs are files: what each of them gives, and the program that changes files of a corpus. */
#ifndef TERN_FUZZ_BYTES_H
#define TERN_FUZZ_BYTES_H
#include <stddef.h>
#include <stdint.h>

/* One input; aborts where something is wrong. */
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

#endif
