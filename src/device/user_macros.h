/* user_macros.h -- the little of C's preprocessor that reads a kernel's list of parameters. */
#ifndef TERN_DEVICE_USER_MACROS_H
#define TERN_DEVICE_USER_MACROS_H
#include "base/text.h"

/* Letters, digits and _ from p on. */
size_t tern_word_length(const char *p);
/* A number with its dots, exponent and suffix. */
size_t tern_number_length(const char *p);
/* Past the parenthesis, bracket or brace that closes the one at p; the end of the text without
 * one. */
const char *tern_closing(const char *p);
/* n bytes with the macros put in that source defines before `before`, a ? before one that it
 * defines more than once. */
void tern_macros_expand(tern_text *to, const char *source, const char *before, const char *bytes,
                        size_t n);

#endif
