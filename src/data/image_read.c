/* image_read.c -- decodes images in memory and in files, by the format that their first bytes
 * show. */
#include "base/magic.h"
#include "base/option.h"
#include "data/file.h"
#include "data/image_file.h"
#include <string.h>

static const char function[] = tern_image_function;

tern_tensor *tern_image_decode(const void *bytes, size_t n, const tern_image_options *options)
{
    TERN_NAMED_IN_ERRORS;
    const tern_image_options o = tern_read_image(options);
    const unsigned char *at = bytes;
    if (!bytes)
        return tern_fail_argument_null(function, "bytes"), NULL;
    if (n >= 8 && memcmp(at, "\x89PNG\r\n\x1a\n", 8) == 0)
        return tern_image_decode_png(at, n, &o);
    if (n >= 3 && memcmp(at, "\xff\xd8\xff", 3) == 0)
        return tern_image_decode_jpeg(at, n, &o);
    if (n >= 12 && memcmp(at, "RIFF", 4) == 0 && memcmp(at + 8, "WEBP", 4) == 0)
        return tern_image_decode_webp(at, n, &o);
    if (n >= 10 && memcmp(at, "BM", 2) == 0 && memcmp(at + 6, "\0\0\0\0", 4) == 0)
        return tern_image_decode_bmp(at, n, &o);
    return tern_fail_null(TERN_ERR_IO,
                          "%s: none of PNG, JPEG, WebP and BMP, by the first of %zu bytes%s",
                          function, n, tern_magic_say(bytes, n).text);
}

tern_tensor *tern_image_read(const char *path, const tern_image_options *options)
{
    TERN_NAMED_IN_ERRORS;
    tern_data_file file;
    tern_tensor *x = NULL;
    char message[1024];
    tern_error_hold hold;
    if (tern_data_file_open(&file, path, __func__) != TERN_OK)
        return NULL;
    unsigned char *bytes = tern_data_file_all(&file, INT64_C(1) << 32, __func__);
    if (bytes && tern_error_hold_begin(&hold) == TERN_OK) {
        x = tern_image_decode(bytes, (size_t)file.size, options);
        tern_status status = tern_error_hold_end(&hold, message, sizeof message);
        if (!x)
            tern_fail(status, "tern_image_read: %s: %s", path, message);
    }
    tern_free(bytes);
    tern_data_file_close(&file);
    return x;
}
