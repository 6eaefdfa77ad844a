"""The C side: libraries, structs and functions, by ctypes."""
import ctypes
import ctypes.util
import os
import sys

P, I, I64, D, S, B = ctypes.c_void_p, ctypes.c_int, ctypes.c_int64, ctypes.c_double, ctypes.c_char_p, ctypes.c_bool
MAX_DIMS, MAX_PARAMETERS, MOST_RESULTS = 12, 20, 256


# What a library may be called, by system: in a folder any of these, else the last, which the system looks for.
_FILES = {"win32": ("lib%s.dll",), "darwin": ("lib%s.dylib", "lib%s.0.dylib")}.get(sys.platform, ("lib%s.so", "lib%s.so.0"))


def _open(name):
    here = os.path.dirname(os.path.abspath(__file__))
    folders = [os.environ.get("TERN_LIBRARY_DIR"), here]
    for folder in filter(None, folders):
        for file in _FILES:
            path = os.path.join(folder, file % name)
            if os.path.exists(path):
                return ctypes.CDLL(path, mode=ctypes.RTLD_GLOBAL)
    return ctypes.CDLL(_FILES[-1] % name, mode=ctypes.RTLD_GLOBAL)


lib = _open("tern")
names = _open("tern_names")


class Shape(ctypes.Structure):
    _fields_ = [("ndim", I), ("dims", I64 * MAX_DIMS)]

    @classmethod
    def of(cls, sizes):
        sizes = [int(size) for size in sizes]
        if len(sizes) > MAX_DIMS:
            raise ValueError("tern has at most %d dims" % MAX_DIMS)
        return cls(len(sizes), (I64 * MAX_DIMS)(*sizes))


class ScalarValue(ctypes.Union):
    _fields_ = [("real", D), ("integer", I64)]


class Scalar(ctypes.Structure):
    _fields_ = [("kind", I), ("value", ScalarValue)]


class ValueAs(ctypes.Union):
    _fields_ = [("tensor", P), ("tensors", ctypes.POINTER(P)), ("scalar", Scalar), ("ints", ctypes.POINTER(I64)),
                ("reals", ctypes.POINTER(D)), ("text", S), ("dtype", I)]


class Value(ctypes.Structure):
    NONE, TENSOR, TENSORS, SCALAR, INTS, REALS, TEXT, DTYPE = range(8)
    _fields_ = [("name", S), ("kind", I), ("count", I), ("as_", ValueAs)]


class Parameter(ctypes.Structure):
    INTS = 4
    _fields_ = [("name", ctypes.c_char * 32), ("kind", I), ("length", I), ("optional", B), ("by_name", B), ("required", B),
                ("value", ctypes.c_char * 24)]


class ScopeBlock(ctypes.Structure):
    _fields_ = [("active", I), ("depth", I), ("mark", ctypes.c_size_t)]


class RngState(ctypes.Structure):
    _fields_ = [("seed", ctypes.c_uint64), ("offset", ctypes.c_uint64)]


class Grid(ctypes.Structure):
    _fields_ = [("items", I64 * 3), ("group", I64 * 3)]


class KernelValue(ctypes.Union):
    _fields_ = [("i32", ctypes.c_int32), ("i64", I64), ("f32", ctypes.c_float), ("f64", D)]


class KernelArg(ctypes.Structure):
    _fields_ = [("kind", I), ("bytes", ctypes.c_uint32), ("tensor", P), ("value", KernelValue)]


_PROTOTYPES = {
    "tern_last_status": (I,), "tern_last_error": (S,), "tern_clear_error": (None,),
    "tern_dtype_name": (S, I), "tern_dtype_size": (ctypes.c_size_t, I),
    "tern_scope_enter": (ScopeBlock,), "tern_scope_leave": (None, ctypes.POINTER(ScopeBlock)),
    "tern_keep": (P, P), "tern_release": (None, P), "tern_live_tensors": (I64,),
    "tern_dim": (I, P), "tern_size": (I64, P, I), "tern_stride": (I64, P, I), "tern_dtype_of": (I, P), "tern_device": (S, P),
    "tern_numel": (I64, P), "tern_data": (P, P), "tern_item": (D, P), "tern_item_int": (I64, P), "tern_to_text": (P, P),
    "tern_free_text": (None, P), "tern_is_contiguous": (B, P),
    "tern_requires_grad": (B, P), "tern_requires_grad_": (P, P, B), "tern_is_leaf": (B, P), "tern_grad": (P, P),
    "tern_set_grad": (I, P, P), "tern_grad_fn": (S, P), "tern_backward_with": (I, P, P), "tern_detach": (P, P),
    "tern_set_grad_enabled": (None, B), "tern_is_grad_enabled": (B,),
    "tern_to": (P, P, S), "tern_to_dtype": (P, P, I), "tern_clone": (P, P), "tern_copy_": (P, P, P),
    "tern_from_data": (P, P, Shape, I, S), "tern_to_dlpack": (P, P), "tern_to_dlpack_unversioned": (P, P, P),
    "tern_from_dlpack": (P, P), "tern_from_dlpack_unversioned": (P, P, P),
    "tern_manual_seed": (None, ctypes.c_uint64), "tern_set_default_device": (I, S), "tern_default_device": (S,),
    "tern_device_count": (I, S), "tern_device_notes": (S, S), "tern_device_is_available": (B, S), "tern_device_name": (S, S),
    "tern_synchronize": (I, S),
    "tern_kernel_compile": (P, S, S, S), "tern_kernel_free": (None, P),
    "tern_kernel_launch_args": (I, P, Grid, ctypes.POINTER(KernelArg), I),
    "tern_nn_call": (I, P, ctypes.POINTER(P), I, ctypes.POINTER(P), I), "tern_nn_free": (None, P), "tern_nn_to_text": (P, P),
    "tern_nn_train": (P, P, B), "tern_nn_state_dict": (P, P),
    "tern_state_dict_new": (P,), "tern_state_dict_free": (None, P), "tern_state_dict_set": (I, P, S, P),
    "tern_state_dict_count": (I, P), "tern_state_dict_key_at": (S, P, I), "tern_state_dict_at": (P, P, I),
    "tern_nn_load_state_dict": (I, P, P, P), "tern_load": (P, S, P), "tern_save": (I, P, S, P),
}
_NAMES = {
    "tern_named_op_at": (P, I), "tern_named_op_name": (S, P), "tern_named_op_signature": (S, P),
    "tern_op_by_name": (P, S), "tern_named_op_parameters": (I, P, ctypes.POINTER(Parameter), I),
    "tern_call_by_name": (I, S, ctypes.POINTER(Value), I, ctypes.POINTER(P), I),
}
for _library, _table in ((lib, _PROTOTYPES), (names, _NAMES)):
    for _name, (_result, *_arguments) in _table.items():
        _function = getattr(_library, _name)
        _function.restype, _function.argtypes = _result, _arguments


class Error(RuntimeError):
    """What tern refused; status is tern_status."""
    status = 0


class ArgumentError(Error, ValueError):
    """TERN_ERR_ARGUMENT and TERN_ERR_SHAPE."""


class DtypeError(Error, TypeError):
    """TERN_ERR_DTYPE."""


class UnsupportedError(Error, NotImplementedError):
    """TERN_ERR_UNSUPPORTED."""


_KINDS = {1: ArgumentError, 2: ArgumentError, 3: DtypeError, 8: UnsupportedError}


def check():
    """Raises the error that is recorded, and clears it."""
    status = lib.tern_last_status()
    if status:
        error = _KINDS.get(status, Error)(lib.tern_last_error().decode("utf-8", "replace"))
        error.status = status
        lib.tern_clear_error()
        raise error


class scope:
    """What is made inside and not kept is released at its end; errors are raised there."""

    def __enter__(self):
        self.block = lib.tern_scope_enter()

    def __exit__(self, kind, value, trace):
        lib.tern_scope_leave(ctypes.byref(self.block))
        if kind is None:
            check()
        else:
            lib.tern_clear_error()


def text(pointer):
    """A text that the caller owns, freed."""
    try:
        return ctypes.string_at(pointer).decode("utf-8", "replace") if pointer else ""
    finally:
        lib.tern_free_text(pointer)
