/* near.h -- finds the name that was probably meant by an unknown one. */
#ifndef TERN_BASE_NEAR_H
#define TERN_BASE_NEAR_H
#include <stddef.h>

/* Returns how many letters must be inserted, removed, replaced or swapped with the next one to turn
 * a into b, ignoring case. Only the first 64 letters of each are compared. */
int tern_near_distance(const char *a, const char *b);

/* Sets *best to candidate and *least to its distance if it is closer to word than *best (NULL: none
 * yet), and close enough: at most one letter in three differs. */
void tern_near_try(const char *word, const char *candidate, const char **best, int *least);

#endif
