"""Tensors, and calls of operations by their names."""
import ctypes
import numbers
import sys
import warnings

from ._c import (MAX_PARAMETERS, MOST_RESULTS, P, I64, D, Error, Parameter, Shape, Value, check, lib, names, scope, text)

_api = ctypes.pythonapi
_VERSIONED, _OLD = b"dltensor_versioned", b"dltensor"
_new_capsule = ctypes.PYFUNCTYPE(ctypes.py_object, P, ctypes.c_char_p, P)(("PyCapsule_New", _api))
# Of an object that is going away: no references may be taken.
_is_capsule = ctypes.PYFUNCTYPE(ctypes.c_int, P, ctypes.c_char_p)(("PyCapsule_IsValid", _api))
_pointer_of = ctypes.PYFUNCTYPE(P, P, ctypes.c_char_p)(("PyCapsule_GetPointer", _api))
_rename = ctypes.PYFUNCTYPE(ctypes.c_int, P, ctypes.c_char_p)(("PyCapsule_SetName", _api))
_DELETER = ctypes.CFUNCTYPE(None, P)


class _Managed(ctypes.Structure):  # DLManagedTensor; its deleter is behind the tensor and the context
    _fields_ = [("tensor", ctypes.c_char * 48), ("context", P), ("deleter", _DELETER)]


class _ManagedVersioned(ctypes.Structure):
    _fields_ = [("major", ctypes.c_uint32), ("minor", ctypes.c_uint32), ("context", P), ("deleter", _DELETER)]


_lent = []  # (capsule, whether it can be taken back): those that perhaps nobody has taken over


def _take_back():
    """Ends what was lent to a consumer that refused it: capsules that are here alone and have their first
    name. (A capsule's own destructor would be called while the consumer's exception is under way, when no
    code of Python's may run.) Some consumers call the deleter of an OpenCL tensor and then fail without
    renaming the capsule: such a tensor is not taken back."""
    kept = []
    while _lent:
        capsule, is_safe = _lent.pop()
        if sys.getrefcount(capsule) > 2:
            kept.append((capsule, is_safe))
            continue
        for name, managed in ((_VERSIONED, _ManagedVersioned), (_OLD, _Managed)):
            if is_safe and _is_capsule(id(capsule), name):
                lent = _pointer_of(id(capsule), name)
                ctypes.cast(lent, ctypes.POINTER(managed)).contents.deleter(lent)
                _rename(id(capsule), b"ended")
    _lent.extend(kept)


class _Memory:
    """Lends a tensor's memory to NumPy, any version of it: before 2 its from_dlpack knows no bool and gives
    arrays that can't be written."""

    def __init__(self, x):
        size, kind = x.dtype.itemsize, x.dtype.name
        letter = "b" if kind == "bool" else kind[0]
        self.tensor = x
        address = lib.tern_data(x._pointer) or id(x)  # never read where there are no elements
        self.__array_interface__ = {
            "version": 3, "shape": x.shape, "typestr": "%s%s%d" % ("|" if size == 1 else "<", letter, size),
            "strides": tuple(n * size for n in x.stride()), "data": (address, False)}


class dtype:
    """An element type: tern.float32."""

    def __init__(self, number):
        self.number = number
        self.name = lib.tern_dtype_name(number).decode()
        self.itemsize = lib.tern_dtype_size(number)

    def __repr__(self):
        return "tern." + self.name

    def __reduce__(self):
        return dtype_of, (self.name,)


DTYPES = {}
for _number in range(1, 64):
    if lib.tern_dtype_size(_number) == 0:
        break
    DTYPES[_number] = dtype(_number)
_BY_NAME = {d.name: d for d in DTYPES.values()}


def dtype_of(what):
    """A dtype of tern's, NumPy's or a name; None stays None."""
    if what is None or isinstance(what, dtype):
        return what
    name = getattr(what, "name", None) or getattr(what, "__name__", None) or str(what).rpartition(".")[2]
    name = {"bool_": "bool", "float": "float64", "int": "int64"}.get(name, name)
    if name not in _BY_NAME:
        raise TypeError("tern has no element type %r" % (what,))
    return _BY_NAME[name]


_VALUES = [Value * max(n, 1) for n in range(4 * MAX_PARAMETERS)]
_RESULTS = P * MOST_RESULTS

# ---- calls ---------------------------------------------------------------------------------------

def _fill(value, what, alive):
    """What Python gave as one of tern's values; alive holds what it points to."""
    if type(what) is Tensor:
        value.kind, value.as_.tensor = Value.TENSOR, what._pointer
    elif type(what) in (int, float, bool):
        _fill_number(value, what)
    elif what is None:
        value.kind = Value.NONE
    elif isinstance(what, (bool, numbers.Integral, numbers.Real)) and not hasattr(what, "__array__"):
        _fill_number(value, what)
    elif isinstance(what, str):
        value.kind, value.as_.text = Value.TEXT, what.encode()
    elif isinstance(what, dtype):
        value.kind, value.as_.dtype = Value.DTYPE, what.number
    elif isinstance(what, (list, tuple)):
        _fill_list(value, what, alive)
    elif getattr(what, "shape", None) == () and hasattr(what, "item"):
        _fill_number(value, what.item())
    elif hasattr(what, "__dlpack__") or hasattr(what, "__array__"):
        x = tensor(what)
        alive.append(x)
        value.kind, value.as_.tensor = Value.TENSOR, x._pointer
    else:
        raise TypeError("tern can't take a %s" % type(what).__name__)


def _fill_number(value, what):
    value.kind = Value.SCALAR
    scalar = value.as_.scalar
    if isinstance(what, bool):
        scalar.kind, scalar.value.integer = 2, what
    elif isinstance(what, numbers.Integral):
        scalar.kind, scalar.value.integer = 1, int(what)
    else:
        scalar.kind, scalar.value.real = 0, float(what)


def _fill_list(value, what, alive):
    value.count = len(what)
    if what and all(isinstance(x, Tensor) for x in what):
        items = (P * len(what))(*[x._pointer for x in what])
        value.kind, value.as_.tensors = Value.TENSORS, items
    elif all(isinstance(x, numbers.Integral) for x in what):
        items = (I64 * max(len(what), 1))(*[int(x) for x in what])
        value.kind, value.as_.ints = Value.INTS, items
    elif all(isinstance(x, numbers.Real) for x in what):
        items = (D * len(what))(*[float(x) for x in what])
        value.kind, value.as_.reals = Value.REALS, items
    else:
        raise TypeError("a list holds tensors or numbers alone")
    alive.append(items)


def parameters_of(name):
    op = names.tern_op_by_name(name.encode())
    list_ = (Parameter * MAX_PARAMETERS)()
    return list(list_[:max(names.tern_named_op_parameters(op, list_, MAX_PARAMETERS), 0)])


def call(name, *arguments, **named):
    """tern_call_by_name: a tensor, or a tuple of them."""
    values = _VALUES[len(arguments) + len(named)]()
    alive = []
    for i, what in enumerate(arguments):
        _fill(values[i], what, alive)
    for i, (key, what) in enumerate(named.items(), len(arguments)):
        values[i].name = key.encode()
        _fill(values[i], dtype_of(what) if key == "dtype" else what, alive)
    out = _RESULTS()
    block = lib.tern_scope_enter()
    n = names.tern_call_by_name(name.encode(), values, len(arguments) + len(named), out, MOST_RESULTS)
    results = [Tensor._of(out[i]) for i in range(n)]
    lib.tern_scope_leave(ctypes.byref(block))
    if n < 0:
        check()
    return results[0] if len(results) == 1 else tuple(results)


class Operation:
    """An operation of the names table."""

    def __init__(self, name, signatures):
        self.__name__ = self.__qualname__ = name.rpartition(".")[2]
        self._name, self.__doc__ = name, "\n".join(signatures)
        parameters = parameters_of(name)
        # x.view(2, 3) as x.view((2, 3))
        self._packs = len(parameters) > 1 and parameters[1].kind == Parameter.INTS and sum(
            not p.by_name for p in parameters) == 2

    def __call__(self, *arguments, **named):
        if self._packs and len(arguments) > 2 and all(isinstance(a, numbers.Integral) for a in arguments[1:]):
            arguments = (arguments[0], list(arguments[1:]))
        return call(self._name, *arguments, **named)

    def __get__(self, instance, owner=None):
        return self if instance is None else _Bound(self, instance)

    def __repr__(self):
        return "<tern operation %s>" % self._name


class _Bound:
    def __init__(self, operation, tensor_):
        self._operation, self._tensor, self.__doc__ = operation, tensor_, operation.__doc__

    def __call__(self, *arguments, **named):
        return self._operation(self._tensor, *arguments, **named)


# ---- tensors -------------------------------------------------------------------------------------

class Tensor:
    """A tensor of tern's. Operations of the names table that take one first are its methods."""
    __slots__ = ("_pointer", "__weakref__")
    __array_priority__ = 1000

    def __init__(self):
        raise TypeError("tern.tensor(data) makes tensors")

    @classmethod
    def _of(cls, pointer, kept=False):
        if not pointer:
            return None
        self = object.__new__(cls)
        self._pointer = pointer if kept else lib.tern_keep(pointer)
        return self

    def __del__(self):
        if lib is not None and getattr(self, "_pointer", None):
            lib.tern_release(self._pointer)

    @property
    def shape(self):
        return tuple(lib.tern_size(self._pointer, d) for d in range(lib.tern_dim(self._pointer)))

    @property
    def ndim(self):
        return lib.tern_dim(self._pointer)

    @property
    def dtype(self):
        return DTYPES[lib.tern_dtype_of(self._pointer)]

    @property
    def device(self):
        return lib.tern_device(self._pointer).decode()

    @property
    def requires_grad(self):
        return lib.tern_requires_grad(self._pointer)

    @property
    def is_leaf(self):
        return lib.tern_is_leaf(self._pointer)

    @property
    def grad(self):
        return Tensor._of(lib.tern_grad(self._pointer))

    @grad.setter
    def grad(self, value):
        lib.tern_set_grad(self._pointer, value._pointer if value is not None else None)
        check()

    @property
    def T(self):
        return call("permute", self, list(range(self.ndim))[::-1])

    def stride(self):
        return tuple(lib.tern_stride(self._pointer, d) for d in range(self.ndim))

    def numel(self):
        return lib.tern_numel(self._pointer)

    def __len__(self):
        if self.ndim == 0:
            raise TypeError("len() of a tensor without dims")
        return self.shape[0]

    def requires_grad_(self, requires_grad=True):
        lib.tern_requires_grad_(self._pointer, requires_grad)
        check()
        return self

    def _made(self, function, *arguments):
        with scope():
            return Tensor._of(function(self._pointer, *arguments))

    def detach(self):
        return self._made(lib.tern_detach)

    def copy_(self, source):
        """Elements of source, of any type and device, into this tensor."""
        lib.tern_copy_(self._pointer, source._pointer)
        check()
        return self

    def to(self, where):
        """To a device, or to an element type."""
        if isinstance(where, str) and where not in _BY_NAME:
            return self._made(lib.tern_to, where.encode())
        return self._made(lib.tern_to_dtype, dtype_of(where).number)

    def cpu(self):
        return self.to("cpu")

    def backward(self, gradient=None, retain_graph=False, create_graph=False):
        class Options(ctypes.Structure):
            _fields_ = [("gradient", P), ("retain_graph", ctypes.c_bool), ("create_graph", ctypes.c_bool),
                        ("reserved", ctypes.c_uint64 * 4)]

        options = Options(gradient._pointer if gradient is not None else None, retain_graph, create_graph)
        with scope():
            lib.tern_backward_with(self._pointer, ctypes.byref(options))

    def item(self):
        integer = self.dtype.name.startswith(("int", "uint", "bool"))
        value = (lib.tern_item_int if integer else lib.tern_item)(self._pointer)
        check()
        return bool(value) if self.dtype.name == "bool" else value

    # ---- copies and files: a pointer is never copied, which two tensors would free
    def __copy__(self):
        return Tensor._of(self._pointer)

    def __deepcopy__(self, memo):
        if not self.is_leaf:
            raise RuntimeError("only leaves can be copied deeply: use .detach().clone()")
        copy = call("clone", self.detach())
        if self.requires_grad:
            copy.requires_grad_()
        memo[id(self)] = copy
        return copy

    def __reduce_ex__(self, protocol):
        if not self.is_leaf:
            raise RuntimeError("only leaves can be pickled: use .detach()")
        x = self.detach().cpu()
        if not lib.tern_is_contiguous(x._pointer):
            x = call("contiguous", x)
        data = ctypes.string_at(lib.tern_data(x._pointer), x.numel() * x.dtype.itemsize) if x.numel() else b""
        return _unpickled, (data, self.shape, self.dtype.name, self.device, self.requires_grad)

    def __bool__(self):
        return bool(self.item())

    def __float__(self):
        return float(self.item())

    def __int__(self):
        return int(self.item())

    def __repr__(self):
        shown = text(lib.tern_to_text(self._pointer))
        check()
        return shown.rstrip()

    # ---- others' arrays ----
    def __dlpack_device__(self):
        kind, _, index = self.device.partition(":")
        return ({"cpu": 1, "cuda": 2, "opencl": 4}[kind], int(index or 0))

    def __dlpack__(self, *, stream=None, max_version=None, dl_device=None, copy=None):
        if self.requires_grad:
            raise BufferError("the tensor requires a gradient: use .detach()")
        if dl_device is not None and tuple(dl_device) != self.__dlpack_device__():
            raise BufferError("the tensor is on %s: use .to() first" % self.device)
        x = call("clone", self) if copy else self
        versioned = max_version is not None and max_version[0] >= 1
        lent = lib.tern_to_dlpack(x._pointer) if versioned else lib.tern_to_dlpack_unversioned(x._pointer, None)
        check()
        _take_back()
        capsule = _new_capsule(lent, _VERSIONED if versioned else _OLD, None)
        _lent.append((capsule, not self.device.startswith("opencl")))
        return capsule

    def numpy(self):
        """A NumPy array on the same memory."""
        import numpy
        if self.requires_grad:
            raise RuntimeError("the tensor requires a gradient: use .detach().numpy()")
        if self.device != "cpu":
            raise TypeError("the tensor is on %s: use .cpu().numpy()" % self.device)
        if self.dtype.name.startswith(("bfloat16", "float8")):
            raise TypeError("NumPy has no %s: use .to('float32').numpy()" % self.dtype.name)
        return numpy.asarray(_Memory(self))

    def __array__(self, dtype=None, copy=None):
        array = self.detach().cpu().numpy()
        return array.astype(dtype) if dtype is not None else array

    def tolist(self):
        return self.detach().cpu().numpy().tolist()

    # ---- indices: what slices, numbers, None, ... and index tensors say ----
    def __getitem__(self, key):
        x, dim = self, 0
        key = key if isinstance(key, tuple) else (key,)
        rest = self.ndim - sum(k is not None and k is not Ellipsis for k in key)
        for k in key:
            if k is Ellipsis:
                dim += rest
            elif k is None:
                x, dim = call("unsqueeze", x, dim), dim + 1
            elif isinstance(k, slice):
                start, stop, step = k.indices(x.shape[dim])
                x, dim = call("slice", x, dim, start, max(stop, start), step), dim + 1
            elif isinstance(k, numbers.Integral):
                if not -x.shape[dim] <= k < x.shape[dim]:
                    raise IndexError("index %d is out of range of dim %d of size %d" % (k, dim, x.shape[dim]))
                x = call("select", x, dim, int(k))
            else:
                k = k if isinstance(k, Tensor) else tensor(k, device=self.device)
                if len(key) > 1 or k.dtype.name == "bool":
                    if len(key) > 1:
                        raise IndexError("an index tensor stands alone, or use tern.index_select")
                    return call("masked_select", x, k)
                flat = call("index_select", x, dim, call("reshape", k, [-1]))
                return call("reshape", flat, list(k.shape) + list(x.shape[1:]))
        return x


def _unpickled(data, shape, dtype_name, device, requires_grad):
    """A pickled tensor; on the cpu, with a warning, where its device is not there."""
    with scope():
        x = Tensor._of(lib.tern_from_data(data, Shape.of(shape), dtype_of(dtype_name).number, b"cpu"))
    if device != "cpu" and lib.tern_device_is_available(device.encode()):
        x = x.to(device)
    elif device != "cpu":
        lib.tern_clear_error()
        warnings.warn("a tensor was pickled on %s, which is not there: it is on the cpu" % device, stacklevel=2)
    return x.requires_grad_() if requires_grad else x


def _operator(name, turned=False):
    def method(self, other):
        if not isinstance(other, (Tensor, numbers.Real)) and not hasattr(other, "__array__"):
            return NotImplemented
        if turned and not isinstance(other, Tensor):
            other = call("full_like", self, other) if isinstance(other, numbers.Real) else tensor(other)
        return call(name, other, self) if turned else call(name, self, other)

    return method


for _symbol, _name in (("add", "add"), ("sub", "sub"), ("mul", "mul"), ("truediv", "div"), ("pow", "pow"), ("mod", "remainder"),
                       ("matmul", "matmul"), ("and", "bitwise_and"), ("or", "bitwise_or"), ("xor", "bitwise_xor"),
                       ("floordiv", "floor_divide")):
    setattr(Tensor, "__%s__" % _symbol, _operator(_name))
    if _symbol in ("add", "mul"):  # a number keeps its kind, as x + 1
        setattr(Tensor, "__r%s__" % _symbol, _operator(_name))
    else:
        setattr(Tensor, "__r%s__" % _symbol, _operator(_name, True))
for _symbol in ("lt", "le", "gt", "ge", "eq", "ne"):
    setattr(Tensor, "__%s__" % _symbol, _operator(_symbol))
Tensor.__hash__ = object.__hash__
Tensor.__neg__ = lambda self: call("neg", self)
Tensor.__abs__ = lambda self: call("abs", self)


def from_dlpack(source):
    """A tensor on the memory of another library's array."""
    try:
        capsule = source.__dlpack__(max_version=(1, 1))
    except TypeError:
        capsule = source.__dlpack__()
    address = id(capsule)
    for name, used, take in ((_VERSIONED, b"used_dltensor_versioned", lib.tern_from_dlpack),
                             (_OLD, b"used_dltensor", lambda lent: lib.tern_from_dlpack_unversioned(lent, None))):
        if _is_capsule(address, name):
            lent = _pointer_of(address, name)
            _rename(address, used)
            with scope():
                return Tensor._of(take(lent))
    raise TypeError("%s.__dlpack__ gave no capsule of DLPack's" % type(source).__name__)


def from_numpy(array):
    """A tensor on the memory of a NumPy array."""
    return from_dlpack(array)


def tensor(data, dtype=None, device=None, requires_grad=False):
    """A copy of numbers, lists, arrays or a tensor."""
    if isinstance(data, Tensor):
        x = call("clone", data.detach())
    elif hasattr(data, "__dlpack__") and not hasattr(data, "__array_interface__"):
        x = call("clone", from_dlpack(data))
    else:
        x = _of_array(data)
    x = x if dtype is None else x.to(dtype_of(dtype))
    x = x if device is None else x.to(device)
    return x.requires_grad_() if requires_grad else x


def _of_array(data):
    import numpy
    array = numpy.asarray(data)
    if not hasattr(data, "dtype") and array.dtype == numpy.float64:
        array = array.astype(numpy.float32)  # PyTorch's default of Python's reals
    array = numpy.array(array, order="C")  # its own, whole and in this machine's order of bytes
    with scope():
        return Tensor._of(lib.tern_from_data(array.ctypes.data, Shape.of(array.shape), dtype_of(array.dtype).number, b"cpu"))
