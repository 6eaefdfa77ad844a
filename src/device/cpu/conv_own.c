/* conv_own.c -- convolutions by tern's own kernels, as long as all numbers are finite.
 *
 * The kernels multiply the zeros beside an image and differences of its numbers, which gives the
 * same sums only for finite numbers. A weight or a result that is not finite shows where the sums
 * may differ: the convolution is then computed again, by oneDNN or as a product of columns. */
#include "device/cpu/cpu.h"
#include "shapes.h"
#include <string.h>

static int64_t volume(const int64_t *dims)
{
    return dims[0] * dims[1] * dims[2];
}

static bool are_finite(const float *x, int64_t n)
{
    const uint32_t exponent = 0x7f800000;
    uint32_t odd = 0;
    for (int64_t i = 0; i < n; i++) {
        uint32_t bits;
        memcpy(&bits, x + i, sizeof bits);
        odd |= (bits & exponent) == exponent;
    }
    return !odd;
}

tern_status tern_cpu_conv_own(tern_place *place, const tern_convolution *c, bool *taken)
{
    bool finite = true;
    TERN_TRY(tern_cpu_conv_channels(place, c, taken));
    if (!*taken)
        TERN_TRY(tern_cpu_conv_stride2(place, c, taken));
    if (!*taken)
        TERN_TRY(tern_cpu_conv_winograd(place, c, taken, &finite));
    *taken =
        *taken && finite &&
        are_finite(tern_cpu_at(&c->weight), c->shape->o * c->shape->c * volume(c->shape->window));
    return TERN_OK;
}
