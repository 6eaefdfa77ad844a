/* image_file.c -- conversion of pixels to planes, and JPEG by libjpeg-turbo, opened at run time. */
#include "base/dynlib.h"
#include "base/os_cpu.h"
#include "base/lock.h"
#include "data/image_file.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#if defined(__x86_64__)
#include <tmmintrin.h>
#endif

static const char function[] = tern_image_function;

#if defined(__x86_64__)
/* Converts 16 pixels of three bytes at a time: a shuffle of each of three vectors picks the bytes
 * of a plane. Returns the number of pixels converted. */
__attribute__((target("ssse3"))) static int64_t planes_of_16(const unsigned char *pixels, int64_t n,
                                                             unsigned char *to)
{
    enum { NONE = -1 };
    signed char place[3][3][16];
    __m128i order[3][3];
    int64_t i = 0;
    memset(place, NONE, sizeof place);
    for (int c = 0; c < 3; c++)
        for (int k = 0; k < 16; k++)
            place[c][(3 * k + c) / 16][k] = (signed char)((3 * k + c) % 16);
    for (int c = 0; c < 3; c++)
        for (int part = 0; part < 3; part++)
            order[c][part] = _mm_loadu_si128((const __m128i *)(const void *)place[c][part]);
    for (; i + 16 <= n; i += 16, pixels += 48) {
        __m128i v[3];
        for (int part = 0; part < 3; part++)
            v[part] = _mm_loadu_si128((const __m128i *)(const void *)(pixels + 16 * part));
        for (int c = 0; c < 3; c++)
            _mm_storeu_si128((__m128i *)(void *)(to + c * n + i),
                             _mm_or_si128(_mm_or_si128(_mm_shuffle_epi8(v[0], order[c][0]),
                                                       _mm_shuffle_epi8(v[1], order[c][1])),
                                          _mm_shuffle_epi8(v[2], order[c][2])));
    }
    return i;
}
#endif

/* Interleaved pixels of `channels` bytes become three planes. */
tern_tensor *tern_image_planes(const unsigned char *pixels, int64_t w, int64_t h, int channels)
{
    tern_tensor *x = tern_empty(TERN_SHAPE(3, h, w), TERN_U8, "cpu");
    unsigned char *to = x ? tern_data(x) : NULL;
    const int64_t n = w * h;
    int64_t i = 0;
#if defined(__x86_64__)
    if (to && channels == 3 && tern_cpu_has(TERN_CPU_SSSE3))
        i = planes_of_16(pixels, n, to);
#endif
    pixels += i * channels;
    for (; to && i < n; i++, pixels += channels) {
        to[i] = pixels[0];
        to[n + i] = pixels[1];
        to[2 * n + i] = pixels[2];
    }
    return x;
}

bool tern_image_fits(int64_t w, int64_t h, const tern_image_options *o, const char *kind)
{
    int64_t most = o->max_pixels;
    if (w > 0 && h > 0 && tern_size_mul(w, h) <= most)
        return true;
    tern_fail(TERN_ERR_IO, "%s: a %s of %lld x %lld pixels, %lld are allowed", function, kind,
              (long long)w, (long long)h, (long long)most);
    return false;
}

tern_tensor *tern_image_absent(const char *kind, const char *package, const char *reason)
{
    return tern_fail_null(
        TERN_ERR_UNSUPPORTED,
        "%s: a %s takes its library (Debian: %s; TERN_IMAGES when tern is built) %s", function,
        kind, package, reason);
}

/* ---- JPEG: TurboJPEG 2's functions --------------------------------------------------------- */

typedef struct factor {
    int num, denom;
} factor;

static struct {
    tern_once once;
    char reason[256];
    void *(*init)(void);
    int (*header)(void *handle, const unsigned char *jpeg, unsigned long n, int *w, int *h,
                  int *subsampling, int *colours);
    int (*decode)(void *handle, const unsigned char *jpeg, unsigned long n, unsigned char *to,
                  int w, int pitch, int h, int format, int flags);
    char *(*error)(void *handle);
    int (*destroy)(void *handle);
    int (*error_code)(void *handle);
} jpeg = {.once = TERN_ONCE_INIT};

enum { TJ_RGB = 0, TJ_PIXELS_CMYK = 11, TJ_CMYK = 3, TJ_YCCK = 4, TJ_WARNING = 0 };

#ifdef TERN_WITH_IMAGES
static void find_jpeg(void)
{
    static const char *const symbols[] = {"tjDecompressHeader3",
                                          "tjDecompress2",
                                          "tjGetErrorStr2",
                                          "tjDestroy",
                                          "tjGetErrorCode",
                                          "tjInitDecompress",
                                          NULL};
    tern_dynlib_take(TERN_LIBRARY_JPEG, symbols,
                     (void *const[]){&jpeg.header, &jpeg.decode, &jpeg.error, &jpeg.destroy,
                                     &jpeg.error_code, &jpeg.init},
                     jpeg.reason, sizeof jpeg.reason);
}
#else
static void find_jpeg(void)
{
}
#endif

/* Returns the largest of the divisors 1, 2, 4, 8 for which the shorter edge stays min_edge or
 * more. */
static int scale_of(int64_t w, int64_t h, int64_t min_edge)
{
    int by = 1;
    int64_t shorter = w < h ? w : h;
    while (min_edge > 0 && by < 8 && (shorter + 2 * by - 1) / (2 * by) >= min_edge)
        by *= 2;
    return by;
}

/* Returns a * b / 255, rounded as in Pillow. */
static unsigned char scaled(unsigned a, unsigned b)
{
    unsigned x = a * b + 128;
    return (unsigned char)(((x >> 8) + x) >> 8);
}

/* Converts n pixels from CMYK to RGB in place, to the first three bytes. The values in JPEGs are
 * inverted (Adobe's convention, which Pillow assumes for all). */
static void inks_to_colours(unsigned char *pixels, int64_t n)
{
    for (int64_t i = 0; i < n; i++, pixels += 4)
        for (int c = 0; c < 3; c++)
            pixels[c] = (unsigned char)(pixels[3] - scaled(255u - pixels[c], pixels[3]));
}

static tern_tensor *decode_with(void *handle, const unsigned char *bytes, size_t n,
                                const tern_image_options *o)
{
    int w = 0, h = 0, subsampling, colours = 0; /* colours stays 0 for a JPEG of tables alone, which
                                                   is no error here */
    if (jpeg.header(handle, bytes, (unsigned long)n, &w, &h, &subsampling, &colours) != 0)
        return tern_fail_null(TERN_ERR_IO, "%s: %s", function, jpeg.error(handle));
    if (!tern_image_fits(w, h, o, "JPEG"))
        return NULL;
    const bool inks = colours == TJ_CMYK || colours == TJ_YCCK;
    const int channels = inks ? 4 : 3;
    int by = scale_of(w, h, o->min_edge);
    w = (w + by - 1) / by;
    h = (h + by - 1) / by;
    unsigned char *pixels =
        tern_alloc_aligned(tern_size_bytes(tern_size_mul(channels * (int64_t)w, h), 1));
    if (!pixels)
        return tern_fail_null(TERN_ERR_MEMORY, "%s: no memory for %d x %d pixels", function, w, h);
    tern_tensor *x = NULL;
    /* a warning means damaged data: an error here, while torchvision returns grey */
    if (jpeg.decode(handle, bytes, (unsigned long)n, pixels, w, 0, h,
                    inks ? TJ_PIXELS_CMYK : TJ_RGB, 0) != 0)
        tern_fail(TERN_ERR_IO, "%s: %s", function, jpeg.error(handle));
    else {
        if (inks)
            inks_to_colours(pixels, (int64_t)w * h);
        x = tern_image_planes(pixels, w, h, channels);
    }
    tern_free(pixels);
    return x;
}

tern_tensor *tern_image_decode_jpeg(const unsigned char *bytes, size_t n,
                                    const tern_image_options *o)
{
    tern_call_once(&jpeg.once, find_jpeg);
    if (!jpeg.init)
        return tern_image_absent("JPEG", "libturbojpeg0", jpeg.reason);
    void *handle = jpeg.init();
    if (!handle)
        return tern_fail_null(TERN_ERR_MEMORY, "%s: no memory for a JPEG", function);
    tern_tensor *x = decode_with(handle, bytes, n, o);
    jpeg.destroy(handle);
    return x;
}
