/* digits.h -- a tiny Whisper for spoken digits, made and trained here. */
#ifndef DIGITS_H
#define DIGITS_H
#include <tern/models.h>

enum { DIGITS_SECONDS = 2 }; /* how long the sounds are that the model takes */

/* Trains the model on sounds of a synthesizer's, and writes into folder its files, a sound that it was not trained on (sound.wav), and what
 * is said in it (said.txt). */
tern_status digits_model(const char *folder);

#endif
