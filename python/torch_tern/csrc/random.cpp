/* random.cpp -- random numbers by the generator that a call names, or the device's own. */
#include "torch_tern.h"
#include <cmath>
#include <limits>

namespace torch_tern
{

using OptionalGenerator = std::optional<at::Generator>;

/* While it lives the device draws from the given generator, which then goes on where it stopped. */
struct Drawing {
    OptionalGenerator generator;
    const char *device;
    tern_rng_state before{};

    Drawing(const OptionalGenerator &given, int index) : device(device_name(index))
    {
        if (!given || !given->defined() || *given == default_generator(index))
            return;
        TORCH_CHECK(given->device().type() == device_type, "Expected a '",
                    c10::Device(device_type, (c10::DeviceIndex)index),
                    "' device type for generator but found '", given->device(), "'");
        generator = given;
        const tern_rng_state start{given->current_seed(), given->get_offset()};
        check(tern_get_rng_state(device, &before), "generator");
        check(tern_set_rng_state(device, &start), "generator");
    }
    ~Drawing()
    {
        if (!generator)
            return;
        tern_rng_state end{};
        tern_get_rng_state(device, &end);
        generator->set_offset(end.offset);
        tern_set_rng_state(device, &before);
    }
};

static Tensor &uniform_(Tensor &x, double from, double to, OptionalGenerator generator)
{
    SERVED("uniform_");
    if (x.is_complex()) {
        at::view_as_real(x).uniform_(from, to, generator);
        return x;
    }
    Frame frame;
    Drawing drawing(generator, x.device().index());
    check(!x.numel() || tern_uniform_(lend(x), from, to), "uniform_");
    return x;
}

static Tensor &normal_(Tensor &x, double mean, double std, OptionalGenerator generator)
{
    SERVED("normal_");
    TORCH_CHECK(std >= 0, "normal expects std >= 0.0, but found std ", std);
    if (x.is_complex()) { /* whose parts have half of the variance each */
        at::view_as_real(x).normal_(mean, std / std::sqrt(2.0), generator);
        return x;
    }
    Frame frame;
    Drawing drawing(generator, x.device().index());
    check(!x.numel() || tern_normal_(lend(x), mean, std), "normal_");
    return x;
}

static Tensor normal_of(const Tensor &mean, const Tensor &std, OptionalGenerator generator)
{
    Tensor x = at::empty(at::infer_size(mean.sizes(), std.sizes()), mean.options());
    return x.normal_(0, 1, generator).mul_(std).add_(mean);
}

static Tensor normal_of_mean(const Tensor &mean, double std, OptionalGenerator generator)
{
    return at::empty_like(mean).normal_(0, std, generator).add_(mean);
}

static Tensor normal_of_std(double mean, const Tensor &std, OptionalGenerator generator)
{
    return at::empty_like(std).normal_(0, 1, generator).mul_(std).add_(mean);
}

static Tensor &bernoulli_float_(Tensor &x, double p, OptionalGenerator generator)
{
    SERVED("bernoulli_.float");
    Frame frame;
    Drawing drawing(generator, x.device().index());
    check(!x.numel() || tern_bernoulli_(lend(x), p), "bernoulli_");
    return x;
}

static Tensor bernoulli(const Tensor &p, OptionalGenerator generator)
{
    SERVED("bernoulli");
    Frame frame;
    Drawing drawing(generator, p.device().index());
    return take(tern_bernoulli(lend(p)), p.device().index(), "bernoulli");
}

static Tensor &bernoulli_tensor_(Tensor &x, const Tensor &p, OptionalGenerator generator)
{
    SERVED("bernoulli_.Tensor");
    Frame frame;
    Drawing drawing(generator, x.device().index());
    tern_tensor *probabilities = tern_expand(lend_to(p, x.device().index()), shape(x.sizes()));
    check(!x.numel() || tern_copy_(lend(x), tern_bernoulli(probabilities)), "bernoulli_");
    return x;
}

static Tensor multinomial(const Tensor &weights, c10::SymInt n, bool replacement,
                          OptionalGenerator generator)
{
    SERVED("multinomial");
    Frame frame;
    Drawing drawing(generator, weights.device().index());
    return take(tern_multinomial(lend(weights), n.expect_int(), replacement),
                weights.device().index(), "multinomial");
}

static Tensor &random_from_(Tensor &x, int64_t from, std::optional<int64_t> to,
                            OptionalGenerator generator)
{
    SERVED("random_.from");
    if (!x.numel())
        return x;
    Frame frame;
    Drawing drawing(generator, x.device().index());
    const int64_t end = to ? *to : std::numeric_limits<int64_t>::max();
    tern_tensor *drawn =
        tern_randint(from, end, shape(x.sizes()), TERN_I64, device_name(x.device().index()));
    check(drawn && tern_copy_(lend(x), drawn), "random_");
    return x;
}

static Tensor &random_to_(Tensor &x, int64_t to, OptionalGenerator generator)
{
    return random_from_(x, 0, to, generator);
}

/* One past the largest number that random_() draws for a dtype. */
static int64_t end_of_random(at::ScalarType type)
{
    switch (type) {
    case at::kDouble:
        return INT64_C(1) << 53;
    case at::kFloat:
        return INT64_C(1) << 24;
    case at::kHalf:
        return INT64_C(1) << 11;
    case at::kBFloat16:
        return INT64_C(1) << 8;
    case at::kBool:
        return 2;
    case at::kByte:
        return 256;
    case at::kChar:
        return 128;
    case at::kShort:
        return 32768;
    case at::kInt:
        return INT64_C(1) << 31;
    default:
        return std::numeric_limits<int64_t>::max();
    }
}

static Tensor &random_(Tensor &x, OptionalGenerator generator)
{
    return random_from_(x, 0, end_of_random(x.scalar_type()), generator);
}

static Tensor randperm(c10::SymInt n, OptionalGenerator generator,
                       std::optional<at::ScalarType> dtype, std::optional<at::Layout>,
                       std::optional<at::Device> device, std::optional<bool>)
{
    SERVED("randperm.generator");
    Frame frame;
    const int index = index_of(device);
    Drawing drawing(generator, index);
    return take(
        tern_randperm(n.expect_int(), dtype_of(dtype.value_or(at::kLong)), device_name(index)),
        index, "randperm");
}

/* What torch.randperm without a generator asks for. */
static Tensor &randperm_out(c10::SymInt n, OptionalGenerator generator, Tensor &out)
{
    SERVED("randperm.generator_out");
    TORCH_CHECK(n >= 0, "n must be non-negative, got ", n);
    out.resize_({n.expect_int()});
    if (!out.numel())
        return out;
    Frame frame;
    const int index = out.device().index();
    Drawing drawing(generator, index);
    put(tern_randperm(n.expect_int(), dtype_of(out.scalar_type()), device_name(index)), out,
        "randperm");
    return out;
}

/* ---- distributions, by inverting their distribution functions -------------------------------- */

/* Uniform in (0, 1]: its logarithm is finite. */
static Tensor positive_uniform(const Tensor &x, const OptionalGenerator &generator)
{
    const auto type = x.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
    return at::empty(x.sizes(), x.options().dtype(type)).uniform_(0, 1, generator).neg_().add_(1);
}

static Tensor &exponential_(Tensor &x, double lambda, OptionalGenerator generator)
{
    TORCH_CHECK(lambda > 0, "exponential_ expects lambda > 0.0, but found lambda=", lambda);
    x.copy_(positive_uniform(x, generator).log_().mul_(-1 / lambda));
    return x;
}

static Tensor &geometric_(Tensor &x, double p, OptionalGenerator generator)
{
    TORCH_CHECK(p > 0 && p < 1, "geometric_ expects p to be in (0, 1), but got p=", p);
    x.copy_(positive_uniform(x, generator).log_().div_(std::log1p(-p)).ceil_().clamp_min_(1));
    return x;
}

static Tensor &log_normal_(Tensor &x, double mean, double std, OptionalGenerator generator)
{
    TORCH_CHECK(std > 0, "log_normal_ expects std > 0.0, but found std=", std);
    return x.normal_(mean, std, generator).exp_();
}

static Tensor &cauchy_(Tensor &x, double median, double sigma, OptionalGenerator generator)
{
    TORCH_CHECK(sigma > 0, "cauchy_ expects sigma > 0.0, but found sigma=", sigma);
    x.copy_(positive_uniform(x, generator).sub_(0.5).mul_(M_PI).tan_().mul_(sigma).add_(median));
    return x;
}

/* ---- dropout --------------------------------------------------------------------------------- */

static std::tuple<Tensor, Tensor> native_dropout(const Tensor &x, double p,
                                                 std::optional<bool> train)
{
    SERVED("native_dropout");
    Frame frame;
    const int device = x.device().index();
    tern_tensor *lent = lend(x), *mask, *result;
    if ((train && !*train) || x.numel() == 0) {
        mask = tern_ones(shape(x.sizes()), TERN_BOOL, device_name(device));
        result = tern_clone(lent);
    } else {
        mask = tern_bernoulli_(tern_empty(shape(x.sizes()), TERN_BOOL, device_name(device)), 1 - p);
        result = tern_mul(lent, mask);
        result = tern_mul_scalar(result, tern_scalar_real(p == 1 ? 0 : 1 / (1 - p)));
    }
    return {take(result, device, "native_dropout"), take(mask, device, "native_dropout")};
}

static Tensor native_dropout_backward(const Tensor &grad, const Tensor &mask, double scale)
{
    SERVED("native_dropout_backward");
    Frame frame;
    tern_tensor *masked = tern_mul(lend(grad), lend(mask));
    return take(tern_mul_scalar(masked, tern_scalar_real(scale)), grad.device().index(),
                "native_dropout_backward");
}

} // namespace torch_tern

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library)
{
    using namespace torch_tern;
    library.impl("uniform_", &torch_tern::uniform_);
    library.impl("normal_", &torch_tern::normal_);
    library.impl("normal.Tensor_Tensor", &normal_of);
    library.impl("normal.Tensor_float", &normal_of_mean);
    library.impl("normal.float_Tensor", &normal_of_std);
    library.impl("bernoulli_.float", &bernoulli_float_);
    library.impl("bernoulli_.Tensor", &bernoulli_tensor_);
    library.impl("bernoulli", &torch_tern::bernoulli);
    library.impl("multinomial", &torch_tern::multinomial);
    library.impl("random_.from", &random_from_);
    library.impl("random_.to", &random_to_);
    library.impl("random_", &torch_tern::random_);
    library.impl("randperm.generator", &torch_tern::randperm);
    library.impl("randperm.generator_out", &randperm_out);
    library.impl("exponential_", &torch_tern::exponential_);
    library.impl("geometric_", &torch_tern::geometric_);
    library.impl("log_normal_", &torch_tern::log_normal_);
    library.impl("cauchy_", &torch_tern::cauchy_);
    library.impl("native_dropout", &torch_tern::native_dropout);
    library.impl("native_dropout_backward", &torch_tern::native_dropout_backward);
}
