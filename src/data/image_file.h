/* image_file.h -- what the readers of images in files share. */
#ifndef TERN_SRC_DATA_IMAGE_FILE_H
#define TERN_SRC_DATA_IMAGE_FILE_H
#include "data/data.h"

#define tern_image_function "tern_image_decode"

/* (3, h, w) of u8 of rows of pixels of `channels` bytes, the first three. */
tern_tensor *tern_image_planes(const unsigned char *pixels, int64_t w, int64_t h, int channels);
/* Whether there are as many pixels as are allowed; an error. */
bool tern_image_fits(int64_t w, int64_t h, const tern_image_options *o, const char *kind);
/* NULL and an error that names the package of a library. */
tern_tensor *tern_image_absent(const char *kind, const char *package, const char *reason);

tern_tensor *tern_image_decode_jpeg(const unsigned char *bytes, size_t n,
                                    const tern_image_options *o);
tern_tensor *tern_image_decode_png(const unsigned char *bytes, size_t n,
                                   const tern_image_options *o);
tern_tensor *tern_image_decode_webp(const unsigned char *bytes, size_t n,
                                    const tern_image_options *o);
tern_tensor *tern_image_decode_bmp(const unsigned char *bytes, size_t n,
                                   const tern_image_options *o);

#endif
