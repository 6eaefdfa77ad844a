/* head.c -- a model's classifier (its last layer), gradient checkpointing, and the image
 * processor. */
#include "models/model.h"
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

tern_module *tern_models_get_classifier(tern_module *model)
{
    models_model *m = models_of(model, "tern_models_get_classifier");
    if (!m)
        return NULL;
    if (!m->kind->head)
        return tern_fail_null(TERN_ERR_STATE, "tern_models_get_classifier: %s has no head",
                              m->kind->name);
    return tern_nn_child(model, m->kind->head);
}

tern_module *tern_models_reset_classifier(tern_module *model, int64_t num_classes)
{
    static const char function[] = "tern_models_reset_classifier";
    models_model *m = models_of(model, function);
    tern_module *head = m ? tern_models_get_classifier(model) : NULL;
    if (!head)
        return NULL;
    if (!m->kind->classifies || num_classes < 1)
        return tern_fail_null(TERN_ERR_ARGUMENT, "%s: %lld classes of %s", function,
                              (long long)num_classes, m->kind->name);
    tern_tensor *old = tern_nn_parameter(head, "weight");
    if (!old)
        return NULL;
    tern_module *made = tern_nn_linear(
        tern_size(old, 1), num_classes,
        &(tern_linear_options){.dtype = tern_dtype_of(old), .device = tern_device(old)});
    if (!made || !tern_nn_train(made, tern_nn_is_training(head)) ||
        !tern_nn_set_child(model, m->kind->head, made))
        return NULL;
    m->c.labels = num_classes;
    return made;
}

tern_status tern_models_gradient_checkpointing(tern_module *model, bool on)
{
    models_model *m = models_of(model, "tern_models_gradient_checkpointing");
    if (!m)
        return tern_last_status();
    m->checkpointing = on;
    return TERN_OK;
}

/* ---- images ------------------------------------------------------------------------------ */

/* Expands a grey image to three equal channels. */
static tern_tensor *three_channels(tern_tensor *x, void *user)
{
    (void)user;
    if (tern_dim(x) < 3 || tern_size(x, -3) != 1)
        return x;
    tern_shape shape = tern_shape_of(x);
    shape.dims[shape.ndim - 3] = 3;
    return tern_contiguous(tern_expand(x, shape));
}

/* Center crop with transformers' rounding down (torchvision rounds to even); smaller images are
 * padded with zeros. user: height << 16 | width. */
static tern_tensor *middle(tern_tensor *x, void *user)
{
    int64_t sizes[] = {(int64_t)((uintptr_t)user >> 16), (int64_t)((uintptr_t)user & 0xffff)};
    for (int i = 0; i < 2 && x; i++) {
        int64_t have = tern_size(x, i - 2), more = sizes[i] - have;
        tern_shape pad =
            i ? TERN_SHAPE(more / 2, more - more / 2) : TERN_SHAPE(0, 0, more / 2, more - more / 2);
        x = more > 0 ? tern_pad(x, pad, NULL) : tern_narrow(x, i - 2, -more / 2, sizes[i]);
    }
    return tern_contiguous(x);
}

typedef struct steps {
    tern_transform *of[8];
    int n;
} steps;

static void add(steps *s, tern_transform *t)
{
    s->of[s->n++] = t;
}

static double number(const json_t *json, const char *name, double absent)
{
    const json_t *x = json_object_get(json, name);
    return json_is_number(x) ? json_number_value(x) : absent;
}

static bool flag(const json_t *json, const char *name, bool absent)
{
    const json_t *x = json_object_get(json, name);
    return json_is_boolean(x) ? json_is_true(x) : absent;
}

/* Reads {"height": 32, "width": 32}, {"shortest_edge": 32}, or a number, which is the shorter edge
 * or, if square, both edges. */
static tern_shape size_of(const json_t *size, bool square)
{
    double edge = json_is_number(size) ? json_number_value(size) : number(size, "shortest_edge", 0);
    double h = number(size, "height", square ? edge : 0), w = number(size, "width", h);
    return h > 0 ? TERN_SHAPE((int64_t)h, (int64_t)w) : TERN_SHAPE((int64_t)edge);
}

static bool triple(const json_t *list, double out[3], double absent)
{
    for (size_t i = 0; i < 3; i++) {
        const json_t *x = json_array_get(list, i);
        if (list && !json_is_number(x))
            return false;
        out[i] = list ? json_number_value(x) : absent;
    }
    return true;
}

static tern_transform *finish(steps *s)
{
    return tern_transforms_compose_of(s->of, s->n);
}

static void resize(steps *s, tern_shape size, tern_interpolate_mode mode)
{
    add(s, tern_transforms_resize(size, &(tern_resize_options){.interpolation = mode}));
}

/* Builds the transform of transformers' preprocessor_config.json; resample has Pillow's values: 2
 * bilinear, 3 bicubic, 1 Lanczos. */
static tern_transform *by_transformers(const json_t *p, const char *function)
{
    static const tern_interpolate_mode modes[] = {0, TERN_INTERPOLATE_LANCZOS, 0,
                                                  TERN_INTERPOLATE_BICUBIC};
    double mean[3], std[3], resample = number(p, "resample", 2);
    steps s = {.n = 0};
    if (resample < 1 || resample > 3 || !triple(json_object_get(p, "image_mean"), mean, 0.5) ||
        !triple(json_object_get(p, "image_std"), std, 0.5))
        return tern_fail_null(TERN_ERR_UNSUPPORTED,
                              "%s: resample %g, image_mean and image_std of "
                              "preprocessor_config.json",
                              function, resample);
    add(&s, tern_transforms_lambda(three_channels, NULL));
    bool crop = flag(p, "do_center_crop", json_object_get(p, "crop_size") != NULL);
    if (flag(p, "do_resize", true))
        resize(&s, size_of(json_object_get(p, "size"), !crop), modes[(int)resample]);
    if (crop) {
        tern_shape size = size_of(json_object_get(p, "crop_size"), true);
        uintptr_t h = (uintptr_t)size.dims[0], w = size.ndim == 2 ? (uintptr_t)size.dims[1] : 0;
        if (h - 1 > 0xfffe || w - 1 > 0xfffe) {
            tern_transform_free(finish(&s));
            return tern_fail_null(
                TERN_ERR_UNSUPPORTED,
                "%s: crop_size of preprocessor_config.json has no height and width "
                "from 1 to 65535",
                function);
        }
        add(&s, tern_transforms_lambda(middle, (void *)(h << 16 | w)));
    }
    add(&s, tern_transforms_to_dtype(TERN_F32, flag(p, "do_rescale", true)));
    if (fabs(number(p, "rescale_factor", 1 / 255.0) * 255 - 1) > 1e-6) {
        tern_transform_free(finish(&s));
        return tern_fail_null(TERN_ERR_UNSUPPORTED, "%s: rescale_factor is 1 / 255", function);
    }
    if (flag(p, "do_normalize", true))
        add(&s, tern_transforms_normalize(mean, std, 3));
    return finish(&s);
}

/* Builds the transform of timm's pretrained_cfg: the shorter side is resized to the input's side /
 * crop_pct, then the center is cropped. */
static tern_transform *by_timm(const json_t *p, const char *function)
{
    static const double imagenet[2][3] = {{0.485, 0.456, 0.406}, {0.229, 0.224, 0.225}};
    const json_t *how = json_object_get(p, "interpolation"), *given[2];
    const char *mode = json_is_string(how) ? json_string_value(how) : "bilinear";
    double sizes[3], stats[2][3], pct = number(p, "crop_pct", 0.875);
    bool bicubic = strcmp(mode, "bicubic") == 0, good = pct > 0 && pct <= 1;
    steps s = {.n = 0};
    given[0] = json_object_get(p, "mean");
    given[1] = json_object_get(p, "std");
    for (int i = 0; i < 2; i++) {
        good = good && triple(given[i], stats[i], 0);
        if (!given[i])
            memcpy(stats[i], imagenet[i], sizeof stats[i]);
    }
    good = good && triple(json_object_get(p, "input_size"), sizes, 224);
    if (!good || (!bicubic && strcmp(mode, "bilinear") != 0))
        return tern_fail_null(TERN_ERR_UNSUPPORTED,
                              "%s: interpolation %.20s, crop_pct %g, input_size, mean or std of "
                              "pretrained_cfg",
                              function, mode, pct);
    add(&s, tern_transforms_lambda(three_channels, NULL));
    resize(&s, TERN_SHAPE((int64_t)floor(fmin(sizes[1], sizes[2]) / pct)),
           bicubic ? TERN_INTERPOLATE_BICUBIC : 0);
    add(&s, tern_transforms_center_crop(TERN_SHAPE((int64_t)sizes[1], (int64_t)sizes[2])));
    add(&s, tern_transforms_to_dtype(TERN_F32, true));
    add(&s, tern_transforms_normalize(stats[0], stats[1], 3));
    return finish(&s);
}

tern_transform *tern_models_image_processor(tern_module *model)
{
    static const char function[] = "tern_models_image_processor";
    models_model *m = models_of(model, function);
    if (!m)
        return NULL;
    const json_t *timm = json_object_get(m->json, "pretrained_cfg");
    if (m->processor)
        return by_transformers(m->processor, function);
    if (timm)
        return by_timm(timm, function);
    return tern_fail_null(TERN_ERR_STATE,
                          "%s: the directory of %s has no preprocessor_config.json, and "
                          "config.json no pretrained_cfg",
                          function, m->kind->name);
}
