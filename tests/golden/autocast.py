#!/usr/bin/env python3
"""autocast.py BUILD -- what PyTorch's autocast makes of every operation that tern knows by name: prints autocast.txt.

Each line is "<name> <argument>=<value> ... : <wide> <narrow> <first> <others>": the dtypes of the results where all
tensors of floating point are float32, where all are of the block's type, and where only the first one or only the
others are float32. "half" is the block's type, "refused" a refusal by autocast, "-" one that PyTorch has without it.
The last word is PyTorch's list that the operation is in, "-" for none.
Values: f3,4 a floating point tensor of that shape, i2=1 one of int64 filled with 1, b3 of bool, d3 the identity in
floating point, [f3;f3] a list of tensors, (1,2) integers, {0.5} reals, 'mean' a text, None, True, False, numbers.

BUILD has tern's libraries, which know the signatures. Made with PyTorch 2.15 and its lists for CUDA, without a GPU: by
tensors that have no elements."""
import ctypes
import logging
import sys
import warnings

import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental.symbolic_shapes import ShapeEnv

from autocast_calls import CALLS, DEFAULTS, KNOWN, THEIRS

TYPES = {"wide": torch.float32, "half": None}
FORMS = (("wide", "wide"), ("half", "half"), ("wide", "half"), ("half", "wide"))
HALVES = (torch.float16, torch.bfloat16)


def signatures(build):
    ctypes.CDLL(build + "/libtern.so", ctypes.RTLD_GLOBAL)
    names = ctypes.CDLL(build + "/libtern_names.so")
    names.tern_named_op_at.restype = ctypes.c_void_p
    names.tern_named_op_signature.restype = ctypes.c_char_p
    names.tern_named_op_signature.argtypes = [ctypes.c_void_p]
    i = 0
    while op := names.tern_named_op_at(i):
        yield names.tern_named_op_signature(op).decode()
        i += 1


def calls_of(signature):
    """The arguments of each call, as {parameter: value in text}: what CALLS says, and required parameters."""
    name, rest = signature.split("(", 1)
    parameters = [p for p in rest.split(") -> ")[0].split(", ") if p and p != "*"]
    keys = [k for k in CALLS if signature.startswith(k if "(" in k else k + "(")]
    for text in (CALLS[max(keys, key=len)] if keys else "").split("|"):
        given = dict(word.split("=", 1) for word in text.split())
        arguments = {}
        for parameter in parameters:
            kind, key = parameter.split("=")[0].split(" ")
            if key in given:
                arguments[key] = given.pop(key)
            elif "=" not in parameter and not kind.endswith("?"):
                arguments[key] = DEFAULTS[kind]
        assert not given, (signature, given)
        yield name, arguments


def tensor_of(text, dtypes, device):
    shape, _, number = text[1:].partition("=")
    shape = [int(n) for n in shape.split(",") if n]
    if text[0] == "i":
        return torch.full(shape, int(number or 0), dtype=torch.int64, device=device)
    if text[0] == "b":
        return torch.ones(shape, dtype=torch.bool, device=device)
    return torch.rand(2 * shape if text[0] == "d" else shape, device=device).to(next(dtypes))


def value_of(text, dtypes, device="cuda"):
    if text[0] == "[":
        return [tensor_of(part, dtypes, device) for part in text[1:-1].split(";")]
    if text[0] in "({":
        return tuple((int if text[0] == "(" else float)(part) for part in text[1:-1].split(","))
    if text[0] == "'":
        return text[1:-1]
    if text in ("True", "False", "None"):
        return {"True": True, "False": False, "None": None}[text]
    if text[0].isdigit() or text[0] == "-":
        return float(text) if "." in text else int(text)
    return tensor_of(text, dtypes, device)


def callee(name):
    if name in THEIRS:
        return THEIRS[name]
    function = torch
    for part in name.split("."):
        function = getattr(function, part)
    return function


def first_then(first, others):
    """The dtypes of a call's tensors of floating point, in order."""
    yield first
    while True:
        yield others


def text_of(dtype, half):
    return "half" if dtype == half else str(dtype).split(".")[1]


def result_of(name, arguments, first, others, half):
    """The results' dtypes as text, under autocast to half."""
    dtypes = first_then(TYPES[first] or half, TYPES[others] or half)
    with FakeTensorMode(shape_env=ShapeEnv()):
        values = {key: value_of(text, dtypes) for key, text in arguments.items()}
        torch.set_autocast_enabled("cuda", True)
        torch.set_autocast_dtype("cuda", half)
        try:
            out = callee(name)(**values)
        except Exception as error:  # of many kinds, where tensors have no elements
            if "unsafe to autocast" in str(error):
                return "refused"
            print(name, arguments, first, others, half, str(error).split("\n")[0], file=sys.stderr)
            return "-"
        finally:
            torch.set_autocast_enabled("cuda", False)
            torch.clear_autocast_cache()
        out = [out] if isinstance(out, torch.Tensor) else list(out)
        return ",".join(text_of(x.dtype, half) for x in out if x is not None)


def is_listed(name):
    packet = getattr(torch.ops.aten, name.removeprefix("nn.functional.").replace(".", "_"), None)
    overloads = [getattr(packet, o).name() for o in packet.overloads()] if packet else []
    known = [o for o in overloads if torch._C._dispatch_has_kernel(o)]
    return any(torch._C._dispatch_has_kernel_for_dispatch_key(o, "AutocastCUDA") for o in known)


def refuses(name, arguments, first, others):
    """Whether PyTorch itself refuses what only tensors without elements let pass, and autocast does nothing."""
    if is_listed(name):
        return False
    try:
        dtypes = first_then(first, others)
        callee(name)(**{key: value_of(text, dtypes, "cpu") for key, text in arguments.items()})
    except Exception as error:
        return "not implemented" not in str(error)  # a kernel of halves is missing
    return False


def line_of(name, arguments):
    columns = []
    for first, others in FORMS:
        found = {result_of(name, arguments, first, others, half) for half in HALVES} - {"-"}
        columns.append(found.pop() if len(found) == 1 else "-")
        mixed = first != others and columns[:2] == ["float32", "half"]
        if mixed and refuses(name, arguments, *(TYPES[x] or torch.float16 for x in (first, others))):
            columns[-1] = "-"
    if name in KNOWN:
        columns = KNOWN[name].split()
    listed = {("half", "half"): "lower", ("float32", "float32"): "float32", ("float32", "half"): "widest"}
    policy = is_listed(name) and listed.get(tuple(columns[:2])) or "-"
    return " ".join([name, *(f"{key}={text}" for key, text in arguments.items()), ":", *columns, policy])


torch.backends.cudnn.enabled = False  # which asks the device
torch.backends.cuda.enable_flash_sdp(False)
torch.backends.cuda.enable_mem_efficient_sdp(False)
torch.backends.cuda.enable_cudnn_sdp(False)
logging.disable(logging.CRITICAL)
warnings.simplefilter("ignore")
print("# made by autocast.py with PyTorch", torch.__version__.split("+")[0])
lines = {}
for signature in signatures(sys.argv[1]):
    for name, arguments in calls_of(signature):
        lines.setdefault(line_of(name, arguments))
print("\n".join(lines))
