/* transforms_size.c -- resizes, crops and pads images. */
#include "base/option.h"
#include "data/image.h"
#include <string.h>

/* Writes (height, width) from a list of one or two numbers. */
static bool sizes_of(tern_shape size, int64_t out[2], const char *function)
{
    for (int i = 0; i < 2; i++)
        out[i] = size.ndim == 1 || size.ndim == 2 ? size.dims[size.ndim == 2 ? i : 0] : 0;
    if (out[0] > 0 && out[1] > 0 && out[0] < INT32_MAX && out[1] < INT32_MAX)
        return true;
    tern_fail(TERN_ERR_ARGUMENT,
              "%s: size is one or two positive numbers, not %d of them from %lld", function,
              size.ndim, (long long)out[0]);
    return false;
}

/* ---- resize ------------------------------------------------------------------------------ */

typedef struct resize {
    int64_t size[2], max_size;
    bool shorter; /* size is one number, for the shorter edge */
    tern_interpolate_mode mode;
} resize;

static tern_tensor *resize_to(const resize *o, tern_tensor *x, int64_t height, int64_t width)
{
    if (!o->mode)
        return tern_image_resize(x, height, width);
    tern_shape shape = tern_shape_of(x), to = shape;
    int n = shape.ndim;
    tern_tensor *items = tern_reshape(
        x, TERN_SHAPE(-1, n > 2 ? shape.dims[n - 3] : 1, shape.dims[n - 2], shape.dims[n - 1]));
    tern_interpolate_options how = {
        .size = TERN_SHAPE(height, width), .mode = o->mode, .antialias = true};
    to.dims[n - 2] = height;
    to.dims[n - 1] = width;
    return tern_reshape(tern_interpolate(items, &how), to);
}

static tern_tensor *resize_apply(tern_transform *t, tern_tensor *x)
{
    const resize *o = t->data;
    if (!tern_image_given(x, true, "Resize"))
        return NULL;
    if (!o->shorter)
        return resize_to(o, x, o->size[0], o->size[1]);
    int64_t h = tern_size(x, -2), w = tern_size(x, -1);
    int64_t low = h < w ? h : w, high = h < w ? w : h, to = o->size[0];
    if (low < 1)
        return x;
    int64_t other = (int64_t)((double)to * (double)high / (double)low);
    if (o->max_size && other > o->max_size) {
        to = (int64_t)((double)o->max_size * (double)to / (double)other);
        other = o->max_size;
    }
    return resize_to(o, x, h < w ? to : other, h < w ? other : to);
}

tern_transform *tern_transforms_resize(tern_shape size, const tern_resize_options *options)
{
    static const tern_transform_kind kind = {"Resize", resize_apply, NULL, false};
    const char *function = "tern_transforms_resize";
    const tern_resize_options o = tern_read_resize(options);
    resize r = {.shorter = size.ndim == 1, .max_size = o.max_size, .mode = o.interpolation};
    if (!sizes_of(size, r.size, function))
        return NULL;
    if (r.mode && r.mode != TERN_INTERPOLATE_BICUBIC && r.mode != TERN_INTERPOLATE_BILINEAR &&
        r.mode != TERN_INTERPOLATE_LANCZOS)
        return tern_fail_null(TERN_ERR_ARGUMENT, "%s: interpolation %d is not one of images",
                              function, (int)r.mode);
    if (o.max_size && (!r.shorter || o.max_size <= r.size[0]))
        return tern_fail_null(
            TERN_ERR_ARGUMENT,
            "%s: max_size = %lld must be strictly greater than the requested size "
            "for the smaller edge size = %lld",
            function, (long long)o.max_size, (long long)r.size[0]);
    return tern_transform_new(&kind, &r, sizeof r);
}

/* ---- crops ------------------------------------------------------------------------------- */

typedef struct crop {
    int64_t size[2], padding[4]; /* padding: left, right, top, bottom */
    bool pad_if_needed;
    double scale[2], ratio[2], fill;
} crop;

static tern_tensor *center_apply(tern_transform *t, tern_tensor *x)
{
    const crop *c = t->data;
    return tern_image_center_crop(x, c->size[0], c->size[1]);
}

tern_transform *tern_transforms_center_crop(tern_shape size)
{
    static const tern_transform_kind kind = {"CenterCrop", center_apply, NULL, false};
    crop c = {.fill = 0};
    return sizes_of(size, c.size, "tern_transforms_center_crop")
               ? tern_transform_new(&kind, &c, sizeof c)
               : NULL;
}

/* Writes torchvision's one, two or four numbers as left, right, top, bottom. */
static bool padding_of(tern_shape list, int64_t out[4], const char *function)
{
    static const int from[5][4] = {{0}, {0, 0, 0, 0}, {0, 0, 1, 1}, {0}, {0, 2, 1, 3}};
    bool fits = list.ndim == 0 || list.ndim == 1 || list.ndim == 2 || list.ndim == 4;
    for (int i = 0; i < 4 && fits; i++) {
        out[i] = list.ndim ? list.dims[from[list.ndim][i]] : 0;
        fits = out[i] >= 0 && out[i] < INT32_MAX;
    }
    if (!fits)
        tern_fail(TERN_ERR_ARGUMENT,
                  "%s: Padding must be an int or a 1, 2, or 4 element tuple, not %d of them",
                  function, list.ndim);
    return fits;
}

static tern_tensor *padded(tern_tensor *x, const int64_t by[4], double fill)
{
    if (!by[0] && !by[1] && !by[2] && !by[3])
        return x;
    return tern_pad(x, TERN_SHAPE(by[0], by[1], by[2], by[3]), &(tern_pad_options){.value = fill});
}

static tern_tensor *random_crop_apply(tern_transform *t, tern_tensor *x)
{
    const crop *c = t->data;
    if (!tern_image_given(x, true, "RandomCrop"))
        return NULL;
    x = padded(x, c->padding, 0);
    int64_t top, left, h = tern_size(x, -2), w = tern_size(x, -1);
    if (c->pad_if_needed && (h < c->size[0] || w < c->size[1])) {
        int64_t down = h < c->size[0] ? c->size[0] - h : 0,
                right = w < c->size[1] ? c->size[1] - w : 0;
        x = padded(x, (int64_t[]){right, right, down, down}, 0);
        h = tern_size(x, -2), w = tern_size(x, -1);
    }
    if (h < c->size[0] || w < c->size[1])
        return tern_fail_null(TERN_ERR_SHAPE,
                              "RandomCrop: Required crop size (%lld, %lld) is larger than padded "
                              "input image size (%lld, %lld).",
                              (long long)c->size[0], (long long)c->size[1], (long long)h,
                              (long long)w);
    if (!tern_image_below(h - c->size[0] + 1, &top) || !tern_image_below(w - c->size[1] + 1, &left))
        return NULL;
    return tern_image_crop(x, top, left, c->size[0], c->size[1]);
}

tern_transform *tern_transforms_random_crop(tern_shape size,
                                            const tern_random_crop_options *options)
{
    static const tern_transform_kind kind = {"RandomCrop", random_crop_apply, NULL, false};
    const char *function = "tern_transforms_random_crop";
    const tern_random_crop_options o = tern_read_random_crop(options);
    crop c = {.pad_if_needed = o.pad_if_needed};
    return sizes_of(size, c.size, function) && padding_of(o.padding, c.padding, function)
               ? tern_transform_new(&kind, &c, sizeof c)
               : NULL;
}

/* ---- random resized crop --------------------------------------------------------------------- */

typedef struct part {
    int64_t top, left, height, width;
} part;

/* Returns the fallback if ten draws did not fit: the centre, with a ratio within the limits. */
static part middle(const crop *c, int64_t h, int64_t w)
{
    part p = {0, 0, h, w};
    double ratio = (double)w / (double)h;
    if (ratio < c->ratio[0])
        p.height = (int64_t)nearbyint((double)w / c->ratio[0]);
    else if (ratio > c->ratio[1])
        p.width = (int64_t)nearbyint((double)h * c->ratio[1]);
    p.top = (h - p.height) / 2;
    p.left = (w - p.width) / 2;
    return p;
}

static bool choose(const crop *c, int64_t h, int64_t w, part *p)
{
    for (int i = 0; i < 10; i++) {
        double area, ratio;
        if (!tern_image_uniform(c->scale[0], c->scale[1], &area) ||
            !tern_image_uniform(log(c->ratio[0]), log(c->ratio[1]), &ratio))
            return false;
        area *= (double)h * (double)w;
        ratio = exp(ratio);
        p->width = (int64_t)nearbyint(sqrt(area * ratio));
        p->height = (int64_t)nearbyint(sqrt(area / ratio));
        if (p->width > 0 && p->width <= w && p->height > 0 && p->height <= h)
            return tern_image_below(h - p->height + 1, &p->top) &&
                   tern_image_below(w - p->width + 1, &p->left);
    }
    *p = middle(c, h, w);
    return true;
}

/* Copies a cropped image on the cpu row by row; tern_image_resize would copy it element by
 * element. */
static tern_tensor *dense(tern_tensor *x)
{
    if (!x || tern_dim(x) != 3 || tern_stride(x, 2) != 1 || tern_is_contiguous(x) ||
        strcmp(tern_device(x), "cpu") != 0)
        return x;
    tern_tensor *y = tern_empty(tern_shape_of(x), tern_dtype_of(x), "cpu");
    const size_t size = tern_dtype_size(tern_dtype_of(x)), row = (size_t)tern_size(x, 2) * size;
    const char *from = tern_data(x);
    char *to = y ? tern_data(y) : NULL;
    for (int64_t c = 0; to && from && c < tern_size(x, 0); c++)
        for (int64_t i = 0; i < tern_size(x, 1); i++, to += row)
            memcpy(to, from + size * (size_t)(c * tern_stride(x, 0) + i * tern_stride(x, 1)), row);
    return y;
}

static tern_tensor *resized_crop_apply(tern_transform *t, tern_tensor *x)
{
    const crop *c = t->data;
    part p;
    if (!tern_image_given(x, true, "RandomResizedCrop") ||
        !choose(c, tern_size(x, -2), tern_size(x, -1), &p))
        return NULL;
    return tern_image_resize(dense(tern_image_crop(x, p.top, p.left, p.height, p.width)),
                             c->size[0], c->size[1]);
}

tern_transform *tern_transforms_random_resized_crop(tern_shape size,
                                                    const tern_random_resized_crop_options *options)
{
    static const tern_transform_kind kind = {"RandomResizedCrop", resized_crop_apply, NULL, false};
    const char *function = "tern_transforms_random_resized_crop";
    const tern_random_resized_crop_options o = tern_read_random_resized_crop(options);
    crop c = {.scale = {o.scale[0], o.scale[1]}, .ratio = {o.ratio[0], o.ratio[1]}};
    if (!(c.scale[0] >= 0 && c.scale[0] <= c.scale[1] && c.ratio[0] > 0 &&
          c.ratio[0] <= c.ratio[1]))
        return tern_fail_null(TERN_ERR_ARGUMENT,
                              "%s: Scale and ratio should be of kind (min, max): not (%g, %g) and "
                              "(%g, %g)",
                              function, c.scale[0], c.scale[1], c.ratio[0], c.ratio[1]);
    return sizes_of(size, c.size, function) ? tern_transform_new(&kind, &c, sizeof c) : NULL;
}

/* ---- padding ----------------------------------------------------------------------------- */

static tern_tensor *pad_apply(tern_transform *t, tern_tensor *x)
{
    const crop *c = t->data;
    return padded(x, c->padding, c->fill);
}

tern_transform *tern_transforms_pad(tern_shape padding, double fill)
{
    static const tern_transform_kind kind = {"Pad", pad_apply, NULL, false};
    crop c = {.fill = fill};
    return padding_of(padding, c.padding, "tern_transforms_pad")
               ? tern_transform_new(&kind, &c, sizeof c)
               : NULL;
}
