#!/usr/bin/env python3
"""layout.py -- PyTorch's dims moved, cut, joined, repeated and padded: prints layout.txt.

x = arange(24).view(2, 3, 4). Each case gives its value and, as "<name>.grad", the gradient of the sum
of value times (1, 1.5, 2, ...) with respect to x."""
import torch
import torch.nn.functional as F


def show(name, value):
    value = value.detach()
    print(name, "float32", value.dim(), *value.shape)
    print(*[repr(v) for v in value.flatten().tolist()])


def case(name, run):
    x = torch.arange(24.0).view(2, 3, 4).requires_grad_()
    y = run(x)
    show(name, y)
    w = (torch.arange(float(y.numel())) * 0.5 + 1).view(y.shape)
    (y * w).sum().backward()
    show(name + ".grad", x.grad)


def pad(*p, mode="constant", value=None):
    return lambda x: F.pad(x, p, mode=mode, value=value)


print("# made by layout.py with PyTorch", torch.__version__)
case("movedim", lambda x: x.movedim((0, -1), (1, 0)))
case("swapdims", lambda x: x.swapdims(0, -1))
case("atleast_3d", lambda x: torch.atleast_3d(x[0]))
case("diagonal", lambda x: x.diagonal(1, 1, 2))
case("diagonal_below", lambda x: x.diagonal(-1, 2, 0))
case("diagonal_empty", lambda x: x.diagonal(7, 1, 2))
case("unfold_dim", lambda x: x.unfold(2, 2, 1))
case("unfold_dim_apart", lambda x: x.unfold(1, 2, 3))
case("unfold_dim_whole", lambda x: x.unfold(0, 2, 1))
case("unbind", lambda x: x.unbind(1)[1])
case("split_sizes", lambda x: x.split([1, 0, 3], -1)[2])
case("tensor_split", lambda x: x.tensor_split(3, -1)[0])
case("tensor_split_at", lambda x: x.tensor_split((1, -1), 2)[1])
case("hsplit", lambda x: x.hsplit(3)[2])
case("vsplit", lambda x: x.vsplit((1,))[1])
case("dsplit", lambda x: x.dsplit(2)[1])
case("hstack", lambda x: torch.hstack((x[0], x[1])))
case("hstack_vectors", lambda x: torch.hstack((x[0, 0], x[1, 2])))
case("vstack", lambda x: torch.vstack((x[0, 0], x[1])))
case("dstack", lambda x: torch.dstack((x[0], x[1])))
case("column_stack", lambda x: torch.column_stack((x[0, :, 0], x[1])))
case("flip", lambda x: x.flip(0, -1))
case("flip_transposed", lambda x: x.transpose(0, 2).flip(1))
case("flip_nothing", lambda x: x.flip(()))
case("fliplr", lambda x: x.fliplr())
case("flipud", lambda x: x.flipud())
case("roll", lambda x: x.roll((1, -6), (0, 2)))
case("roll_flat", lambda x: x.roll(7))
case("roll_twice", lambda x: x.roll((1, 2), (1, 1)))
case("rot90", lambda x: x.rot90(1, (0, 2)))
case("rot90_twice", lambda x: x.rot90(-2, (1, 2)))
case("rot90_back", lambda x: x.rot90(3, (1, 2)))
case("repeat", lambda x: x.repeat(2, 1, 3, 2))
case("repeat_none", lambda x: x.repeat(1, 0, 2))
case("tile", lambda x: x.tile(2, 2))
case("repeat_interleave", lambda x: x.repeat_interleave(3, 1))
case("repeat_interleave_flat", lambda x: x.repeat_interleave(2))
case("repeat_interleave_each", lambda x: x.repeat_interleave(torch.tensor([2, 0, 3]), 1))
case("repeat_interleave_one", lambda x: x.repeat_interleave(torch.tensor([2]), 0))
case("diag_embed", lambda x: torch.diag_embed(x[0], -1, 0, 2))
case("diag", lambda x: torch.diag(x[0, 0], 1))
case("diag_of", lambda x: torch.diag(x[1], -1))
case("diagflat", lambda x: torch.diagflat(x[1, :2], 1))
case("trace", lambda x: torch.trace(x[1]))
case("meshgrid", lambda x: torch.meshgrid(x[0, 0], x[0, :, 0], indexing="ij")[1])
case("meshgrid_xy", lambda x: torch.meshgrid(x[0, 0], x[0, :, 0], indexing="xy")[0])
case("pad", pad(1, 2, 0, 1))
case("pad_cut", pad(-1, 2, 3, -2, 0, 1, value=0.5))
case("pad_reflect", pad(3, 1, mode="reflect"))
case("pad_reflect_2", pad(2, 1, 0, 2, mode="reflect"))
case("pad_reflect_cut", pad(-2, 3, mode="reflect"))
case("pad_replicate", pad(3, 1, mode="replicate"))
case("pad_replicate_2", pad(1, 0, 2, 2, mode="replicate"))
case("pad_replicate_3", lambda x: F.pad(x[None], (1, 0, 2, 2, 0, 1), mode="replicate"))
case("pad_circular", pad(3, 4, mode="circular"))
case("pad_circular_cut", pad(-1, 1, mode="circular"))
case("pad_circular_2", lambda x: F.pad(x[None], (1, 2, 3, 0), mode="circular"))
print("tril_indices int64 2 2", torch.tril_indices(3, 4, 1).shape[1])
print(*torch.tril_indices(3, 4, 1).flatten().tolist())
print("triu_indices int64 2 2", torch.triu_indices(4, 3, -1).shape[1])
print(*torch.triu_indices(4, 3, -1).flatten().tolist())
