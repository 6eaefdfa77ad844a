/* user_words.h -- words of OpenCL C as C++ with cl_kernels/user.h has them. */
#ifndef TERN_DEVICE_USER_WORDS_H
#define TERN_DEVICE_USER_WORDS_H
#include "base/text.h"

bool tern_word_is(const char *word, size_t n, const char *name);
/* float4 and its like. */
bool tern_word_is_vector(const char *word, size_t n);
/* The word, or what stands for it; nothing for an address space. */
void tern_word_add(tern_text *to, const char *word, size_t n);
/* The places of a vector that xyzw or s0..sf name, as hexadecimal digits; how many, 0 for another
 * word. */
int tern_word_swizzle(const char *word, size_t n, char digits[17]);

#endif
