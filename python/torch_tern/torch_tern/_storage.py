"""Storages in the older format of torch.save, which pickle uses, too. PyTorch would wrap the address
of a storage in a new tensor, and a storage of tern has none."""
import functools

import torch


def _with_copy_on_cpu(method, writes_storage):
    """A method of storages that, of one of tern, works on a copy on the cpu."""
    @functools.wraps(method)
    def works_on_copy(self, *args, **kwargs):
        if self.device.type != "tern":
            return method(self, *args, **kwargs)
        copy = self.cpu()
        result = method(copy, *args, **kwargs)
        if not writes_storage:
            return result
        self.copy_(copy)
        return self
    return works_on_copy


def install():
    storage = torch.UntypedStorage
    storage._write_file = _with_copy_on_cpu(storage._write_file, False)
    storage._set_from_file = _with_copy_on_cpu(storage._set_from_file, True)
