"""variants.py -- a sample's arguments made into others: laid out otherwise, with special values, empty, broadcast, with other
sizes, types and numbers. What PyTorch makes of them, a result or a refusal, is the case.

A tree is [args, kwargs]. A variant returns a new tree, or None where the sample has nothing to change."""
import torch
import torch.utils._pytree as pytree

nan, inf = float("nan"), float("inf")
SPECIAL = {
    torch.float64: [nan, inf, -inf, 0.0, -0.0, 1e-310, -1e-310, 1.7e308, -1.7e308, 1.0, -1.0, 0.5],
    torch.float32: [nan, inf, -inf, 0.0, -0.0, 1e-40, -1e-40, 3.4e38, -3.4e38, 1.0, -1.0, 0.5],
    torch.bfloat16: [nan, inf, -inf, 0.0, -0.0, 1e-40, -1e-40, 3.3e38, -3.3e38, 1.0, -1.0, 0.5],
    torch.float16: [nan, inf, -inf, 0.0, -0.0, 6e-8, -6e-8, 65504.0, -65504.0, 1.0, -1.0, 0.5],
    torch.int64: [0, 1, -1, 2**63 - 1, -2**63], torch.int32: [0, 1, -1, 2**31 - 1, -2**31],
    torch.uint8: [0, 1, 127, 128, 255], torch.bool: [False, True],
}
LARGE = 1e4
SIZES = (1, 2, 3, 5, 8, 9, 17)
INTS = (0, 1, -1, 2, -2, 3, 4, 7, -7, 64)
REALS = (0.0, -1.0, 0.5, 1.0, 2.0, -0.25, 1e30, nan, inf, -inf)
DTYPES = (torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.int64, torch.int32, torch.uint8, torch.bool)


def tensors(tree):
    return [x for x in pytree.tree_flatten(tree)[0] if isinstance(x, torch.Tensor)]


def replaced(tree, old, new):
    """The tree with the leaf `old` (itself) as new."""
    return pytree.tree_map(lambda x: new if x is old else x, tree)


def kept(x, values):
    """values with x's wish for a gradient."""
    return values.detach().requires_grad_(x.requires_grad and values.is_floating_point())


def plain(tree, rng):
    return tree


def strides(tree, rng):
    """Each tensor transposed, with gaps, or with a dim that is expanded."""
    def other(x):
        form = rng.choice(("transposed", "spaced", "expanded", "reversed"))
        if x.dim() == 0 or x.numel() == 0:
            return x
        if form == "transposed":
            a, b = rng.randrange(x.dim()), rng.randrange(x.dim())
            return kept(x, x.transpose(a, b).contiguous().transpose(a, b))
        if form == "reversed":
            order = tuple(range(x.dim()))[::-1]
            return kept(x, x.permute(order).contiguous().permute(order))
        if form == "expanded":
            dim = rng.randrange(x.dim())
            return kept(x, x.narrow(dim, 0, 1).contiguous().expand(x.shape))
        room = torch.zeros([2 * n for n in x.shape], dtype=x.dtype)
        view = room[tuple(slice(1, None, 2) for _ in x.shape)]
        with torch.no_grad():
            view.copy_(x)
        return kept(x, view)
    return pytree.tree_map(lambda x: other(x) if isinstance(x, torch.Tensor) else x, tree)


def values_of(tree, rng, floats_only, choose):
    """One tensor with some of its elements chosen anew."""
    found = [x for x in tensors(tree) if x.numel() and (x.is_floating_point() or not floats_only)]
    if not found:
        return None
    x = rng.choice([y for y in found if y.is_floating_point()] or found)
    values = x.detach().clone(memory_format=torch.contiguous_format)
    flat = values.view(-1)
    for i in range(flat.numel()):
        if rng.random() < 0.4:
            flat[i] = choose(x)
    return replaced(tree, x, kept(x, values))


def special(tree, rng, largest):
    """NaN, infinities, signed zeros, denormal numbers, the largest (whose sums depend on their order), the extremes of
    integers."""
    with_nan = rng.random() < 0.5

    def choose(x):
        value = rng.choice(SPECIAL[x.dtype])
        return value if (with_nan or value == value) and (largest or not LARGE < abs(value) < inf) else 0.25
    return values_of(tree, rng, any(x.is_floating_point() for x in tensors(tree)), choose)


def lone(tree, rng, _):
    """One element is NaN or infinite."""
    found = [x for x in tensors(tree) if x.numel() and x.is_floating_point()]
    if not found:
        return None
    x = rng.choice(found)
    values = x.detach().clone(memory_format=torch.contiguous_format)
    values.view(-1)[rng.randrange(values.numel())] = rng.choice((nan, nan, inf, -inf))
    return replaced(tree, x, kept(x, values))


def ties(tree, rng):
    """Many equal elements, and those at which functions have kinks."""
    small = (-1.0, 0.0, 0.0, 1.0, 0.5, 3.0)
    return values_of(tree, rng, True, lambda x: rng.choice(small))


def zeros(tree, rng):
    """One tensor of zeros."""
    found = [x for x in tensors(tree) if x.numel() and x.is_floating_point()]
    if not found:
        return None
    x = rng.choice(found)
    return replaced(tree, x, kept(x, torch.zeros_like(x)))


def resized(x, shape):
    """x's elements, repeated as often as it takes."""
    n = 1
    for size in shape:
        n *= size
    if n > 4096 or (x.numel() == 0 and n > 0):
        return None
    flat = x.detach().reshape(-1)
    if n == 0:
        return kept(x, flat.new_zeros(shape))
    values = flat.repeat(-(-n // flat.numel()))[:n]
    if n > flat.numel() and x.is_floating_point():
        values = values + (torch.arange(n) % 13).to(x.dtype) / 16  # not all equal
    return kept(x, values.reshape(shape))


def sizes(tree, new):
    """One size of the tensors, wherever it stands, becomes another."""
    def change(tree, rng):
        found = sorted({size for x in tensors(tree) for size in x.shape})
        if not found:
            return None
        old, to = rng.choice(found), rng.choice(new)
        if old == to:
            return None
        failed = []

        def one(x):
            if not isinstance(x, torch.Tensor) or old not in x.shape:
                return x
            out = resized(x, [to if size == old else size for size in x.shape])
            if out is None:
                failed.append(x)
            return out
        changed = pytree.tree_map(one, tree)
        return None if failed else changed
    return change


empty = sizes(None, (0,))


def no_index(tree, rng):
    """Indices of nothing: those of a dim of size 0, with or without the same size of what else is given; or masks without
    a True."""
    found = tensors(tree)
    first, indices = found[0] if found else None, [x for x in found[1:] if not x.is_floating_point()]
    if not indices:
        return None
    if all(x.dtype == torch.bool for x in indices):
        return pytree.tree_map(lambda x: torch.zeros_like(x) if any(x is y for y in indices) else x, tree)
    shapes = [x.shape for x in indices if x.dim() and x.dtype != torch.bool]
    if not shapes:
        return None
    shape = rng.choice(shapes)
    dim, others = rng.randrange(len(shape)), rng.random() < 0.5

    def one(x):
        if not isinstance(x, torch.Tensor) or x is first or x.dim() == 0 or x.dtype == torch.bool:
            return x
        index = any(x is y for y in indices)
        to = [0 if (i == dim or not index) and size == shape[dim] else size for i, size in enumerate(x.shape)]
        return resized(x, to) if index or others else x
    return pytree.tree_map(one, tree)
other_sizes = sizes(None, SIZES)


def broadcast(tree, rng):
    """One tensor with sizes of one, or without its first dims."""
    found = [x for x in tensors(tree) if x.dim() and x.numel()]
    if not found:
        return None
    x = rng.choice(found)
    if rng.random() < 0.3:
        return replaced(tree, x, kept(x, x[0].contiguous()))
    shape = [1 if rng.random() < 0.5 else size for size in x.shape]
    out = resized(x, shape)
    return out if out is None else replaced(tree, x, out)


def without_dims(tree, rng):
    """One tensor of no dims, or with one dim more."""
    found = [x for x in tensors(tree) if x.numel()]
    if not found:
        return None
    x = rng.choice(found)
    out = x.unsqueeze(rng.randrange(x.dim() + 1)) if x.dim() == 0 or rng.random() < 0.3 else x.reshape(-1)[0]
    return replaced(tree, x, kept(x, out.contiguous()))


def all_without_dims(tree, rng):
    if not any(x.dim() for x in tensors(tree)) or not all(x.numel() for x in tensors(tree)):
        return None
    return pytree.tree_map(lambda x: kept(x, x.reshape(-1)[0].clone()) if isinstance(x, torch.Tensor) else x, tree)


def other_dtype(tree, rng):
    """One tensor of another type."""
    found = tensors(tree)
    if not found:
        return None
    x, dtype = rng.choice(found), rng.choice(DTYPES)
    if dtype == x.dtype:
        return None
    return replaced(tree, x, kept(x, x.detach().nan_to_num(0, 1, -1).to(dtype)))


def numbers(tree, rng):
    """One integer, real, bool or list of integers of the arguments becomes another."""
    leaves, spec = pytree.tree_flatten(tree)
    places = [i for i, x in enumerate(leaves) if isinstance(x, (int, float)) and not isinstance(x, torch.dtype)]
    if not places:
        return None
    i = rng.choice(places)
    old = leaves[i]
    new = not old if isinstance(old, bool) else rng.choice(INTS if isinstance(old, int) else REALS)
    if isinstance(old, int) and not isinstance(old, bool) and rng.random() < 0.3:
        new = old + rng.choice((1, -1))
    leaves = list(leaves)
    leaves[i] = new
    return pytree.tree_unflatten(leaves, spec)


# Name, function, and how many of them an operation gets in the committed set: of float32, of each other type.
VARIANTS = [
    ("plain", plain, 4, 1), ("strides", strides, 3, 1), ("special", special, 3, 1), ("ties", ties, 2, 0.5), ("zeros", zeros, 1, 0.2),
    ("empty", empty, 2, 0.4), ("sizes", other_sizes, 3, 0.4), ("broadcast", broadcast, 2, 0.4), ("dims", without_dims, 2, 0.4),
    ("scalars", all_without_dims, 1, 0.4), ("mixed", other_dtype, 2, 0.4), ("numbers", numbers, 4, 0.5),
]
# The same of the set edges/: dims of size 0, indices of nothing, and one NaN or infinity alone.
EDGES = [("empty", empty, 4, 0.3), ("noindex", no_index, 4, 0.3), ("special", lone, 4, 0.3)]
