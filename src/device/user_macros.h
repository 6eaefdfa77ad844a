/* user_macros.h -- the parts of a C preprocessor that reading a kernel's parameters needs. */
#ifndef TERN_DEVICE_USER_MACROS_H
#define TERN_DEVICE_USER_MACROS_H
#include "base/text.h"

/* Returns the number of letters, digits and _ from p on. */
size_t tern_word_length(const char *p);
/* Returns the length of the number at p, with dots, exponent and suffix. */
size_t tern_number_length(const char *p);
/* Returns a pointer behind the parenthesis, bracket or brace that closes the one at p; to the end
 * of the text if there is none. */
const char *tern_closing(const char *p);
/* Adds n bytes to the text, in which the macros are expanded that source defines before `before`. A
 * macro with more than one definition has a ? before its expansion. */
void tern_macros_expand(tern_text *to, const char *source, const char *before, const char *bytes,
                        size_t n);

#endif
