#!/usr/bin/env python3
"""fresh.py [--edges] [--seed N] [--times K] [--out FOLDER] [--names FILE] [NAME ...] -- writes FOLDER/<operation>.gz: fresh samples of the
operations, made of PyTorch's own by variants.py, what PyTorch makes of them, gradients and second derivatives, forms in place
and refusals.

The committed files in fresh/ are those of PyTorch 2.15 (PyPI), --seed 1 --times 1, with the names that build/tests/coverage_names
prints; those in edges/ the same with --edges, which makes samples of other kinds. A child process an operation: the same PyTorch writes the same files, in any order."""
import argparse
import os
import pathlib
import random
import resource
import signal
import sys
import zlib

import generate
import known
import opinfo
import torch
import variants
from codec import File, Unwritable
from torch.testing._internal.opinfo.core import BinaryUfuncInfo, UnaryUfuncInfo

FOLDER = pathlib.Path(__file__).parent / "fresh"
ERRORS = (RuntimeError, IndexError, ValueError, NotImplementedError, TypeError, AssertionError, OverflowError, ZeroDivisionError)
ALL = (torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.int64, torch.int32, torch.uint8, torch.bool)
ELEMENTS, LARGEST = 400, 4096  # of a case's tensors
ALSO = ("quantile", "nanquantile", "polygamma", "linalg.det", "linalg.inv", "linalg.solve", "tril_indices", "triu_indices")
# Operations that are about how elements lie in memory, or that write to what they are given.
LAYOUT = ("view", "view_as", "as_strided", "as_strided_scatter", "nn.functional.batch_norm", "nn.functional.instance_norm")
SECONDS = 240   # an operation


def all_sizes(rng):
    """The sizes that OpInfo builds its samples of, drawn anew."""
    for name, module in list(sys.modules.items()):
        if name.startswith("torch.testing._internal") and isinstance(getattr(module, "S", None), int):
            module.S, module.M = rng.choice((3, 4, 5)), rng.choice((5, 6, 7))


def text_of(error):
    return " ".join(str(error).split("Exception raised from")[0].split())[:200]


def spaced(x):
    """x with gaps between its elements: PyTorch's loops over single elements."""
    if not isinstance(x, torch.Tensor) or x.numel() == 0 or x.dim() == 0:
        return x
    memory = torch.zeros([*x.shape[:-1], 2 * x.shape[-1]], dtype=x.dtype)
    out = memory[..., ::2]
    out.copy_(x.detach())
    return out.requires_grad_(x.requires_grad)


def same(a, b):
    return len(a) == len(b) and all(
        x.shape == y.shape and x.dtype == y.dtype and torch.allclose(
            x.double(), y.double(), rtol=1e-3 if x.dtype != torch.bfloat16 else 0.02, atol=1e-5, equal_nan=True) for x, y in zip(a, b))


def agrees(function, tree):
    """Whether PyTorch gives the same twice, and from other loops."""
    with torch.no_grad():
        out = [generate.results(function(*args, **kwargs)) for args, kwargs in
               (generate.mapped(generate.cloned, tree), generate.mapped(generate.cloned, tree), generate.mapped(spaced, tree))]
    return same(out[0], out[1]) and same(out[0], out[2])


def is_rough(function, tree):
    """Whether PyTorch's own float32 is far from the exact result, so that there is nothing to compare with."""
    with torch.no_grad():
        args, kwargs = generate.mapped(generate.cloned, tree)
        own = generate.results(function(*args, **kwargs))
        args, kwargs = generate.mapped(generate.widened, tree)
        wide = generate.results(function(*args, **kwargs))
    for a, b in zip(own, wide):
        if a.dtype == torch.float32 and b.dtype == torch.float64 and a.shape == b.shape and a.isfinite().all() and b.isfinite().all():
            if a.numel() and (a - b).abs().max() > 1e-6 * b.abs().max() + 1e-5:
                return True
    return False


def grads_of(function, op, tree, change):
    """[(argument, item, gradient)] and the same of the second derivatives, in f64; None where there are none."""
    args, kwargs = generate.mapped(lambda x: change(generate.widened(x)), tree)
    out = generate.results(function(*args, **kwargs))
    root = sum((x * generate.weights(x, k)).sum() for k, x in enumerate(out) if x.is_floating_point() and x.requires_grad)
    bound = opinfo.bind(op, args, kwargs)
    inputs = [(i, item, x) for i, value in enumerate(bound.values())
              for item, x in ([(-1, value)] if not isinstance(value, (list, tuple)) else list(enumerate(value)))
              if isinstance(x, torch.Tensor) and x.requires_grad]
    if not isinstance(root, torch.Tensor) or not root.requires_grad or not inputs:
        return [], []
    leaves = [x for _, _, x in inputs]
    first = torch.autograd.grad(root, leaves, allow_unused=True, create_graph=True)
    found = [(i, item, g) for (i, item, _), g in zip(inputs, first) if g is not None]
    again = sum((g * generate.weights(g, k)).sum() for k, (_, _, g) in enumerate(found) if g.requires_grad)
    second = []
    if isinstance(again, torch.Tensor) and again.requires_grad:
        try:
            both = torch.autograd.grad(again, leaves, allow_unused=True)
            second = [(i, item, g) for (i, item, _), g in zip(inputs, both) if g is not None]
        except (RuntimeError, NotImplementedError):
            pass
    return found, second


def gradient_lines(file, op, function, tree):
    try:
        first, second = grads_of(function, op, tree, lambda x: x)
        first_again, second_again = grads_of(function, op, tree, spaced)
    except ERRORS:
        return []
    lines = []
    for word, a, b in (("grad", first, first_again), ("grad2", second, second_again)):
        if not a or not same([g.detach() for _, _, g in a], [g.detach() for _, _, g in b]):
            break
        lines += ["{} {} {} {}".format(word, i, item, file.tensor(generate.shorten(g, 32))) for i, item, g in a]
    return lines


def in_place_lines(file, op, function, tree):
    """The first argument after the call in place, or that PyTorch refuses one."""
    form = op.inplace_variant
    args, kwargs = generate.mapped(lambda x: generate.cloned(x).detach(), tree)
    if form is None or not args or not isinstance(args[0], torch.Tensor) or op.name in ("where",):
        return []
    try:
        out = form(*args, **kwargs)
    except ERRORS as why:
        return ["inplace refused " + text_of(why)]
    return ["inplace {}".format(file.tensor(generate.dense(out)))] if isinstance(out, torch.Tensor) else []


def write_case(file, op, dtype, kind, tree):
    args, kwargs = tree
    function = opinfo.callee(op)
    bound = opinfo.bind(op, args, kwargs)
    refused = None
    if bound is not None and not opinfo.is_sound(op, bound):
        return
    try:
        if not agrees(function, tree):
            file.unsound += 1
            return
    except ERRORS as why:
        refused = text_of(why)
    if refused is not None:
        bound = bound or opinfo.bind(op, args, kwargs, strict=False)
        if bound is not None and "not implemented for" not in refused:
            file.case(dtype, bound, ["kind " + kind, "refused " + refused])
        return
    if bound is None:
        raise Unwritable("arguments without names")
    if kind != "special" and dtype == torch.float32 and is_rough(function, tree):
        file.unsound += 1
        return
    lines, _, _ = generate.forward_lines(file, op, function, args, kwargs)
    lines += in_place_lines(file, op, function, tree)
    if dtype == torch.float32 and op.supports_autograd:
        lines += gradient_lines(file, op, function, tree)
    file.case(dtype, bound, ["kind " + kind] + lines)


def elementwise(op):
    return isinstance(op, (UnaryUfuncInfo, BinaryUfuncInfo))


def is_usual(name, key, value):
    """Whether an argument is the default, of devices, or of chance."""
    return key in ("device", "layout", "requires_grad", "pin_memory", "dropout_p") or (
        key == "dtype" and name in ("tril_indices", "triu_indices") and value == torch.int64)


def base_samples(op, dtype, rng):
    """Trees of OpInfo's samples: the small ones, or the smallest three."""
    found = []
    places = [opinfo.positional(op, sample) for sample in generate.samples(op, dtype, rng.randrange(1 << 30))]
    places = sorted((generate.size_of(list(p)), i) for i, p in enumerate(places) if p is not None), places
    for i in [i for k, (size, i) in enumerate(places[0]) if size <= ELEMENTS or (k < 3 and size <= LARGEST)]:
        place = places[1][i]
        args, kwargs = generate.mapped(generate.prepared, list(place))
        found.append([args, {k: v for k, v in kwargs.items() if not is_usual(op.name, k, v)}])
    return found


def write_dtype(file, op, dtype, rng, options, times, tame):
    try:
        found = base_samples(op, dtype, rng)
    except ERRORS as why:
        print("{} {}: no samples: {}".format(op.name, dtype, text_of(why)[:80]))
        return
    limit = max([2 * ELEMENTS, *(2 * generate.size_of(tree) for tree in found[:1])])
    for kind, variant, of_float, of_other in variants.EDGES if options.edges else variants.VARIANTS:
        if tame and kind not in ("plain", "strides", "ties", "zeros"):
            continue
        wanted = (of_float if dtype == torch.float32 or torch.float32 not in op.dtypes else of_other) * times
        wanted = int(wanted) + (rng.random() < wanted - int(wanted))
        if (kind == "strides" and op.name in LAYOUT) or (kind == "numbers" and "dropout" in op.name):
            continue
        for _ in range(wanted if found else 0):
            tree = variant(rng.choice(found), rng, *(elementwise(op),) * (kind == "special"))
            if tree is None or generate.size_of(tree) > limit:
                continue
            attempt(file, op, dtype, kind, tree)


def attempt(file, op, dtype, kind, tree):
    """The case; nothing of it where it can't be written."""
    lines, data, seen = len(file.lines), len(file.data), dict(file.known)
    try:
        write_case(file, op, dtype, kind, tree)
        case = "\n".join(file.lines[lines:])
        if not file.only_new or case not in file.written:
            file.written.add(case)
            return
        reason = "written before"
        file.cases -= 1
    except Unwritable as why:
        reason = str(why)
    except ERRORS as why:
        reason = text_of(why)[:60]
    file.left[reason] = file.left.get(reason, 0) + 1
    del file.lines[lines:], file.data[data:]
    file.known = seen


def write_known(file, name):
    for operation, function, arguments in known.calls():
        if operation == name:
            dtype = next((x.dtype for x in generate.leaves(list(arguments.values()))), torch.float32)
            attempt(file, known.Call(name, function), dtype, "known", [[], arguments])


def write_op(file, op, seed, options, times, tame):
    rng = random.Random(seed)
    for dtype in ALL:
        if dtype in op.dtypes:
            write_dtype(file, op, dtype, rng, options, times, tame)
    if not options.edges:
        generate.write_errors(file, op, "refused")


def one_name(name, ops, options, tame):
    file = File(name)
    file.unsound, file.left, file.written, file.only_new = 0, {}, set(), options.edges
    tolerance = {}
    for op in ops:
        for dtype, pair in generate.tolerances(op).items():
            tolerance[dtype] = tuple(map(max, pair, tolerance.get(dtype, (0, 0))))
    for dtype, (absolute, relative) in tolerance.items():
        file.tolerance(dtype, absolute, relative)
    seed = zlib.crc32("{} {}".format(name, options.seed).encode()) & 0x7FFFFFFF
    all_sizes(random.Random(seed))
    for i, op in enumerate(ops):
        write_op(file, op, seed + i, options, options.times / len(ops) ** 0.5, tame)
    if not options.edges:
        write_known(file, name)
    if file.cases:
        file.write(pathlib.Path(options.out) / (name + ".gz"))
    print("{}: {} cases, {} where PyTorch disagrees with itself{}".format(
        name, file.cases, file.unsound, "".join("; {} left out: {}".format(n, why) for why, n in file.left.items())), flush=True)


def in_child(name, ops, options, tame=False):
    child = os.fork()
    if child == 0:
        signal.alarm(SECONDS)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        try:
            one_name(name, ops, options, tame)
        except BaseException as why:
            print("{}: {}: {}".format(name, type(why).__name__, why), flush=True)
            os._exit(1)
        os._exit(0)
    return child


def run_all(ops, options):
    """A child for each name; a name that PyTorch crashes on once more, with the variants that it survives."""
    waiting, running = [(name, False) for name in ops], {}
    while waiting or running:
        if waiting and len(running) < options.jobs:
            name, tame = waiting.pop(0)
            running[in_child(name, ops[name], options, tame)] = (name, tame)
            continue
        done, status = os.wait()
        name, tame = running.pop(done)
        if status:
            print("{}: the child ended with {}".format(name, status), flush=True)
            if not tame:
                waiting.append((name, True))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--edges", action="store_true")
    parser.add_argument("--times", type=float, default=1)
    parser.add_argument("--out", default=str(FOLDER))
    parser.add_argument("--names")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("only", nargs="*")
    options = parser.parse_args()
    pathlib.Path(options.out).mkdir(parents=True, exist_ok=True)
    torch.set_num_threads(1)
    names = set(open(options.names).read().split()) if options.names else None
    ops = {}
    for op, name in opinfo.operations(ALSO):
        if (not options.only or name in options.only) and (names is None or name in names):
            ops.setdefault(name, []).append(op)
    for name, _, _ in known.calls():
        if (not options.only or name in options.only) and name not in ops:
            ops[name] = []
    run_all(ops, options)


if __name__ == "__main__":
    main()
