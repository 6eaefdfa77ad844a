/* stories.h -- made up texts, for the examples that learn characters. */
#ifndef STORIES_H
#define STORIES_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* n characters of short stories, the same for the same seed; NULL where there is no memory. The caller frees them. */
char *stories_new(size_t n, uint64_t seed);

#endif
