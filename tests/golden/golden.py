"""golden.py -- what the scripts of golden files share: entries, gradients, inputs."""
import torch


def show(name, value, form=repr, file=None):
    """An entry: "<name> <dtype> <ndim> <sizes>", then the elements."""
    print(name, str(value.dtype)[6:], value.dim(), *value.shape, file=file)
    print(*map(form, value.detach().flatten().tolist()), file=file)


def weight_of(y):
    return torch.arange(1, y.numel() + 1, dtype=torch.float64).reshape(y.shape) / 8


def show_with_gradients(name, function, **inputs):
    """The result, and the gradients "<name>.d<input>" of its sum times weight_of its shape."""
    leaves = {k: v.clone().requires_grad_(True) for k, v in inputs.items()}
    y = function(**leaves)
    show(name, y)
    (y * weight_of(y)).sum().backward()
    for key, leaf in leaves.items():
        show(name + ".d" + key, leaf.grad)


def randn(*shape):
    return torch.randn(*shape, dtype=torch.float64)


def pattern(shape, step, period):
    """Multiples of a quarter: tests/pattern.h has the same."""
    i = torch.arange(torch.Size(shape).numel(), dtype=torch.float64)
    return ((i * step % period - period // 2) / 4).reshape(shape)
