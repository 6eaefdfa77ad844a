"""codec.py -- how cases are written: a text that lists tensors and cases, the line `data`, then the tensors'
elements; all in one gzip file an operation. Read by cases.c.

    op NAME
    tolerance DTYPE ABSOLUTE RELATIVE       where the operation has its own
    tensor DTYPE SIZES STRIDES OFFSET N     N elements follow in the data; sizes 2,3 or - for none
    case DTYPE                              of its floating point tensors; what follows belongs to it
    arg NAME KIND VALUE                     none, tensor I, tensors I,J, int, ints, real, reals, bool, text, dtype
    out I [ROUNDING]                        each result; PyTorch's own rounding error where it is larger than
                                            assert_close's tolerance
    after A I                               argument A after the call, where it was changed
    grad A ITEM I                           f64: of sum(out * weight) by argument A (ITEM of a list, or -1)
    error TEXT                              instead of results: PyTorch's refusal

In the data the first bytes of all elements of a tensor come first, then the second ones: they compress better."""
import gzip
import math

import numpy
import torch

DTYPES = {torch.float32: "float32", torch.float64: "float64", torch.float16: "float16",
          torch.bfloat16: "bfloat16", torch.int32: "int32", torch.int64: "int64", torch.uint8: "uint8",
          torch.bool: "bool"}
LARGEST = 1 << 20


class Unwritable(Exception):
    """A value that a case cannot hold."""


def elements(x):
    """The bytes of a 1-d contiguous tensor."""
    if x.dtype == torch.bfloat16:
        return x.view(torch.int16).numpy()
    if x.dtype == torch.bool:
        return x.view(torch.uint8).numpy()
    return x.numpy()


def stored(x):
    """(strides, offset, storage) of x: its own geometry where that is not much larger than x."""
    if x.numel() == 0:
        return x.stride(), 0, x.new_zeros(0)
    span = 1 + sum((size - 1) * stride for size, stride in zip(x.shape, x.stride()))
    if span > 4 * x.numel() + 16:
        x = x.contiguous()
        span = x.numel()
    offset = min(x.storage_offset(), 1)
    storage = torch.zeros(span + offset, dtype=x.dtype)
    once = x[tuple(slice(0, 1) if stride == 0 else slice(None) for stride in x.stride())]
    storage.as_strided(once.shape, x.stride(), offset).copy_(once)
    if any(stride == 0 and size > 1 for size, stride in zip(x.shape, x.stride())):
        view = storage.as_strided(x.shape, x.stride(), offset)
        assert torch.equal(view.nan_to_num(7.0) if x.is_floating_point() else view,
                           x.nan_to_num(7.0) if x.is_floating_point() else x)
    return x.stride(), offset, storage


class File:
    def __init__(self, name):
        self.lines = ["op " + name]
        self.data = []
        self.known = {}
        self.cases = 0

    def tensor(self, x):
        """The number of x among the tensors."""
        x = x.detach()
        if x.dtype not in DTYPES or x.dim() > 12 or x.layout != torch.strided or x.numel() > LARGEST:
            raise Unwritable(str(x.dtype))
        strides, offset, storage = stored(x)
        raw = elements(storage)
        planes = numpy.ascontiguousarray(raw.view(numpy.uint8).reshape(-1, raw.itemsize).T).tobytes()
        line = "tensor {} {} {} {} {}".format(DTYPES[x.dtype], numbers(x.shape), numbers(strides), offset,
                                              storage.numel())
        key = (line, planes)
        if key not in self.known:
            self.known[key] = len(self.known)
            self.lines.append(line)
            self.data.append(planes)
        return self.known[key]

    def tolerance(self, dtype, absolute, relative):
        self.lines.append("tolerance {} {!r} {!r}".format(DTYPES[dtype], absolute, relative))

    def argument(self, name, value):
        return "arg {} {}".format(name, self.value(value)).rstrip()

    def value(self, value):
        if value is None:
            return "none"
        if isinstance(value, torch.Tensor):
            return "tensor {}".format(self.tensor(value))
        if isinstance(value, bool):
            return "bool {}".format(int(value))
        if isinstance(value, int):
            return "int {}".format(value)
        if isinstance(value, float):
            return "real " + real(value)
        if isinstance(value, str):
            return "text " + value
        if isinstance(value, torch.dtype):
            if value not in DTYPES:
                raise Unwritable(str(value))
            return "dtype " + DTYPES[value]
        if isinstance(value, (list, tuple)):
            if all(isinstance(v, int) for v in value):
                return "ints " + numbers([int(v) for v in value])
            if all(isinstance(v, (int, float)) for v in value):
                return "reals " + ",".join(real(float(v)) for v in value)
            if all(isinstance(v, torch.Tensor) for v in value):
                return "tensors " + numbers([self.tensor(v) for v in value])
        raise Unwritable(type(value).__name__)

    def case(self, dtype, arguments, lines):
        """arguments: {name: value}; lines: made after the arguments, from self.tensor numbers."""
        described = [self.argument(name, value) for name, value in arguments.items()]
        self.lines.append("case " + DTYPES[dtype])
        self.lines += described + lines
        self.cases += 1

    def write(self, path):
        text = "\n".join(self.lines + ["data", ""]).encode()
        with open(path, "wb") as raw, gzip.GzipFile(filename="", mode="wb", compresslevel=9, fileobj=raw,
                                                     mtime=0) as out:
            out.write(text + b"".join(self.data))


def numbers(values):
    return ",".join(str(v) for v in values) or "-"


def real(value):
    return "nan" if math.isnan(value) else ("-inf" if value < 0 else "inf") if math.isinf(value) else value.hex()


def shorten(x, bits):
    """x with at most `bits` bits of mantissa. f64 rounds; f32 ends in an odd bit where something was cut off,
    so that nothing lands on a round number that it was not."""
    flat = x.detach().clone(memory_format=torch.contiguous_format).reshape(-1)
    if x.dtype == torch.float64:
        raw, cut = flat.view(torch.int64), 52 - bits
        keep = ((raw + (1 << (cut - 1))) >> cut) << cut
        exact = ~torch.isfinite(flat)
    else:
        raw, cut = flat.view(torch.int32), 23 - bits
        keep = ((raw >> cut) | 1) << cut
        exact = (raw & ((1 << cut) - 1)) == 0
    raw.copy_(torch.where(exact, raw, keep))
    return flat.reshape(x.shape)
