"""torch_tern.step: a function that records what it does on the device, and replays it."""
import ctypes
import functools
import threading
import warnings

import torch
from torch.nn.modules.module import register_module_forward_pre_hook
from torch.optim.optimizer import register_optimizer_step_pre_hook

from . import _library

_library.library.torch_tern_step_error.argtypes = [ctypes.c_void_p, ctypes.c_char_p]
_library.library.torch_tern_step_error.restype = None
_library.library.torch_tern_set_optimizer.argtypes = [ctypes.c_void_p,
                                                      ctypes.POINTER(ctypes.c_double)]
_Callback = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int)
_FUSED = (torch.optim.Adam, torch.optim.AdamW, torch.optim.SGD)
_MOST_TENSORS = 64  # of tern_step_run
_MOST_UNMET = 16  # calls in turn with arguments that no earlier call had, before that is said
_active = []  # the steps whose functions run, the innermost last


def _flatten(value, tensors):
    """What value is apart from its tensors, which are appended: comparable, with a hash."""
    if isinstance(value, torch.Tensor):
        tensors.append(value)
        return _TENSOR
    if isinstance(value, (list, tuple)):
        return type(value), tuple(_flatten(item, tensors) for item in value)
    if isinstance(value, dict):
        return type(value), tuple((k, _flatten(item, tensors)) for k, item in value.items())
    return _Constant(value)


def _unflatten(structure, tensors):
    """The value of a structure, with the tensors of an iterator."""
    if structure is _TENSOR:
        return next(tensors)
    if isinstance(structure, _Constant):
        return structure.value
    kind, items = structure
    if issubclass(kind, dict):
        made = ((k, _unflatten(item, tensors)) for k, item in items)
        return dict(made) if kind is dict else kind(**dict(made))
    made = [_unflatten(item, tensors) for item in items]
    return kind(*made) if hasattr(kind, "_fields") else kind(made)


class _Constant:
    """A value without tensors. Numbers of different types, 1 and True, are different."""

    def __init__(self, value):
        self.value = value

    def __eq__(self, other):
        return isinstance(other, _Constant) and type(self.value) is type(other.value) and \
            self.value == other.value

    def __hash__(self):
        return hash((type(self.value), self.value))


_TENSOR = "a tensor"


def _difference(before, now, name=""):
    """The first place where two structures differ: its name, the value before, the value now."""
    if _TENSOR in (before, now) or isinstance(before, _Constant) or isinstance(now, _Constant):
        values = (x.value if isinstance(x, _Constant) else x if x is _TENSOR else x[0].__name__
                  for x in (before, now))
        return (name, *(repr(x)[:40] if x is not _TENSOR else x for x in values))
    if before[0] is not now[0] or len(before[1]) != len(now[1]):
        return name, *(f"{len(items)} items of {kind.__name__}" for kind, items in (before, now))
    for i, (a, b) in enumerate(zip(before[1], now[1])):
        if a != b and issubclass(now[0], dict):
            return (f"the keys of {name}", repr(a[0]), repr(b[0])) if a[0] != b[0] else \
                _difference(a[1], b[1], f"{name}[{b[0]!r}]")
        if a != b:
            return _difference(a, b, f"{name}[{i}]")
    return None


def _changes(before, now):
    """What differs between the arguments of two calls, in words."""
    for name, a, b in (("args", before[0][1][0], now[0][1][0]),
                       ("kwargs", before[0][1][1], now[0][1][1])):
        if a != b:
            return "{} was {} and is {}".format(*_difference(a, b, name))
    for i, (a, b) in enumerate(zip(before[2], now[2])):
        if a != b:
            return f"tensor {i} was {tuple(a[0])} {a[1]} and is {tuple(b[0])} {b[1]}"
    return f"they were on tern:{before[1]} and are on tern:{now[1]}"


class _Recorded:
    """What a recording left in Python."""

    def __init__(self, result, tensors, made, kept):
        self.result, self.tensors = result, tensors
        self.made = made  # (parameter, the gradient that the recording made, or None)
        self.kept = kept  # (parameter, the gradient that it adds to)


class step:
    """A function that is run twice, then recorded, and from then on replayed without Python's part
    of it, as torch.compile(mode="reduce-overhead") does with CUDA's graphs.

        @torch_tern.step
        def train(x, y):
            optimizer.zero_grad()
            loss = loss_of(model(x), y)
            loss.backward()
            optimizer.step()
            return loss

    Arguments and results are tensors of one tern device, other values, and lists, tuples and dicts
    of them. Threads take turns. A call with other shapes, strides, dtypes or values, in another mode of the modules, grad mode
    or autocast, has a recording of its own, at most max_recordings of them. Results are those of
    the function, bit for bit, without a graph of gradients; each call's are new tensors. Learning
    rates and the other numbers of Adam, AdamW and SGD are read in each call; random numbers and
    counts of steps go on.

    The function runs in every call, with one warning that says why, where it needs a value on the
    host (loss.item(), a branch on a tensor), copies from or to the host, runs something on the
    cpu, takes more than 64 tensors, steps another optimizer, or if 16 calls in turn have arguments that
    no earlier call had, such as a number that counts the calls. stats() has the reason. What it does in Python, such as
    printing and a scheduler's step, happens in calls that run it and in the one that records.
    reset() gives up the recordings: call it after parameters, buffers or the optimizer's state were
    replaced, not written to, and torch.nn.Module.to and load_state_dict(assign=True) are such."""

    def __init__(self, function, *, warmup=2, max_recordings=8):
        if not callable(function):
            raise TypeError(f"torch_tern.step: a function was expected, not {type(function)}")
        if warmup < 2 or max_recordings < 1:
            raise ValueError("torch_tern.step: warmup must be at least 2 and max_recordings at "
                             f"least 1, got {warmup} and {max_recordings}")
        functools.update_wrapper(self, function)
        self._function, self._options = function, dict(warmup=warmup, max_recordings=max_recordings)
        self._instance, self._attribute = None, getattr(function, "__name__", None)
        self._lock = threading.RLock()  # a call replays into memory that its results are copied from
        self._is_stale = False
        self._modules, self._optimizers, self._parameters = {}, {}, []
        self._ran = 0
        self._reason = ""
        self._told, self._is_told_of_change = set(), False
        self._forget()
        self._callback = _Callback(self._call_back)
        handle = ctypes.c_void_p()
        _library.call("step_new", self._callback, warmup - 1, max_recordings, ctypes.byref(handle))
        self._handle = handle.value

    def __del__(self):
        if getattr(self, "_handle", None):
            _library.library.torch_tern_step_free(ctypes.c_void_p(self._handle))

    def __set_name__(self, owner, name):
        self._attribute = name

    def __get__(self, instance, owner=None):
        """A method: each object has recordings of its own, in its __dict__."""
        if instance is None:
            return self
        if not hasattr(instance, "__dict__"):
            raise TypeError(f"torch_tern.step: objects of {type(instance).__name__} have no "
                            f"__dict__ for the recordings of {self._attribute}")
        bound = step(self._function.__get__(instance, owner), **self._options)
        bound._instance, bound._attribute = instance, self._attribute
        instance.__dict__[self._attribute] = bound
        return bound

    def __reduce__(self):
        """Copies have no recordings. The copy of an object makes the step of its method anew."""
        if self._instance is None:
            return functools.partial(step, **self._options), (self._function,)
        return getattr, (self._instance, self._attribute)

    def _forget(self):
        self._kinds, self._first, self._recordings = {}, {}, {}
        self._unmet = 0
        self._numbers = {}

    def reset(self):
        """Gives up all recordings: the next calls run the function, and record it anew."""
        with self._lock:
            self._is_stale = self in _active  # its recordings are in use: after the call
            if not self._is_stale:
                _library.call("step_reset", ctypes.c_void_p(self._handle))
                self._forget()

    def stats(self):
        """{"ran": calls that ran the function, "replayed": calls that replayed, "recordings": how
        many there are, "launches": of the latest replay, "reason": why the latest call ran the
        function that would otherwise have replayed, or None}."""
        numbers, reason = (ctypes.c_int64 * 4)(), ctypes.c_char_p()
        _library.call("step_stats", ctypes.c_void_p(self._handle), numbers, ctypes.byref(reason))
        ran, replayed, recordings, launches = numbers
        return {"ran": ran + self._ran, "replayed": replayed, "recordings": recordings,
                "launches": launches, "reason": self._reason or reason.value.decode() or None}

    # ---- a call

    def __call__(self, *args, **kwargs):
        with self._lock:
            try:
                return self._call(args, kwargs)
            finally:
                if self._is_stale:
                    self._reason = "the function resets the step, or loads an optimizer's state"
                    self.reset()

    def _call(self, args, kwargs):
        tensors = []
        structure = _flatten((args, kwargs), tensors)
        self._reason = self._obstacle(structure, tensors)
        if self._reason:
            self._tell(self._reason)
            self._ran += 1
            return self._run(args, kwargs)
        index = tensors[0].device.index if tensors else torch.tern.current_device()
        shapes = (structure, index, tuple((x.shape, x.dtype, None if x.is_contiguous() else x.stride())
                                          for x in tensors))
        if shapes not in self._first:  # finds the modules and the optimizers
            self._meet(shapes)
            self._ran += 1
            return self._run(args, kwargs)
        self._unmet = 0
        kind = self._kind(shapes)
        known = self._recordings.get(kind)
        if known and any(p.grad is not grad for p, grad in known.kept):
            self.reset()  # it adds to gradients that are no longer there
            return self._call(args, kwargs)
        if known:
            self._set_numbers()
        self._given, self._index, self._current = (args, kwargs), index, kind
        self._structure, self._error, self._result, self._has_run = structure, None, None, False
        self._before = []
        try:
            torch.ops.torch_tern.run_step(self._handle, tensors, kind)
        except Exception:
            if self._error is not None:
                raise self._error from None
            raise
        finally:
            self._given, self._error, self._before = None, None, []
        reason = self.stats()["reason"] if self._has_run else None
        if reason:
            self._tell(reason)
        if self._has_run:
            return self._result
        return self._replayed(self._recordings[kind])

    def _meet(self, shapes):
        """Notes arguments that no earlier call had. Where each call has others, nothing is ever
        recorded: says what changes."""
        self._unmet += 1
        if self._unmet > _MOST_UNMET:
            self._reason = (f"the arguments of the last {_MOST_UNMET} calls and more were new each time "
                            f"({_changes(next(reversed(self._first)), shapes)}); give what changes "
                            "as a tensor")
            if not self._is_told_of_change:
                self._is_told_of_change = True
                self._tell(self._reason)
            if len(self._first) > 64 * _MOST_UNMET:
                self._first.pop(next(iter(self._first)))
        self._first[shapes] = True

    def _obstacle(self, structure, tensors):
        if _active:
            return "another step runs"
        try:
            hash(structure)
        except TypeError as error:
            return f"an argument can't tell recordings apart ({error})"
        if len(tensors) > _MOST_TENSORS:
            return f"there are {len(tensors)} tensors in the arguments, more than {_MOST_TENSORS}"
        for i, x in enumerate(tensors):
            if x.device.type != "tern":
                return f"tensor {i} of the arguments is on {x.device}; give x.to('tern')"
            if x.device != tensors[0].device:
                return f"the arguments are on {tensors[0].device} and {x.device}"
            if x.requires_grad:
                return f"tensor {i} of the arguments requires a gradient"
        return ""

    def _tell(self, reason):
        reason = reason.split("\n")[0]
        if reason not in self._told:
            self._told.add(reason)
            warnings.warn(f"torch_tern.step: {getattr(self, '__name__', 'the function')} runs in "
                          f"every call: {reason}", stacklevel=3)

    def _kind(self, shapes):
        """The number of all that the function's course depends on."""
        modes = (torch.is_grad_enabled(), torch.is_autocast_enabled("tern"),
                 torch.get_autocast_dtype("tern"), torch.get_default_dtype(),
                 tuple(m.training for m in self._modules.values()))
        parameters = tuple((p.data_ptr(), p.grad is None, p.requires_grad)
                           for p in self._parameters)
        options = tuple((group.get("amsgrad"), group.get("maximize"), group.get("nesterov"),
                         group.get("momentum") == 0, len(group["params"]))
                        for o in self._optimizers.values() for group in o.param_groups)
        key = shapes, modes, parameters, options
        return self._kinds.setdefault(key, len(self._kinds))

    def _set_numbers(self):
        """The optimizers' numbers that changed since the latest call."""
        for i, optimizer in self._optimizers.items():
            if type(optimizer) not in _FUSED:
                continue  # of calls that are not recorded
            for j, group in enumerate(optimizer.param_groups):
                beta1, beta2 = group.get("betas", (0, 0))
                numbers = (group["lr"], group["weight_decay"], beta1, beta2, group.get("eps", 0),
                           group.get("momentum", 0), group.get("dampening", 0))
                if self._numbers.get((i, j)) == numbers:
                    continue
                values = (ctypes.c_double * 7)(*map(float, numbers))
                for p in group["params"]:
                    _library.call("set_optimizer", ctypes.c_void_p(p.data_ptr()), values)
                self._numbers[i, j] = numbers

    # ---- the function

    def _run(self, args, kwargs, is_recorded=False):
        """Its result, without a graph. Backward passes stay in this thread, where tern records."""
        thread = threading.get_ident()

        def see_module(module, _):
            if is_recorded or id(module) in self._modules or threading.get_ident() != thread:
                return
            self._modules[id(module)] = module
            self._watch(module.parameters(recurse=False))

        def see_optimizer(optimizer, *_):
            if threading.get_ident() != thread:
                return
            if is_recorded:
                self._check_optimizer(optimizer)
            if id(optimizer) not in self._optimizers:
                self._optimizers[id(optimizer)] = optimizer
                optimizer.register_load_state_dict_post_hook(self._loaded)
                self._watch(p for group in optimizer.param_groups for p in group["params"])

        _active.append(self)
        hooks = [register_module_forward_pre_hook(see_module),
                 register_optimizer_step_pre_hook(see_optimizer)]
        try:
            with torch.autograd.set_multithreading_enabled(False):
                result = self._function(*args, **kwargs)
        finally:
            for hook in hooks:
                hook.remove()
            _active.pop()
        tensors = []
        structure = _flatten(result, tensors)
        return _unflatten(structure, iter([x.detach() for x in tensors]))

    def _loaded(self, _):
        self.reset()

    def _watch(self, parameters):
        known = set(map(id, self._parameters))
        self._parameters += [p for p in parameters if id(p) not in known]

    @staticmethod
    def _check_optimizer(optimizer):
        for group in optimizer.param_groups:
            if type(optimizer) not in _FUSED or not group.get("fused"):
                raise RuntimeError(f"{type(optimizer).__name__} counts its steps on the host, which "
                                   "can't be recorded: of torch.optim's Adam, AdamW and SGD the "
                                   "fused form on float32 or float64 can")
            if isinstance(group["lr"], torch.Tensor):
                raise RuntimeError("a learning rate that is a tensor can't be recorded; a number is "
                                   "read in each call")

    def _call_back(self, is_recorded):
        """Called by tern in the thread of the call; 0, or 1 after an exception."""
        args, kwargs = self._given
        if self._error is not None and not isinstance(self._error, Exception):
            return 1  # KeyboardInterrupt in the recording ends the call
        try:
            if is_recorded:
                self._before = [(p, p.grad) for p in self._parameters]
                inputs = torch.ops.torch_tern.step_inputs(self._index)
                args, kwargs = _unflatten(self._structure, iter(inputs))
            elif self._before:  # what was recorded is of no use
                self._undo()
            result = self._run(args, kwargs, is_recorded)
            if is_recorded:
                self._keep(result)
            else:
                self._result, self._has_run = result, True
            return 0
        except BaseException as error:
            self._undo()
            self._error = error
            _library.library.torch_tern_step_error(
                self._handle, str(error).split("\n")[0].encode() or type(error).__name__.encode())
            return 1

    def _undo(self):
        """Gives parameters the gradients that they had before a recording that failed."""
        for p, grad in self._before:
            p.grad = grad
        self._before = []
        self._recordings.pop(self._current, None)

    def _keep(self, result):
        tensors = []
        structure = _flatten(result, tensors)
        for x in tensors:
            if x.device.type != "tern":
                raise RuntimeError(f"a result is on {x.device}, which can't be recorded")
        made = [(p, p.grad) for p, grad in self._before if p.grad is not grad]
        kept = [(p, grad) for p, grad in self._before
                if p.grad is grad and grad is not None]
        self._recordings[self._current] = _Recorded(structure, tensors, made, kept)

    @staticmethod
    def _replayed(recorded):
        for p, grad in recorded.made:
            if p.grad is not grad:
                p.grad = grad
        with torch.no_grad():
            return _unflatten(recorded.result, iter([x.clone() for x in recorded.tensors]))
