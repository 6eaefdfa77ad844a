#!/usr/bin/python3
"""rare_layers.py -- PyTorch's fractional pools and its adaptive softmax for tests/test_rare_layers.c: prints
rare_layers.txt.

Inputs, weights and output weights are patterns, see pattern() in tests/pattern.h. Made with PyTorch 2.15."""
import torch
import torch.nn as nn
import torch.nn.functional as F

from golden import pattern, show


def show_gradient(name, y, x):
    (y * pattern(y.shape, 3, 5)).sum().backward()
    show(name, x.grad)


print("# made by rare_layers.py with PyTorch", torch.__version__)
torch.manual_seed(3)
POOLS = {
    "pool2": ((2, 3, 7, 9), (2, 3), dict(output_size=(4, 5))),
    "pool2_alone": ((3, 8, 6), (3, 3), dict(output_ratio=(0.5, 0.4))),
    "pool2_one": ((1, 2, 5, 5), (2, 2), dict(output_size=(1, 4))),
    "pool3": ((2, 2, 5, 6, 7), (2, 1, 3), dict(output_size=(3, 4, 2))),
}
for name, (shape, window, options) in POOLS.items():
    x = pattern(shape, 37, 101).requires_grad_()
    n = len(window)
    samples = torch.rand(shape[0] if len(shape) == n + 2 else 1, shape[-n - 1], n, dtype=torch.float64)
    pool = F.fractional_max_pool2d if n == 2 else F.fractional_max_pool3d
    y, places = pool(x, window, _random_samples=samples, return_indices=True, **options)
    show(name + ".samples", samples)
    show(name, y)
    show(name + ".places", places)
    show_gradient(name + ".dx", y, x)

m = nn.AdaptiveLogSoftmaxWithLoss(6, 20, [4, 9, 15], div_value=1.5, head_bias=True).double()
for p in m.parameters():
    p.data = pattern(p.shape, 5, 9) / 4
x = pattern((7, 6), 7, 31).requires_grad_()
target = torch.tensor([0, 19, 5, 3, 15, 8, 4])
output, loss = m(x, target)
show("softmax", output)
show("softmax.loss", loss)
loss.backward()
show("softmax.dx", x.grad)
for key, p in m.named_parameters():
    if p.grad is not None:  # no target is in the second cluster
        show("softmax." + key, p.grad)
show("softmax.log_prob", m.log_prob(x))
show("softmax.predict", m.predict(x))
