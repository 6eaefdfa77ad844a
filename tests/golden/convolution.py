#!/usr/bin/python3
"""convolution.py -- PyTorch's numbers for tests/test_convolution.c, to convolution.txt.

Inputs are patterns of quarters, so that every sum is exact and short: see pattern() in the test."""
import torch
import torch.nn.functional as F

from golden import pattern, show


# name: function, x, weight, options; the same table is in the test
CASES = {
    "plain1": (F.conv1d, (2, 3, 9), (4, 3, 3), dict()),
    "strided1": (F.conv1d, (1, 4, 12), (6, 2, 3), dict(stride=2, padding=2, dilation=2, groups=2)),
    "plain2": (F.conv2d, (2, 3, 6, 5), (4, 3, 3, 2), dict(padding=1)),
    "point2": (F.conv2d, (3, 5, 3, 4), (2, 5, 1, 1), dict()),
    "strided2": (F.conv2d, (2, 4, 9, 8), (6, 2, 3, 3),
                 dict(stride=(2, 3), padding=(1, 2), dilation=(2, 1), groups=2)),
    "same2": (F.conv2d, (1, 2, 5, 6), (3, 2, 4, 3), dict(padding="same", dilation=(1, 2))),
    "depth2": (F.conv2d, (2, 4, 6, 7), (8, 1, 3, 3), dict(padding=1, stride=2, groups=4)),
    "leftover2": (F.conv2d, (1, 2, 8, 8), (3, 2, 3, 3), dict(stride=4)),
    "plain3": (F.conv3d, (1, 2, 4, 5, 4), (3, 2, 2, 3, 2), dict(padding=(0, 1, 1), stride=(1, 2, 1))),
    "same3": (F.conv3d, (1, 2, 3, 4, 5), (2, 2, 3, 3, 3), dict(padding=1)),
    "wide1": (F.conv1d, (2, 1, 3), (2, 1, 7), dict(padding=3)),
    "transpose1": (F.conv_transpose1d, (2, 3, 5), (3, 2, 4),
                   dict(stride=3, padding=1, output_padding=2)),
    "transpose2": (F.conv_transpose2d, (2, 4, 3, 4), (4, 3, 3, 2),
                   dict(stride=2, padding=(1, 0), output_padding=(1, 0), groups=2, dilation=(1, 2))),
    "depth_transpose2": (F.conv_transpose2d, (1, 4, 4, 3), (4, 1, 3, 3), dict(stride=2, groups=4)),
    "transpose3": (F.conv_transpose3d, (1, 2, 2, 3, 2), (2, 3, 2, 2, 3), dict(padding=1)),
}


def main():
    with open(__file__[:-2] + "txt", "w") as file:
        print("# written by convolution.py with PyTorch", torch.__version__, file=file)
        for name, (function, x_shape, w_shape, options) in CASES.items():
            transposed = "transpose" in name
            channels = w_shape[1] * options.get("groups", 1) if transposed else w_shape[0]
            x = pattern(x_shape, 7, 11).requires_grad_()
            w = pattern(w_shape, 5, 9).requires_grad_()
            b = pattern((channels,), 3, 7).requires_grad_()
            y = function(x, w, b, **options)
            y.backward(pattern(y.shape, 3, 5))
            show(name, y, "%.10g".__mod__, file)
            for key, t in ("dx", x), ("dw", w), ("db", b):
                show(name + "." + key, t.grad, "%.10g".__mod__, file)


main()
