"""known.py -- calls that OpInfo has no samples of: the ends of domains, zeros, kinks and NaN where a gradient has a case of its
own, and arguments that PyTorch refuses. Each is (operation, function, {argument: value})."""
import itertools

import known_forms
import known_images
import torch
import torch.nn.functional as F

nan, inf = float("nan"), float("inf")


class Call:
    """A call as an OpInfo: its arguments have names already."""
    has_names, inplace_variant, supports_autograd, decorators, error_inputs_func = True, None, True, (), None

    def __init__(self, name, function):
        self.name = name
        self.op = tensordot if name == "tensordot" else function


def tensordot(a, b, dims_self, dims_other):
    return torch.tensordot(a, b, (dims_self, dims_other))


def leaf(*values, dtype=torch.float32, shape=None):
    x = torch.tensor(values, dtype=dtype)
    return (x if shape is None else x.reshape(shape)).requires_grad_(dtype.is_floating_point)


def reduced_products():
    """Products with none, one and two zeros among what goes into one place."""
    index = torch.tensor([0, 0, 1, 1, 2, 2])
    for include, zeros in itertools.product((True, False), range(3)):
        x = leaf(*([0.0] * (zeros > 1) + [2.0, 3.0, 5.0])[:3])
        source = leaf(*([0.0] * zeros + [2.0, -3.0, 0.5, 4.0, 7.0, -1.0])[:6])
        yield "scatter_reduce", torch.scatter_reduce, {"input": x, "dim": 0, "index": index, "src": source, "reduce": "prod",
                                                       "include_self": include}
        yield "index_reduce", torch.index_reduce, {"input": x, "dim": 0, "index": index, "source": source, "reduce": "prod",
                                                   "include_self": include}
    for zeros in range(4):
        x = leaf(*([0.0] * zeros + [2.0, -3.0, 0.5, 4.0])[:4])
        yield "prod", torch.prod, {"input": x}
        yield "cumprod", torch.cumprod, {"input": x, "dim": 0}
        yield "prod", torch.prod, {"input": x.detach().reshape(2, 2).requires_grad_(), "dim": 1, "keepdim": True}


def kinks():
    x = leaf(nan, 0.0, -0.0, 6.0, 1.0, -1.0, 7.0, inf, -inf, nan)
    for name in ("relu", "relu6", "hardtanh", "leaky_relu", "threshold"):
        call = {"input": x, **({"threshold": 0.0, "value": 1.0} if name == "threshold" else {})}
        yield "nn.functional." + name, getattr(F, name), call
    for name in ("max", "min", "amax", "amin", "median", "nanmedian", "abs"):
        yield name, getattr(torch, name), {"input": x}
    for name in ("max", "min", "median", "cummax", "cummin", "nanmedian"):
        yield name, getattr(torch, name), {"input": x.detach().reshape(2, 5).requires_grad_(), "dim": 1}
    for eps in (None, 0.1, 0.0, 0.5, 0.7, 1.0):
        yield "logit", torch.logit, {"input": leaf(-0.5, 0.0, 0.05, 0.3, 0.5, 0.9, 1.0, 1.5, nan), "eps": eps}
    y = leaf(0.0, nan, 1.0, 6.0, nan, -1.0, 7.0, inf, inf, 2.0)
    for name in ("maximum", "minimum", "fmax", "fmin"):
        yield name, getattr(torch, name), {"input": x, "other": y}


def quantiles():
    x = leaf(3.0, 1.0, 2.0, 5.0, 4.0, 8.0, 7.0, 6.0, shape=(2, 4))
    for name in ("quantile", "nanquantile"):
        for mode in ("linear", "lower", "higher", "midpoint", "nearest"):
            for q in (leaf(0.0, 0.25, 0.4, 0.9, 1.0), leaf(0.3, shape=()), leaf()):
                yield name, getattr(torch, name), {"input": x, "q": q, "dim": 1, "keepdim": False, "interpolation": mode}
        for q in (leaf(-0.1), leaf(1.5), leaf(nan), leaf(0.5, dtype=torch.float64), leaf(0.1, 0.2, 0.3, 0.4, shape=(2, 2))):
            yield name, getattr(torch, name), {"input": x, "q": q}
        yield name, getattr(torch, name), {"input": leaf(), "q": leaf(0.5)}
        yield name, getattr(torch, name), {"input": leaf(1.0, nan, 2.0, 4.0), "q": leaf(0.3, 0.5)}


def rare():
    for dtype in (torch.int32, torch.int64, torch.uint8, torch.float32, torch.float16, torch.bool):
        for start, end, steps, base in ((0, 4, 5, 2.0), (0, 3, 7, 3.0), (0.5, 4, 6, 2.0), (1, 1, 1, 10.0), (0, 2, 0, 10.0),
                                        (4, 0, 5, 2.0), (-2, 2, 5, 2.0), (0, 2, 4, 10.0)):
            yield "logspace", torch.logspace, {"start": start, "end": end, "steps": steps, "base": base, "dtype": dtype}
            yield "linspace", torch.linspace, {"start": start, "end": end, "steps": steps, "dtype": dtype}
    a, b = leaf(*range(1, 7), shape=(2, 3)), leaf(*range(1, 5), shape=(1, 4))
    for x, y, dims in ((a, b, ([0], [0])), (a, leaf(1.0, 2.0, 3.0, shape=(1, 3)), ([0, 1], [0, 1])), (b, a, ([0], [1])),
                       (a, b, ([1], [0])), (a, b, ([0], [1])), (leaf(2.0, shape=(1, 1)), a, ([0, 1], [0, 1])),
                       (a, b, ([], [])), (a, leaf(1.0, 2.0, shape=(2, 1)), ([0, 1], [0, 1]))):
        yield "tensordot", torch.tensordot, {"a": x, "b": y, "dims_self": dims[0], "dims_other": dims[1]}
    for shape in ((), (0,), (0, 3), (3, 0)):
        for dtype in (torch.float32, torch.int64, torch.bool):
            x = torch.ones(shape, dtype=dtype)
            for dim in (None, 0, -1, 1, -2):
                for name in ("aminmax", "median", "nanmedian", "max", "min", "amax", "amin", "argmax", "argmin", "mode", "sum", "prod",
                             "mean", "all", "any", "cumsum", "cummax", "logcumsumexp", "std", "var", "sort", "argsort", "unbind"):
                    if name != "unbind" or dim is not None:
                        yield name, getattr(torch, name), {"input": x, **({} if dim is None else {"dim": dim})}
    for places in ((), (0,), (0, 0, 1), (-1,)):
        index = torch.tensor(places, dtype=torch.int64)
        yield "index_fill", torch.index_fill, {"input": torch.ones(()), "dim": -1, "index": index, "value": 5.0}
    for k in (0, 1, 2, -1):
        yield "topk", torch.topk, {"input": torch.ones(()), "k": k}
        yield "kthvalue", torch.kthvalue, {"input": torch.ones(()), "k": k}
        yield "kthvalue", torch.kthvalue, {"input": torch.ones(0, 3), "k": k}


def refused():
    """Arguments out of their range: PyTorch refuses most, and takes some."""
    x, y, t = leaf(0.5, -0.25, 2.0, shape=(1, 3)), leaf(1.0, 0.5, -1.0, shape=(1, 3)), torch.tensor([1])
    for n in (-1, -5, 0, 1, 4):
        yield "diff", torch.diff, {"input": x, "n": n}
    for low, high in ((1.0, -1.0), (0.0, 0.0), (nan, 1.0), (0.0, nan), (-inf, inf)):
        yield "nn.functional.hardtanh", F.hardtanh, {"input": x, "min_val": low, "max_val": high}
        yield "clamp", torch.clamp, {"input": x, "min": low, "max": high}
    for margin in (0.0, -1.0, 0.5, nan, inf):
        triplet = {"anchor": x, "positive": y, "negative": x * 2, "margin": margin}
        triplet = {k: v.detach().requires_grad_() if isinstance(v, torch.Tensor) else v for k, v in triplet.items()}
        yield "nn.functional.triplet_margin_loss", F.triplet_margin_loss, triplet
        yield "nn.functional.triplet_margin_with_distance_loss", F.triplet_margin_with_distance_loss, triplet
        yield "nn.functional.margin_ranking_loss", F.margin_ranking_loss, {"input1": x, "input2": y, "target": torch.ones(1, 3),
                                                                         "margin": margin}
        yield "nn.functional.hinge_embedding_loss", F.hinge_embedding_loss, {"input": x, "target": -torch.ones(1, 3), "margin": margin}
        yield "nn.functional.cosine_embedding_loss", F.cosine_embedding_loss, {"input1": x, "input2": y, "target": -torch.ones(1),
                                                                             "margin": margin}
        yield "nn.functional.multi_margin_loss", F.multi_margin_loss, {"input": x, "target": t, "margin": margin}
    for p in (0, 1, 2, 3, -1):
        yield "nn.functional.multi_margin_loss", F.multi_margin_loss, {"input": x, "target": t, "p": p}
    for classes in (-2, -1, 0, 1, 2, 5):
        yield "nn.functional.one_hot", F.one_hot, {"input": t, "num_classes": classes}
        yield "nn.functional.one_hot", F.one_hot, {"input": t[:0], "num_classes": classes}
    for number in (0.0, -1.0, 1.5, nan, inf):
        yield "nn.functional.dropout", F.dropout, {"input": x, "p": number, "training": False}
        yield "nn.functional.huber_loss", F.huber_loss, {"input": x, "target": y, "delta": number}
        yield "nn.functional.smooth_l1_loss", F.smooth_l1_loss, {"input": x, "target": y, "beta": number}
        yield "nn.functional.softshrink", F.softshrink, {"input": x, "lambd": number}
        yield "nn.functional.hardshrink", F.hardshrink, {"input": x, "lambd": number}
        yield "nn.functional.elu", F.elu, {"input": x, "alpha": number}
        yield "nn.functional.celu", F.celu, {"input": x, "alpha": number}
        yield "nn.functional.softplus", F.softplus, {"input": x, "beta": number}
        yield "nn.functional.cross_entropy", F.cross_entropy, {"input": x, "target": t, "label_smoothing": number}
        yield "nn.functional.pairwise_distance", F.pairwise_distance, {"x1": x, "x2": y, "p": number}
        yield "cdist", torch.cdist, {"x1": x, "x2": y, "p": number}
        yield "pdist", torch.pdist, {"input": torch.cat((x, y)).detach().requires_grad_(), "p": number}
        yield "renorm", torch.renorm, {"input": x, "p": number, "dim": 0, "maxnorm": 1.0}
        yield "renorm", torch.renorm, {"input": x, "p": 2, "dim": 0, "maxnorm": number}
        yield "linalg.vector_norm", torch.linalg.vector_norm, {"input": x, "ord": number}
    image = leaf(*range(9), shape=(1, 1, 3, 3))
    one = torch.ones(1, 1, 1, 1)
    for stride, padding, output_padding in itertools.product((1, 2, 3), (0, 1), (0, 1, 2)):
        yield "nn.functional.conv_transpose2d", F.conv_transpose2d, {"input": image, "weight": one, "stride": stride,
                                                                     "padding": padding, "output_padding": output_padding}
    pooled, index = F.max_pool2d(image.detach(), 2, 1, return_indices=True)
    for padding in (0, 1, 5):
        yield "nn.functional.max_unpool2d", F.max_unpool2d, {"input": pooled.requires_grad_(), "indices": index, "kernel_size": 2,
                                                             "stride": 1, "padding": padding}


def calls():
    for make in (reduced_products, kinks, quantiles, rare, refused, known_images.calls, known_forms.calls):
        yield from make()
