#!/usr/bin/env python3
"""norm_group.py -- PyTorch's norms of groups, instances and channels, and parameters made of others, with
gradients: prints norm_group.txt.

Each line is "<name> float64 <ndim> <sizes>", then the elements. Gradients are those of the sum of the
result times `weight_of` its shape. Made with PyTorch 2.15."""
import torch
import torch.nn.functional as f
from torch import nn

from golden import randn, show, show_with_gradients, weight_of

torch.manual_seed(6)


print("# made by norm_group.py with PyTorch", torch.__version__)
x, w, b, mean, var = randn(2, 4, 3, 2), randn(4), randn(4), randn(4), randn(4).square()
for name, value in dict(x=x, w=w, b=b, mean=mean, var=var).items():
    show(name, value)
show_with_gradients("group", lambda x, w, b: f.group_norm(x, 2, w, b, 1e-3), x=x, w=w, b=b)
show_with_gradients("group.plain", lambda x: f.group_norm(x, 4), x=x)
m, v = mean.clone(), var.clone()
show_with_gradients("instance", lambda x, w, b: f.instance_norm(x, m, v, w, b, True, 0.3, 1e-3), x=x, w=w, b=b)
show("instance.mean", m)
show("instance.var", v)
show_with_gradients("instance.plain", lambda x: f.instance_norm(x), x=x)
show_with_gradients("instance.eval", lambda x, w, b: f.instance_norm(x, mean, var, w, b, False), x=x, w=w, b=b)
show_with_gradients("response", lambda x: f.local_response_norm(x, 3, 0.5, 0.6, 2), x=x)
show_with_gradients("response.even", lambda x: f.local_response_norm(x, 2), x=x)
for p in 2, 1, 3:
    show_with_gradients("normalize%d" % p, lambda x: f.normalize(x, p, -1), x=x)

# Parameters made of others: their values, and a step of each of their parts.
for dim in 0, 1, None:
    m = nn.Linear(4, 3).double()
    with torch.no_grad():
        m.weight.copy_(randn(3, 4)), m.bias.copy_(randn(3))
    name = "weight%s" % dim
    show(name + ".w", m.weight)
    nn.utils.weight_norm(m, dim=dim)
    m.weight_g.data *= 1.5
    y = m(x.transpose(1, 3))
    show(name, y)
    (y * weight_of(y)).sum().backward()
    show(name + ".dg", m.weight_g.grad)
    show(name + ".dv", m.weight_v.grad)
m = nn.Conv2d(4, 3, 2).double()
with torch.no_grad():
    m.weight.copy_(randn(3, 4, 2, 2)), m.bias.zero_()
show("spectral.w", m.weight)
nn.utils.spectral_norm(m, n_power_iterations=2)
show("spectral.u", m.weight_u)
show("spectral.v", m.weight_v)
y = m(x)
show("spectral", m.weight)
(m.weight * weight_of(m.weight)).sum().backward()
show("spectral.dw", m.weight_orig.grad)
show("spectral.u2", m.weight_u)
m.eval()
m(x)
show("spectral.eval", m.weight)
