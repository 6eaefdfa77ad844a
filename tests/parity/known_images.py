"""known_images.py -- calls on images that OpInfo has no samples of, as known.py: bytes, filters that are as wide as the scale."""
import itertools

import torch
import torch.nn.functional as F


def image(shape, dtype, seed=0):
    """Numbers over the whole range of bytes, reals with few bits."""
    generator = torch.Generator().manual_seed(seed)
    x = torch.randint(0, 256, shape, generator=generator)
    return x.to(dtype) if dtype == torch.uint8 else ((x.to(dtype) - 128) / 32).requires_grad_()


SIZES = (((1, 3, 9, 12), (4, 5)), ((2, 1, 4, 5), (9, 7)), ((1, 5, 11, 3), (3, 8)), ((1, 2, 6, 6), (6, 4)), ((1, 2, 6, 6), (2, 6)),
         ((1, 1, 5, 5), (5, 5)), ((1, 4, 1, 7), (3, 2)), ((1, 2, 7, 8), (1, 1)), ((1, 1, 2, 3), (11, 13)))
FACTORS = ((0.5, 0.4), (1.7, 2.2), (1.3, 0.3), (1.05, 1.05))


def smooth(dtype):
    for mode, antialias, align in itertools.product(("bilinear", "bicubic", "lanczos"), (False, True), (False, True)):
        if mode == "lanczos" and (align or not antialias):
            continue
        if dtype != torch.uint8 and not antialias:
            continue
        for i, (shape, size) in enumerate(SIZES):
            yield {"input": image(shape, dtype, i), "size": list(size), "mode": mode, "align_corners": align, "antialias": antialias}
        for factor in FACTORS:
            if dtype != torch.uint8 and 1.05 in factor and not align:
                continue  # PyTorch's gradient is not that of its copy
            yield {"input": image((1, 3, 8, 7), dtype, 99), "scale_factor": list(factor), "mode": mode, "align_corners": align,
                   "antialias": antialias}


def interpolated():
    yield from smooth(torch.uint8)
    yield from smooth(torch.float32)
    for mode, (shape, size) in itertools.product(("nearest", "nearest-exact"), (((2, 3, 5), (8,)), ((1, 2, 7, 5), (3, 9)),
                                                                               ((1, 2, 4, 3, 5), (3, 6, 2)))):
        yield {"input": image(shape, torch.uint8), "size": list(size), "mode": mode}
    x = image((1, 1, 4, 4), torch.float32)
    for call in ({"mode": "lanczos"}, {"mode": "lanczos", "antialias": True, "align_corners": True}, {"mode": "area", "antialias": True},
                 {"mode": "nearest", "antialias": True}):
        yield {"input": x, "size": [2, 2], **call}
    yield {"input": image((1, 1, 4), torch.float32), "size": [2], "mode": "linear", "antialias": True}


def whole(shape, dtype, seed=0):
    """Small whole numbers, so that nothing wraps around in int32; bytes and bools as they are."""
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(0 if dtype in (torch.uint8, torch.bool) else -9, 10, shape, generator=generator).to(dtype)


def convolved():
    options = ({}, {"stride": 2, "padding": 1}, {"groups": 2}, {"dilation": 2})
    for n, dtype, kind, option in itertools.product((1, 2, 3), (torch.int64, torch.int32, torch.uint8), ("conv", "conv_transpose"),
                                                    options):
        groups = option.get("groups", 1)
        x, w = whole((2, 4, *[5] * n), dtype), whole((4, 4 // groups, *[2, 3, 2][:n]), dtype, 1)
        for bias in (None, whole((4 if kind == "conv" or groups == 1 else 2 * groups,), dtype, 2)):
            yield f"{kind}{n}d", {"input": x, "weight": w, "bias": bias, **option}
    for n, dtype, other in itertools.product((1, 2, 3), (torch.float32, torch.float64, torch.float16, torch.int64),
                                             (torch.float32, torch.float64, torch.bfloat16, torch.int64, torch.int32, torch.uint8)):
        x, w, bias = whole((1, 2, *[4] * n), dtype), whole((2, 3, *[2] * n), dtype, 1), whole((3,), other, 2)
        yield f"conv_transpose{n}d", {"input": x, "weight": w, "bias": bias}
        yield f"conv{n}d", {"input": x, "weight": w[:, :2], "bias": bias[:2]}
        yield f"conv{n}d", {"input": x, "weight": w[:, :2], "bias": bias[:2], "padding": "same"}


def pooled():
    for n, dtype in itertools.product((1, 2, 3), (torch.int64, torch.int32, torch.uint8)):
        x = image((2, 2, *[6, 7, 5][:n]), torch.uint8).to(dtype) - (128 if dtype != torch.uint8 else 0)
        for option in ({}, {"stride": 1}, {"padding": 1}, {"ceil_mode": True, "stride": 3}):
            yield f"max_pool{n}d", {"input": x, "kernel_size": 2, "return_indices": True, **option}
            yield f"avg_pool{n}d", {"input": x, "kernel_size": 2, **option}
        yield f"max_pool{n}d", {"input": x, "kernel_size": 2, "dilation": 2, "return_indices": True}
        yield f"avg_pool{n}d", {"input": x, "kernel_size": 3, "padding": 1, "count_include_pad": False}
        for p in (1, 2, 3, 2.5):
            yield f"lp_pool{n}d", {"input": x, "norm_type": p, "kernel_size": 2}
            yield f"lp_pool{n}d", {"input": x > 3, "norm_type": p, "kernel_size": 2}
        for divisor in (-3, 1, 5) if n > 1 else ():
            yield f"avg_pool{n}d", {"input": x, "kernel_size": 2, "divisor_override": divisor}
        for shape in ((2, 0, *[4] * n), (0, 2, *[4] * n), (0, *[4] * n), (2, 3, *[0] * n), [2] * n, [2] * (n + 3)):
            yield f"adaptive_avg_pool{n}d", {"input": torch.zeros(shape), "output_size": [2] * n}
            yield f"adaptive_max_pool{n}d", {"input": torch.zeros(shape), "output_size": [2] * n}


def dropped():
    for n, dtype, p in itertools.product((1, 2, 3), (torch.float32, torch.int64, torch.bool), (0.0, 0.3, 1.0)):
        for shape in ((), (2,), (2, 3), (0,), (2, 3, 2)):
            x = whole(shape, dtype)
            if p in (0.0, 1.0) or x.numel() == 0 or dtype != torch.float32:
                yield f"dropout{n}d", {"input": x, "p": p, "training": True}
                if n == 1:
                    yield "dropout", {"input": x, "p": p, "training": True}
                    yield "alpha_dropout", {"input": x, "p": p, "training": True}
                    yield "feature_alpha_dropout", {"input": x, "p": p, "training": True}


def normed():
    for dtype, shape in itertools.product((torch.int64, torch.int32, torch.bool), ((2, 5, 3), (1, 4, 2, 2), (2, 0, 3), (0, 2, 3, 3))):
        for size in (1, 2, 3):
            yield "local_response_norm", {"input": whole(shape, dtype), "size": size, "alpha": 0.5}
    kinds = (torch.float32, torch.float64, torch.float16, torch.bfloat16)
    for dtype, other in itertools.product(kinds, (*kinds, torch.int64)):
        x = (whole((2, 4, 3), torch.float64) / 4).to(dtype).requires_grad_()
        w, b = whole((4,), other, 1), whole((4,), other, 2)
        if other.is_floating_point:
            w, b = w.requires_grad_(), b.requires_grad_()
        if dtype == other:
            continue
        yield "rms_norm", {"input": x, "normalized_shape": [3], "weight": w[:3].detach()}
        for bias in (b, None):
            short = None if bias is None else b[:3].detach()
            yield "layer_norm", {"input": x, "normalized_shape": [3], "weight": w[:3].detach(), "bias": short}
        if dtype in (torch.float16, torch.bfloat16) and other == torch.float32:
            yield "group_norm", {"input": x, "num_groups": 2, "weight": w, "bias": b}
            yield "group_norm", {"input": x, "num_groups": 2, "weight": w}
            yield "group_norm", {"input": x, "num_groups": 2, "bias": b}
            yield "batch_norm", {"input": x, "running_mean": b.detach(), "running_var": w.detach().abs() + 1, "weight": w, "bias": b}
            yield "batch_norm", {"input": x, "running_mean": None, "running_var": None, "weight": w, "bias": b, "training": True}


def blocks():
    for dtype in (torch.bool, torch.float32):
        x = whole((1, 2, 4, 4), dtype)
        yield "unfold", {"input": x, "kernel_size": 2, "padding": 1}
        yield "fold", {"input": whole((1, 8, 9), dtype), "output_size": [4, 4], "kernel_size": [2, 2]}


def sampled():
    """Places away from whole numbers, where the weights have kinks."""
    generator = torch.Generator().manual_seed(3)
    for n, mode, padding, align in itertools.product((2, 3), ("bilinear", "nearest", "bicubic"), ("zeros", "border", "reflection"),
                                                     (False, True)):
        x = torch.randint(-16, 17, (1, 2, *[3, 4, 3][:n]), generator=generator) / 8
        grid = (torch.randint(-20, 21, (1, *[2, 2, 1][:n], n), generator=generator) + 0.37) / 13
        yield "grid_sample", {"input": x.requires_grad_(), "grid": grid.requires_grad_(), "mode": mode, "padding_mode": padding,
                              "align_corners": align}


def calls():
    for call in interpolated():
        yield "nn.functional.interpolate", F.interpolate, call
    for make in (convolved, pooled, dropped, normed, blocks, sampled):
        for name, call in make():
            yield "nn.functional." + name, getattr(F, name), call
