"""Operations of the names table become functions of tern and of its modules, and methods of tensors."""
import sys
import types

from . import _c, _tensor


def _module(root, path):
    """tern.nn.functional and the like, as modules that can be imported."""
    module = root
    for word in path:
        full = module.__name__ + "." + word
        if not isinstance(getattr(module, word, None), types.ModuleType):
            setattr(module, word, sys.modules.setdefault(full, types.ModuleType(full, "operations of " + full)))
        module = getattr(module, word)
    return module


def _signatures():
    found, i = {}, 0
    while op := _c.names.tern_named_op_at(i):
        name = _c.names.tern_named_op_name(op).decode()
        found.setdefault(name, []).append(_c.names.tern_named_op_signature(op).decode())
        i += 1
    return found


def install(root):
    for dtype in _tensor.DTYPES.values():
        setattr(root, dtype.name, dtype)
    for name, signatures in _signatures().items():
        *path, last = name.split(".")
        operation = _tensor.Operation(name, signatures)
        where = _module(root, path)
        if last not in vars(where):  # float32 is a type
            setattr(where, last, operation)
        takes_one = any("(Tensor " in s for s in signatures)
        if not path and takes_one and not hasattr(_tensor.Tensor, last):
            setattr(_tensor.Tensor, last, operation)
