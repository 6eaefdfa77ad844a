/* image_png.c -- PNG by libpng, opened at run time: by its simplified interface, or by the full one
 * to keep 16 bits. */
#include "base/dynlib.h"
#include "base/lock.h"
#include "data/image_file.h"
#include <setjmp.h>
#include <stdio.h>
#include <string.h>

static const char function[] = tern_image_function;

/* png_image of png.h, version 1. */
typedef struct png_image {
    void *opaque;
    uint32_t version, width, height, format, flags, colormap_entries, warning_or_error;
    char message[64];
} png_image;

typedef void (*png_fail)(void *png, const char *message);

static struct {
    tern_once once;
    char reason[256];
    int (*begin)(png_image *image, const void *memory, size_t size);
    int (*finish)(png_image *image, const void *background, void *buffer, int32_t row, void *map);
    void (*free)(png_image *image);
    const char *(*version)(const void *);
    void *(*create)(const char *version, void *user, png_fail fail, png_fail warn);
    void *(*create_info)(void *png);
    void (*destroy)(void **png, void **info, void **end);
    void *(*user)(void *png);
    void (*set_read)(void *png, void *user, void (*read)(void *png, unsigned char *to, size_t n));
    void *(*read_user)(void *png);
    void (*read_info)(void *png, void *info);
    uint32_t (*width)(void *png, void *info);
    uint32_t (*height)(void *png, void *info);
    void (*grey_to_rgb)(void *png);
    void (*strip_alpha)(void *png);
    void (*swap)(void *png);
    void (*update)(void *png, void *info);
    void (*read_image)(void *png, unsigned char **rows);
    void (*read_end)(void *png, void *info);
    void (*error)(void *png, const char *message);
} png = {.once = TERN_ONCE_INIT};

enum { PNG_RGBA = 3, PNG_16BIT_SRGB = 4, PNG_IS_ERROR = 2 };

#ifdef TERN_WITH_IMAGES
static void find_png(void)
{
    static const char *const symbols[] = {"png_image_finish_read",
                                          "png_image_free",
                                          "png_get_libpng_ver",
                                          "png_create_read_struct",
                                          "png_create_info_struct",
                                          "png_destroy_read_struct",
                                          "png_get_error_ptr",
                                          "png_set_read_fn",
                                          "png_get_io_ptr",
                                          "png_read_info",
                                          "png_get_image_width",
                                          "png_get_image_height",
                                          "png_set_gray_to_rgb",
                                          "png_set_strip_alpha",
                                          "png_set_swap",
                                          "png_read_update_info",
                                          "png_read_image",
                                          "png_read_end",
                                          "png_error",
                                          "png_image_begin_read_from_memory",
                                          NULL};
    tern_dynlib_take(
        TERN_LIBRARY_PNG, symbols,
        (void *const[]){&png.finish,      &png.free,        &png.version, &png.create,
                        &png.create_info, &png.destroy,     &png.user,    &png.set_read,
                        &png.read_user,   &png.read_info,   &png.width,   &png.height,
                        &png.grey_to_rgb, &png.strip_alpha, &png.swap,    &png.update,
                        &png.read_image,  &png.read_end,    &png.error,   &png.begin},
        png.reason, sizeof png.reason);
}
#else
static void find_png(void)
{
}
#endif

static tern_tensor *read_png(png_image *image, const tern_image_options *o)
{
    if (!tern_image_fits(image->width, image->height, o, "PNG"))
        return NULL;
    image->format = PNG_RGBA; /* without alpha, libpng would blend with a background */
    image->flags |= PNG_16BIT_SRGB;
    size_t bytes = tern_size_bytes(tern_size_mul(image->width, image->height), 4);
    unsigned char *pixels = tern_alloc_aligned(bytes);
    if (!pixels)
        return tern_fail_null(TERN_ERR_MEMORY, "%s: no memory for %u x %u pixels", function,
                              image->width, image->height);
    tern_tensor *x = NULL;
    if (!png.finish(image, NULL, pixels, 0, NULL))
        tern_fail(TERN_ERR_IO, "%s: %s", function, image->message);
    else
        x = tern_image_planes(pixels, image->width, image->height, 4);
    tern_free(pixels);
    return x;
}

/* ---- 16 bits, unchanged: without the gamma that the simplified interface applies ------------- */

typedef struct deep {
    jmp_buf failed;
    char message[128];
    const unsigned char *at;
    size_t left;
    void *png, *info;
    unsigned char **rows;
} deep;

static void fail_deep(void *of, const char *message)
{
    deep *d = png.user(of);
    snprintf(d->message, sizeof d->message, "%s", message);
    longjmp(d->failed, 1);
}

static void ignore_deep(void *of, const char *message)
{
    (void)of, (void)message;
}

static void give_deep(void *of, unsigned char *to, size_t n)
{
    deep *d = png.read_user(of);
    if (n > d->left)
        png.error(of, "Read Error");
    memcpy(to, d->at, n);
    d->at += n;
    d->left -= n;
}

/* Reads the header. After libpng's error returns false; d->message has the error. */
static bool begin_deep(deep *d, int64_t *w, int64_t *h)
{
    if (setjmp(d->failed))
        return false;
    png.set_read(d->png, d, give_deep);
    png.read_info(d->png, d->info);
    *w = png.width(d->png, d->info);
    *h = png.height(d->png, d->info);
    return true;
}

/* Reads the rows of (r, g, b) into d->rows. Returns false after libpng's error. */
static bool finish_deep(deep *d)
{
    if (setjmp(d->failed))
        return false;
    png.grey_to_rgb(d->png);
    png.strip_alpha(d->png);
    png.swap(d->png);
    png.update(d->png, d->info);
    png.read_image(d->png, d->rows);
    png.read_end(d->png, NULL);
    return true;
}

/* Returns a uint16 tensor (3, h, w) of interleaved pixels. */
static tern_tensor *deep_planes(const uint16_t *from, int64_t w, int64_t h)
{
    tern_tensor *x = tern_empty(TERN_SHAPE(3, h, w), TERN_U16, "cpu");
    uint16_t *to = x ? tern_data(x) : NULL;
    for (int64_t i = 0; to && i < 3 * w * h; i++)
        to[i % 3 * w * h + i / 3] = from[i];
    return x;
}

static tern_tensor *read_deep(deep *d, const tern_image_options *o)
{
    int64_t w = 0, h = 0;
    if (!begin_deep(d, &w, &h))
        return tern_fail_null(TERN_ERR_IO, "%s: %s", function, d->message);
    if (!tern_image_fits(w, h, o, "PNG"))
        return NULL;
    const size_t row = (size_t)w * 3 * sizeof(uint16_t);
    unsigned char *pixels =
        tern_alloc_aligned(tern_size_bytes(tern_size_mul(w, h), 3 * sizeof(uint16_t)));
    d->rows = pixels ? tern_alloc((size_t)h * sizeof *d->rows) : NULL;
    tern_tensor *x = NULL;
    for (int64_t i = 0; d->rows && i < h; i++)
        d->rows[i] = pixels + (size_t)i * row;
    if (!d->rows)
        tern_fail(TERN_ERR_MEMORY, "%s: no memory for %lld x %lld pixels", function, (long long)w,
                  (long long)h);
    else if (!finish_deep(d))
        tern_fail(TERN_ERR_IO, "%s: %s", function, d->message);
    else
        x = deep_planes((const uint16_t *)(const void *)pixels, w, h);
    tern_free(d->rows);
    tern_free(pixels);
    return x;
}

static tern_tensor *decode_deep(const unsigned char *bytes, size_t n, const tern_image_options *o)
{
    deep *d = tern_alloc(sizeof *d);
    if (!d)
        return NULL;
    d->at = bytes;
    d->left = n;
    d->png = png.create(png.version(NULL), d, fail_deep, ignore_deep);
    d->info = d->png ? png.create_info(d->png) : NULL;
    tern_tensor *x = NULL;
    if (d->info)
        x = read_deep(d, o);
    else
        tern_fail(TERN_ERR_MEMORY, "%s: no memory for a PNG", function);
    png.destroy(&d->png, &d->info, NULL);
    tern_free(d);
    return x;
}

tern_tensor *tern_image_decode_png(const unsigned char *bytes, size_t n,
                                   const tern_image_options *o)
{
    tern_call_once(&png.once, find_png);
    if (!png.begin)
        return tern_image_absent("PNG", "libpng16-16", png.reason);
    enum { DEPTH = 24, DEEP = 16 }; /* offset of the bit depth in the file */
    if (o->keep_16_bits && n > DEPTH && bytes[DEPTH] == DEEP)
        return decode_deep(bytes, n, o);
    png_image image = {.version = 1};
    tern_tensor *x = NULL;
    if (!png.begin(&image, bytes, n))
        tern_fail(TERN_ERR_IO, "%s: %s", function, image.message);
    else
        x = read_png(&image, o);
    png.free(&image);
    return x;
}
