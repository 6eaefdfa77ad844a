/* vision.cpp -- resampling, padding, distances, weight norm. */
#include "torch_tern.h"

namespace torch_tern
{

using Scale = std::optional<double>;

/* ---- resampling ------------------------------------------------------------------------------ */

struct Resampling {
    tern_interpolate_mode mode;
    bool align_corners, antialias;
    at::DimVector size;
    std::vector<Scale> scales;
};

/* By the sizes, or by the factors where PyTorch gives those, which then place the pixels. */
static tern_tensor *resample(const Resampling &r, tern_tensor *x)
{
    tern_interpolate_options options = tern_interpolate_defaults();
    options.mode = r.mode;
    options.align_corners = r.align_corners;
    options.antialias = r.antialias;
    bool by_factors = !r.align_corners && !r.scales.empty();
    for (size_t i = 0; i < r.scales.size(); i++)
        by_factors = by_factors && r.scales[i] && *r.scales[i] > 0 &&
                     (int64_t)((double)tern_size(x, (int)i + 2) * *r.scales[i]) == r.size[i];
    for (size_t i = 0; by_factors && i < r.scales.size(); i++)
        options.scale_factor[i] = *r.scales[i];
    if (!by_factors)
        options.size = shape(at::IntArrayRef(r.size));
    return tern_interpolate(x, &options);
}

static Tensor upsample(const char *name, const Resampling &r, const Tensor &x)
{
    Frame frame;
    return take(resample(r, lend(x)), x.device().index(), name);
}

/* The operation is linear: its gradient is that at zero. */
static Tensor upsample_backward(const char *name, const Resampling &r, const Tensor &grad,
                                at::IntArrayRef input_size)
{
    Frame frame;
    const int device = grad.device().index();
    tern_tensor *zeros =
        tern_zeros(shape(input_size), dtype_of(grad.scalar_type()), device_name(device));
    Tensors grads = gradients_of(name, [&](Tensors &in) { return resample(r, in[0]); }, {zeros},
                                 lend(grad), {true});
    return take(grads[0], device, name);
}

/* Functions NAME and NAME_backward of MODE, with scales SCALES declared as PARAMETERS. */
#define UPSAMPLE(NAME, MODE, ANTIALIAS, CORNERS, ALIGN, SCALES, ...)                               \
    static Tensor NAME(const Tensor &x, c10::SymIntArrayRef size CORNERS, __VA_ARGS__)             \
    {                                                                                              \
        SERVED(#NAME);                                                                             \
        return upsample(                                                                           \
            #NAME, {MODE, ALIGN, ANTIALIAS, at::DimVector(C10_AS_INTARRAYREF_SLOW(size)), SCALES}, \
            x);                                                                                    \
    }                                                                                              \
    static Tensor NAME##_backward(const Tensor &grad, c10::SymIntArrayRef size,                    \
                                  c10::SymIntArrayRef input_size CORNERS, __VA_ARGS__)             \
    {                                                                                              \
        SERVED(#NAME "_backward");                                                                 \
        return upsample_backward(                                                                  \
            #NAME "_backward",                                                                     \
            {MODE, ALIGN, ANTIALIAS, at::DimVector(C10_AS_INTARRAYREF_SLOW(size)), SCALES}, grad,  \
            C10_AS_INTARRAYREF_SLOW(input_size));                                                  \
    }
#define ALIGNED , bool align_corners
#define NONE
#define ONE                                                                                        \
    std::vector<Scale>                                                                             \
    {                                                                                              \
        w                                                                                          \
    }
#define TWO                                                                                        \
    std::vector<Scale>                                                                             \
    {                                                                                              \
        h, w                                                                                       \
    }
#define THREE                                                                                      \
    std::vector<Scale>                                                                             \
    {                                                                                              \
        d, h, w                                                                                    \
    }
UPSAMPLE(upsample_nearest1d, TERN_INTERPOLATE_NEAREST, false, NONE, false, ONE, Scale w)
UPSAMPLE(upsample_nearest2d, TERN_INTERPOLATE_NEAREST, false, NONE, false, TWO, Scale h, Scale w)
UPSAMPLE(upsample_nearest3d, TERN_INTERPOLATE_NEAREST, false, NONE, false, THREE, Scale d, Scale h,
         Scale w)
UPSAMPLE(_upsample_nearest_exact1d, TERN_INTERPOLATE_NEAREST_EXACT, false, NONE, false, ONE,
         Scale w)
UPSAMPLE(_upsample_nearest_exact2d, TERN_INTERPOLATE_NEAREST_EXACT, false, NONE, false, TWO,
         Scale h, Scale w)
UPSAMPLE(_upsample_nearest_exact3d, TERN_INTERPOLATE_NEAREST_EXACT, false, NONE, false, THREE,
         Scale d, Scale h, Scale w)
UPSAMPLE(upsample_linear1d, TERN_INTERPOLATE_LINEAR, false, ALIGNED, align_corners, ONE, Scale w)
UPSAMPLE(upsample_bilinear2d, TERN_INTERPOLATE_BILINEAR, false, ALIGNED, align_corners, TWO,
         Scale h, Scale w)
UPSAMPLE(upsample_bicubic2d, TERN_INTERPOLATE_BICUBIC, false, ALIGNED, align_corners, TWO, Scale h,
         Scale w)
UPSAMPLE(_upsample_bilinear2d_aa, TERN_INTERPOLATE_BILINEAR, true, ALIGNED, align_corners, TWO,
         Scale h, Scale w)
UPSAMPLE(_upsample_bicubic2d_aa, TERN_INTERPOLATE_BICUBIC, true, ALIGNED, align_corners, TWO,
         Scale h, Scale w)
UPSAMPLE(upsample_trilinear3d, TERN_INTERPOLATE_TRILINEAR, false, ALIGNED, align_corners, THREE,
         Scale d, Scale h, Scale w)

/* ---- grids ----------------------------------------------------------------------------------- */

static tern_grid_sample_options grid_options(int64_t mode, int64_t padding_mode, bool align_corners)
{
    tern_grid_sample_options options = tern_grid_sample_defaults();
    options.mode = (tern_grid_sample_mode)mode;
    options.padding_mode = (tern_grid_sample_padding_mode)padding_mode;
    options.align_corners = align_corners;
    return options;
}

static Tensor grid_sampler(const Tensor &x, const Tensor &grid, int64_t mode, int64_t padding_mode,
                           bool align_corners)
{
    SERVED("grid_sampler");
    Frame frame;
    const auto options = grid_options(mode, padding_mode, align_corners);
    return take(tern_grid_sample(lend(x), lend(grid), &options), x.device().index(),
                "grid_sampler");
}

static std::tuple<Tensor, Tensor> grid_sampler_backward(const Tensor &grad, const Tensor &x,
                                                        const Tensor &grid, int64_t mode,
                                                        int64_t padding_mode, bool align_corners,
                                                        std::array<bool, 2> mask)
{
    SERVED("grid_sampler_backward");
    Frame frame;
    const int device = x.device().index();
    const auto options = grid_options(mode, padding_mode, align_corners);
    Tensors grads =
        gradients_of("grid_sampler_backward",
                     [&](Tensors &in) { return tern_grid_sample(in[0], in[1], &options); },
                     {lend(x), lend(grid)}, lend(grad), {mask[0], mask[1]});
    Tensor dx = take_if(grads[0], device, "grid_sampler_backward");
    Tensor dgrid = grads[1]  ? take(grads[1], device, "grid_sampler_backward")
                   : mask[1] ? at::zeros_like(grid)
                             : Tensor();
    return {dx, dgrid};
}

/* ---- padding --------------------------------------------------------------------------------- */

static tern_tensor *pad(tern_tensor *x, tern_shape amounts, tern_pad_mode mode)
{
    tern_pad_options options = tern_pad_defaults();
    options.mode = mode;
    return tern_pad(x, amounts, &options);
}

#define PAD(NAME, MODE)                                                                            \
    static Tensor NAME(const Tensor &x, c10::SymIntArrayRef amounts)                               \
    {                                                                                              \
        SERVED(#NAME);                                                                             \
        Frame frame;                                                                               \
        return take(pad(lend(x), shape(amounts), MODE), x.device().index(), #NAME);                \
    }                                                                                              \
    static Tensor NAME##_backward(const Tensor &grad, const Tensor &x,                             \
                                  c10::SymIntArrayRef amounts)                                     \
    {                                                                                              \
        SERVED(#NAME "_backward");                                                                 \
        const tern_shape lengths = shape(amounts);                                                 \
        return gradient_of(                                                                        \
            #NAME "_backward", [&](tern_tensor *in) { return pad(in, lengths, MODE); }, x, grad);  \
    }
PAD(reflection_pad1d, TERN_PAD_REFLECT)
PAD(reflection_pad2d, TERN_PAD_REFLECT)
PAD(reflection_pad3d, TERN_PAD_REFLECT)
PAD(replication_pad1d, TERN_PAD_REPLICATE)
PAD(replication_pad2d, TERN_PAD_REPLICATE)
PAD(replication_pad3d, TERN_PAD_REPLICATE)

/* ---- windows as columns ---------------------------------------------------------------------- */

static tern_unfold_options unfold_options(at::IntArrayRef dilation, at::IntArrayRef padding,
                                          at::IntArrayRef stride)
{
    tern_unfold_options options = tern_unfold_defaults();
    options.dilation = shape(dilation);
    options.padding = shape(padding);
    options.stride = shape(stride);
    return options;
}

static Tensor im2col(const Tensor &x, at::IntArrayRef kernel, at::IntArrayRef dilation,
                     at::IntArrayRef padding, at::IntArrayRef stride)
{
    SERVED("im2col");
    Frame frame;
    const auto options = unfold_options(dilation, padding, stride);
    return take(tern_unfold(lend(x), shape(kernel), &options), x.device().index(), "im2col");
}

static Tensor col2im(const Tensor &x, c10::SymIntArrayRef size, at::IntArrayRef kernel,
                     at::IntArrayRef dilation, at::IntArrayRef padding, at::IntArrayRef stride)
{
    SERVED("col2im");
    Frame frame;
    const auto options = unfold_options(dilation, padding, stride);
    return take(tern_fold(lend(x), shape(size), shape(kernel), &options), x.device().index(),
                "col2im");
}

/* ---- distances ------------------------------------------------------------------------------- */

static Tensor cdist_forward(const Tensor &x, const Tensor &y, double p, std::optional<int64_t>)
{
    SERVED("_cdist_forward");
    Frame frame;
    return take(tern_cdist(lend(x), lend(y), p), x.device().index(), "cdist");
}

static Tensor cdist_backward(const Tensor &grad, const Tensor &x, const Tensor &y, double p,
                             const Tensor &)
{
    SERVED("_cdist_backward");
    Frame frame;
    Tensors grads =
        gradients_of("_cdist_backward", [&](Tensors &in) { return tern_cdist(in[0], in[1], p); },
                     {lend(x), lend(y)}, lend(grad), {true, false});
    return take(grads[0], x.device().index(), "_cdist_backward");
}

static Tensor pdist_forward(const Tensor &x, double p)
{
    SERVED("_pdist_forward");
    Frame frame;
    return take(tern_pdist(lend(x), p), x.device().index(), "pdist");
}

static Tensor pdist_backward(const Tensor &grad, const Tensor &x, double p, const Tensor &)
{
    SERVED("_pdist_backward");
    return gradient_of(
        "_pdist_backward", [&](tern_tensor *in) { return tern_pdist(in, p); }, x, grad);
}

/* ---- weight norm ----------------------------------------------------------------------------- */

static std::tuple<Tensor, Tensor> weight_norm(const Tensor &v, const Tensor &g, int64_t dim)
{
    SERVED("_weight_norm_interface");
    const Tensor norms = at::norm_except_dim(v, 2, dim);
    return {v * (g / norms), norms};
}

static std::tuple<Tensor, Tensor> weight_norm_backward(const Tensor &grad, const Tensor &v,
                                                       const Tensor &g, const Tensor &norms,
                                                       int64_t dim)
{
    SERVED("_weight_norm_interface_backward");
    at::DimVector others;
    for (int64_t i = 0; i < v.dim(); i++)
        if (i != dim)
            others.push_back(i);
    const Tensor along = (grad * v).sum(others, true), scale = g / norms;
    const Tensor dg = along / norms;
    return {scale * (grad - v * along / (norms * norms)), dg};
}

} // namespace torch_tern

#define WITH_BACKWARD(NAME)                                                                        \
    library.impl(#NAME, &torch_tern::NAME);                                                        \
    library.impl(#NAME "_backward", &torch_tern::NAME##_backward)

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library)
{
    WITH_BACKWARD(upsample_nearest1d);
    WITH_BACKWARD(upsample_nearest2d);
    WITH_BACKWARD(upsample_nearest3d);
    WITH_BACKWARD(_upsample_nearest_exact1d);
    WITH_BACKWARD(_upsample_nearest_exact2d);
    WITH_BACKWARD(_upsample_nearest_exact3d);
    WITH_BACKWARD(upsample_linear1d);
    WITH_BACKWARD(upsample_bilinear2d);
    WITH_BACKWARD(upsample_bicubic2d);
    WITH_BACKWARD(_upsample_bilinear2d_aa);
    WITH_BACKWARD(_upsample_bicubic2d_aa);
    WITH_BACKWARD(upsample_trilinear3d);
    WITH_BACKWARD(reflection_pad1d);
    WITH_BACKWARD(reflection_pad2d);
    WITH_BACKWARD(reflection_pad3d);
    WITH_BACKWARD(replication_pad1d);
    WITH_BACKWARD(replication_pad2d);
    WITH_BACKWARD(replication_pad3d);
    library.impl("grid_sampler_2d", &torch_tern::grid_sampler);
    library.impl("grid_sampler_3d", &torch_tern::grid_sampler);
    library.impl("grid_sampler_2d_backward", &torch_tern::grid_sampler_backward);
    library.impl("grid_sampler_3d_backward", &torch_tern::grid_sampler_backward);
    library.impl("im2col", &torch_tern::im2col);
    library.impl("col2im", &torch_tern::col2im);
    library.impl("_cdist_forward", &torch_tern::cdist_forward);
    library.impl("_cdist_backward", &torch_tern::cdist_backward);
    library.impl("_pdist_forward", &torch_tern::pdist_forward);
    library.impl("_pdist_backward", &torch_tern::pdist_backward);
    library.impl("_weight_norm_interface", &torch_tern::weight_norm);
    library.impl("_weight_norm_interface_backward", &torch_tern::weight_norm_backward);
}
