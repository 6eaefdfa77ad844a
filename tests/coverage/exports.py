#!/usr/bin/env python3
"""exports.py -- what PyTorch exports: prints exports.txt, one "module name kind" a line.

Names that do not begin with an underscore, without modules that PyTorch itself imports (math, sys), classes and
functions that a namespace only imported, and names of typing. `exports.py >exports.txt`, made with PyTorch 2.15."""
import importlib
import inspect
import types

import torch

MODULES = ["torch", "torch.Tensor", "torch.nn", "torch.nn.functional", "torch.nn.attention",
           "torch.nn.attention.bias", "torch.optim", "torch.optim.lr_scheduler", "torch.linalg",
           "torch.special", "torch.fft", "torch.signal.windows", "torch.cuda", "torch.amp", "torch.utils.data",
           "torch.distributed", "torch.distributed.optim"]
LANGUAGE = ("typing", "typing_extensions", "collections", "numbers", "functools", "warnings",
            "builtins", "math", "itertools", "copy", "bisect", "weakref", "enum", "contextlib",
            "contextvars", "dataclasses", "inspect", "types", "abc", "os", "operator")


def kind_of(value):
    if isinstance(value, types.ModuleType):
        return "module"
    if isinstance(value, torch.dtype):
        return "dtype"
    if isinstance(value, (torch.layout, torch.memory_format, torch.qscheme)):
        return "constant"
    if inspect.isclass(value):
        return "class"
    return "function" if callable(value) else "constant"


def is_its_own(module, value):
    """Not something that the module only imported from elsewhere."""
    if module == "torch.Tensor":
        return True
    if isinstance(value, types.ModuleType):
        return value.__name__.startswith(module)
    home = getattr(value, "__module__", None) or ""
    if home.split(".")[0] in LANGUAGE:
        return module == "torch" and getattr(value, "__name__", "") in dir(torch._C._VariableFunctions)
    return value is not torch.Tensor or module == "torch"


for module in MODULES:
    space = torch.Tensor if module == "torch.Tensor" else importlib.import_module(module)
    for name in sorted(n for n in dir(space) if not n.startswith("_")):
        value = getattr(space, name, None)
        if is_its_own(module, value) and not repr(value).startswith("typing."):
            print(module, name, kind_of(value))
