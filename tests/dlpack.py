#!/usr/bin/env python3
"""dlpack.py LIBTERN -- tern's DLPack against NumPy and PyTorch, both ways, through capsules made with ctypes.

Skips (77) and says so without NumPy; without PyTorch its part is left out and said."""
import ctypes
import sys

try:
    import numpy
except ImportError:
    print("SKIP: there is no NumPy for", sys.executable)
    sys.exit(77)
try:
    import torch
except ImportError:
    torch = None
    print("SKIP: there is no PyTorch for", sys.executable, "(NumPy is compared)")

tern = ctypes.CDLL(sys.argv[1])
api = ctypes.pythonapi
CAPSULE_DESTRUCTOR = ctypes.CFUNCTYPE(None, ctypes.py_object)
api.PyCapsule_New.restype = ctypes.py_object
api.PyCapsule_New.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
api.PyCapsule_GetPointer.restype = ctypes.c_void_p
api.PyCapsule_GetPointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
api.PyCapsule_SetName.argtypes = [ctypes.py_object, ctypes.c_char_p]
api.PyCapsule_IsValid.argtypes = [ctypes.py_object, ctypes.c_char_p]


class Shape(ctypes.Structure):
    _fields_ = [("ndim", ctypes.c_int), ("dims", ctypes.c_int64 * 12)]


def function(name, result, *parameters):
    f = getattr(tern, name)
    f.restype, f.argtypes = result, list(parameters)
    return f


P, I64 = ctypes.c_void_p, ctypes.c_int64
from_dlpack = function("tern_from_dlpack", P, P)
from_unversioned = function("tern_from_dlpack_unversioned", P, P, P)
to_dlpack = function("tern_to_dlpack", P, P)
to_unversioned = function("tern_to_dlpack_unversioned", P, P, P)
arange = function("tern_arange", P, ctypes.c_double, ctypes.c_double, ctypes.c_double, ctypes.c_int, ctypes.c_char_p)
view = function("tern_view", P, P, Shape)
transpose = function("tern_transpose", P, P, ctypes.c_int, ctypes.c_int)
item = function("tern_item", ctypes.c_double, P)
total = function("tern_sum", P, P)
to_dtype = function("tern_to_dtype", P, P, ctypes.c_int)
zero_ = function("tern_zero_", P, P)
live = function("tern_live_tensors", I64)
clear = function("tern_scope_clear", None)
last_error = function("tern_last_error", ctypes.c_char_p)
clear_error = function("tern_clear_error", None)
NAMES = dict(float32=1, float64=2, float16=3, int32=5, int64=6, uint8=7, bool=8, int8=9, int16=10, uint16=11, uint32=12, uint64=13)
FAILURES = []


def check(holds, what):
    print("ok  " if holds else "FAIL", what)
    if not holds:
        FAILURES.append(what)


class Lent:
    """What numpy.from_dlpack and torch.from_dlpack ask: a tensor of tern's."""

    def __init__(self, x):
        self.x = x

    def __dlpack_device__(self):
        return (1, 0)

    def __dlpack__(self, *, stream=None, max_version=None, dl_device=None, copy=None):
        versioned = max_version is not None and max_version[0] >= 1
        lent = to_dlpack(self.x) if versioned else to_unversioned(self.x, None)
        return api.PyCapsule_New(lent, b"dltensor_versioned" if versioned else b"dltensor", None)


# NumPy 1 lends and takes no bool, lends nothing read-only and knows no versions.
OLD = int(numpy.__version__.split(".")[0]) < 2
HOW = ({},) if OLD else ({}, {"max_version": (1, 0)})


def taken(array, **how):
    """The capsule of a library's array, used up: tern's tensor on its memory."""
    capsule = array.__dlpack__(**how)
    for name, used, take in ((b"dltensor_versioned", b"used_dltensor_versioned", from_dlpack),
                             (b"dltensor", b"used_dltensor", lambda m: from_unversioned(m, None))):
        if api.PyCapsule_IsValid(capsule, name):
            pointer = api.PyCapsule_GetPointer(capsule, name)
            api.PyCapsule_SetName(capsule, used)
            return take(pointer)
    raise ValueError("no DLPack capsule")


def with_numpy():
    if OLD:
        print("SKIP: NumPy", numpy.__version__, "has no versioned DLPack: bool and read-only arrays")
    for name, number in NAMES.items():
        if OLD and name == "bool":
            continue
        x = to_dtype(view(arange(0, 12, 1, 1, b"cpu"), Shape(2, (I64 * 12)(3, 4))), number)
        turned = numpy.from_dlpack(Lent(transpose(x, 0, 1)))
        check(turned.dtype == numpy.dtype(name) and turned.shape == (4, 3) and turned[3, 2] == (1 if name == "bool" else 11),
              "NumPy reads tern's " + name)
        array = numpy.arange(6).astype(name).reshape(2, 3)
        for how in HOW:
            y = taken(array, **how)
            check(y and item(total(to_dtype(y, 2))) == array.sum(), "tern reads NumPy's " + name + str(how))
    array = numpy.arange(12, dtype="float32").reshape(3, 4)
    zero_(taken(array[:, ::2], **HOW[-1]))
    check(array[:, ::2].sum() == 0 and array.sum() == 1 + 3 + 5 + 7 + 9 + 11, "and writes into its memory")
    check(not taken(array[::-1], **HOW[-1]) and b"negative strides" in last_error(), "negative strides are told")
    clear_error()
    if not OLD:
        array.flags.writeable = False
        check(not taken(array, **HOW[-1]) and b"read-only" in last_error(), "so is what is read-only")
        clear_error()
    check(taken(numpy.zeros((0, 3), "float32"), **HOW[-1]), "nothing is something")


def with_torch():
    for name in list(NAMES) + ["bfloat16", "float8_e4m3fn", "float8_e5m2"]:
        number = NAMES.get(name, dict(bfloat16=4, float8_e4m3fn=14, float8_e5m2=15).get(name))
        x = to_dtype(arange(0, 7, 1, 1, b"cpu"), number)
        y = torch.from_dlpack(Lent(x))
        check(y.dtype == getattr(torch, name) and y.double().sum() == (6 if name == "bool" else 21), "PyTorch reads tern's " + name)
        z = torch.arange(7).to(getattr(torch, name)).reshape(1, 7).expand(2, 7)
        t = taken(z, max_version=(1, 3))
        check(t and item(total(to_dtype(t, 2))) == 2 * (6 if name == "bool" else 21), "tern reads PyTorch's " + name)
    z = torch.ones(4)
    zero_(taken(z, max_version=(1, 3)))
    check(z.sum() == 0, "and writes into its memory")


before = live()
with_numpy()
if torch:
    with_torch()
clear()
check(live() == before, "nothing is left")
sys.exit(len(FAILURES) > 0)
