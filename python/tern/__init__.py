"""tern from Python: its operations by PyTorch's names, made from the library's table when this is imported.

tern.tensor(data) makes a tensor, tern.from_dlpack(x) one on x's memory; tern.softmax(x, dim=1) and x.softmax(dim=1) call
operations, tern.nn.functional, tern.linalg and so on hold those of that name."""
import sys as _sys

from . import _names
from ._c import ArgumentError, DtypeError, Error, UnsupportedError
from ._more import (Kernel, Module, default_device, devices, is_grad_enabled, load, manual_seed, no_grad, notes, save,
                    set_default_device, synchronize)
from ._tensor import Tensor, call, dtype, from_dlpack, from_numpy, tensor

__all__ = ["ArgumentError", "DtypeError", "Error", "Kernel", "Module", "Tensor", "UnsupportedError", "call", "default_device",
           "devices", "dtype", "from_dlpack", "from_numpy", "is_grad_enabled", "load", "manual_seed", "no_grad", "notes",
           "save", "set_default_device", "synchronize", "tensor"]

_names.install(_sys.modules[__name__])
