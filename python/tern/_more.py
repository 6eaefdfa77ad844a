"""Devices, random numbers, grad mode, files, kernels and modules."""
import contextlib
import ctypes

from ._c import D, Grid, I64, KernelArg, P, check, lib, scope, text
from ._tensor import Tensor


def devices():
    """The devices of this machine."""
    found = []
    for kind in ("cpu", "opencl", "cuda"):
        n = lib.tern_device_count(kind.encode())
        found += ["cpu"] * n if kind == "cpu" else ["%s:%d" % (kind, i) for i in range(n)]
    return found


def notes(kind):
    """Why a kind has no device, or what was passed over."""
    return lib.tern_device_notes(kind.encode()).decode("utf-8", "replace")


def default_device():
    return lib.tern_default_device().decode()


def set_default_device(device):
    lib.tern_set_default_device(device.encode() if device else None)
    check()


def synchronize(device=None):
    lib.tern_synchronize(device.encode() if device else None)
    check()


def manual_seed(seed):
    lib.tern_manual_seed(seed)


def is_grad_enabled():
    return lib.tern_is_grad_enabled()


@contextlib.contextmanager
def no_grad():
    """Nothing is recorded inside."""
    before = lib.tern_is_grad_enabled()
    lib.tern_set_grad_enabled(False)
    try:
        yield
    finally:
        lib.tern_set_grad_enabled(before)


# ---- files -----------------------------------------------------------------------------------------

def _items(dict_):
    return {lib.tern_state_dict_key_at(dict_, i).decode(): Tensor._of(lib.tern_state_dict_at(dict_, i))
            for i in range(lib.tern_state_dict_count(dict_))}


def _dict_of(tensors):
    dict_ = lib.tern_state_dict_new()
    for name, x in tensors.items():
        lib.tern_state_dict_set(dict_, name.encode(), x._pointer)
    return dict_


def load(path):
    """The tensors of a .safetensors, .npz or .pt file by name."""
    with scope():
        dict_ = lib.tern_load(str(path).encode(), None)
        tensors = _items(dict_) if dict_ else {}
        lib.tern_state_dict_free(dict_)
    return tensors


def save(tensors, path):
    """Tensors by name into a .safetensors file."""
    with scope():
        dict_ = _dict_of(tensors)
        lib.tern_save(dict_, str(path).encode(), None)
        lib.tern_state_dict_free(dict_)


# ---- kernels of the program's own ----------------------------------------------------------------------

def _not_copied(self, *_):
    raise TypeError("a tern %s can't be copied or pickled" % type(self).__name__)


class Kernel:
    """A kernel in OpenCL C, compiled for a device: k(items, *arguments, group=None).

    Arguments are tensors, Python ints (int of 32 bits), floats (float), and ctypes numbers for the other types."""
    _KINDS = {ctypes.c_int32: ("i32", 4), I64: ("i64", 8), ctypes.c_float: ("f32", 4), D: ("f64", 8)}

    def __init__(self, device, source, name):
        self._pointer = lib.tern_kernel_compile(device.encode(), source.encode(), name.encode())
        check()

    def __del__(self):
        if lib is not None and getattr(self, "_pointer", None):
            lib.tern_kernel_free(self._pointer)

    @staticmethod
    def _three(sizes, rest):
        sizes = list(sizes) if isinstance(sizes, (list, tuple)) else [sizes]
        return (I64 * 3)(*(sizes + [rest] * (3 - len(sizes))))

    def __call__(self, items, *arguments, group=None):
        list_ = (KernelArg * (len(arguments) or 1))()
        for a, what in zip(list_, arguments):
            if isinstance(what, Tensor):
                a.kind, a.tensor = 1, what._pointer
                continue
            what = ctypes.c_float(what) if isinstance(what, float) else ctypes.c_int32(what) if isinstance(what, int) else what
            field, a.bytes = self._KINDS[type(what)]
            a.kind = 5 if field[0] == "f" else 4
            setattr(a.value, field, what.value)
        grid = Grid(self._three(items, 1), self._three(group or 0, 1 if group else 0))
        lib.tern_kernel_launch_args(self._pointer, grid, list_, len(arguments))
        check()


# ---- modules that C made ----------------------------------------------------------------------------

class Module:
    """A tern_module * that a C library made; owned: it is freed with this object."""

    def __init__(self, pointer, owned=True):
        if not pointer:
            check()
            raise ValueError("a tern_module * is expected, and is NULL")
        self._pointer, self._owned = pointer, owned

    def __del__(self):
        if lib is not None and getattr(self, "_owned", False):
            lib.tern_nn_free(self._pointer)

    def __call__(self, *inputs, outputs=1):
        """What it makes of the tensors; outputs: how many that are (3 of an LSTM)."""
        given, out = (P * len(inputs))(*[x._pointer for x in inputs]), (P * outputs)()
        with scope():
            lib.tern_nn_call(self._pointer, given, len(inputs), out, outputs)
            results = [Tensor._of(x) for x in out]
        return results[0] if len(results) == 1 else tuple(results)

    def train(self, training=True):
        lib.tern_nn_train(self._pointer, training)
        return self

    def eval(self):
        return self.train(False)

    def state_dict(self):
        """Its parameters and buffers by name, on its own memory."""
        with scope():
            dict_ = lib.tern_nn_state_dict(self._pointer)
            tensors = _items(dict_) if dict_ else {}
            lib.tern_state_dict_free(dict_)
        return tensors

    def load_state_dict(self, tensors):
        with scope():
            dict_ = _dict_of(tensors)
            lib.tern_nn_load_state_dict(self._pointer, dict_, None)
            lib.tern_state_dict_free(dict_)

    def __repr__(self):
        return text(lib.tern_nn_to_text(self._pointer)).rstrip()


for _class in (Kernel, Module):
    _class.__copy__ = _class.__deepcopy__ = _class.__reduce_ex__ = _not_copied
