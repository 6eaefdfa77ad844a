#!/usr/bin/env python3
"""corners.py -- PyTorch's answers at the corners of elementwise operations: prints corners.txt.

Each line is "<operation> float32 <ndim> <sizes>", then the elements: unary operations over the special
values x, binary ones over all pairs, comparisons as bool. Made with PyTorch 2.15."""
import math
import torch

specials = [math.nan, math.inf, -math.inf, 0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 2.0, -3.0, 100.0, -100.0,
            1e-40, -1e-40, 3e38, -3e38, 1e-20]
x = torch.tensor(specials)
f = torch.nn.functional


def show(name, value):
    value = value.contiguous()
    kind = "bool" if value.dtype == torch.bool else "float32"
    print(name, kind, value.dim(), *value.shape)
    print(*[("1" if v else "0") if kind == "bool" else repr(v) for v in value.flatten().tolist()])


print("# made by corners.py with PyTorch", torch.__version__)
show("x", x)
unary = "neg abs sign square reciprocal exp log sqrt rsqrt sin cos tanh erf sigmoid relu".split()
for name in unary:
    show(name, getattr(torch, name)(x))
show("silu", f.silu(x))
show("gelu", f.gelu(x))
show("gelu_tanh", f.gelu(x, approximate="tanh"))
show("leaky_relu", f.leaky_relu(x, 0.25))
show("clamp", x.clamp(0.25, 2.5))
show("logical_not", torch.logical_not(x))
for name in "isnan isfinite isinf".split():
    show(name, getattr(torch, name)(x))
pairs = x[:, None], x[None, :]
for name in "add sub mul div pow maximum minimum eq ne lt le gt ge".split():
    show(name, getattr(torch, name)(*pairs))
for name in "logical_and logical_or logical_xor".split():
    show(name, getattr(torch, name)(*pairs))
