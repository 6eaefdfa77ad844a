#!/usr/bin/python3
"""generate.py [NAME ...] -- writes tests/parity/cases/<operation>.gz from PyTorch's OpInfo: its sample inputs,
what PyTorch makes of them, and its gradients.

Made with Debian's python3-torch 1.13 on the cpu. The same PyTorch writes the same files: every operation is
seeded by its name. Names restrict the run to these operations."""
import pathlib
import sys
import zlib

import opinfo
import torch
import torch.utils._pytree as pytree
from codec import DTYPES, File, Unwritable, shorten
from torch.testing._internal.common_device_type import toleranceOverride, precisionOverride

FOLDER = pathlib.Path(__file__).parent / "cases"
LARGE = 4096  # elements of a sample's tensors; of what is larger, only the first two where nothing else is
OTHER_DTYPES = (torch.int64, torch.int32, torch.uint8, torch.bool, torch.float16, torch.bfloat16)
HALVES = (torch.float16, torch.bfloat16)
OTHERS = 4  # samples of each of these
SMALL = 512


def leaves(tree):
    return [x for x in pytree.tree_flatten(tree)[0] if isinstance(x, torch.Tensor)]


def size_of(tree):
    return sum(x.numel() for x in leaves(tree))


def same_geometry(x, values):
    """values, lying in memory as x does."""
    if x.numel() == 0 or any(stride == 0 and size > 1 for size, stride in zip(x.shape, x.stride())):
        return values.expand(x.shape) if x.numel() and x.dim() == 0 else x.detach().clone()
    span = 1 + sum((size - 1) * stride for size, stride in zip(x.shape, x.stride()))
    if span > 4 * x.numel() + 16:
        return values.clone()
    offset = min(x.storage_offset(), 1)
    out = torch.zeros(span + offset, dtype=x.dtype).as_strided(x.shape, x.stride(), offset)
    return out.copy_(values)


def prepared(x):
    """A sample's tensor with fewer bits, where that makes no two elements equal."""
    out = x.detach()
    if out.dtype == torch.float32 and out.layout == torch.strided:
        different = len(out.unique())
        for bits in (11, 14, 18):
            short = shorten(out, bits)
            if len(short.unique()) == different:
                out = same_geometry(out, short)
                break
    return out.requires_grad_(x.requires_grad and out.is_floating_point())


def mapped(function, tree):
    """The same tree with function(tensor) for every tensor."""
    return pytree.tree_map(lambda x: function(x) if isinstance(x, torch.Tensor) else x, tree)


def cloned(x):
    return same_geometry(x, x.detach()).requires_grad_(x.requires_grad)


def widened(x):
    if x.dtype not in (torch.float32, *HALVES):
        return cloned(x)
    out = x.detach().double() if x.is_contiguous() or 0 in x.stride() else \
        torch.empty_strided(x.shape, x.stride(), dtype=torch.float64).copy_(x.detach())
    return out.requires_grad_(x.requires_grad)


def results(out):
    """A call's tensors in order."""
    if isinstance(out, torch.Tensor):
        return [out]
    if isinstance(out, (list, tuple)) and all(isinstance(x, torch.Tensor) for x in out):
        return list(out)
    raise Unwritable("a result that is no tensor")


def dense(x):
    """x as results are written: row by row, from the start of its memory."""
    return x.detach().clone(memory_format=torch.contiguous_format)


def weights(x, k):
    """What result k is multiplied with before its sum is differentiated; cases.c has the same."""
    i = torch.arange(x.numel(), dtype=torch.int64)
    return (((i * 7 + k * 3) % 11 - 5).to(x.dtype) / 4 + 0.125).reshape(x.shape)


def refined(out, function, args, kwargs, sums):
    """[(result, PyTorch's own rounding error)], those of floating point computed in f64 and rounded. Of f32 only
    where PyTorch's own result agrees up to its rounding; a half's own sums are too rough to compare with."""
    args, kwargs = mapped(widened, [args, kwargs])
    try:
        wide = results(function(*args, **kwargs))
    except (RuntimeError, IndexError, ValueError, NotImplementedError):
        return [(x, 0) for x in out]
    if len(wide) != len(out) or any(a.shape != b.shape for a, b in zip(out, wide)):
        return [(x, 0) for x in out]
    return [exact(a, b, sums) for a, b in zip(out, wide)]


def rough(own, wide):
    """The rounding error of a half's result, where that has one but is not wrong altogether."""
    if own.numel() == 0 or not (own.isfinite().all() and wide.isfinite().all()):
        return 0
    error, scale = (wide - own).abs().max().item(), wide.abs().max().item()
    return error if error < (0.03 if own.dtype == torch.bfloat16 else 0.004) * scale else 0


def exact(own, wide, sums):
    if own.dtype not in (torch.float32, *HALVES) or wide.dtype != torch.float64:
        return own, 0
    if own.dtype in HALVES:
        overflows = not torch.equal(own.isfinite(), wide.to(own.dtype).isfinite())
        return (own, 0) if overflows else (wide.to(own.dtype), rough(own, wide))
    finite = wide.isfinite() & own.isfinite()
    error = (wide - own)[finite].abs()
    if torch.allclose(own.double(), wide, rtol=1.3e-6, atol=1e-5, equal_nan=True) and not (
            sums and finite.any() and error.max() > 1e-5):
        return wide.float(), 0
    scale = wide[finite].abs().max().item() if finite.any() else 0
    if bool((own.isfinite() == wide.float().isfinite()).all()) and error.max().item() <= 1e-6 * scale + 1e-5:
        return wide.float(), error.max().item()
    return own, 0


def forward_lines(file, op, function, args, kwargs):
    """Lines of a call's results, and of arguments that it wrote to."""
    before = leaves([args, kwargs])
    original = [args, kwargs]
    args, kwargs = mapped(cloned, original)
    with torch.no_grad():
        out = refined(results(function(*args, **kwargs)), function, *original, opinfo.is_sum(op))
    lines = ["out {}".format(file.tensor(dense(x))) + (" %.2e" % error if error else "") for x, error in out]
    return lines, before, leaves([args, kwargs])


def gradient_lines(file, op, function, args, kwargs):
    """Lines of f64 gradients; none where nothing has one."""
    args, kwargs = mapped(widened, [args, kwargs])
    try:
        out = results(function(*args, **kwargs))
    except (RuntimeError, IndexError, ValueError, NotImplementedError):
        return []
    root = sum((x * weights(x, k)).sum() for k, x in enumerate(out) if x.is_floating_point() and x.requires_grad)
    bound = opinfo.bind(op, args, kwargs)
    inputs = [(i, item, x) for i, value in enumerate(bound.values())
              for item, x in ([(-1, value)] if not isinstance(value, (list, tuple)) else list(enumerate(value)))
              if isinstance(x, torch.Tensor) and x.requires_grad]
    if not isinstance(root, torch.Tensor) or not root.requires_grad or not inputs:
        return []
    try:
        grads = torch.autograd.grad(root, [x for _, _, x in inputs], allow_unused=True)
    except (RuntimeError, NotImplementedError):
        return []
    return ["grad {} {} {}".format(i, item, file.tensor(shorten(g, 32)))
            for (i, item, _), g in zip(inputs, grads) if g is not None]


def write_case(file, op, dtype, sample, gradients):
    found = opinfo.positional(op, sample)
    if found is None:
        return
    args, kwargs = mapped(prepared, list(found))
    kwargs = {k: v for k, v in kwargs.items() if k not in ("device", "layout", "requires_grad", "pin_memory")}
    bound = opinfo.bind(op, args, kwargs)
    if bound is None:
        raise Unwritable("arguments without names")
    if not opinfo.is_sound(op, bound):
        return
    function = opinfo.callee(op)
    lines, before, after = forward_lines(file, op, function, args, kwargs)
    names = list(bound)
    for old, new in zip(before, after):
        if dtype not in HALVES and not torch.equal(old.detach(), new.detach()) and not old.isnan().any():
            place = [i for i, n in enumerate(names) if bound[n] is old]
            lines += ["after {} {}".format(i, file.tensor(dense(new))) for i in place]
    if gradients:
        lines += gradient_lines(file, op, function, args, kwargs)
    file.case(dtype, bound, lines)


def tolerances(op):
    """The operation's own tolerances: the widest of each type that no decorator ties to another device."""
    found = {}
    for decorator in op.decorators:
        inner = getattr(decorator, "decorators", [decorator])
        if getattr(decorator, "device_type", None) not in (None, "cpu"):
            continue
        for d in inner:
            if isinstance(d, toleranceOverride):
                for dtype, t in d.d.items():
                    old = found.get(dtype, (0, 0))
                    found[dtype] = (max(old[0], t.atol), max(old[1], t.rtol))
            elif isinstance(d, precisionOverride):
                for dtype, t in d.d.items():
                    found[dtype] = (max(found.get(dtype, (0, 0))[0], t), found.get(dtype, (0, 0))[1])
    return {dtype: t for dtype, t in found.items() if dtype in DTYPES}


def samples(op, dtype, seed):
    torch.manual_seed(seed)
    opinfo.random.seed(seed)
    return list(op.sample_inputs("cpu", dtype, requires_grad=op.supports_autograd and dtype.is_floating_point))


def write_errors(file, op, word="error"):
    if not op.error_inputs_func:
        return
    for error in op.error_inputs("cpu"):
        sample = error.sample_input
        found = opinfo.positional(op, sample)
        if found is None:
            continue
        args, kwargs = found
        try:
            opinfo.callee(op)(*args, **kwargs)
            continue  # refused on other devices only
        except Exception as e:
            message = " ".join(str(e).split("Exception raised from")[0].split())
        bound = opinfo.bind(op, args, kwargs, strict=False)
        try:
            if bound is None:
                raise Unwritable("arguments without names")
            file.case(next((x.dtype for x in leaves([args, kwargs]) if x.dtype in DTYPES), torch.float32),
                      bound, [word + " " + message[:400]])
        except Unwritable as why:
            print("{}: an error input is left out: {}: {}".format(op.name, why, message[:90]))


def write_op(file, op, seed):
    for dtype in (torch.float32, *OTHER_DTYPES):
        if dtype not in op.dtypes:
            continue
        found = samples(op, dtype, seed)
        limit = LARGE if dtype == torch.float32 else SMALL
        small = [s for s in found if size_of([s.input, s.args, s.kwargs]) <= limit]
        found = small or found[:2]
        if dtype != torch.float32 and torch.float32 in op.dtypes:
            found = small[:OTHERS]
        for sample in found:
            try:
                write_case(file, op, dtype, sample, dtype == torch.float32 and op.supports_autograd)
            except Unwritable as why:
                print("{}: a sample is left out: {}".format(op.name, why))
            except (RuntimeError, NotImplementedError) as why:
                print("{} {}: PyTorch refuses its sample: {}".format(op.name, dtype, str(why).split("\n")[0]))


def main(wanted):
    FOLDER.mkdir(exist_ok=True)
    torch.set_num_threads(1)
    files = {}
    for op, name in opinfo.operations():
        if wanted and name not in wanted:
            continue
        if name not in files:
            files[name] = File(name)
            for dtype, (absolute, relative) in tolerances(op).items():
                files[name].tolerance(dtype, absolute, relative)
        seed = zlib.crc32((name + op.variant_test_name).encode()) & 0x7FFFFFFF
        write_op(files[name], op, seed)
        write_errors(files[name], op)
    for name, file in files.items():
        if file.cases:
            file.write(FOLDER / (name + ".gz"))


if __name__ == "__main__":
    main(sys.argv[1:])
