"""Lightning on tern: after `import torch_tern.lightning`, Trainer(accelerator="tern", devices=1)."""
import torch
from lightning.pytorch.accelerators import Accelerator, AcceleratorRegistry
from lightning.pytorch.strategies import SingleDeviceStrategy
from lightning.pytorch.trainer.connectors.accelerator_connector import _AcceleratorConnector


class TernAccelerator(Accelerator):
    """A device of tern's; devices is how many of them, or a list of their numbers."""

    def setup_device(self, device):
        if device.type != "tern":
            raise ValueError(f"the device of a TernAccelerator is a tern device, not {device}")
        torch.tern.set_device(device)

    def get_device_stats(self, device):
        return torch.tern.memory_stats(device)

    def teardown(self):
        torch.tern.empty_cache()

    @staticmethod
    def parse_devices(devices):
        if isinstance(devices, str):
            devices = [int(part) for part in devices.split(",")] if "," in devices else int(devices)
        if isinstance(devices, int):
            devices = list(range(torch.tern.device_count() if devices == -1 else devices))
        return list(devices)

    @staticmethod
    def get_parallel_devices(devices):
        return [torch.device("tern", i) for i in TernAccelerator.parse_devices(devices)]

    @staticmethod
    def auto_device_count():
        return 1

    @staticmethod
    def is_available():
        return torch.tern.is_available()

    @staticmethod
    def name():
        return "tern"


_choose_strategy = _AcceleratorConnector._choose_strategy


def _choose_strategy_on_tern(self):
    """Lightning puts one device of an accelerator that is not its own on the cpu."""
    is_tern = self._accelerator_flag == "tern" or isinstance(self._accelerator_flag,
                                                             TernAccelerator)
    if is_tern and len(self._parallel_devices) == 1:
        return SingleDeviceStrategy(device=self._parallel_devices[0])
    return _choose_strategy(self)


_AcceleratorConnector._choose_strategy = _choose_strategy_on_tern
if "tern" not in AcceleratorRegistry:
    AcceleratorRegistry.register("tern", TernAccelerator, description="tern's devices")
