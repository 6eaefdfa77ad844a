#!/usr/bin/env python3
"""exports.py -- what PyTorch exports: prints exports.txt, one "module name kind" a line.

torch, torch.nn, torch.nn.functional, torch.optim and torch.optim.lr_scheduler; names that do not begin
with an underscore, without modules that PyTorch itself imports (math, sys) and names of typing. Made with
PyTorch 1.13."""
import importlib
import inspect
import types

import torch

MODULES = ["torch", "torch.nn", "torch.nn.functional", "torch.optim", "torch.optim.lr_scheduler"]


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
    if isinstance(value, types.ModuleType):
        return value.__name__.startswith("torch")
    home = getattr(value, "__module__", None) or ""
    if home.split(".")[0] in ("typing", "collections", "numbers", "functools", "warnings", "builtins",
                              "math", "itertools", "copy", "bisect", "weakref", "enum", "contextlib"):
        return getattr(value, "__name__", "") in dir(torch._C._VariableFunctions)
    return not repr(value).startswith("typing.")


for module in MODULES:
    space = importlib.import_module(module)
    for name in sorted(n for n in dir(space) if not n.startswith("_")):
        value = getattr(space, name)
        if is_its_own(module, value):
            print(module, name, kind_of(value))
