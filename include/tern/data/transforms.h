/* data/transforms.h -- what is done to an item (torchvision.transforms.v2).
 *
 * Images are (..., C, H, W), bytes or floating point; several at once are all treated alike. Random
 * transforms draw from the item's random numbers. A transform belongs to what it is given to (another
 * one, a data set, a loader), also when that fails; one that is given to none is freed with
 * tern_transform_free. NULL after an error. */
#ifndef TERN_DATA_TRANSFORMS_H
#define TERN_DATA_TRANSFORMS_H
#include <tern/data/dataset.h>

TERN_BEGIN_DECLS

/* x transformed, which is owned by the scope, or x itself. Outside of a loader random numbers come
 * from the cpu's generator. NULL after an error. */
TERN_API tern_tensor *tern_transform_apply(tern_transform *transform, tern_tensor *x);
/* Frees one that belongs to nobody; NULL is fine. */
TERN_API void tern_transform_free(tern_transform *transform);

/* One after the other; owns them. If one is NULL all others are freed and the result is NULL. */
TERN_API tern_transform *tern_transforms_compose_of(tern_transform *const *transforms, int n);
/* A function of one's own: NULL is an error. Workers call it at the same time. */
TERN_API tern_transform *tern_transforms_lambda(tern_tensor *(*function)(tern_tensor *x,
                                                                         void *user),
                                                void *user);
/* Turned left to right with probability p. */
TERN_API tern_transform *tern_transforms_random_horizontal_flip(double p);
/* Turned upside down with probability p. */
TERN_API tern_transform *tern_transforms_random_vertical_flip(double p);
/* As another type; with scale the range of bytes, 0..255, becomes 0..1 and the other way round. */
TERN_API tern_transform *tern_transforms_to_dtype(tern_dtype dtype, bool scale);
/* (x - mean) / std of each channel, floating point types only; n is C, or 1 for all channels. */
TERN_API tern_transform *tern_transforms_normalize(const double *mean, const double *std, int n);

#ifndef __cplusplus
#define tern_transforms_compose(...)                                                               \
    tern_transforms_compose_of(                                                                    \
        (tern_transform *const[]){__VA_ARGS__},                                                    \
        (int)(sizeof((tern_transform *const[]){__VA_ARGS__}) / sizeof(tern_transform *)))
#endif

TERN_END_DECLS

#ifdef __cplusplus
template <class... T> inline tern_transform *tern_transforms_compose(T... transforms)
{
    tern_transform *const list[] = {transforms...};
    return tern_transforms_compose_of(list, static_cast<int>(sizeof...(transforms)));
}
#endif
#endif
