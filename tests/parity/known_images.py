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


def calls():
    for call in interpolated():
        yield "nn.functional.interpolate", F.interpolate, call
