"""Lazy modules (torch.nn.LazyLinear and its like) move and change dtype before they have shapes."""
import torch
from torch.nn.modules.lazy import LazyModuleMixin
from torch.nn.parameter import UninitializedTensorMixin


def _convert(waiting, fn):
    """Gives an uninitialized parameter or buffer the device and dtype that fn gives to tensors."""
    data = fn(waiting.data)
    if data.device.type == waiting.device.type:
        waiting.data = data
        return
    options = {} if type(waiting) is torch.nn.parameter.UninitializedBuffer else \
        {"requires_grad": waiting.requires_grad}
    torch._C._swap_tensor_impl(waiting, type(waiting)(device=data.device, dtype=data.dtype, **options))


def _apply(self, fn, *args, **kwargs):
    """Module._apply, which swaps tensors, and can't swap those without a shape."""
    waiting = [(tensors, name, x) for tensors in (self._parameters, self._buffers)
               for name, x in tensors.items() if isinstance(x, UninitializedTensorMixin)]
    try:
        for tensors, name, x in waiting:
            tensors[name] = None
        result = super(LazyModuleMixin, self)._apply(fn, *args, **kwargs)
    finally:
        for tensors, name, x in waiting:
            tensors[name] = x
    for _, _, x in waiting:
        _convert(x, fn)
    return result


def install():
    LazyModuleMixin._apply = _apply
