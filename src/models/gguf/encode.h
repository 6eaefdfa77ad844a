/* encode.h -- encoders of floats into the K types (blocks of 256) and IQ4_NL, whose levels are
 * uneven (encode_k.c). */
#ifndef TERN_SRC_MODELS_GGUF_ENCODE_H
#define TERN_SRC_MODELS_GGUF_ENCODE_H
#include "models/gguf/gguf.h"

/* Writes x as a float16, rounded to nearest, ties to even. */
void gguf_put_half(unsigned char *to, float x);
void gguf_encode_q2_k(const float *x, unsigned char *to);
void gguf_encode_q3_k(const float *x, unsigned char *to);
void gguf_encode_q4_k(const float *x, unsigned char *to);
void gguf_encode_q5_k(const float *x, unsigned char *to);
void gguf_encode_q6_k(const float *x, unsigned char *to);
void gguf_encode_iq4_nl(const float *x, unsigned char *to);

#endif
