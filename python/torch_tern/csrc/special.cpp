/* special.cpp -- functions and decompositions that are made of tern's operations. */
#include "torch_tern.h"

namespace torch_tern
{

/* ---- decompositions ---------------------------------------------------------------------------- */

using Three = std::tuple<Tensor, Tensor, Tensor>;

static Three linalg_svd(const Tensor &a, bool full_matrices, bool compute_uv,
                        std::optional<c10::string_view>)
{
    SERVED("_linalg_svd");
    Frame frame;
    const int device = a.device().index();
    if (!compute_uv)
        return {at::empty({0}, a.options()),
                take(tern_linalg_svdvals(lend(a)), device, "linalg_svd"),
                at::empty({0}, a.options())};
    tern_tensor *out[3];
    check(tern_linalg_svd(lend(a), full_matrices, out), "linalg_svd");
    return {take(out[0], device, "linalg_svd"), take(out[1], device, "linalg_svd"),
            take(out[2], device, "linalg_svd")};
}

/* What tern refuses, a matrix that is singular or not positive definite, PyTorch tells by info. */
template <class F>
static std::tuple<Tensor, Tensor> with_info(const char *operation, const Tensor &a, F call)
{
    Frame frame;
    const int device = a.device().index();
    tern_tensor *result = call(lend(a));
    const auto batch = a.sizes().slice(0, (size_t)a.dim() - 2);
    if (result)
        return {take(result, device, operation), at::zeros(batch, a.options().dtype(at::kInt))};
    const tern_status status = tern_last_status();
    if (status == TERN_ERR_MEMORY || status == TERN_ERR_DEVICE_LOST)
        throw_error(operation);
    const std::string reason = tern_last_error();
    tern_clear_error();
    note_fallback(std::string("aten::") + operation, reason);
    return {Tensor(), Tensor()};
}

static std::tuple<Tensor, Tensor> cholesky_ex(const Tensor &a, bool upper, bool check_errors)
{
    SERVED("linalg_cholesky_ex");
    auto results = with_info("linalg_cholesky_ex", a,
                             [&](tern_tensor *x) { return tern_linalg_cholesky(x, upper); });
    if (std::get<0>(results).defined())
        return results;
    const auto [factor, info] = at::linalg_cholesky_ex(a.cpu(), upper, check_errors);
    return {factor.to(a.device()), info.to(a.device())};
}

static std::tuple<Tensor, Tensor> inv_ex(const Tensor &a, bool check_errors)
{
    SERVED("linalg_inv_ex");
    auto results = with_info("linalg_inv_ex", a, tern_linalg_inv);
    if (std::get<0>(results).defined())
        return results;
    const auto [inverse, info] = at::linalg_inv_ex(a.cpu(), check_errors);
    return {inverse.to(a.device()), info.to(a.device())};
}

static Tensor cholesky_inverse(const Tensor &factor, bool upper)
{
    SERVED("cholesky_inverse");
    const Tensor identity = at::eye(factor.size(-1), factor.options()).expand_as(factor);
    return at::cholesky_solve(identity.contiguous(), factor, upper);
}

/* ---- elementwise ------------------------------------------------------------------------------- */

static Tensor entr(const Tensor &x)
{
    SERVED("special_entr");
    const Tensor y = x.is_floating_point() ? x : x.to(at::kFloat);
    const Tensor inside = -y * y.log();
    const Tensor outside = at::where(y == 0, at::zeros_like(y), at::full_like(y, -INFINITY));
    return at::where(y > 0, inside, at::where(y.isnan(), y, outside));
}

static Tensor xlog1py(const Tensor &x, const Tensor &y)
{
    SERVED("special_xlog1py");
    const Tensor product = x * y.log1p();
    return at::where((x == 0).logical_and(y.isnan().logical_not()), at::zeros_like(product),
                     product);
}

static Tensor angle(const Tensor &x)
{
    SERVED("angle");
    if (x.is_complex())
        return at::angle(x.cpu()).to(x.device());
    const Tensor y = x.is_floating_point() ? x : x.to(at::kFloat);
    const Tensor result = at::where(y < 0, at::full_like(y, M_PI), at::zeros_like(y));
    return at::where(y.isnan(), y, result);
}

static Tensor logit_backward(const Tensor &grad, const Tensor &x, std::optional<double> eps)
{
    SERVED("logit_backward");
    const Tensor slope = grad / (x * (1 - x));
    if (eps && *eps >= 0)
        return at::where((x < *eps).logical_or(x > 1 - *eps), at::zeros_like(slope), slope);
    return at::where((x < 0).logical_or(x > 1), at::full_like(slope, NAN), slope);
}

static Tensor &logspace_out(const at::Scalar &start, const at::Scalar &end, int64_t steps,
                            double base, Tensor &out)
{
    SERVED("logspace.out");
    const bool is_wide = out.scalar_type() == at::kDouble;
    const auto options = out.options().dtype(is_wide ? at::kDouble : at::kFloat);
    const Tensor powers = at::pow(base, at::linspace(start, end, steps, options));
    if (out.sizes() != powers.sizes())
        out.resize_({steps});
    return out.copy_(powers);
}

/* ---- orthogonal polynomials, by p[k + 1] = (a x + b) p[k] - c p[k - 1] ------------------------- */

struct Polynomial {
    double first, constant; /* p[1] = first x + constant */
    std::array<double, 3> (*recurrence)(double k);
};

static Tensor polynomial(const Polynomial &p, const Tensor &x_, const Tensor &n_)
{
    const auto tensors = at::broadcast_tensors({x_, n_});
    const bool is_wide = x_.scalar_type() == at::kDouble || n_.scalar_type() == at::kDouble;
    const Tensor x = tensors[0].to(is_wide ? at::kDouble : at::kFloat);
    const Tensor n = tensors[1].to(x.scalar_type()).trunc();
    const int64_t most = n.numel() ? (int64_t)n.max().item<double>() : -1;
    Tensor before = at::ones_like(x), now = x * p.first + p.constant;
    Tensor result = at::where(n == 0, before, at::zeros_like(x));
    for (int64_t k = 1; k <= most; k++) {
        result = at::where(n == (double)k, now, result);
        const auto [a, b, c] = p.recurrence((double)k);
        Tensor next = (x * a + b) * now - before * c;
        before = now;
        now = next;
    }
    return at::where(n.isnan(), n, result);
}

#define POLYNOMIAL(NAME, FIRST, CONSTANT, A, B, C)                                                 \
    static Tensor NAME(const Tensor &x, const Tensor &n)                                           \
    {                                                                                              \
        SERVED("special_" #NAME);                                                                  \
        static const Polynomial p = {FIRST, CONSTANT, [](double k) {                               \
                                         (void)k;                                                  \
                                         return std::array<double, 3>{A, B, C};                    \
                                     }};                                                           \
        return polynomial(p, x, n);                                                                \
    }
POLYNOMIAL(chebyshev_polynomial_t, 1, 0, 2, 0, 1)
POLYNOMIAL(chebyshev_polynomial_u, 2, 0, 2, 0, 1)
POLYNOMIAL(chebyshev_polynomial_v, 2, -1, 2, 0, 1)
POLYNOMIAL(chebyshev_polynomial_w, 2, 1, 2, 0, 1)
POLYNOMIAL(shifted_chebyshev_polynomial_t, 2, -1, 4, -2, 1)
POLYNOMIAL(shifted_chebyshev_polynomial_u, 4, -2, 4, -2, 1)
POLYNOMIAL(shifted_chebyshev_polynomial_v, 4, -3, 4, -2, 1)
POLYNOMIAL(shifted_chebyshev_polynomial_w, 4, -1, 4, -2, 1)
POLYNOMIAL(hermite_polynomial_h, 2, 0, 2, 0, 2 * k)
POLYNOMIAL(hermite_polynomial_he, 1, 0, 1, 0, k)
POLYNOMIAL(laguerre_polynomial_l, -1, 1, -1 / (k + 1), (2 * k + 1) / (k + 1), k / (k + 1))
POLYNOMIAL(legendre_polynomial_p, 1, 0, (2 * k + 1) / (k + 1), 0, k / (k + 1))

} // namespace torch_tern

#define SPECIAL(NAME) library.impl("special_" #NAME, &torch_tern::NAME)

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library)
{
    library.impl("_linalg_svd", &torch_tern::linalg_svd);
    library.impl("linalg_cholesky_ex", &torch_tern::cholesky_ex);
    library.impl("linalg_inv_ex", &torch_tern::inv_ex);
    library.impl("cholesky_inverse", &torch_tern::cholesky_inverse);
    library.impl("special_entr", &torch_tern::entr);
    library.impl("special_xlog1py", &torch_tern::xlog1py);
    library.impl("angle", &torch_tern::angle);
    library.impl("logit_backward", &torch_tern::logit_backward);
    library.impl("logspace.out", &torch_tern::logspace_out);
    SPECIAL(chebyshev_polynomial_t);
    SPECIAL(chebyshev_polynomial_u);
    SPECIAL(chebyshev_polynomial_v);
    SPECIAL(chebyshev_polynomial_w);
    SPECIAL(shifted_chebyshev_polynomial_t);
    SPECIAL(shifted_chebyshev_polynomial_u);
    SPECIAL(shifted_chebyshev_polynomial_v);
    SPECIAL(shifted_chebyshev_polynomial_w);
    SPECIAL(hermite_polynomial_h);
    SPECIAL(hermite_polynomial_he);
    SPECIAL(laguerre_polynomial_l);
    SPECIAL(legendre_polynomial_p);
}
