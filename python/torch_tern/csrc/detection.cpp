/* detection.cpp -- torchvision's operations of detection networks, composed of PyTorch's: nms and
 * roi_align with its backward. They wait for torchvision, which declares them when it is loaded. */
#include "torch_tern.h"
#include <ATen/ops/grid_sampler_2d.h>
#include <ATen/ops/grid_sampler_2d_backward.h>
#include <array>
#include <map>

namespace torch_tern
{

/* ---- non-maximum suppression ----------------------------------------------------------------- */

/* Rows first to last of the boxes (N, 4): which boxes (last - first, N) overlap them by more than
 * the threshold, on the host. */
static Tensor overlaps(const Tensor &boxes, const Tensor &areas, int64_t first, int64_t last,
                       double threshold)
{
    const Tensor rows = boxes.slice(0, first, last).unsqueeze(1);
    const Tensor low = at::maximum(rows.slice(2, 0, 2), boxes.slice(1, 0, 2));
    const Tensor high = at::minimum(rows.slice(2, 2, 4), boxes.slice(1, 2, 4));
    const Tensor sides = (high - low).clamp_min(0);
    const Tensor inner = sides.select(2, 0) * sides.select(2, 1);
    const Tensor all = areas.slice(0, first, last).unsqueeze(1) + areas - inner;
    return (inner / all).gt(threshold).cpu();
}

/* The boxes (N, 4) that stay, in falling order of their scores (N): each suppresses those behind it
 * that overlap it. The device computes the overlaps, in pieces of at most 4 million, and the host
 * goes through them in order, as it needs the number of results anyway. */
static Tensor nms(const Tensor &boxes_, const Tensor &scores, double threshold)
{
    SERVED("nms");
    TORCH_CHECK(boxes_.dim() == 2 && boxes_.size(1) == 4, "boxes should be a 2d tensor of 4 ",
                "columns, got sizes ", boxes_.sizes());
    TORCH_CHECK(scores.dim() == 1 && scores.size(0) == boxes_.size(0),
                "scores should be a 1d tensor with as many elements as there are boxes, ",
                boxes_.size(0), ", got sizes ", scores.sizes());
    TORCH_CHECK(on_device(boxes_) && boxes_.device() == scores.device(),
                "Expected boxes and scores on the same device, but got ", boxes_.device(), " and ",
                scores.device());
    const int64_t n = boxes_.size(0);
    const auto options = boxes_.options().dtype(at::kLong);
    if (!n)
        return at::empty({0}, options);
    const Tensor order = std::get<1>(scores.sort(/*stable=*/true, /*dim=*/0, /*descending=*/true));
    const bool is_half = boxes_.element_size() < 4;
    const Tensor boxes =
        boxes_.index_select(0, order).to(is_half ? at::kFloat : boxes_.scalar_type());
    const Tensor sides = boxes.slice(1, 2, 4) - boxes.slice(1, 0, 2);
    const Tensor areas = sides.select(1, 0) * sides.select(1, 1);
    const int64_t rows = std::max<int64_t>(1, (int64_t)4000000 / n);
    std::vector<char> is_suppressed((size_t)n);
    std::vector<int64_t> kept;
    for (int64_t first = 0; first < n; first += rows) {
        const int64_t last = std::min(n, first + rows);
        const Tensor over = overlaps(boxes, areas, first, last, threshold).contiguous();
        const bool *row = over.const_data_ptr<bool>();
        for (int64_t i = first; i < last; i++, row += n) {
            if (is_suppressed[(size_t)i])
                continue;
            kept.push_back(i);
            for (int64_t j = i + 1; j < n; j++)
                is_suppressed[(size_t)j] |= (char)row[j];
        }
    }
    return order.index_select(0, at::tensor(kept, at::kLong).to(boxes.device()));
}

/* ---- roi_align ------------------------------------------------------------------------------- */

struct Pooling {
    double scale;
    int64_t rows, columns; /* of the result */
    int64_t samples;       /* of a cell, in each direction; <= 0: by the size of the region */
    bool aligned;
};

/* Regions of one image with as many samples of a cell. */
struct Regions {
    int64_t image, down, across; /* samples of a cell, one below and beside the other */
    Tensor which;                /* their indices */
};

/* How far regions (K) reach from low to high, in pixels. */
static Tensor extent(const Pooling &p, const Tensor &low, const Tensor &high)
{
    const double offset = p.aligned ? 0.5 : 0;
    const Tensor side = (high * p.scale - offset) - (low * p.scale - offset);
    return p.aligned ? side : side.clamp_min(1);
}

/* On the host, which goes through the regions to sort them. */
static std::vector<Regions> sorted(const Pooling &p, const Tensor &regions, int64_t images)
{
    const Tensor host = regions.cpu();
    auto samples = [&](int low, int64_t cells) {
        if (p.samples > 0)
            return at::full({host.size(0)}, p.samples, at::kLong);
        const Tensor side = extent(p, host.select(1, low), host.select(1, low + 2));
        return (side / cells).ceil().to(at::kLong).contiguous();
    };
    const Tensor image = host.select(1, 0).to(at::kLong).contiguous();
    const Tensor down = samples(2, p.rows), across = samples(1, p.columns);
    std::map<std::array<int64_t, 3>, std::vector<int64_t>> lists;
    for (int64_t i = 0; i < host.size(0); i++) {
        const std::array<int64_t, 3> key = {image.const_data_ptr<int64_t>()[i],
                                            down.const_data_ptr<int64_t>()[i],
                                            across.const_data_ptr<int64_t>()[i]};
        TORCH_CHECK_INDEX(key[0] >= 0 && key[0] < images, "roi_align: region ", i, " is of image ",
                          key[0], ", and there are ", images);
        if (key[1] > 0 && key[2] > 0)
            lists[key].push_back(i);
    }
    std::vector<Regions> all;
    for (const auto &[key, list] : lists)
        all.push_back({key[0], key[1], key[2], at::tensor(list, at::kLong).to(regions.device())});
    return all;
}

/* Where n cells of regions from low to high (K) are sampled, in pixels: (K, n * samples). */
static Tensor places(const Pooling &p, const Tensor &low, const Tensor &high, int64_t n,
                     int64_t samples)
{
    const Tensor start = low * p.scale - (p.aligned ? 0.5 : 0);
    const Tensor steps = (at::arange(n * samples, low.options()) + 0.5) / (double)samples;
    return start.unsqueeze(1) + steps * (extent(p, low, high) / (double)n).unsqueeze(1);
}

/* The places in an image of height x width pixels as grid_sampler takes them, for regions (K, 5)
 * below each other, (1, K * rows * down, columns * across, 2), and which of them are inside, as
 * ones and zeros (K, rows * down, columns * across). */
struct Grid {
    Tensor places, inside;
};

static Grid grid_of(const Pooling &p, const Regions &of, const Tensor &all, int64_t height,
                    int64_t width)
{
    const Tensor regions = all.index_select(0, of.which);
    const Tensor x = places(p, regions.select(1, 1), regions.select(1, 3), p.columns, of.across);
    const Tensor y = places(p, regions.select(1, 2), regions.select(1, 4), p.rows, of.down);
    const Tensor in_x = x.ge(-1).logical_and(x.le((double)width));
    const Tensor in_y = y.ge(-1).logical_and(y.le((double)height));
    const at::DimVector sizes = {regions.size(0), y.size(1), x.size(1)};
    auto along = [&](const Tensor &places, int64_t pixels, int64_t dim) {
        return ((places * 2 + 1) / (double)pixels - 1).unsqueeze(dim).expand(sizes);
    };
    Grid grid;
    grid.places = at::stack({along(x, width, 1), along(y, height, 2)}, -1)
                      .reshape({1, sizes[0] * sizes[1], sizes[2], 2});
    grid.inside = in_y.unsqueeze(2).logical_and(in_x.unsqueeze(1)).to(regions.scalar_type());
    return grid;
}

enum { bilinear = 0, border = 1 }; /* of grid_sampler_2d */

static void check_pooling(const char *name, const Tensor &x, const Tensor &regions)
{
    TORCH_CHECK(regions.dim() == 2 && regions.size(1) == 5, name,
                ": the regions should be a 2d tensor of 5 columns, got sizes ", regions.sizes());
    TORCH_CHECK(on_device(x) && x.device() == regions.device(), name,
                ": expected all tensors on the same device, but got ", x.device(), " and ",
                regions.device());
    TORCH_CHECK(x.scalar_type() == regions.scalar_type(), name,
                ": expected all tensors to have the same type, but got ", x.scalar_type(), " and ",
                regions.scalar_type());
}

/* The mean of the samples of each cell: (K, C, rows, columns). */
static Tensor roi_align(const Tensor &x, const Tensor &regions, double scale, c10::SymInt rows_,
                        c10::SymInt columns_, int64_t samples, bool aligned)
{
    SERVED("roi_align");
    check_pooling("roi_align", x, regions);
    const Pooling p{scale, rows_.expect_int(), columns_.expect_int(), samples, aligned};
    Tensor result = at::zeros({regions.size(0), x.size(1), p.rows, p.columns}, x.options());
    for (const Regions &of : sorted(p, regions, x.size(0))) {
        const int64_t k = of.which.size(0);
        const Grid grid = grid_of(p, of, regions, x.size(2), x.size(3));
        const Tensor sampled = at::grid_sampler_2d(x.slice(0, of.image, of.image + 1), grid.places,
                                                   bilinear, border, false);
        const Tensor cells =
            sampled.reshape({x.size(1), k, p.rows * of.down, p.columns * of.across})
                .mul(grid.inside);
        const Tensor means = cells.view({x.size(1), k, p.rows, of.down, p.columns, of.across})
                                 .mean(at::IntArrayRef{3, 5});
        result.index_copy_(0, of.which, means.transpose(0, 1));
    }
    return result;
}

static Tensor roi_align_backward(const Tensor &grad, const Tensor &regions, double scale,
                                 c10::SymInt rows_, c10::SymInt columns_, c10::SymInt batch,
                                 c10::SymInt channels, c10::SymInt height_, c10::SymInt width_,
                                 int64_t samples, bool aligned)
{
    SERVED("_roi_align_backward");
    check_pooling("_roi_align_backward", grad, regions);
    const Pooling p{scale, rows_.expect_int(), columns_.expect_int(), samples, aligned};
    const int64_t c = channels.expect_int();
    const int64_t height = height_.expect_int(), width = width_.expect_int();
    Tensor result = at::zeros({batch.expect_int(), c, height, width}, grad.options());
    for (const Regions &of : sorted(p, regions, result.size(0))) {
        const int64_t k = of.which.size(0), h = p.rows * of.down, w = p.columns * of.across;
        const Grid grid = grid_of(p, of, regions, height, width);
        const Tensor means =
            grad.index_select(0, of.which).transpose(0, 1) / (double)(of.down * of.across);
        const Tensor cells =
            means.unsqueeze(3).unsqueeze(5).expand({c, k, p.rows, of.down, p.columns, of.across});
        const Tensor sampled = cells.reshape({c, k, h, w}).mul(grid.inside);
        Tensor image = result.slice(0, of.image, of.image + 1);
        const auto grads =
            at::grid_sampler_2d_backward(sampled.view({1, c, k * h, w}), image, grid.places,
                                         bilinear, border, false, {true, false});
        image.add_(std::get<0>(grads));
    }
    return result;
}

} // namespace torch_tern

TORCH_LIBRARY_IMPL(torchvision, PrivateUse1, library)
{
    using namespace torch_tern;
    library.impl("nms", &torch_tern::nms);
    library.impl("roi_align", &torch_tern::roi_align);
    library.impl("_roi_align_backward", &torch_tern::roi_align_backward);
}
