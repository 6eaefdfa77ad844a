"""torch.tern: the functions of a device module, as torch.cuda has them."""
import contextlib
import ctypes
import os
import struct
import types

import torch

from . import _library


def devices(*names):
    """The devices of tern's that are tern:0, tern:1, ...: `devices()` lists them, and
    `devices("opencl:1", "cpu")` chooses them, before the first tensor is made on one."""
    if names:
        _library.call("choose_devices", ",".join(names).encode())
    return [_library.text("device_string", i) for i in range(_library.number("device_count"))]


_is_in_bad_fork = False


def _after_fork():
    global _is_in_bad_fork
    _is_in_bad_fork = True


os.register_at_fork(after_in_child=_after_fork)


def end():
    """Before Python ends: an error of a device is nobody's any more."""
    if not _is_in_bad_fork:
        _library.library.torch_tern_finish_backward_passes()


class device(contextlib.ContextDecorator):
    """Makes a device the current one inside the block."""

    def __init__(self, device):
        self.index = torch.tern._index(device)

    def __enter__(self):
        self.before = torch.tern.current_device()
        torch.tern.set_device(self.index)
        return self

    def __exit__(self, *_):
        torch.tern.set_device(self.before)


class Properties:
    """What a device is: name, device ("opencl:0") and total_memory in bytes."""

    def __init__(self, index):
        self.name = _library.text("device_description", index)
        self.device = _library.text("device_string", index)
        self.total_memory = _library.numbers("memory", 7, index)[5]

    def __repr__(self):
        return (f"Properties(name={self.name!r}, device={self.device!r}, "
                f"total_memory={self.total_memory})")


class Module(types.ModuleType):
    """torch.tern. A device is a number, "tern:1", a torch.device, or None for the current one."""

    _initialized = True  # torch.utils.checkpoint keeps the generator of initialized devices
    device = device
    Stream = torch.Stream
    Event = torch.Event

    def _index(self, device=None):
        if device is None:
            return self.current_device()
        if isinstance(device, int):
            return device if device >= 0 else self.current_device()
        device = torch.device(device)
        if device.type != "tern":
            raise ValueError(f"Expected a tern device, but got: {device}")
        return self.current_device() if device.index is None else device.index

    # ---- devices

    def is_available(self):
        return self.device_count() > 0

    def is_initialized(self):
        return True

    def init(self):
        self._lazy_init()

    def _lazy_init(self):
        if _is_in_bad_fork:
            raise RuntimeError("Cannot re-initialize tern in forked subprocess. To use tern with "
                               "multiprocessing, you must use the 'spawn' start method")

    def _is_in_bad_fork(self):
        return _is_in_bad_fork

    def device_count(self):
        return _library.number("device_count")

    def current_device(self):
        return _library.library.torch_tern_current_device()

    def set_device(self, device):
        _library.call("set_device", self._index(device))

    def get_device_name(self, device=None):
        return _library.text("device_description", self._index(device))

    def get_device_properties(self, device=None):
        return Properties(self._index(device))

    def synchronize(self, device=None):
        _library.call("synchronize", self._index(device))

    # ---- streams: a device has one queue, in order

    def current_stream(self, device=None):
        return torch.accelerator.current_stream(torch.device("tern", self._index(device)))

    default_stream = current_stream

    def stream(self, stream):
        return contextlib.nullcontext(stream)

    def set_stream(self, stream):
        pass

    # ---- memory

    def empty_cache(self):
        for i in range(self.device_count()):
            _library.call("empty_cache", i)

    def _memory(self, device):
        return _library.numbers("memory", 7, self._index(device))

    def memory_allocated(self, device=None):
        return self._memory(device)[0]

    def max_memory_allocated(self, device=None):
        return self._memory(device)[1]

    def memory_reserved(self, device=None):
        return self._memory(device)[2]

    def max_memory_reserved(self, device=None):
        return self._memory(device)[3]

    def mem_get_info(self, device=None):
        memory = self._memory(device)
        return memory[6], memory[5]

    def memory_stats(self, device=None):
        memory = self._memory(device)
        return {"allocated_bytes.all.current": memory[0], "allocated_bytes.all.peak": memory[1],
                "reserved_bytes.all.current": memory[2], "reserved_bytes.all.peak": memory[3]}

    def reset_peak_memory_stats(self, device=None):
        _library.call("reset_peak", self._index(device))

    def set_per_process_memory_fraction(self, fraction, device=None):
        _library.call("set_memory_fraction", fraction, self._index(device))

    # ---- random numbers

    def manual_seed(self, seed):
        _library.call("manual_seed", self.current_device(), int(seed) & (1 << 64) - 1)

    def manual_seed_all(self, seed):
        for i in range(self.device_count()):
            _library.call("manual_seed", i, int(seed) & (1 << 64) - 1)

    def seed(self):
        self.manual_seed(int.from_bytes(os.urandom(8), "little"))

    def seed_all(self):
        self.manual_seed_all(int.from_bytes(os.urandom(8), "little"))

    def _rng_state(self, device):
        seed, offset = ctypes.c_uint64(), ctypes.c_uint64()
        _library.call("get_rng_state", self._index(device), ctypes.byref(seed),
                      ctypes.byref(offset))
        return seed.value, offset.value

    def initial_seed(self):
        return self._rng_state(None)[0]

    def get_rng_state(self, device="tern"):
        return torch.tensor(list(struct.pack("=QQ", *self._rng_state(device))),
                            dtype=torch.uint8)

    def set_rng_state(self, state, device="tern"):
        _library.call("set_rng_state", self._index(device),
                      *struct.unpack("=QQ", bytes(state.cpu().tolist())))

    def get_rng_state_all(self):
        return [self.get_rng_state(i) for i in range(self.device_count())]

    def set_rng_state_all(self, states):
        for i, state in enumerate(states):
            self.set_rng_state(state, i)

    # ---- autocast

    def get_amp_supported_dtype(self):
        return [torch.float16, torch.bfloat16]

    def is_bf16_supported(self, including_emulation=True):
        return True

    # ---- what ran where

    def counts(self):
        """{operation: (calls that tern served, calls that the cpu did, the first reason)}."""
        lines = _library.library.torch_tern_counters().decode().splitlines()
        rows = {}
        for operation, served, fallbacks, reason in (line.split("\t", 3) for line in lines):
            before = rows.get(operation, (0, 0, ""))
            rows[operation] = (before[0] + int(served), before[1] + int(fallbacks),
                               before[2] or reason)
        return rows

    def fallbacks(self):
        """{operation: (calls that ran on the cpu, the reason of the first)}."""
        return {operation: row[1:] for operation, row in self.counts().items() if row[1]}

    def reset_counts(self):
        _library.library.torch_tern_reset_counters()
