/* near.h -- what was meant by a name that is not there. */
#ifndef TERN_BASE_NEAR_H
#define TERN_BASE_NEAR_H
#include <stddef.h>

/* How many letters are to be put in, taken out, replaced or swapped with the next one to make a
 * of b, upper and lower case being the same. Of names longer than 64 letters the rest is not
 * looked at. */
int tern_near_distance(const char *a, const char *b);

/* Keep in *best (NULL: none yet) the candidate that is nearest to word, if it is near enough to
 * have been meant: at most one letter in three differs. *least is its distance. */
void tern_near_try(const char *word, const char *candidate, const char **best, int *least);

#endif
