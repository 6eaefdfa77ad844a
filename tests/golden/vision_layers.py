#!/usr/bin/python3
"""vision_layers.py -- PyTorch's modules for tests/test_vision_layers.c: writes vision_layers.txt.

Inputs, weights and output weights are patterns, see pattern() in tests/pattern.h."""
import torch
import torch.nn as nn

from golden import pattern, show


# name: shape of x, module; the same table is in the test
CASES = {
    "conv1": ((2, 4, 9), nn.Conv1d(4, 6, 3, stride=2, padding=1, dilation=2, groups=2)),
    "conv1_circular": ((2, 3, 6), nn.Conv1d(3, 4, 3, padding=2, padding_mode="circular")),
    "conv2": ((2, 3, 6, 5), nn.Conv2d(3, 4, (3, 2), padding=(1, 0), bias=False)),
    "conv2_same": ((1, 2, 5, 6), nn.Conv2d(2, 3, (4, 3), padding="same", dilation=(1, 2))),
    "conv2_reflect": ((1, 2, 5, 6), nn.Conv2d(2, 3, (4, 3), padding="same", padding_mode="reflect")),
    "conv2_replicate": ((1, 2, 4, 5), nn.Conv2d(2, 2, 3, stride=2, padding=(2, 1),
                                                padding_mode="replicate")),
    "conv2_valid": ((1, 2, 4, 5), nn.Conv2d(2, 3, 2, padding="valid", padding_mode="circular")),
    "conv3": ((1, 2, 4, 5, 4), nn.Conv3d(2, 3, 2, stride=(1, 2, 1), padding=(0, 1, 1))),
    "transpose1": ((2, 3, 5), nn.ConvTranspose1d(3, 2, 4, stride=3, padding=1, output_padding=2)),
    "transpose2": ((2, 4, 3, 4), nn.ConvTranspose2d(4, 6, (3, 2), stride=2, output_padding=(1, 0),
                                                    groups=2, dilation=(1, 2))),
    "transpose3": ((1, 2, 2, 3, 2), nn.ConvTranspose3d(2, 3, (2, 2, 3), padding=1, bias=False)),
    "max1": ((2, 3, 9), nn.MaxPool1d(3, stride=2, padding=1)),
    "max2": ((2, 7, 9), nn.MaxPool2d((3, 2), (2, 3), (1, 0), (1, 2), ceil_mode=True)),
    "max3": ((1, 2, 4, 6, 4), nn.MaxPool3d(2)),
    "avg1": ((2, 3, 9), nn.AvgPool1d(3, 2, 1)),
    "avg2": ((1, 2, 7, 8), nn.AvgPool2d(3, 2, 1, True, False)),
    "avg3": ((1, 2, 4, 4, 6), nn.AvgPool3d((2, 2, 3), divisor_override=3)),
    "adaptive_avg1": ((2, 3, 7), nn.AdaptiveAvgPool1d(3)),
    "adaptive_avg2": ((2, 3, 7, 5), nn.AdaptiveAvgPool2d((3, None))),
    "adaptive_avg3": ((1, 2, 4, 5, 3), nn.AdaptiveAvgPool3d((2, 3, 2))),
    "adaptive_max1": ((2, 7), nn.AdaptiveMaxPool1d(3)),
    "adaptive_max2": ((2, 3, 7, 5), nn.AdaptiveMaxPool2d((3, 4))),
    "adaptive_max3": ((1, 2, 4, 5, 3), nn.AdaptiveMaxPool3d((2, 3, 2))),
    "lp1": ((2, 3, 9), nn.LPPool1d(1, 3, 2)),
    "lp2": ((1, 2, 5, 6), nn.LPPool2d(2, (2, 3), ceil_mode=True)),
    "upsample": ((1, 2, 3, 4), nn.Upsample(scale_factor=(2, 3), mode="bilinear",
                                           align_corners=True)),
    "nearest2": ((1, 2, 3, 4), nn.UpsamplingNearest2d(size=(5, 6))),
    "bilinear2": ((1, 2, 3, 4), nn.UpsamplingBilinear2d(scale_factor=2)),
    "pixel_shuffle": ((2, 8, 2, 3), nn.PixelShuffle(2)),
    "pixel_unshuffle": ((2, 4, 6), nn.PixelUnshuffle(2)),
    "constant1": ((2, 3, 4), nn.ConstantPad1d((1, 2), 3.5)),
    "constant3": ((1, 2, 2, 3, 2), nn.ConstantPad3d(1, -0.25)),
    "zero2": ((2, 3, 4), nn.ZeroPad2d((1, -1, 2, 0))),
    "reflection2": ((1, 2, 4, 3), nn.ReflectionPad2d((1, 2, 2, 0))),
    "replication3": ((1, 1, 2, 3, 2), nn.ReplicationPad3d((1, 0, 2, 1, 0, 1))),
    "unfold": ((1, 2, 4, 5), nn.Unfold((2, 3), padding=1, stride=2)),
    "fold": ((1, 8, 12), nn.Fold((4, 5), 2)),
}


def main():
    with open(__file__[:-2] + "txt", "w") as file:
        print("# written by vision_layers.py with PyTorch", torch.__version__, file=file)
        for name, (shape, module) in CASES.items():
            module = module.double()
            x = pattern(shape, 7, 31).requires_grad_()
            for p in module.parameters():
                p.data = pattern(p.shape, 5, 9)
            y = module(x)
            y.backward(pattern(y.shape, 3, 5))
            show(name, y, "%.10g".__mod__, file)
            show(name + ".dx", x.grad, "%.10g".__mod__, file)
            for path, p in module.named_parameters():
                show(name + "." + path, p.grad, "%.10g".__mod__, file)


main()
