/* image_more.c -- WebP by libwebp, opened at run time, and BMP. */
#include "base/dynlib.h"
#include "base/lock.h"
#include "data/image_file.h"
#include <stdio.h>
#include <string.h>

/* ---- WebP ------------------------------------------------------------------------------------ */

static struct {
    tern_once once;
    char reason[256];
    int (*info)(const uint8_t *bytes, size_t n, int *w, int *h);
    uint8_t *(*decode)(const uint8_t *bytes, size_t n, uint8_t *to, size_t size, int pitch);
} webp = {.once = TERN_ONCE_INIT};

static void find_webp(void)
{
#ifdef TERN_WITH_IMAGES
    static const char *const symbols[] = {"WebPGetInfo", "WebPDecodeRGBAInto", NULL};
    tern_dynlib_take(TERN_LIBRARY_WEBP, symbols, (void *const[]){&webp.info, &webp.decode},
                     webp.reason, sizeof webp.reason);
#endif
}

/* Alpha is dropped: pixels have the file's colours, also where they are transparent. */
tern_tensor *tern_image_decode_webp(const unsigned char *bytes, size_t n,
                                    const tern_image_options *o)
{
    int w = 0, h = 0;
    tern_call_once(&webp.once, find_webp);
    if (!webp.decode)
        return tern_image_absent("WebP", "libwebp7", webp.reason);
    if (!webp.info(bytes, n, &w, &h))
        return tern_fail_null(TERN_ERR_IO, "%s: a WebP of %zu bytes whose header is damaged",
                              tern_image_function, n);
    if (!tern_image_fits(w, h, o, "WebP"))
        return NULL;
    const size_t size = tern_size_bytes(tern_size_mul(w, h), 4);
    unsigned char *pixels = tern_alloc_aligned(size);
    if (!pixels)
        return tern_fail_null(TERN_ERR_MEMORY, "%s: no memory for %d x %d pixels",
                              tern_image_function, w, h);
    tern_tensor *x = webp.decode(bytes, n, pixels, size, 4 * w)
                         ? tern_image_planes(pixels, w, h, 4)
                         : tern_fail_null(TERN_ERR_IO, "%s: a WebP of %zu bytes is cut or damaged",
                                          tern_image_function, n);
    tern_free(pixels);
    return x;
}

/* ---- BMP: uncompressed of 1, 4, 8, 16, 24 and 32 bits, and RLE of 4 and 8 bits --------------- */

typedef struct bmp {
    const unsigned char *bytes, *palette;
    size_t n, data;
    uint32_t header, compression, colours, masks[3];
    int64_t w, h;
    int bits, entry; /* entry: bytes of a colour of the palette */
    bool from_top;
} bmp;

static uint32_t number(const unsigned char *at, int bytes)
{
    uint32_t x = 0;
    for (int i = bytes - 1; i >= 0; i--)
        x = x << 8 | at[i];
    return x;
}

static tern_status bad(const char *what)
{
    return tern_fail(TERN_ERR_IO, "%s: a BMP: %s", tern_image_function, what);
}

enum {
    OS2_HEADER = 12,
    INFO_HEADER = 40,
    RGB = 0,
    RLE8 = 1,
    RLE4 = 2,
    FIELDS = 3,
    ALPHA_FIELDS = 6
};

static tern_status read_colours(bmp *b)
{
    static const uint32_t masks16[] = {0x7c00, 0x3e0, 0x1f}, masks32[] = {0xff0000, 0xff00, 0xff};
    size_t at = 14 + (size_t)b->header;
    const bool fields = b->compression == FIELDS || b->compression == ALPHA_FIELDS;
    for (int i = 0; i < 3; i++)
        b->masks[i] = b->bits == 16 ? masks16[i] : masks32[i];
    if (fields) { /* masks follow the plain header, and are inside of larger ones */
        if (54 + 12 > b->n)
            return bad("it ends within its header");
        for (int i = 0; i < 3; i++)
            b->masks[i] = number(b->bytes + 54 + 4 * i, 4);
        at += b->header == INFO_HEADER ? (b->compression == ALPHA_FIELDS ? 16 : 12) : 0;
    }
    b->entry = b->header == OS2_HEADER ? 3 : 4;
    if (b->bits > 8)
        return TERN_OK;
    const uint32_t most = 1u << b->bits;
    b->colours = b->colours && b->colours < most ? b->colours : most;
    if (at > b->n || (b->n - at) / (size_t)b->entry < b->colours)
        return bad("it ends within its palette");
    b->palette = b->bytes + at;
    return TERN_OK;
}

static tern_status read_header(bmp *b)
{
    if (b->n < 26)
        return bad("it ends within its header");
    b->data = number(b->bytes + 10, 4);
    b->header = number(b->bytes + 14, 4);
    if (b->header != OS2_HEADER && (b->header < INFO_HEADER || b->n < 54))
        return bad("its header is of no known size");
    const bool os2 = b->header == OS2_HEADER;
    b->w = os2 ? (int64_t)number(b->bytes + 18, 2) : (int32_t)number(b->bytes + 18, 4);
    b->h = os2 ? (int64_t)number(b->bytes + 20, 2) : (int32_t)number(b->bytes + 22, 4);
    b->bits = (int)number(b->bytes + (os2 ? 24 : 28), 2);
    b->compression = os2 ? RGB : number(b->bytes + 30, 4);
    b->colours = os2 ? 0 : number(b->bytes + 46, 4);
    b->from_top = b->h < 0;
    b->h = b->from_top ? -b->h : b->h;
    const bool runs =
        (b->compression == RLE8 && b->bits == 8) || (b->compression == RLE4 && b->bits == 4);
    const bool fields = (b->compression == FIELDS || b->compression == ALPHA_FIELDS) &&
                        (b->bits == 16 || b->bits == 32);
    if ((b->bits != 1 && b->bits != 4 && b->bits != 8 && b->bits != 16 && b->bits != 24 &&
         b->bits != 32) ||
        (b->compression != RGB && !runs && !fields))
        return tern_fail(TERN_ERR_UNSUPPORTED,
                         "%s: a BMP of %d bits a pixel and compression %u is not supported",
                         tern_image_function, b->bits, b->compression);
    return read_colours(b);
}

/* Returns the bits of a mask, scaled to 0 .. 255. */
static unsigned char masked(uint32_t value, uint32_t mask)
{
    if (!mask)
        return 0;
    int shift = 0;
    while (!(mask >> shift & 1))
        shift++;
    const uint64_t most = mask >> shift, x = (value & mask) >> shift;
    return (unsigned char)((x * 255 + most / 2) / most);
}

static void put_colour(const bmp *b, uint32_t index, unsigned char *to)
{
    const unsigned char *colour =
        b->palette + (size_t)(index < b->colours ? index : 0) * (size_t)b->entry;
    for (int c = 0; c < 3; c++)
        to[c] = colour[2 - c];
}

static void read_row(const bmp *b, const unsigned char *row, unsigned char *to)
{
    for (int64_t x = 0; x < b->w; x++, to += 3) {
        if (b->bits <= 8) {
            const int64_t bit = x * b->bits;
            put_colour(b, (uint32_t)row[bit / 8] >> (8 - b->bits - bit % 8) & ((1u << b->bits) - 1),
                       to);
        } else if (b->bits == 24) {
            for (int c = 0; c < 3; c++)
                to[c] = row[3 * x + 2 - c];
        } else {
            const uint32_t value = number(row + x * b->bits / 8, b->bits / 8);
            for (int c = 0; c < 3; c++)
                to[c] = masked(value, b->masks[c]);
        }
    }
}

static tern_status read_uncompressed(const bmp *b, unsigned char *pixels)
{
    const size_t pitch = ((size_t)b->w * (size_t)b->bits + 31) / 32 * 4;
    if (b->data > b->n || (b->n - b->data) / pitch < (size_t)b->h)
        return bad("it ends within its pixels");
    for (int64_t y = 0; y < b->h; y++)
        read_row(b, b->bytes + b->data + (size_t)y * pitch,
                 pixels + 3 * b->w * (b->from_top ? y : b->h - 1 - y));
    return TERN_OK;
}

/* Decodes RLE: runs of one colour, and literal colours. Pixels that it skips get the first
 * colour. */
static tern_status read_runs(const bmp *b, unsigned char *pixels)
{
    const unsigned char *at = b->bytes + (b->data < b->n ? b->data : b->n), *end = b->bytes + b->n;
    int64_t x = 0, y = 0;
    for (int64_t i = 0; i < b->w * b->h; i++)
        put_colour(b, 0, pixels + 3 * i);
    while (end - at >= 2 && y < b->h) {
        const int64_t n = at[0], value = at[1];
        at += 2;
        const bool text = n == 0 && value > 2;
        if (n == 0 && value == 0) {
            x = 0;
            y++;
        } else if (n == 0 && value == 1) {
            return TERN_OK;
        } else if (n == 0 && value == 2) {
            if (end - at < 2)
                return bad("it ends within its runs");
            x += at[0];
            y += at[1];
            at += 2;
        } else {
            const int64_t count = text ? value : n,
                          bytes = text ? (count * b->bits + 15) / 16 * 2 : 0;
            if (end - at < bytes)
                return bad("it ends within its runs");
            for (int64_t i = 0; i < count && x < b->w; i++, x++) {
                const int byte = text ? at[i * b->bits / 8] : (int)value;
                const uint32_t index = (uint32_t)(b->bits == 8 ? byte
                                                  : i % 2      ? byte & 15
                                                               : byte >> 4);
                put_colour(b, index, pixels + 3 * (b->w * (b->from_top ? y : b->h - 1 - y) + x));
            }
            at += bytes;
        }
    }
    return y < b->h ? bad("it ends within its runs") : TERN_OK;
}

tern_tensor *tern_image_decode_bmp(const unsigned char *bytes, size_t n,
                                   const tern_image_options *o)
{
    bmp b = {.bytes = bytes, .n = n};
    if (read_header(&b) != TERN_OK || !tern_image_fits(b.w, b.h, o, "BMP"))
        return NULL;
    unsigned char *pixels = tern_alloc_aligned(tern_size_bytes(tern_size_mul(b.w, b.h), 3));
    if (!pixels)
        return tern_fail_null(TERN_ERR_MEMORY, "%s: no memory for %lld x %lld pixels",
                              tern_image_function, (long long)b.w, (long long)b.h);
    const bool runs = b.compression == RLE8 || b.compression == RLE4;
    tern_tensor *x = (runs ? read_runs(&b, pixels) : read_uncompressed(&b, pixels)) == TERN_OK
                         ? tern_image_planes(pixels, b.w, b.h, 3)
                         : NULL;
    tern_free(pixels);
    return x;
}
