/* vision.c -- names of vision.def, and what its rows need beside the public functions. */
#include "names/rows.h"

static tern_tensor *interpolate(const names_argument *a)
{
    tern_interpolate_options options = {.size = LIST(1),
                                        .mode = MODE(interpolate_mode, 3),
                                        .align_corners = GIVEN(4) && B(4),
                                        .recompute_scale_factor = GIVEN(5) && B(5),
                                        .antialias = B(6)};
    for (int i = 0; GIVEN(2) && i < a[2].count && i < 3; i++)
        options.scale_factor[i] = a[2].reals[i];
    return tern_interpolate(T(0), &options);
}

#define TABLE  names_vision
#define FAMILY "names/vision.def"
#include "names/expand.h"
