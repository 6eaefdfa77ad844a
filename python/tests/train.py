#!/usr/bin/env python3
"""train.py -- a regression learns its weights by the Python package and NumPy: what a package that is installed can do, on
systems where its tests don't run."""
import platform

import numpy
import tern

x = tern.tensor(numpy.random.default_rng(0).standard_normal((64, 4)).astype("float32"))
y = x @ tern.tensor([[1.0], [2.0], [3.0], [4.0]])
weight, bias = tern.tensor(numpy.zeros((4, 1), "float32")), tern.tensor([0.0])
losses = []
for step in range(100):
    for p in (weight, bias):
        p.requires_grad_()
    loss = tern.nn.functional.mse_loss(tern.addmm(bias, x, weight), y)
    loss.backward()
    weight, bias = (p.detach() - p.grad * 0.1 for p in (weight, bias))
    losses.append(loss.item())
assert losses[0] > 10 and losses[-1] < 1e-6, losses
assert numpy.allclose(weight.numpy(), [[1], [2], [3], [4]], atol=1e-3), weight.numpy()
print("the loss fell from %.3g to %.3g on %s" % (losses[0], losses[-1], platform.machine()))
