#!/usr/bin/python3
"""pool.py -- PyTorch's pooling and resampling for tests/test_pool.c and test_vision.c: writes pool.txt.

Inputs are patterns, see pattern() in tests/pattern.h. Made with PyTorch 2.15."""
import torch
import torch.nn.functional as F

from golden import pattern, show


def grid(shape):
    return pattern(shape, 7, 13) / 1.4 + 0.013


# name: shape of x, function
CASES = {
    "max1": ((2, 3, 9), lambda x: F.max_pool1d(x, 3, 2, 1)),
    "max2": ((2, 3, 6, 8), lambda x: F.max_pool2d(x, 2)),
    "max2_ceil": ((1, 2, 7, 9), lambda x: F.max_pool2d(x, (3, 2), (2, 3), (1, 0), (1, 2), True)),
    "max3": ((2, 3, 5, 4), lambda x: F.max_pool3d(x, 2, 1, 1)),
    "avg1": ((2, 3, 9), lambda x: F.avg_pool1d(x, 3, 2, 1)),
    "avg2": ((2, 3, 6, 8), lambda x: F.avg_pool2d(x, (2, 3), None, (1, 0))),
    "avg2_ceil": ((1, 2, 7, 8), lambda x: F.avg_pool2d(x, 3, 2, 1, True, False)),
    "avg2_count": ((1, 2, 7, 8), lambda x: F.avg_pool2d(x, 3, 3, 1, True, True)),
    "avg3": ((2, 3, 5, 4), lambda x: F.avg_pool3d(x, 2, 2, 0, divisor_override=3)),
    "adaptive_avg1": ((2, 3, 7), lambda x: F.adaptive_avg_pool1d(x, 3)),
    "adaptive_avg2": ((2, 3, 7, 5), lambda x: F.adaptive_avg_pool2d(x, (3, None))),
    "adaptive_avg2_one": ((2, 3, 4, 5), lambda x: F.adaptive_avg_pool2d(x, 1)),
    "adaptive_avg3": ((2, 3, 4, 5), lambda x: F.adaptive_avg_pool3d(x, (2, 3, 7))),
    "adaptive_max1": ((2, 7), lambda x: F.adaptive_max_pool1d(x, 3)),
    "adaptive_max2": ((2, 3, 7, 5), lambda x: F.adaptive_max_pool2d(x, (3, 4))),
    "adaptive_max3": ((2, 3, 4, 5), lambda x: F.adaptive_max_pool3d(x, (2, 3, 2))),
    "lp1": ((2, 3, 9), lambda x: F.lp_pool1d(x, 2, 3, 2)),
    "lp2": ((1, 2, 5, 6), lambda x: F.lp_pool2d(x, 3, (2, 3), ceil_mode=True)),
    "nearest": ((1, 2, 5, 3), lambda x: F.interpolate(x, size=(3, 7))),
    "nearest_exact": ((1, 2, 5), lambda x: F.interpolate(x, scale_factor=1.7, mode="nearest-exact")),
    "linear": ((1, 2, 5), lambda x: F.interpolate(x, size=8, mode="linear")),
    "bilinear": ((1, 2, 5, 4), lambda x: F.interpolate(x, size=(3, 9), mode="bilinear")),
    "bilinear_corners": ((1, 2, 3, 4), lambda x: F.interpolate(
        x, size=(5, 7), mode="bilinear", align_corners=True)),
    "bilinear_factor": ((1, 2, 3, 4), lambda x: F.interpolate(
        x, scale_factor=(1.9, 2.3), mode="bilinear")),
    "bicubic": ((1, 2, 5, 4), lambda x: F.interpolate(x, size=(8, 3), mode="bicubic")),
    "bicubic_corners": ((1, 1, 4, 4), lambda x: F.interpolate(
        x, size=(6, 9), mode="bicubic", align_corners=True)),
    "trilinear": ((1, 1, 2, 3, 4), lambda x: F.interpolate(x, size=(3, 2, 7), mode="trilinear")),
    "area": ((1, 2, 5, 4), lambda x: F.interpolate(x, size=(2, 3), mode="area")),
    "pixel_shuffle": ((2, 8, 2, 3), lambda x: F.pixel_shuffle(x, 2)),
    "pixel_unshuffle": ((2, 4, 6), lambda x: F.pixel_unshuffle(x, 2)),
    "channel_shuffle": ((2, 6, 2, 2), lambda x: x.view(2, 3, 2, 2, 2).transpose(1, 2).flatten(1, 2)),
}
# name: shapes of x and grid, options
GRIDS = {
    "grid_bilinear": ((2, 2, 4, 5), (2, 3, 4, 2), dict()),
    "grid_border": ((1, 2, 4, 5), (1, 3, 4, 2), dict(padding_mode="border", align_corners=True)),
    "grid_reflection": ((1, 2, 4, 5), (1, 3, 4, 2), dict(padding_mode="reflection")),
    "grid_reflection_corners": ((1, 2, 4, 5), (1, 3, 4, 2),
                                dict(padding_mode="reflection", align_corners=True)),
    "grid_nearest": ((1, 2, 4, 5), (1, 3, 4, 2), dict(mode="nearest")),
    "grid_bicubic": ((1, 2, 4, 5), (1, 3, 4, 2), dict(mode="bicubic", padding_mode="border")),
    "grid_bicubic_zeros": ((1, 2, 4, 5), (1, 3, 4, 2), dict(mode="bicubic", align_corners=True)),
    "grid_volume": ((1, 2, 3, 4, 3), (1, 2, 3, 2, 3), dict(padding_mode="border")),
}


def put(file, name, t):
    show(name, t.double(), "%.12g".__mod__, file)


def put_with_gradients(file, name, y, **leaves):
    y.backward(pattern(y.shape, 3, 5))
    put(file, name, y)
    for key, leaf in leaves.items():
        put(file, name + ".d" + key, leaf.grad)


with open(__file__[:-2] + "txt", "w") as file:
    print("# written by pool.py with PyTorch", torch.__version__, file=file)
    for name, (shape, function) in CASES.items():
        x = pattern(shape, 7, 31).requires_grad_()
        put_with_gradients(file, name, function(x), x=x)
    for name, (x_shape, grid_shape, options) in GRIDS.items():
        x, g = pattern(x_shape, 7, 31).requires_grad_(), grid(grid_shape).requires_grad_()
        options = dict(dict(align_corners=False), **options)
        put_with_gradients(file, name, F.grid_sample(x, g, **options), x=x, grid=g)
    x = pattern((2, 3, 5, 7), 7, 31)
    y, places = F.max_pool2d(x, 3, 2, 1, return_indices=True)
    put(file, "places", places)
    put(file, "unpool", F.max_unpool2d(*F.max_pool2d(x, 2, return_indices=True), 2,
                                       output_size=(5, 7)))
    theta = pattern((2, 2, 3), 7, 31).requires_grad_()
    put_with_gradients(file, "affine", F.affine_grid(theta, (2, 1, 3, 4), align_corners=False),
                       x=theta)
    theta = pattern((1, 3, 4), 7, 31).requires_grad_()
    put_with_gradients(file, "affine_volume", F.affine_grid(theta, (1, 1, 2, 1, 3),
                                                            align_corners=True), x=theta)
