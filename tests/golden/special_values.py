#!/usr/bin/env python3
"""special_values.py -- writes special_values.txt: what PyTorch's functions of one tensor give at NaN, infinities, signed
zeros, the ends of their domains and numbers near overflow, and the gradient of their sum there.

Made with PyTorch 2.15 (PyPI): python special_values.py > special_values.txt"""
import operator
import warnings

import torch
import torch.nn.functional as F

warnings.simplefilter("ignore")
nan, inf = float("nan"), float("inf")
VALUES = [nan, inf, -inf, 0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 2.0, -2.0, 3.0, -3.0, 6.0, 7.0, 1e-30, -1e-30, 1e30, -1e30, 20.5, -20.5,
          100.0, -100.0]
NAMES = """abs acos acosh asin asinh atan atanh ceil cos cosh deg2rad digamma erf erfc erfinv exp exp2 expm1 fix floor frac
    isfinite isinf isnan isneginf isposinf lgamma log log10 log1p log2 logical_not logit nan_to_num neg positive rad2deg
    reciprocal relu round rsqrt selu sgn sigmoid sign signbit sin sinc sinh sqrt square tan tanh trunc
    nn.functional.celu nn.functional.elu nn.functional.gelu nn.functional.hardshrink nn.functional.hardsigmoid
    nn.functional.hardswish nn.functional.hardtanh nn.functional.leaky_relu nn.functional.logsigmoid nn.functional.mish
    nn.functional.relu nn.functional.relu6 nn.functional.selu nn.functional.silu
    nn.functional.softplus nn.functional.softshrink nn.functional.softsign nn.functional.tanhshrink
    max min amax amin sum mean prod median nanmedian nansum nanmean var std norm""".split()


def functions():
    """(name, function), those of two numbers with these."""
    for name in NAMES:
        yield name, operator.attrgetter(name)(torch)
    yield "clamp", lambda x: torch.clamp(x, -1, 1)
    yield "clamp_min", lambda x: torch.clamp_min(x, 0.0)
    yield "clamp_max", lambda x: torch.clamp_max(x, 0.0)
    yield "nn.functional.threshold", lambda x: F.threshold(x, 0.0, 1.0)
    for name in "maximum minimum fmax fmin xlogy copysign heaviside atan2 hypot logaddexp logaddexp2".split():
        yield name, lambda x, f=getattr(torch, name): f(x, torch.zeros_like(x))
    yield "cummax", lambda x: torch.cummax(x, 0)[0]
    yield "cummin", lambda x: torch.cummin(x, 0)[0]
    yield "logsumexp", lambda x: torch.logsumexp(x, 0)
    yield "softmax", lambda x: torch.softmax(x, 0)


def numbers(x):
    return " ".join(repr(int(v) if x.dtype == torch.bool else v) for v in x.detach().flatten().tolist())


def show(name, x):
    print(name, str(x.dtype).split('.')[-1], x.dim(), *x.shape)
    print(numbers(x))


def main():
    torch.set_num_threads(1)
    print("# made by special_values.py with PyTorch", torch.__version__.split("+")[0])
    for dtype, suffix in ((torch.float32, ""), (torch.float64, ".f64")):
        show("x" + suffix, torch.tensor(VALUES, dtype=dtype))
        for name, f in functions():
            x = torch.tensor(VALUES, dtype=dtype, requires_grad=True)
            y = f(x)
            show(name + suffix, y)
            if y.requires_grad and name != "heaviside":
                show(name + suffix + ".dx", torch.autograd.grad(y.sum(), x)[0] + torch.zeros(len(VALUES), dtype=dtype))


main()
