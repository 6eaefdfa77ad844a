#!/usr/bin/env python3
"""norm.py -- PyTorch's batch norm with gradients and running statistics: prints norm.txt.

Each line is "<name> float64 <ndim> <sizes>", then the elements. Gradients are those of the sum of the
result times `weight_of` its shape. Made with PyTorch 2.15."""
import torch
import torch.nn.functional as f

from golden import randn, show, show_with_gradients, weight_of

torch.manual_seed(5)


print("# made by norm.py with PyTorch", torch.__version__)
w, b = randn(3), randn(3)
mean, var = randn(3), randn(3).square()
for name, value in dict(w=w, b=b, mean=mean, var=var).items():
    show(name, value)
for shape in (4, 3), (2, 3, 5), (2, 3, 2, 3), (2, 3, 2, 1, 2):
    x = randn(*shape) * 2 + 1
    name = "batch%d" % len(shape)
    show(name + ".x", x)
    m, v = mean.clone(), var.clone()
    show_with_gradients(name, lambda x, w, b: f.batch_norm(x, m, v, w, b, True, 0.3, 1e-3), x=x, w=w, b=b)
    show(name + ".mean", m)
    show(name + ".var", v)
    show_with_gradients(name + ".plain", lambda x: f.batch_norm(x, None, None, training=True), x=x)
    show_with_gradients(name + ".eval", lambda x, w, b: f.batch_norm(x, mean, var, w, b), x=x, w=w, b=b)
