/* speech.h -- says digits: a small synthesizer of formants (Klatt 1980), for examples that need sound with a known text. */
#ifndef SPEECH_H
#define SPEECH_H
#include <stddef.h>
#include <stdint.h>

enum { SPEECH_RATE = 16000 };

/* "zero" to "nine". */
extern const char *const speech_words[10];

/* Says n digits, one after the other, in a voice of its own (pitch, size of the mouth, speed, hoarseness, noise): samples from -1 to 1.
 * Returns how many there are, at most `most`. *random is the state of the random numbers. */
size_t speech_say(const int *digits, int n, uint64_t *random, float *samples, size_t most);

#endif
