/* model.h -- a small vision transformer for images of 28 x 28. */
#ifndef VIT_MODEL_H
#define VIT_MODEL_H
#include "../images.h"

enum { PATCH = 7 };

typedef struct vit_options {
    int width, heads, layers, classes;
} vit_options;

/* (N, 1, 28, 28) -> logits (N, classes); NULL after an error. */
tern_module *vit_new(const vit_options *options);

#endif
