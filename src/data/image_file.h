/* image_file.h -- shared by the decoders of image files. */
#ifndef TERN_SRC_DATA_IMAGE_FILE_H
#define TERN_SRC_DATA_IMAGE_FILE_H
#include "data/data.h"

#define tern_image_function "tern_image_decode"

/* Returns a uint8 tensor (3, h, w) of the first three of `channels` interleaved bytes a pixel. */
tern_tensor *tern_image_planes(const unsigned char *pixels, int64_t w, int64_t h, int channels);
/* Returns whether the number of pixels is allowed; if not, records an error. */
bool tern_image_fits(int64_t w, int64_t h, const tern_image_options *o, const char *kind);
/* Returns NULL after an error that names the package of the missing library. */
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
