/* user_words.h -- translates a word of OpenCL C to C++ that includes cl_kernels/user.h. */
#ifndef TERN_DEVICE_USER_WORDS_H
#define TERN_DEVICE_USER_WORDS_H
#include "base/text.h"

/* Returns whether the n bytes of word are `name`. */
bool tern_word_is(const char *word, size_t n, const char *name);
/* Returns whether the word is a vector type, like float4. */
bool tern_word_is_vector(const char *word, size_t n);
/* Adds the C++ word for an OpenCL C word of n bytes to the text: the same word, another one, or
 * nothing for the name of an address space. */
void tern_word_add(tern_text *to, const char *word, size_t n);
/* Writes the elements of a vector that a word like xyzw or s0f names, as hexadecimal digits.
 * Returns their number; 0 if the word names no elements. */
int tern_word_swizzle(const char *word, size_t n, char digits[17]);

#endif
