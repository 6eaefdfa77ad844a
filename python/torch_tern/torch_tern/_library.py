"""The shared library of the extension, by ctypes."""
import ctypes
import glob
import os

import torch

_FOLDER = os.path.dirname(os.path.abspath(__file__))


def _load():
    path = os.path.join(_FOLDER, "libtorch_tern.so")
    if not os.path.exists(path):
        raise ImportError(f"torch_tern was not built: there is no {path}; pip install it")
    folder = os.environ.get("TERN_LIBRARY_DIR", _FOLDER)
    for name in ("libtern.so", "libtern_names.so"):
        for found in sorted(glob.glob(os.path.join(folder, name + ".[0-9]*")), key=len)[:1]:
            ctypes.CDLL(found, mode=os.RTLD_NOW | os.RTLD_LOCAL)
    library = ctypes.CDLL(path, mode=os.RTLD_NOW | os.RTLD_LOCAL)
    library.torch_tern_built_with.restype = ctypes.c_char_p
    return library


def _version(text):
    return tuple(text.split("+")[0].split(".")[:2])


try:
    library = _load()
except OSError as error:
    raise ImportError(f"torch_tern can't be loaded beside PyTorch {torch.__version__}: {error}; "
                      "build it again with this PyTorch (pip install --no-build-isolation "
                      "--force-reinstall torch_tern)") from error
_built_with = library.torch_tern_built_with().decode()
if _version(_built_with) != _version(torch.__version__):
    raise ImportError(f"torch_tern was built with PyTorch {_built_with}, and this is "
                      f"{torch.__version__}: build it again with it (pip install "
                      "--no-build-isolation --force-reinstall torch_tern)")

for _name in ("error", "counters", "operations_by_name"):
    getattr(library, "torch_tern_" + _name).restype = ctypes.c_char_p
library.torch_tern_set_memory_fraction.argtypes = [ctypes.c_double, ctypes.c_int]
library.torch_tern_manual_seed.argtypes = [ctypes.c_int, ctypes.c_uint64]
library.torch_tern_set_rng_state.argtypes = [ctypes.c_int, ctypes.c_uint64, ctypes.c_uint64]

_EXCEPTIONS = {1: RuntimeError, 2: ValueError, 3: torch.OutOfMemoryError, 4: NotImplementedError}


def call(name, *arguments):
    """Calls torch_tern_<name>; an error becomes an exception of PyTorch's type."""
    code = getattr(library, "torch_tern_" + name)(*arguments)
    if code:
        raise _EXCEPTIONS[code](library.torch_tern_error().decode())


def number(name, *arguments):
    """What torch_tern_<name> writes into its last argument, an int."""
    value = ctypes.c_int()
    call(name, *arguments, ctypes.byref(value))
    return value.value


def text(name, *arguments):
    """What torch_tern_<name> writes into its last argument, a string."""
    value = ctypes.c_char_p()
    call(name, *arguments, ctypes.byref(value))
    return value.value.decode()


def numbers(name, count, *arguments):
    """What torch_tern_<name> writes into its last argument, an array of uint64."""
    values = (ctypes.c_uint64 * count)()
    call(name, *arguments, values)
    return list(values)
