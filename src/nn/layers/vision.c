/* vision.c -- Upsample, and pixel and channel shuffles. */
#include "nn/layers/layer.h"
#include "nn/layers/list.h"

static tern_tensor *upsample_forward(tern_module *self, tern_tensor *x)
{
    return tern_interpolate(x, tern_nn_data(self));
}

/* Appends scale factors as given: one number, or a tuple of two or three. */
static void add_reals(tern_text *text, const double *values)
{
    int n = values[1] == 0 ? 1 : values[2] == 0 ? 2 : 3;
    for (int i = 0; i < n; i++)
        tern_text_add(text, "%s%s", i ? ", " : n > 1 ? "(" : "", TERN_NUMBER_TEXT(values[i]));
    tern_text_add(text, n > 1 ? ")" : "");
}

static tern_module *upsample(const char *name, tern_interpolate_options o)
{
    static const char *const modes[] = {"nearest", "nearest-exact", "linear", "bilinear",
                                        "bicubic", "trilinear",     "area",   "lanczos"};
    if (tern_check_enum("tern_nn_upsample", "mode", (int)o.mode, TERN_INTERPOLATE_LANCZOS,
                        "tern_interpolate_mode") != TERN_OK)
        return NULL;
    tern_text text = {0};
    if (o.scale_factor[0] != 0) {
        tern_text_add(&text, "scale_factor=");
        add_reals(&text, o.scale_factor);
    } else {
        tern_text_add(&text, "size=%s", LIST(o.size));
    }
    tern_text_add(&text, ", mode=%s", modes[o.mode]);
    tern_module *m = tern_layer(name, upsample_forward, &o, sizeof o);
    tern_status status = text.failed ? TERN_ERR_MEMORY : tern_nn_set_extra(m, "%s", text.data);
    tern_text_free(&text);
    return tern_layer_if(m, status);
}

tern_module *tern_nn_upsample(const tern_interpolate_options *options)
{
    return upsample("Upsample", options ? *options : (tern_interpolate_options){0});
}

tern_module *tern_nn_upsampling_nearest2d(const tern_interpolate_options *options)
{
    tern_interpolate_options o = options ? *options : (tern_interpolate_options){0};
    o.mode = TERN_INTERPOLATE_NEAREST;
    return upsample("UpsamplingNearest2d", o);
}

tern_module *tern_nn_upsampling_bilinear2d(const tern_interpolate_options *options)
{
    tern_interpolate_options o = options ? *options : (tern_interpolate_options){0};
    o.mode = TERN_INTERPOLATE_BILINEAR;
    o.align_corners = true;
    return upsample("UpsamplingBilinear2d", o);
}

/* Defines a module with one integer option. */
#define NUMBERED(FUNCTION, NAME, WORD)                                                             \
    static tern_tensor *FUNCTION##_forward(tern_module *self, tern_tensor *x)                      \
    {                                                                                              \
        const int64_t *n = tern_nn_data(self);                                                     \
        return tern_##FUNCTION(x, *n);                                                             \
    }                                                                                              \
    tern_module *tern_nn_##FUNCTION(int64_t WORD)                                                  \
    {                                                                                              \
        tern_module *m = tern_layer(NAME, FUNCTION##_forward, &WORD, sizeof WORD);                 \
        return tern_layer_if(m, tern_nn_set_extra(m, #WORD "=%lld", (long long)WORD));             \
    }
NUMBERED(pixel_shuffle, "PixelShuffle", upscale_factor)
NUMBERED(pixel_unshuffle, "PixelUnshuffle", downscale_factor)
NUMBERED(channel_shuffle, "ChannelShuffle", groups)
