/* encode.h -- floats as blocks of 256 and of uneven levels (encode_k.c). */
#ifndef TERN_SRC_MODELS_GGUF_ENCODE_H
#define TERN_SRC_MODELS_GGUF_ENCODE_H
#include "models/gguf/gguf.h"

/* x as a float16, to the nearest, ties to even. */
void gguf_put_half(unsigned char *to, float x);
void gguf_encode_q2_k(const float *x, unsigned char *to);
void gguf_encode_q3_k(const float *x, unsigned char *to);
void gguf_encode_q4_k(const float *x, unsigned char *to);
void gguf_encode_q5_k(const float *x, unsigned char *to);
void gguf_encode_q6_k(const float *x, unsigned char *to);
void gguf_encode_iq4_nl(const float *x, unsigned char *to);

#endif
