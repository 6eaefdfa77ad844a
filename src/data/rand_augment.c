/* rand_augment.c -- RandAugment (Cubuk et al. 2020), with torchvision's operations and
 * magnitudes. */
#include "base/option.h"
#include "data/image.h"

static const double degrees = 180 / 3.14159265358979323846;

/* The arguments of an operation. */
typedef struct drawn {
    tern_tensor *x;
    double magnitude, fill; /* magnitude: negative for half of the draws of signed operations */
} drawn;

static tern_tensor *identity(const drawn *d)
{
    return d->x;
}
static tern_tensor *shear(const drawn *d, bool along_x)
{
    const double angle = atan(d->magnitude) * degrees, corner[2] = {0, 0};
    return tern_image_affine(d->x, 0, NULL, 1, (double[]){along_x ? angle : 0, along_x ? 0 : angle},
                             corner, d->fill);
}
static tern_tensor *shear_x(const drawn *d)
{
    return shear(d, true);
}
static tern_tensor *shear_y(const drawn *d)
{
    return shear(d, false);
}
static tern_tensor *translate_x(const drawn *d)
{
    double by = trunc(d->magnitude * (double)tern_size(d->x, -1));
    return tern_image_affine(d->x, 0, (double[]){by, 0}, 1, NULL, NULL, d->fill);
}
static tern_tensor *translate_y(const drawn *d)
{
    double by = trunc(d->magnitude * (double)tern_size(d->x, -2));
    return tern_image_affine(d->x, 0, (double[]){0, by}, 1, NULL, NULL, d->fill);
}
static tern_tensor *rotate(const drawn *d)
{
    return tern_image_affine(d->x, -d->magnitude, NULL, 1, NULL, NULL, d->fill);
}
static tern_tensor *brightness(const drawn *d)
{
    return tern_image_adjust_brightness(d->x, 1 + d->magnitude);
}
static tern_tensor *color(const drawn *d)
{
    return tern_image_adjust_saturation(d->x, 1 + d->magnitude);
}
static tern_tensor *contrast(const drawn *d)
{
    return tern_image_adjust_contrast(d->x, 1 + d->magnitude);
}
static tern_tensor *sharpness(const drawn *d)
{
    return tern_image_adjust_sharpness(d->x, 1 + d->magnitude);
}
static tern_tensor *posterize(const drawn *d)
{
    return tern_image_posterize(d->x, (int)nearbyint(d->magnitude));
}
static tern_tensor *solarize(const drawn *d)
{
    return tern_image_solarize(d->x, d->magnitude * tern_image_bound(d->x));
}
static tern_tensor *autocontrast(const drawn *d)
{
    return tern_image_autocontrast(d->x);
}
static tern_tensor *equalize(const drawn *d)
{
    return tern_image_equalize(d->x);
}

/* Magnitudes go from first to last over the bins. */
static const struct {
    tern_tensor *(*apply)(const drawn *d);
    double first, last;
    bool is_signed;
} operations[] = {
    {identity, 0, 0, false},
    {shear_x, 0, 0.3, true},
    {shear_y, 0, 0.3, true},
    {translate_x, 0, 150.0 / 331, true},
    {translate_y, 0, 150.0 / 331, true},
    {rotate, 0, 30, true},
    {brightness, 0, 0.9, true},
    {color, 0, 0.9, true},
    {contrast, 0, 0.9, true},
    {sharpness, 0, 0.9, true},
    {posterize, 8, 4, false},
    {solarize, 1, 0, false},
    {autocontrast, 0, 0, false},
    {equalize, 0, 0, false},
};
enum { OPERATIONS = sizeof operations / sizeof *operations };

static tern_tensor *apply(tern_transform *t, tern_tensor *x)
{
    const tern_rand_augment_options *o = t->data;
    if (!tern_image_given(x, false, "RandAugment"))
        return NULL;
    for (int i = 0; i < o->num_ops && x; i++) {
        int64_t k, negative;
        if (!tern_image_below(OPERATIONS, &k) || !tern_image_below(2, &negative))
            return NULL;
        int bins = o->num_magnitude_bins;
        double share = bins > 1 ? (double)o->magnitude / (bins - 1) : 0;
        drawn d = {x, operations[k].first + share * (operations[k].last - operations[k].first),
                   o->fill};
        if (operations[k].is_signed && negative)
            d.magnitude = -d.magnitude;
        x = operations[k].apply(&d);
    }
    return x;
}

tern_transform *tern_transforms_rand_augment(const tern_rand_augment_options *options)
{
    static const tern_transform_kind kind = {"RandAugment", apply, NULL, false};
    const tern_rand_augment_options o = tern_read_rand_augment(options);
    if (o.num_ops < 0 || o.num_magnitude_bins < 1 || o.magnitude < 0 ||
        o.magnitude >= o.num_magnitude_bins)
        return tern_fail_null(TERN_ERR_ARGUMENT,
                              "tern_transforms_rand_augment: %d operations of magnitude %d of %d",
                              o.num_ops, o.magnitude, o.num_magnitude_bins);
    return tern_transform_new(&kind, &o, sizeof o);
}
