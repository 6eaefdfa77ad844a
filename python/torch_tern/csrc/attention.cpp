/* attention.cpp -- scaled_dot_product_attention as one operation of tern's, and recurrent cells. */
#include "torch_tern.h"
#include <ATen/native/transformers/sdp_utils_cpp.h>

namespace torch_tern
{

/* ---- attention ------------------------------------------------------------------------------- */

static tern_scaled_dot_product_attention_options attention_options(const OptionalTensor &mask,
                                                                   double dropout_p, bool is_causal,
                                                                   std::optional<double> scale)
{
    auto options = tern_scaled_dot_product_attention_defaults();
    options.attn_mask = lend(mask);
    options.dropout_p = dropout_p;
    options.is_causal = is_causal;
    if (scale)
        options.scale = *scale;
    return options;
}

/* One operation for (N, heads, L, E); PyTorch takes others apart. Keys that groups of heads share
 * (enable_gqa) are repeated there, and masks with gradients are added there. */
static int64_t fused_sdp_choice(const Tensor &query, const Tensor &, const Tensor &,
                                const OptionalTensor &mask, double, bool, std::optional<double>,
                                bool enable_gqa)
{
    const bool is_fused =
        query.dim() == 4 && !enable_gqa && !(mask && mask->defined() && mask->requires_grad());
    return static_cast<int64_t>(is_fused ? sdp::SDPBackend::overrideable : sdp::SDPBackend::math);
}

static std::tuple<Tensor, Tensor, Tensor, Tensor, c10::SymInt, c10::SymInt, Tensor, Tensor, Tensor>
fused_attention(const Tensor &query, const Tensor &key, const Tensor &value,
                const OptionalTensor &mask, double dropout_p, bool is_causal, bool,
                std::optional<double> scale)
{
    SERVED("_scaled_dot_product_fused_attention_overrideable");
    Frame frame;
    const char *const name = "scaled_dot_product_attention";
    const auto options = attention_options(mask, dropout_p, is_causal, scale);
    auto forward = [&](Tensors &in) {
        return tern_scaled_dot_product_attention(in[0], in[1], in[2], &options);
    };
    std::shared_ptr<Recorded> recorded;
    Tensors inputs = {lend(query), lend(key), lend(value)};
    tern_tensor *result =
        wants_gradient({&query, &key, &value})
            ? record(name, forward, inputs,
                     {query.requires_grad(), key.requires_grad(), value.requires_grad()}, &recorded)
            : forward(inputs);
    Tensor output = take(result, query.device().index(), name);
    Tensor logsumexp = at::empty({0}, query.options().dtype(at::kFloat));
    Tensor none = at::empty({0}, query.options().dtype(at::kLong));
    block_of(logsumexp)->recorded = std::move(recorded);
    return {output, logsumexp, none, none, query.size(2), key.size(2), none, none, logsumexp};
}

static std::tuple<Tensor, Tensor, Tensor, Tensor> fused_attention_backward(
    const Tensor &grad, const Tensor &query, const Tensor &key, const Tensor &value,
    const Tensor &mask, std::array<bool, 4> wanted, const Tensor &, const Tensor &logsumexp,
    const Tensor &, const Tensor &, c10::SymInt, c10::SymInt, double dropout_p, bool is_causal,
    const Tensor &, const Tensor &, std::optional<double> scale)
{
    SERVED("_scaled_dot_product_fused_attention_overrideable_backward");
    Frame frame;
    const char *const name = "scaled_dot_product_attention";
    const int device = query.device().index();
    Tensors grads;
    if (block_of(logsumexp) && block_of(logsumexp)->recorded) {
        grads = gradients_of(name, *block_of(logsumexp)->recorded, lend(grad),
                             {wanted[0], wanted[1], wanted[2]});
    } else {
        TORCH_CHECK(dropout_p == 0, name, ": the forward call with dropout was not recorded");
        const auto options = attention_options(
            mask.defined() ? OptionalTensor(mask) : OptionalTensor(), 0, is_causal, scale);
        grads = gradients_of(
            name,
            [&](Tensors &in) {
                return tern_scaled_dot_product_attention(in[0], in[1], in[2], &options);
            },
            {lend(query), lend(key), lend(value)}, lend(grad), {wanted[0], wanted[1], wanted[2]});
    }
    return {take_if(grads[0], device, name), take_if(grads[1], device, name),
            take_if(grads[2], device, name), Tensor()};
}

/* ---- recurrent cells: PyTorch asks devices other than the cpu for these ---------------------- */

static std::tuple<Tensor, Tensor, Tensor> lstm_cell(const Tensor &input_gates,
                                                    const Tensor &hidden_gates, const Tensor &cx,
                                                    const OptionalTensor &input_bias,
                                                    const OptionalTensor &hidden_bias)
{
    SERVED("_thnn_fused_lstm_cell");
    Tensor gates = input_gates + hidden_gates;
    if (input_bias && input_bias->defined())
        gates = gates + *input_bias + *hidden_bias;
    const auto parts = gates.chunk(4, 1);
    const Tensor i = parts[0].sigmoid(), f = parts[1].sigmoid(), g = parts[2].tanh(),
                 o = parts[3].sigmoid();
    const Tensor cy = f * cx + i * g;
    return {o * cy.tanh(), cy, at::cat({i, f, g, o}, 1)};
}

static std::tuple<Tensor, Tensor, Tensor> lstm_cell_backward(const OptionalTensor &grad_hy,
                                                             const OptionalTensor &grad_cy,
                                                             const Tensor &cx, const Tensor &cy,
                                                             const Tensor &workspace, bool has_bias)
{
    SERVED("_thnn_fused_lstm_cell_backward_impl");
    const auto parts = workspace.chunk(4, 1);
    const Tensor &i = parts[0], &f = parts[1], &g = parts[2], &o = parts[3];
    const Tensor t = cy.tanh();
    const Tensor dh = grad_hy && grad_hy->defined() ? *grad_hy : at::zeros_like(cy);
    Tensor dc = dh * o * (1 - t * t);
    if (grad_cy && grad_cy->defined())
        dc = dc + *grad_cy;
    const Tensor gates = at::cat(
        {dc * g * i * (1 - i), dc * cx * f * (1 - f), dc * i * (1 - g * g), dh * t * o * (1 - o)},
        1);
    return {gates, dc * f, has_bias ? gates.sum(0) : Tensor()};
}

/* Workspace: reset gate, update gate, candidate, previous state, the candidate's hidden part. */
static std::tuple<Tensor, Tensor> gru_cell(const Tensor &input_gates, const Tensor &hidden_gates,
                                           const Tensor &hx, const OptionalTensor &input_bias,
                                           const OptionalTensor &hidden_bias)
{
    SERVED("_thnn_fused_gru_cell");
    const bool has_bias = input_bias && input_bias->defined();
    const auto in = (has_bias ? input_gates + *input_bias : input_gates).chunk(3, 1);
    const auto hidden = (has_bias ? hidden_gates + *hidden_bias : hidden_gates).chunk(3, 1);
    const Tensor r = (in[0] + hidden[0]).sigmoid(), z = (in[1] + hidden[1]).sigmoid();
    const Tensor n = (in[2] + r * hidden[2]).tanh();
    return {n + z * (hx - n), at::cat({r, z, n, hx, hidden[2]}, 1)};
}

static std::tuple<Tensor, Tensor, Tensor, Tensor, Tensor> gru_cell_backward(const Tensor &grad,
                                                                            const Tensor &workspace,
                                                                            bool has_bias)
{
    SERVED("_thnn_fused_gru_cell_backward");
    const auto parts = workspace.chunk(5, 1);
    const Tensor &r = parts[0], &z = parts[1], &n = parts[2], &hx = parts[3], &hn = parts[4];
    const Tensor dn = grad * (1 - z) * (1 - n * n), dz = grad * (hx - n) * z * (1 - z);
    const Tensor dr = dn * hn * r * (1 - r);
    const Tensor of_input = at::cat({dr, dz, dn}, 1), of_hidden = at::cat({dr, dz, dn * r}, 1);
    return {of_input, of_hidden, grad * z, has_bias ? of_input.sum(0) : Tensor(),
            has_bias ? of_hidden.sum(0) : Tensor()};
}

} // namespace torch_tern

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library)
{
    using namespace torch_tern;
    library.impl("_fused_sdp_choice", &fused_sdp_choice);
    library.impl("_scaled_dot_product_fused_attention_overrideable", &fused_attention);
    library.impl("_scaled_dot_product_fused_attention_overrideable_backward",
                 &fused_attention_backward);
    library.impl("_thnn_fused_lstm_cell", &lstm_cell);
    library.impl("_thnn_fused_lstm_cell_backward_impl", &lstm_cell_backward);
    library.impl("_thnn_fused_gru_cell", &gru_cell);
    library.impl("_thnn_fused_gru_cell_backward", &gru_cell_backward);
}
