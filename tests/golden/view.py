#!/usr/bin/env python3
"""view.py -- what PyTorch makes of views and of writes through them: prints view.txt.

Looks at x = arange(24).view(2, 3, 4): "<name> float32 <ndim> <sizes>", the elements, and as
"<name>.stride" its strides. Programs: the values and gradients they end with."""
import torch


def show(name, value):
    value = value.detach().contiguous()
    print(name, "int64" if value.dtype == torch.int64 else "float32", value.dim(), *value.shape)
    print(*[repr(v) for v in value.flatten().tolist()])


def look(name, value):
    show(name, value)
    show(name + ".stride", torch.tensor(value.stride(), dtype=torch.int64))


print("# made by view.py with PyTorch", torch.__version__)
x = torch.arange(24.0).view(2, 3, 4)
look("view", x.view(4, -1))
look("view_of_permuted", x.permute(1, 0, 2).view(3, 2, 2, 2))
look("reshape_copies", x.transpose(1, 2).reshape(4, 6))
look("reshape_looks", x[:, 1:].reshape(2, -1))
look("flatten", x.flatten(1, -1))
look("flatten_all", x.flatten())
look("unflatten", x.unflatten(-1, (2, -1)))
look("permute", x.permute(2, 0, -2))
look("transpose", x.transpose(0, -1))
look("t", x[0].t())
look("squeeze", x[:1, :, 2:3].squeeze())
look("squeeze_dim", x[:1, :, 2:3].squeeze(-1))
look("squeeze_dim_kept", x.squeeze(1))
look("unsqueeze", x.unsqueeze(-2))
look("unsqueeze_front", x.transpose(0, 1).unsqueeze(0))
look("expand", x[:, :1, 0].expand(3, -1, 5))
look("narrow", x.narrow(2, -3, 2))
look("narrow_empty", x.narrow(0, 2, 0))
look("slice", x[:, :, 1:100:2])
look("slice_negative", x[:, -2:-1])
look("slice_empty", x[:, 2:1])
look("select", x.select(1, -1))
look("as_strided", x[1].as_strided((2, 3), (1, 2), 13))


def leaf():
    return torch.arange(1.0, 7.0).view(2, 3).requires_grad_()


def weights(*shape):
    n = 1
    for s in shape:
        n *= s
    return (torch.arange(float(n)) * 0.5 + 1).view(*shape)


def program(run):
    a = leaf()
    y = run(a)
    (y * y * weights(*y.shape)).sum().backward()
    show(run.__name__ + ".y", y)
    show(run.__name__ + ".grad", a.grad)


def slice_times(a):
    y = a * 2
    y[1].mul_(3)
    return y


def chain(a):
    y = a * 2
    y.t()[1:].select(1, 0).mul_(a[0, 1:])
    return y


def old_view_of_written_base(a):
    y = a * 2
    v = y[:, 1:]
    y.mul_(3)
    return v * 1


def written_twice(a):
    y = a * 2
    v = y[:, 1:]
    w = y.view(-1)[2:5]
    v.mul_(5)
    w.add_(a.view(-1)[:3])
    return y + torch.cat([v, v[:, :1]], 1)


def sibling_sees_write(a):
    y = a * 2
    v, w = y[0], y[:, 2]
    v.exp_()
    return w * 1


def copy_into(a):
    y = torch.zeros(3, 3)
    y[1:].copy_(a)
    return y


def zero_base_view_first(a):
    y = torch.zeros(2, 3)
    v = y[1]
    y.add_(a)
    return v * 1


def fill_part(a):
    y = a * a
    y[:, 1].fill_(4)
    return y


def expanded_input(a):
    y = a * 2
    y[:, :2].mul_(a[:, 2:].expand(2, 2))
    return y


def permuted_write(a):
    y = a * 1
    y.view(3, 2).t()[0].mul_(y.sum())
    return y


def overlapping_look(a):
    return a.as_strided((4, 3), (1, 1))


def overlapping_look_of_expanded(a):
    return a[:, :1].expand(2, 3).as_strided((3,), (1,), 1)


def look_of_transposed(a):
    return a.t()[1:].as_strided((2, 2), (1, 2), 0)


def split_pieces(a):
    p, q = a.split(2, 1)
    return p * q


def chunks(a):
    return torch.cat([c * (i + 1) for i, c in enumerate(a.view(-1).repeat(3).chunk(7))])


for p in (slice_times, chain, old_view_of_written_base, written_twice, sibling_sees_write, copy_into,
          zero_base_view_first, fill_part, expanded_input, permuted_write, overlapping_look,
          overlapping_look_of_expanded, look_of_transposed, split_pieces, chunks):
    program(p)
