#!/usr/bin/env python3
"""transformer.py -- PyTorch's attention and transformer modules with gradients: prints transformer.txt.

For each case: the inputs in tern_nn_call's order "<case>.in<i>", the parameters, the results
"<case>.out<i>", and gradients ("....d") of the sum of the results times `weight_of` their shapes. Made
with PyTorch 1.13."""
import torch
from torch import nn

from golden import weight_of

torch.manual_seed(13)
torch.set_default_dtype(torch.float64)


def show(name, value):
    value = value.detach().contiguous()
    numbers = value.flatten().tolist()
    print(name, "bool" if value.dtype == torch.bool else "float64", value.dim(), *value.shape)
    print(*["%.12g" % v for v in numbers])


def rand(*shape):
    return (torch.randn(*shape) * 20).round() / 20


def run(name, model, inputs, forward):
    """forward(model, *inputs) gives a list of results."""
    with torch.no_grad():
        for p in model.parameters():
            p.copy_((torch.randn(p.shape) * 10).round() / 20)
    same = {}
    leaves = []
    for x in inputs:
        if x is not None and x.is_floating_point() and id(x) not in same and not x.isinf().any():
            same[id(x)] = x.requires_grad_(True)
        leaves.append(x)
    results = forward(model, *leaves)
    sum((r * weight_of(r)).sum() for r in results).backward()
    for i, x in enumerate(leaves):
        if x is None:
            continue
        if any(x is y for y in leaves[:i]):
            continue
        show(f"{name}.in{i}", x)
        if x.requires_grad:
            show(f"{name}.in{i}.d", x.grad)
    for i, r in enumerate(results):
        show(f"{name}.out{i}", r)
    for key, p in model.named_parameters():
        show(f"{name}.{key}", p)
        show(f"{name}.{key}.d", p.grad)


def attend(need_weights, average=True):
    def forward(m, q, k, v, padding=None, mask=None):
        y, w = m(q, k, v, padding, need_weights, mask, average)
        return [y, w] if need_weights else [y]
    return forward


def bools(*rows):
    return torch.tensor(rows).bool()


print("# made by transformer.py with PyTorch", torch.__version__)
MHA = nn.MultiheadAttention
x = rand(3, 2, 4)
run("self", MHA(4, 2), [x, x, x], attend(True))
x = rand(2, 3, 4)
causal = nn.Transformer.generate_square_subsequent_mask(3)
run("first", MHA(4, 2, batch_first=True), [x, x, x, None, causal], attend(False))
kv = rand(4, 2, 4)
run("memory", MHA(4, 2, bias=False),
    [rand(3, 2, 4), kv, kv, bools([0, 0, 1, 0], [1, 0, 0, 0]), torch.rand(4, 3, 4) < 0.3], attend(False))
run("extra", MHA(4, 2, add_bias_kv=True, add_zero_attn=True, kdim=3, vdim=2),
    [rand(3, 2, 4), rand(4, 2, 3), rand(4, 2, 2), bools([0, 0, 1, 0], [1, 0, 0, 0]),
     bools([0, 1, 0, 0], [0, 0, 0, 1], [1, 1, 0, 0])], attend(True, False))
run("numbers", MHA(4, 2, add_bias_kv=True, batch_first=True),
    [rand(2, 3, 4), rand(2, 4, 4), rand(2, 4, 4), bools([0, 0, 1, 0], [1, 0, 0, 0]), rand(3, 4)], attend(False))
run("single", MHA(4, 2), [rand(3, 4), rand(2, 4), rand(2, 4), None, rand(2, 3, 2)], attend(True))
run("alone", MHA(4, 1), [rand(3, 4), rand(2, 4), rand(2, 4), bools(0, 1)], attend(False))

POST = dict(dim_feedforward=3, dropout=0.0)
PRE = dict(POST, norm_first=True, activation="gelu", batch_first=True, layer_norm_eps=1e-3)


def plain(m, *inputs):
    return [m(*inputs)]


run("encoder_layer", nn.TransformerEncoderLayer(4, 2, **POST),
    [rand(3, 2, 4), None, bools([0, 0, 1], [1, 0, 0])], plain)
run("encoder_layer_first", nn.TransformerEncoderLayer(4, 2, **PRE), [rand(2, 3, 4), causal], plain)
run("decoder_layer", nn.TransformerDecoderLayer(4, 2, **POST),
    [rand(3, 2, 4), rand(2, 2, 4), causal, None, None, bools([0, 1], [0, 0])], plain)
run("decoder_layer_first", nn.TransformerDecoderLayer(4, 2, **PRE),
    [rand(2, 3, 4), rand(2, 2, 4), causal, bools([0, 1], [1, 0], [0, 0])], plain)
encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(4, 2, **PRE), 2, nn.LayerNorm(4))
run("encoder", encoder, [rand(2, 3, 4), None, bools([0, 0, 1], [0, 0, 0])], plain)
decoder = nn.TransformerDecoder(nn.TransformerDecoderLayer(4, 2, **POST), 2)
run("decoder", decoder, [rand(2, 1, 4), rand(2, 1, 4)], plain)
run("transformer", nn.Transformer(4, 2, 1, 1, **POST), [rand(2, 2, 4), rand(3, 2, 4), None, causal], plain)
