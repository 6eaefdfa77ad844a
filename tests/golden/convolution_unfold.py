#!/usr/bin/env python3
"""convolution_unfold.py -- PyTorch's unfold and fold: prints convolution_unfold.txt."""
import torch
import torch.nn.functional as F


def show(name, value):
    print(name, "float32", value.dim(), *value.shape)
    print(*[repr(v) for v in value.contiguous().flatten().tolist()])


print("# made by convolution_unfold.py with PyTorch", torch.__version__)
x = torch.arange(1.0, 61.0).view(2, 2, 3, 5)
show("plain", F.unfold(x, 2))
show("all_options", F.unfold(x, (2, 3), dilation=(2, 1), padding=(1, 2), stride=(1, 2)))
show("one_image", F.unfold(x[0], (3, 1), padding=(0, 1), stride=2))
y = torch.arange(1.0, 2 * 12 * 8 + 1).view(2, 12, 8) % 17
show("fold_plain", F.fold(y, (3, 5), (2, 2)))
z = torch.arange(1.0, 2 * 12 * 12 + 1).view(2, 12, 12) % 13
show("fold_all_options", F.fold(z, (3, 5), (2, 3), dilation=(2, 1), padding=(1, 2), stride=(1, 2)))
show("fold_one_image", F.fold(z[0, :, :9], (4, 4), 2))
