/* indexing.cpp -- x[i, :, j], embeddings, places of elements. */
#include "torch_tern.h"
#include <ATen/core/List.h>

namespace torch_tern
{

using Indices = c10::List<std::optional<Tensor>>;

/* The index tensors that are given, and the dims that they index. */
struct Places {
    Tensors indices;
    std::vector<int> dims;
    std::vector<Tensor> kept; /* what masks became */
    bool is_front = true;     /* dims are 0, 1, ... */
    bool is_together = true;  /* dims are neighbours */
};

static Places places_of(const Indices &list, int device)
{
    Places places;
    int dim = 0;
    for (size_t i = 0; i < list.size(); i++) {
        const std::optional<Tensor> index = list.get(i);
        if (!index || !index->defined()) {
            dim++;
        } else if (index->scalar_type() == at::kBool || index->scalar_type() == at::kByte) {
            const Tensor where = index->nonzero();
            for (int64_t k = 0; k < index->dim(); k++) {
                places.kept.push_back(where.select(1, k).contiguous());
                places.indices.push_back(lend_to(places.kept.back(), device));
                places.dims.push_back(dim++);
            }
        } else {
            places.indices.push_back(lend_to(*index, device));
            places.dims.push_back(dim++);
        }
    }
    for (size_t i = 0; i < places.dims.size(); i++) {
        places.is_front = places.is_front && places.dims[i] == (int)i;
        places.is_together = places.is_together && places.dims[i] == places.dims[0] + (int)i;
    }
    return places;
}

/* x with the dims that are indexed first. */
static tern_tensor *indexed_first(tern_tensor *x, const Places &places)
{
    if (places.is_front)
        return x;
    tern_shape order{};
    std::vector<bool> seen((size_t)tern_dim(x));
    for (int dim : places.dims) {
        order.dims[order.ndim++] = dim;
        seen[(size_t)dim] = true;
    }
    for (int dim = 0; dim < tern_dim(x); dim++)
        if (!seen[(size_t)dim])
            order.dims[order.ndim++] = dim;
    return tern_permute(x, order);
}

static Tensor index(const Tensor &x, const Indices &list)
{
    SERVED("index.Tensor");
    Frame frame;
    const int device = x.device().index();
    const Places places = places_of(list, device);
    tern_tensor *result = tern_index_list(indexed_first(lend(x), places),
                                          const_cast<tern_tensor **>(places.indices.data()),
                                          (int)places.indices.size());
    check(result != nullptr, "index");
    if (!places.is_front && places.is_together) { /* the indices' dims go where the first was */
        const int n = tern_dim(result) - ((int)x.dim() - (int)places.dims.size());
        const int first = places.dims[0];
        tern_shape order{};
        for (int i = 0; i < first; i++)
            order.dims[order.ndim++] = n + i;
        for (int i = 0; i < n; i++)
            order.dims[order.ndim++] = i;
        for (int i = n + first; i < tern_dim(result); i++)
            order.dims[order.ndim++] = i;
        result = tern_permute(result, order);
    }
    return take(result, device, "index");
}

/* Values (before, index, after) as (index, before, after), the indexed dims being in between. */
static tern_tensor *values_first(tern_tensor *values, const Tensor &x, const Places &places)
{
    int n = 0;
    for (tern_tensor *index : places.indices)
        n = std::max(n, tern_dim(index));
    const int rest = (int)x.dim() - (int)places.dims.size(), first = places.dims[0];
    if (places.is_front || !places.is_together || first == 0 || tern_dim(values) <= rest - first)
        return values;
    while (tern_dim(values) < n + rest)
        values = tern_unsqueeze(values, 0);
    tern_shape order{};
    for (int i = 0; i < n; i++)
        order.dims[order.ndim++] = first + i;
    for (int i = 0; i < first; i++)
        order.dims[order.ndim++] = i;
    for (int i = first + n; i < n + rest; i++)
        order.dims[order.ndim++] = i;
    return tern_permute(values, order);
}

static Tensor &index_put_impl_(Tensor &x, const Indices &list, const Tensor &values,
                               bool accumulate, bool)
{
    SERVED("_index_put_impl_");
    Frame frame;
    const int device = x.device().index();
    const Places places = places_of(list, device);
    tern_tensor *to = indexed_first(lend(x), places);
    tern_tensor *from = values_first(lend_to(values, device), x, places);
    check(tern_index_put_(to, const_cast<tern_tensor **>(places.indices.data()),
                          (int)places.indices.size(), from, accumulate) != nullptr,
          "index_put_");
    return x;
}

static Tensor nonzero(const Tensor &x)
{
    SERVED("nonzero");
    Frame frame;
    return take(tern_nonzero(lend(x)), x.device().index(), "nonzero");
}

static bool equal(const Tensor &a, const Tensor &b)
{
    SERVED("equal");
    return a.sizes() == b.sizes() && (!a.numel() || a.eq(b).all().item<bool>());
}

/* ---- embeddings ------------------------------------------------------------------------------ */

static Tensor embedding_dense_backward(const Tensor &grad, const Tensor &indices, c10::SymInt rows,
                                       c10::SymInt padding, bool scale_grad_by_freq)
{
    SERVED("embedding_dense_backward");
    Frame frame;
    const int device = grad.device().index();
    tern_embedding_function_options options = tern_embedding_function_defaults();
    if (padding.expect_int() >= 0)
        options.padding_idx = tern_some(padding.expect_int());
    options.scale_grad_by_freq = scale_grad_by_freq;
    tern_tensor *places = lend(indices);
    tern_tensor *weight = tern_zeros(TERN_SHAPE(rows.expect_int(), grad.size(-1)),
                                     dtype_of(grad.scalar_type()), device_name(device));
    Tensors grads =
        gradients_of("embedding_dense_backward",
                     [&](Tensors &in) { return tern_embedding(places, in[0], &options); }, {weight},
                     lend(grad), {true});
    return take(grads[0], device, "embedding_dense_backward");
}

static Tensor &embedding_renorm_(Tensor &weight, const Tensor &indices, double max_norm,
                                 double norm_type)
{
    SERVED("embedding_renorm_");
    const Tensor rows = indices.reshape({-1}), chosen = weight.index_select(0, rows);
    const Tensor norms = at::linalg_vector_norm(chosen, norm_type, {1}, true);
    const Tensor scale = at::where(norms > max_norm, max_norm / (norms + 1e-7), 1);
    return weight.index_put_({rows}, chosen * scale);
}

/* ---- equal elements -------------------------------------------------------------------------- */

static std::tuple<Tensor, Tensor, Tensor> unique2(const Tensor &x, bool sorted, bool return_inverse,
                                                  bool return_counts)
{
    SERVED("_unique2");
    Frame frame;
    const int device = x.device().index();
    tern_value values[] = {tern_value_tensor("input", lend(x)), tern_value_bool("sorted", sorted),
                           tern_value_bool("return_inverse", true),
                           tern_value_bool("return_counts", true)};
    static const tern_named_op *const op = tern_op_by_name("unique");
    tern_tensor *out[3] = {nullptr};
    check(tern_named_op_call(op, values, 4, out, 3) >= 1, "_unique2");
    const auto none = [&] { return at::empty({0}, x.options().dtype(at::kLong)); };
    return {take(out[0], device, "_unique2"),
            return_inverse ? take(out[1], device, "_unique2") : none(),
            return_counts ? take(out[2], device, "_unique2") : none()};
}

static std::tuple<Tensor, Tensor, Tensor> unique_consecutive(const Tensor &x, bool return_inverse,
                                                             bool return_counts,
                                                             std::optional<int64_t> dim)
{
    SERVED("unique_consecutive");
    Frame frame;
    const int device = x.device().index();
    tern_value values[] = {tern_value_tensor("input", lend(x)),
                           tern_value_bool("return_inverse", true),
                           tern_value_bool("return_counts", true),
                           dim ? tern_value_int("dim", *dim) : tern_value_none("dim")};
    static const tern_named_op *const op = tern_op_by_name("unique_consecutive");
    tern_tensor *out[3] = {nullptr};
    check(tern_named_op_call(op, values, 4, out, 3) >= 1, "unique_consecutive");
    const auto none = [&] { return at::empty({0}, x.options().dtype(at::kLong)); };
    return {take(out[0], device, "unique_consecutive"),
            return_inverse ? take(out[1], device, "unique_consecutive") : none(),
            return_counts ? take(out[2], device, "unique_consecutive") : none()};
}

static std::tuple<Tensor, Tensor> unique(const Tensor &x, bool sorted, bool return_inverse)
{
    const auto results = unique2(x, sorted, return_inverse, false);
    return {std::get<0>(results), std::get<1>(results)};
}

/* i, repeats[i] times, for each i. */
static Tensor repeat_interleave(const Tensor &repeats, std::optional<c10::SymInt> output_size)
{
    SERVED("repeat_interleave.Tensor");
    TORCH_CHECK(repeats.dim() == 1, "repeat_interleave only accept 1D vector as repeat");
    const Tensor ends = repeats.cumsum(0);
    const int64_t total = output_size    ? output_size->expect_int()
                          : ends.numel() ? ends[-1].item<int64_t>()
                                         : 0;
    const Tensor places = at::arange(total, repeats.options().dtype(at::kLong));
    return at::searchsorted(ends, places, false, true).to(repeats.scalar_type());
}

static Tensor unfold_backward(const Tensor &grad, c10::SymIntArrayRef sizes, int64_t dim,
                              int64_t size, int64_t step)
{
    SERVED("unfold_backward");
    Frame frame;
    const int device = grad.device().index();
    tern_tensor *zeros =
        tern_zeros(shape(sizes), dtype_of(grad.scalar_type()), device_name(device));
    Tensors grads =
        gradients_of("unfold_backward",
                     [&](Tensors &in) { return tern_unfold_dim(in[0], (int)dim, size, step); },
                     {zeros}, lend(grad), {true});
    return take(grads[0], device, "unfold_backward");
}

static Tensor histc(const Tensor &x, int64_t bins, const at::Scalar &low, const at::Scalar &high)
{
    SERVED("histc");
    Frame frame;
    const bool is_integer = at::isIntegralType(x.scalar_type(), false);
    tern_tensor *in = is_integer ? tern_to_dtype(lend(x), TERN_F32) : lend(x);
    tern_tensor *result = tern_histc(in, bins, low.toDouble(), high.toDouble());
    return take(is_integer ? tern_to_dtype(result, dtype_of(x.scalar_type())) : result,
                x.device().index(), "histc");
}

} // namespace torch_tern

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library)
{
    using namespace torch_tern;
    library.impl("index.Tensor", &torch_tern::index);
    library.impl("_index_put_impl_", &index_put_impl_);
    library.impl("nonzero", &torch_tern::nonzero);
    library.impl("equal", &torch_tern::equal);
    library.impl("embedding_dense_backward", &torch_tern::embedding_dense_backward);
    library.impl("embedding_renorm_", &torch_tern::embedding_renorm_);
    library.impl("_unique2", &unique2);
    library.impl("unique_consecutive", &torch_tern::unique_consecutive);
    library.impl("_unique", &torch_tern::unique);
    library.impl("repeat_interleave.Tensor", &torch_tern::repeat_interleave);
    library.impl("unfold_backward", &torch_tern::unfold_backward);
    library.impl("histc", &torch_tern::histc);
}
