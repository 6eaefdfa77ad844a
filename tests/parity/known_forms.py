"""known_forms.py -- calls in forms that OpInfo has few samples of: numbers where tensors stand and the other way round, types beside
each other, entries along a dim. Each is (operation, function, {argument: value}), as known.py's."""
import torch

inf, nan = float("inf"), float("nan")


def leaf(*values, dtype=torch.float32, shape=None):
    x = torch.tensor(values, dtype=dtype)
    return (x if shape is None else x.reshape(shape)).requires_grad_(dtype.is_floating_point)


def where(condition, input, other):
    return torch.where(condition, input, other)


def einsum(equation, operands):
    return torch.einsum(equation, operands)


def searchsorted(sorted_sequence, input, **kwargs):
    return torch.searchsorted(sorted_sequence, input, **kwargs)


def bucketize(input, boundaries, **kwargs):
    return torch.bucketize(input, boundaries, **kwargs)


def entries():
    x = torch.tensor([[1, 2, 1, 0], [3, 4, 3, 4], [1, 2, 1, 0]])
    for t in (x, x.float(), x.half(), x.bfloat16(), x.double(), x.int(), x.byte(), x > 1, x.t(), x.reshape(1, 3, 4), x.reshape(3, 2, 2), x[:1],
              x[:0], x[:, :0], x[:0, :0], torch.tensor(3), x[0], torch.tensor([[0.0, -0.0, inf, 1.0, inf, 1.0]])):
        for dim in (0, 1, -1, 5):
            for inverse in (False, True):
                yield "unique", torch.unique, {"input": t, "return_inverse": inverse, "return_counts": not inverse, "dim": dim}
                yield "unique_consecutive", torch.unique_consecutive, {"input": t, "return_inverse": inverse, "return_counts": True,
                                                                       "dim": dim}


def numbers():
    x = leaf(3.0, 1.0, 2.0, 5.0, 4.0, 8.0, 7.0, 6.0, shape=(2, 4))
    for name in ("quantile", "nanquantile"):
        for q in (0, 1, 0.3, 1.5, -1, nan):
            yield name, getattr(torch, name), {"input": x, "q": q, "dim": 1, "keepdim": True}
        for t in (leaf(), x.detach().half(), x.detach().double().requires_grad_()):
            yield name, getattr(torch, name), {"input": t, "q": 0.5}
    for name in ("var", "std", "var_mean", "std_mean"):
        for correction in (0.5, 0, 4, 10.5, -1.5, True, inf, -inf):
            yield name, getattr(torch, name), {"input": x, "dim": 1, "correction": correction, "keepdim": True}
            yield name, getattr(torch, name), {"input": x.detach().bfloat16(), "dim": None, "correction": correction}
    for bounds in (torch.tensor([1.0, 2.0, 3.0]), torch.tensor([1, 2, 3]), torch.tensor([1.0, 2.0]).half(), torch.ones(1, 2), torch.ones(0)):
        for number in (2, 2.5, True, nan, inf):
            for right in (False, True):
                yield "searchsorted", searchsorted, {"sorted_sequence": bounds, "input": number, "right": right}
                yield "bucketize", bucketize, {"input": number, "boundaries": bounds, "right": right, "out_int32": right}
    for ends in ((torch.tensor(1.5), torch.tensor(4)), (torch.tensor(1), 5.5), (0.25, torch.tensor(2.0).double()), (1, torch.tensor([2.0])),
                 (torch.tensor([1.0]), torch.tensor([1.0, 2.0]))):
        for dtype in (torch.float32, torch.int64, torch.float16):
            yield "linspace", torch.linspace, {"start": ends[0], "end": ends[1], "steps": 4, "dtype": dtype}
            yield "logspace", torch.logspace, {"start": ends[0], "end": ends[1], "steps": 4, "base": 2.0, "dtype": dtype}
    for dtype in (torch.int32, torch.int64, torch.float32, torch.uint8, torch.bool):
        yield "tril_indices", torch.tril_indices, {"row": 3, "col": 4, "offset": 1, "dtype": dtype}
        yield "triu_indices", torch.triu_indices, {"row": 3, "col": 4, "offset": 1, "dtype": dtype}


def chosen():
    """where and index_fill: numbers, tensors without dims, conditions of bytes."""
    c = torch.tensor([[1], [0], [2]], dtype=torch.uint8)
    x = leaf(1.0, 2.0, 3.0)
    for a, b in ((1.5, 2), (1, 2), (True, 2), (True, False), (x, 2), (2.5, x), (torch.tensor([1, 2]), 2.5), (x.detach().half(), 2.5),
                 (x.detach().half(), torch.tensor(2.5)), (torch.tensor([1, 2]), torch.tensor(2.5).half()), (torch.tensor(2), torch.tensor(2.5)),
                 (x, x.detach().double().requires_grad_())):
        for condition in (c.bool(), c, c.int()):
            yield "where", where, {"condition": condition, "input": a, "other": b}
    y = leaf(*range(6), shape=(3, 2))
    for value in (leaf(5.0, shape=()), leaf(5.0), torch.tensor(5), leaf(0.1, dtype=torch.float64, shape=()), torch.tensor(True)):
        for places in ([0, 2], [1, 1], [], [-1], [3]):
            index = torch.tensor(places, dtype=torch.int64)
            yield "index_fill", torch.index_fill, {"input": y, "dim": 0, "index": index, "value": value}
    yield "index_fill", torch.index_fill, {"input": torch.ones(2, 2, dtype=torch.int64), "dim": 1, "index": torch.tensor([1]),
                                           "value": torch.tensor(5.7)}


def places():
    x = leaf(*range(12), shape=(3, 4))
    for value in (-1, -3, -4, 3, 100):
        index = torch.full((1, 4), value)
        yield "take_along_dim", torch.take_along_dim, {"input": x, "indices": index, "dim": 0}
        yield "take_along_dim", torch.take_along_dim, {"input": x, "indices": index.int(), "dim": 0}
        yield "take_along_dim", torch.take_along_dim, {"input": x, "indices": index}
    source = leaf(*range(1, 13), shape=(3, 4))
    for dtype in (torch.int32, torch.int64, torch.uint8, torch.float32):
        index = torch.tensor([[0, 1, 2, 0], [1, 1, 0, 2]]).to(dtype)
        at = {"input": x, "dim": 0, "index": index}
        yield "gather", torch.gather, at
        yield "scatter", torch.scatter, {**at, "src": source}
        yield "scatter", torch.scatter, {**at, "value": 2.5}
        yield "scatter_add", torch.scatter_add, {**at, "src": source}
        for reduce in ("sum", "prod", "mean", "amax", "amin"):
            yield "scatter_reduce", torch.scatter_reduce, {**at, "src": source, "reduce": reduce}
        line = {"input": x, "dim": 0, "index": torch.tensor([2, 0, 2]).to(dtype)}
        yield "index_reduce", torch.index_reduce, {**line, "source": source, "reduce": "prod"}
        yield "index_add", torch.index_add, {**line, "source": source}
        yield "index_select", torch.index_select, line


def mixed():
    a, b = leaf(*range(1, 5), shape=(2, 2)), leaf(0.5, -1.0)
    halves = leaf(0.5, 2.0, dtype=torch.float16)
    wide = leaf(0.25, 2.0, dtype=torch.float64)
    for x, u, v in ((a, b, halves), (a, halves, b), (a, wide, b), (a, torch.tensor([1, 2]), halves), (a.detach().half(), b, halves),
                    (a.detach().long(), torch.tensor([1, 2]), b)):
        yield "addr", torch.addr, {"input": x, "vec1": u, "vec2": v, "beta": 0.5, "alpha": 2.0}
    for equation, operands in (("i,j->ij", [b, wide]), ("i,i->i", [b, halves]), ("i,i->", [b, halves]), ("ij,j->ij", [a, halves]),
                               ("ij,jk->ik", [a, a.detach().double()]), ("i,j,k->ijk", [b, halves, wide]), ("ij,kl->", [a, a.detach().half()]),
                               ("ij,jk->ik", [a[:, :1].detach().requires_grad_(), torch.ones(1, 2, dtype=torch.float64)])):
        yield "einsum", einsum, {"equation": equation, "operands": operands}
    for t in (torch.float64, torch.float32, torch.float16, torch.int64):
        yield "linalg.solve_triangular", torch.linalg.solve_triangular, {"input": a, "B": torch.eye(2).to(t), "upper": True}
        yield "linalg.solve_triangular", torch.linalg.solve_triangular, {"input": a.detach().to(t), "B": torch.eye(2), "upper": False}
        for size in (0, 1):
            yield "linalg.cholesky", torch.linalg.cholesky, {"input": torch.ones(size, size).to(t)}


def orders():
    x = leaf(0.25, 0.5, 1.0, 2.5, 10.0, 30.0, -0.25, -1.4, -7.3)
    for n in (0, 1, 2, 3, 4, 7, 12):
        yield "polygamma", torch.polygamma, {"n": n, "input": x}
        yield "polygamma", torch.polygamma, {"n": n, "input": x.detach().double().requires_grad_()}
        yield "polygamma", torch.polygamma, {"n": n, "input": x.detach()[:6].half()}
        yield "polygamma", torch.polygamma, {"n": n, "input": torch.tensor([1, 2, 5])}
        yield "polygamma", torch.polygamma, {"n": n, "input": leaf(0.0, -0.0, nan, 1e30)}
    yield "digamma", torch.digamma, {"input": x}
    yield "lgamma", torch.lgamma, {"input": x}


def singular_values():
    x = leaf(3.0, 1.0, -2.0, 0.5, 4.0, 1.5, shape=(2, 3))
    stack = leaf(*(((i * i * 7 + 3 * i) % 13 - 6) / 4 for i in range(24)), shape=(2, 4, 3))
    for t in (x, x.detach().t().requires_grad_(), stack, torch.zeros(0, 3), torch.zeros(2, 0, 3), torch.zeros(3, 3), torch.ones(3, 2),
              x.detach().double().requires_grad_(), x.detach().half(), x.detach().long(), x[0].detach()):
        yield "linalg.svdvals", torch.linalg.svdvals, {"A": t}
        for order in (2, -2, 1, -1, inf, -inf, 0, 3, "nuc", "fro"):
            yield "linalg.matrix_norm", torch.linalg.matrix_norm, {"input": t, "ord": order}
            yield "linalg.norm", torch.linalg.norm, {"input": t, "ord": order, "keepdim": True}
        yield "norm", torch.norm, {"input": t, "p": "nuc"}
    for dims in ((0, 2), (-1, 0), (1, 1), (0, 1, 2), (1,)):
        for order in (2, -1, "nuc", "fro"):
            yield "linalg.matrix_norm", torch.linalg.matrix_norm, {"input": stack, "ord": order, "dim": dims, "keepdim": dims == (0, 2)}
        yield "norm", torch.norm, {"input": stack, "p": "nuc", "dim": dims, "keepdim": dims == (0, 2)}
    for t in (leaf(1, 2, 4, 2, 4, 8, 0, 1, 1, shape=(3, 3)), leaf(1, 0, 0, 0, shape=(2, 2)), leaf(2, 1, 4, 2, 0, 1, 1, 0, shape=(2, 2, 2)),
              leaf(*(0,) * 9, shape=(3, 3)), leaf(*(1,) * 9, shape=(3, 3)), leaf(0, shape=(1, 1))):
        yield "linalg.det", torch.linalg.det, {"A": t.detach().float().requires_grad_()}


def calls():
    for make in (entries, numbers, chosen, places, mixed, orders, singular_values):
        yield from make()
