"""tern as a PyTorch device: `import torch_tern`, then x.to("tern"), model.to("tern:0").

Each of tern's devices is one of PyTorch's: tern:0 is the best one (a GPU where there is one), the
last one the cpu; TERN_TORCH_DEVICES=opencl:1,cpu or torch_tern.devices("opencl:1", "cpu") choose
others. torch.tern has the functions that torch.cuda has. Operations that tern does not have run on
the cpu, with a warning at the first call of each; torch.tern.fallbacks() counts them, and
TERN_TORCH_STRICT=1 makes them errors."""
import atexit
import os

import torch

if not hasattr(torch, "tern"):
    from . import _library, _module

    torch.utils.rename_privateuse1_backend("tern")
    _library.call("register")
    torch._register_device_module("tern", _module.Module("torch.tern"))
    torch.utils.generate_methods_for_privateuse1_backend(for_storage=True)
    # Module.to gives a parameter its elements on another device by `param.data = moved`, which
    # PyTorch refuses from the cpu to a device that is not its own, and then makes new parameters:
    # tied ones come apart, and optimizers hold the old ones. Swapping keeps them.
    torch.__future__.set_swap_module_params_on_conversion(True)
    from . import _lazy, _optim, _storage

    _lazy.install()
    _optim.install()
    _storage.install()
    atexit.register(_module.end)
    # Accelerate, and with it transformers' Trainer, knows no devices of others, and would train on
    # the cpu without a word.
    if not torch.cuda.is_available() and not torch.backends.mps.is_available():
        os.environ.setdefault("ACCELERATE_TORCH_DEVICE", "tern:0")

from ._module import devices  # noqa: E402
from ._step import step  # noqa: E402

__all__ = ["devices", "step"]
