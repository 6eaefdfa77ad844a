#!/usr/bin/env python3
"""embedding.py -- PyTorch's embedding and embedding_bag with gradients: prints embedding.txt.

Each line is "<name> float64 <ndim> <sizes>", then the elements. Gradients are those of the sum of the
result times `weight_of` its shape. Made with PyTorch 2.15."""
import torch
import torch.nn.functional as f

from golden import show, weight_of

torch.manual_seed(12)


def show_bags(name, *args, samples=None, **options):
    w = weight.clone().requires_grad_()
    s = None if samples is None else samples.clone().requires_grad_()
    y = f.embedding_bag(args[0], w, *args[1:], per_sample_weights=s, **options)
    show(name, y)
    (y * weight_of(y)).sum().backward()
    show(name + ".dweight", w.grad)
    if s is not None:
        show(name + ".dsamples", s.grad)


print("# made by embedding.py with PyTorch", torch.__version__)
weight = torch.randn(6, 3, dtype=torch.float64)
samples = torch.randn(8, dtype=torch.float64)
show("weight", weight)
show("samples", samples)
flat = torch.tensor([1, 3, 3, 0, 5, 2, 3, 1])  # test_embedding.c has the same
offsets = torch.tensor([0, 3, 3, 4])  # the second bag is empty
for mode in "mean", "sum", "max":
    show_bags(mode, flat, offsets, mode=mode)
    show_bags(mode + "_padded", flat, offsets, mode=mode, padding_idx=3)
    show_bags(mode + "_ended", flat, torch.tensor([0, 3, 8]), mode=mode, include_last_offset=True)
    show_bags(mode + "_rows", flat.reshape(2, 4), mode=mode)
show_bags("weighted", flat, offsets, mode="sum", samples=samples)
show_bags("weighted_padded", flat.reshape(4, 2), mode="sum", samples=samples.reshape(4, 2), padding_idx=3)
# Of what PyTorch documents: version 2.15, too, divides by frequencies of other rows on the cpu.
w = weight.clone().requires_grad_()
y = f.embedding_bag(flat, w, offsets, mode="sum")
(y * weight_of(y)).sum().backward()
show("frequent", y)
show("frequent.dweight", w.grad / flat.bincount(minlength=6).clamp(min=1).unsqueeze(1))

w = weight.clone().requires_grad_()
y = f.embedding(flat, w, padding_idx=2, scale_grad_by_freq=True)
(y * weight_of(y)).sum().backward()
show("rows_frequent.dweight", w.grad)
for norm in 1, 2:
    w = weight.clone()
    show("rows_%d" % norm, f.embedding(flat, w, max_norm=0.75, norm_type=norm))
    show("renormalised_%d" % norm, w)
