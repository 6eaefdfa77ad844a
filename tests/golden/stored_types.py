#!/usr/bin/env python3
"""stored_types.py -- writes stored_types.txt: torch.promote_types of every pair of dtypes, elements of each dtype converted to
every other, compared and printed. Elements are the hexadecimal bytes of the tensor.

Made with PyTorch 2.15 (PyPI): python stored_types.py > stored_types.txt"""
import torch

NAMES = """float32 float64 float16 bfloat16 int32 int64 uint8 bool int8 int16 uint16 uint32 uint64 float8_e4m3fn
    float8_e5m2""".split()
nan, inf = float("nan"), float("inf")
# What C leaves open, and PyTorch's loops answer differently, is left out: reals that uint32 does not hold.
SMALL = [0.0, -0.0, 1.0, -1.0, 1.9, -1.9, 127.0, 255.5, 0.0009765625, 0.0009775, 0.0625, 17.0, 19.0, 0.017, 208.0, 240.0]
REALS = SMALL + [300.7, -300.7, 448.0, 464.0, 480.0, 65504.0, 57344.0, 61439.0, 61440.0]
BEYOND = [nan, inf, -inf, 3e9, -3e9, 2.0**31, 2.0**31 + 256, 2.0**32, 1e15, -1e15, 2.0**53 + 2, 1e19, -1e19, 2.0**63, 1.8e19,
          1e20, -1e20, 2.0**-17, 2.0**-16 * 1.5, 2.0**-10, 2.0**-10 * 1.001]
WHOLES = [0, 1, -1, 2, 127, 128, 255, 256, -128, -129, 300, 32767, 32768, 65535, 65536, -32769, 2**24 + 1, 2**31 - 1, -2**31,
          2**31, 2**32 - 1, 2**32 + 3, -2**32 - 5, 2**53 + 1, 2**63 - 1, -2**63]


def dtype(name):
    return getattr(torch, name)


def fits(value, kind):
    info = torch.iinfo(kind)
    return info.min <= value <= info.max


def elements(name):
    kind = dtype(name)
    if name.startswith("float8"):
        return torch.arange(256, dtype=torch.uint8).view(kind)
    if kind.is_floating_point:
        return torch.tensor(REALS + BEYOND, dtype=torch.float64).to(kind)
    if kind == torch.bool:
        return torch.tensor([True, False, True])
    unsigned = [w for w in (2**63, 2**64 - 1, 2**63 + 1024, 2**63 + 1025) if kind == torch.uint64]
    return torch.tensor([w for w in WHOLES if fits(w, kind)] + unsigned, dtype=kind)


def written(x):
    return bytes(x.contiguous().view(torch.uint8).tolist()).hex()


def converted(x, name):
    """NaN as the first of the type: the others are the machine's."""
    if name == "uint32" and x.dtype.is_floating_point:
        x = torch.cat([x[:len(SMALL)]])
    return x, x.to(dtype(name))


def main():
    print("# made by stored_types.py with PyTorch", torch.__version__.split("+")[0])
    for a in NAMES:
        for b in NAMES:
            try:
                print("promote", a, b, str(torch.promote_types(dtype(a), dtype(b)))[6:])
            except RuntimeError:
                print("promote", a, b, "none")
    for a in NAMES:
        for b in NAMES:
            if a != b and (NAMES.index(a) > 7 or NAMES.index(b) > 7):
                x, y = converted(elements(a), b)
                print("convert", a, b, written(x), written(y))
    for a in NAMES[8:]:
        x, y = elements(a), elements(a).flip(0) if not a.startswith("float8") else None
        if y is None:
            y = elements(a).view(torch.uint8).flip(0).view(dtype(a))
        for op in "eq ne lt le gt ge".split():
            wide = torch.float32 if a.startswith("float8") else torch.int64
            u, v = (x, y) if op in ("eq", "ne") else (x.to(wide), y.to(wide))
            if a == "uint64" and op not in ("eq", "ne"):
                u, v = u ^ -2**63, v ^ -2**63
            print(op, a, "bool", written(x) + written(y), written(getattr(torch, op)(u, v)))
    for a in NAMES[8:]:
        x = elements(a)[:7]
        print("print", a, written(x), repr(x).replace("\n", "|").replace(" ", "_"))


main()
